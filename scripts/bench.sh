#!/usr/bin/env bash
# Builds and runs the micro-benchmarks and prints their table.
#
#   scripts/bench.sh [--smoke] [--json FILE]
#
#   --smoke       every benchmark for a moment only: shows that they run, measures nothing
#   --json FILE   also write the table there
source "$(dirname "$0")/common.sh"

run_args=()
report_args=()
while (($#)); do
  case $1 in
    --smoke) run_args+=(--benchmark_min_time=0.001) ;;
    --json) report_args+=(--json "${2:?--json needs a file}"); shift ;;
    *) die "unknown argument $1; usage: scripts/bench.sh [--smoke] [--json FILE]" ;;
  esac
  shift
done

scripts/build.sh bench
raw=build/bench/micro.json
build/bench/bench/micro/coop-bench-micro "${run_args[@]}" \
  --benchmark_out="$raw" --benchmark_out_format=json
.venv/bin/python bench/report.py "$raw" "${report_args[@]}" | tee build/bench/table.txt
