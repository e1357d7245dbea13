#!/usr/bin/env bash
# The plugin's tests with another PyTorch than .venv's: installs it, builds the plugin for it, runs them.
#
#   scripts/torch.sh <version> [<test or argument of pytest>...]
#
# Of a slice (COOP_TEST_SCALE=slice) it runs what versions have differed in, not all tests of the plugin.
source "$(dirname "$0")/common.sh"

version=${1:?usage: scripts/torch.sh <version> [<test or argument of pytest>...]}
shift

scripts/setup.sh torch "$version"
python=$PWD/.venv-torch-$version/bin/python
build=build/torch-$version
say "build: the plugin for PyTorch $version into $build"
mkdir -p build
log=$build-configure.log
cmake --preset plugin -B "$build" -D COOP_PYTHON="$python" >"$log" 2>&1 ||
  { cat "$log"; die "the plugin cannot be built for PyTorch $version"; }
cmake --build "$build" --parallel "$jobs" --target coop-plugin coop-foreign coop-second-device

export COOP_PLUGIN=$PWD/$build/src/libcoop_plugin.so
if (($#)); then exec "$python" -m pytest "$@"; fi
tests=(tests/python/plugin)
if [[ ${COOP_TEST_SCALE:-} == slice ]]; then
  tests=(tests/python/plugin/test_{budget_scope,compiled,foreign_code,light_calls,memory}.py
    tests/python/plugin/test_{past_the_dispatcher,raw_access,several_devices,strange_tensors}.py
    tests/python/plugin/test_{taint,threads,versions}.py)
fi
scripts/pytest.sh "$python" "${tests[@]}"
