#!/usr/bin/env bash
# The Python tests, two processes at a time: the programs take as long as all the rest. The operators come last,
# with processes of their own.
#
#   scripts/pytest.sh <python> [<tests beside those>...]
source "$(dirname "$0")/common.sh"

python=${1:?usage: scripts/pytest.sh <python> [<tests beside those>...]}
shift
tests=("$@")
(($#)) || tests=(tests/python)
programs=tests/python/plugin/test_programs.py
operators=tests/python/plugin/test_op_db.py

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$python" -m pytest "$programs" >"$log" 2>&1 &
beside=$!
status=0
"$python" -m pytest "${tests[@]}" --ignore "$programs" --ignore "$operators" || status=$?
wait "$beside" || status=$?
cat "$log"
((status == 0)) || exit "$status"
"$python" -m pytest "$operators"
