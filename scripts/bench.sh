#!/usr/bin/env bash
# Builds and runs the micro-benchmarks, what the PyTorch plugin costs, `coop bench` with its networks for a CPU, what a
# forecast brings four of those, and what `coop plan` says of two, and prints their tables.
#
#   scripts/bench.sh [--smoke] [--json FILE]
#
#   --smoke       every benchmark for a moment only: shows that they run, measures nothing
#   --json FILE   also write the tables there: the others in plugin_cost.json, networks.json and plan.json beside it
source "$(dirname "$0")/common.sh"

preset=bench  # without checks
run_args=()
report_args=()
plugin_args=()
networks_args=(--ratios .6 --steps 6 --cell-limit 300s)
plan_args=(--sittings 3)
while (($#)); do
  case $1 in
    --smoke)
      preset=release  # which is there already
      run_args+=(--benchmark_min_time=0.001)
      plugin_args+=(--smoke)
      networks_args+=(--smoke)
      plan_args=(--smoke)
      ;;
    --json)
      report_args+=(--json "${2:?--json needs a file}")
      plugin_args+=(--json "$(dirname "$2")/plugin_cost.json")
      networks_args+=(--json "$(dirname "$2")/networks.json")
      plan_args+=(--json "$(dirname "$2")/plan.json")
      shift
      ;;
    *) die "unknown argument $1; usage: scripts/bench.sh [--smoke] [--json FILE]" ;;
  esac
  shift
done

scripts/build.sh "$preset" --target coop-bench-micro
mkdir -p build/bench
raw=build/bench/micro.json
"build/$preset/bench/micro/coop-bench-micro" "${run_args[@]}" \
  --benchmark_out="$raw" --benchmark_out_format=json
.venv/bin/python bench/report.py "$raw" "${report_args[@]}" | tee build/bench/table.txt

scripts/build.sh release --target coop-plugin coop-sim
PYTHONPATH=python .venv/bin/python bench/plugin_cost.py "${plugin_args[@]}" |
  tee -a build/bench/table.txt
rm -f build/bench/networks.jsonl
PYTHONPATH=python .venv/bin/python -m coop bench --device cpu --results build/bench/networks.jsonl "${networks_args[@]}" |
  tee -a build/bench/table.txt
PYTHONPATH=python .venv/bin/python bench/plan_accuracy.py "${plan_args[@]}" |
  tee -a build/bench/table.txt
# With and without a forecast; in earnest only, since a step of ResNet-50 takes seconds.
if [[ $preset == bench ]]; then
  PYTHONPATH=python .venv/bin/python -m coop bench resnet50-full bert-large bert-lengths spos --device cpu \
    --results build/bench/networks.jsonl --ratios .6,.5 --policies coop,coop-online,dtr,dte --peers none --cell-limit 300s |
    tee -a build/bench/table.txt || say "bench: where there is no figure, the table says why"
fi
