#!/usr/bin/env bash
# Every test that needs a GPU, in pieces of some minutes, and a report of them. A piece that has passed with this
# commit is not run again, so it can be interrupted.
#
#   scripts/gpu_test.sh [piece...]     without names: all of them; several pieces may run at a time
#
# The plugin must be built (make build). PYTHON names another Python than .venv's; COMMIT what is tried, where
# that cannot be asked of git.
source "$(dirname "$0")/common.sh"

python=${PYTHON:-.venv/bin/python}
commit=${COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
results=build/gpu/$commit
report=bench/results/gpu-$(date -u +%F).md
export COOP_DEVICE=cuda PYTHONPATH=python${PYTHONPATH:+:$PYTHONPATH}

# The piece, and what pytest is told.
pieces=(
  "budget:tests/python/gpu/test_gpu_budget.py"
  "endurance:tests/python/gpu/test_gpu_endurance.py"
  "bert-large:tests/python/gpu/test_gpu_networks.py -k bert-large"
  "resnet50:tests/python/gpu/test_gpu_networks.py -k resnet50"
  "swin-t:tests/python/gpu/test_gpu_networks.py -k swin-t"
  "bilstm:tests/python/gpu/test_gpu_networks.py -k bilstm"
  "spos:tests/python/gpu/test_gpu_networks.py -k spos"
  "graphs:tests/python/gpu/test_gpu_graphs.py"
  "snapshot:tests/python/gpu/test_gpu_snapshot.py"
  "several-devices:tests/python/gpu/test_gpu_several_devices.py"
  "programs:tests/python/plugin/test_programs.py -k test_stress"
  "ease:tests/python/plugin/test_ease_programs.py"
  "operators:tests/python/plugin/test_op_db.py -k float32-stress"
)

"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
  die "PyTorch sees no GPU here; without one, make test has all that can be tested"
mkdir -p "$results"
failed=0
for entry in "${pieces[@]}"; do
  name=${entry%%:*}
  if (($#)) && [[ " $* " != *" $name "* ]]; then continue; fi
  if [[ -e $results/$name.passed ]]; then
    say "gpu: $name has passed with $commit"
    continue
  fi
  say "gpu: $name"
  read -ra arguments <<<"${entry#*:}"
  if "$python" -m pytest -q "${arguments[@]}" >"$results/$name.txt" 2>&1; then
    touch "$results/$name.passed"
  else
    failed=1
  fi
  tail -n 1 "$results/$name.txt"
done

{
  echo "# Tests on a GPU"
  echo
  "$python" -c 'import torch; print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__},", end=" ")'
  echo "commit $commit. \`make gpu-test\` runs them."
  echo
  echo "| piece | what pytest said |"
  echo "|---|---|"
  for file in "$results"/*.txt; do
    echo "| $(basename "$file" .txt) | $(tail -n 1 "$file" | tr -d '=') |"
  done
  echo
  grep -hE '^(FAILED|SKIPPED|ERROR)' "$results"/*.txt | sed 's/^/- /' || true
} >"$report"
say "gpu: $report"
exit "$failed"
