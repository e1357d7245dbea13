#!/usr/bin/env bash
# The Python tests, two files at a time. The operators come last, with processes of their own.
#
#   scripts/pytest.sh <python> [<tests beside the programs and the operators>...]
source "$(dirname "$0")/common.sh"

python=${1:?usage: scripts/pytest.sh <python> [<tests beside the programs and the operators>...]}
shift
tests=("$@")
(($#)) || tests=(tests/python)
programs=tests/python/plugin/test_programs.py
operators=tests/python/plugin/test_op_db.py

"$python" -m pytest --numprocesses 2 --dist loadfile "$programs" "${tests[@]}" --ignore "$operators"
"$python" -m pytest "$operators"
