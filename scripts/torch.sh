#!/usr/bin/env bash
# The plugin's tests with another PyTorch than .venv's: installs it, builds the plugin for it, runs them.
#
#   scripts/torch.sh <version> [<argument of pytest>...]
source "$(dirname "$0")/common.sh"

version=${1:?usage: scripts/torch.sh <version> [<argument of pytest>...]}
shift
tests=("$@")
(($#)) || tests=(tests/python/plugin)

scripts/setup.sh torch "$version"
python=$PWD/.venv-torch-$version/bin/python
build=build/torch-$version
say "build: the plugin for PyTorch $version into $build"
mkdir -p build
log=$build-configure.log
cmake --preset plugin -B "$build" -D COOP_PYTHON="$python" >"$log" 2>&1 ||
  { cat "$log"; die "the plugin cannot be built for PyTorch $version"; }
cmake --build "$build" --parallel "$jobs" --target coop-plugin coop-foreign

COOP_PLUGIN=$PWD/$build/src/libcoop_plugin.so "$python" -m pytest "${tests[@]}"
