#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json into build/<preset>.
#
#   scripts/build.sh <preset> [<argument of cmake --build>...]
source "$(dirname "$0")/common.sh"

preset=${1:?usage: scripts/build.sh <preset>}
shift
say "build: preset $preset into build/$preset"

# Of the configuration only this is worth a line: parts that are switched off, and errors.
mkdir -p build
log=build/$preset-configure.log
cmake --preset "$preset" >"$log" 2>&1 || { cat "$log"; die "cmake --preset $preset failed"; }
grep ' is off: ' "$log" || true

cmake --build --preset "$preset" --parallel "$jobs" "$@"
