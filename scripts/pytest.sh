#!/usr/bin/env bash
# The Python tests, in two queues that take about as long as each other, and in processes of their own: what one
# leaves behind is not the next one's. The operators come last, with processes of their own, too.
#
#   scripts/pytest.sh <python> [<tests in place of all but the programs and the operators>...]
source "$(dirname "$0")/common.sh"

python=${1:?usage: scripts/pytest.sh <python> [<tests in place of all but the programs and the operators>...]}
shift
programs=tests/python/plugin/test_programs.py
operators=tests/python/plugin/test_op_db.py

log=$(mktemp)
beside=
trap 'rm -f "$log"; [[ -z $beside ]] || kill -- "-$beside" 2>/dev/null || true' EXIT
status=0
queue() {  # <tests>...: one process after the other
  local failed=0
  for tests in "$@"; do
    # shellcheck disable=SC2086  # words
    "$python" -m pytest $tests || failed=$?
  done
  return "$failed"
}
if (($#)); then
  first=("$* --ignore $programs --ignore $operators")
  second=("$programs")
else
  first=("tests/python/plugin --ignore $programs --ignore $operators" tests/python/cli)
  second=("$programs" tests/python/bench tests/python/integrations
    "tests/python --ignore tests/python/plugin --ignore tests/python/cli
      --ignore tests/python/bench --ignore tests/python/integrations")
fi
set -m  # else it would ignore Ctrl-C, and so would what it starts: some tests are about that
queue "${second[@]}" >"$log" 2>&1 &
beside=$!
set +m
queue "${first[@]}" || status=$?
wait "$beside" || status=$?
beside=
cat "$log"
((status == 0)) || exit "$status"
"$python" -m pytest "$operators"
