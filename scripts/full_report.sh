#!/usr/bin/env bash
# Writes bench/results/test-full-<date>.md: what was tested where, how long it took, what it measured.
#
#   scripts/full_report.sh <table of the stages>
source "$(dirname "$0")/common.sh"

stages=$1
benchmarks=build/bench/table.txt
report=bench/results/test-full-$(date +%F).md

commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
[[ -z $(git status --porcelain 2>/dev/null) ]] || commit+=" with local changes"
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)

mkdir -p bench/results
{
  echo "# make test-full, $(date +%F)"
  echo
  echo "- commit: $commit"
  echo "- machine: ${cpu:-unknown CPU}, $jobs cores, $(. /etc/os-release && echo "$PRETTY_NAME")"
  echo "- compilers: $(g++ --version | head -n 1), $(clang++ --version | head -n 1)"
  echo "- tools: $(cmake --version | head -n 1), $(.venv/bin/python --version)"
  echo
  echo "$stages"
  if [[ $stages == *"| bench "* ]]; then
    printf '\n## Benchmarks\n\n```\n%s\n```\n' "$(<"$benchmarks")"
  fi
} >"$report"
say "report: $report"
