#!/usr/bin/env bash
# Every check of the project, stage by stage; the first that fails ends the run.
#
#   scripts/test.sh [--full] [<stage>...]
#
#   --full   tests at full size, benchmarks in earnest, a dated report in bench/results/
#
# A slice of the plugin's tests runs with the newest PyTorch, too, beside .venv's; with TORCH=2.13.0 with that one.
source "$(dirname "$0")/common.sh"

all_stages=(format release asan tsan lint fuzz bench demo python torch)
full_stages=(format release asan tsan lint fuzz bench demo python torch install checked faults)
declare -A about=(
  [format]="clang-format and ruff find nothing to change"
  [release]="release build, all tests"
  [asan]="every invariant check, under AddressSanitizer and UndefinedBehaviorSanitizer"
  [tsan]="tests with several threads under ThreadSanitizer"
  [lint]="clang and clang-tidy accept every source file (with --full: of the tests, too, and file by file)"
  [fuzz]="libFuzzer finds nothing in the readers of traces"
  [bench]="the benchmarks run"
  [demo]="both demos run, and write valid JSON"
  [python]="tests of the Python package, the PyTorch plugin, coop-sim and the scripts"
  [torch]="a slice of the PyTorch plugin's tests with another PyTorch: ${TORCH:=2.15.0}"
  [install]="pip installs coop, also in another version of Python, and removes it (with --full, or by name)"
  [checked]="every invariant check without sanitizers (with --full, or by name)"
  [faults]="faults seeded in the engine are found by its tests (with --full, or by name)"
)

full=
if [[ ${1:-} == --full ]]; then
  full=yes
  export COOP_TEST_SCALE=full  # read by the tests
  shift
fi
stages=("$@")
if (($# == 0)); then
  if [[ $full ]]; then stages=("${full_stages[@]}"); else stages=("${all_stages[@]}"); fi
fi
for stage in "${stages[@]}"; do
  [[ -v about[$stage] ]] || die "no stage '$stage'; there are: ${full_stages[*]}"
done

logs=build/test-logs
mkdir -p "$logs"

# --- The stages ---------------------------------------------------------------------------------

# run_ctest <preset> [<argument of ctest>...]
through=()  # a command that runs it
run_ctest() {
  local preset=$1 timeout=()
  shift
  [[ $full ]] && timeout=(--timeout 7200)
  "${through[@]}" ctest --preset "$preset" --parallel "$jobs" "${timeout[@]}" "$@" | tee "$logs/$preset.log"
}

build_and_test() {
  scripts/build.sh "$1"
  run_ctest "$1"
}

stage_format() { scripts/format.sh --check; }
stage_release() { build_and_test release; }
stage_checked() { build_and_test checked; }
stage_asan() { build_and_test asan; }
stage_tsan() {
  scripts/build.sh tsan --target threads-tests
  # ThreadSanitizer wants certain addresses free; some kernels randomise them away.
  if setarch -R true 2>/dev/null; then through=(setarch -R); fi
  run_ctest tsan --label-regex threads
}
stage_lint() {
  local targets=(--target coop_core coop_sim coop-sim)
  [[ $full ]] && targets=()
  scripts/build.sh lint "${targets[@]}" -- -k 0  # go on after the first finding
  # What takes most of the time: the static analyzer.
  if [[ $full ]]; then scripts/build.sh lint-files -- -k 0; fi
}
stage_python() {
  scripts/build.sh release --target coop-plugin coop-foreign coop-second-device  # nothing to do after the stage release
  scripts/pytest.sh .venv/bin/python | tee "$logs/python.log"
}

# Installing another PyTorch is waiting for the network, mostly: it goes on beside the stages before.
torch_setup=
fetch_torch() {
  scripts/setup.sh torch "$TORCH" >"$logs/torch-setup.log" 2>&1 &
  torch_setup=$!
  trap 'kill "$torch_setup" 2>/dev/null || true' EXIT
}
# If it has failed, or is not done yet, the stage itself says so, and does it.
wait_for_torch() {
  while [[ $torch_setup ]] && kill -0 "$torch_setup" 2>/dev/null; do sleep 1; done
}

# The tests read the scale: a slice is op_db in float32 and ten programs. Beside those, what PyTorch's versions
# have differed in.
stage_torch() {
  wait_for_torch
  COOP_TEST_SCALE=${COOP_TEST_SCALE:-slice} scripts/torch.sh "$TORCH" | tee "$logs/torch.log"
}

stage_install() { scripts/try_wheel.sh; }

stage_fuzz() {
  local seconds=10
  [[ $full ]] && seconds=600
  scripts/fuzz.sh "$seconds"
}

stage_faults() { .venv/bin/python tests/faults/engine_faults.py --jobs "$jobs"; }

stage_bench() {
  local mode=(--smoke)
  [[ $full ]] && mode=()
  scripts/bench.sh "${mode[@]}"
}

stage_demo() {
  local json beside
  scripts/build.sh release
  # The first fails if its two runs are not equal. Only at full size is what they measure worth a core of its own.
  if [[ $full ]]; then
    scripts/demo.sh --json >"$logs/demo.json"
    scripts/demo_sim.sh --json >"$logs/demo_sim.json"
  else
    scripts/demo_sim.sh --json >"$logs/demo_sim.json" &
    beside=$!
    scripts/demo.sh --json --smoke >"$logs/demo.json"
    wait "$beside"
  fi
  for json in "$logs"/demo{,_sim}.json; do
    .venv/bin/python -m json.tool "$json" >/dev/null
    say "$json: $(wc -c <"$json") bytes of valid JSON"
  done
}

# --- The run ------------------------------------------------------------------------------------

# Seconds as minutes with one decimal, rounded.
minutes() {
  local tenths=$((($1 + 3) / 6))
  printf '%d.%d min' $((tenths / 10)) $((tenths % 10))
}

# How many tests a stage passed, from the closing lines of ctest and pytest.
tests_in() {
  [[ -e $logs/$1.log ]] || return 0
  sed -nE 's/^100% tests passed.* out of ([0-9]+)$/\1/p; s/^=.* ([0-9]+) passed.*$/\1/p' "$logs/$1.log" |
    awk '{ sum += $1 } END { print sum }'
}

row() { printf '| %-8s | %9s | %6s |\n' "$@"; }

table=$(row stage time tests; echo '|----------|----------:|-------:|')
trap 'printf "\ninterrupted in stage %s\n" "$stage"; exit 130' INT
run_started=$SECONDS
total_tests=0

if [[ ${#stages[@]} -gt 1 && " ${stages[*]} " == *" torch "* ]]; then fetch_torch; fi

for stage in "${stages[@]}"; do
  printf '\n== %s: %s\n' "$stage" "${about[$stage]}"
  rm -f "$logs/$stage.log"
  stage_started=$SECONDS

  # Not as a condition of `if`: there bash ignores the stage's own `set -e`.
  set +e
  (set -e; "stage_$stage")
  status=$?
  set -e

  took=$(minutes $((SECONDS - stage_started)))
  if ((status != 0)); then
    printf '\nFAILED in stage %s after %s. This stage alone: make test STAGES=%s\n' \
      "$stage" "$took" "$stage" >&2
    exit 1
  fi
  tests=$(tests_in "$stage")
  total_tests=$((total_tests + ${tests:-0}))
  table+=$'\n'$(row "$stage" "$took" "$tests")
done

table+=$'\n'$(row total "$(minutes $((SECONDS - run_started)))" "$total_tests")
printf '\n%s\n' "$table"

if [[ $full ]]; then
  scripts/full_report.sh "$table"
fi
say "PASS: ${stages[*]}"
