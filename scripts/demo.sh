#!/usr/bin/env bash
# A small network trains on the CPU, without coop and with half the memory: what that costs, and that nothing
# else changes.
#
#   scripts/demo.sh [--json] [--smoke]
source "$(dirname "$0")/common.sh"

[[ -x .venv/bin/python ]] || die "there is no .venv with PyTorch: make setup"
export COOP_PLUGIN=${COOP_PLUGIN:-$PWD/build/release/src/libcoop_plugin.so}
[[ -e $COOP_PLUGIN ]] || die "$COOP_PLUGIN is not built: make build"
PYTHONPATH=$PWD/python exec .venv/bin/python scripts/demo.py "$@"
