#!/usr/bin/env bash
# Feeds the readers of traces whatever libFuzzer comes up with; a finding ends it, with its file.
#
#   scripts/fuzz.sh [<seconds for each target>]
source "$(dirname "$0")/common.sh"

seconds=${1:-10}
scripts/build.sh fuzz

# What a target printed, once it is done; ends the run where it found something.
fuzz() {
  local target=$1 found=build/fuzz/found/$1 log=build/fuzz/$1.log
  mkdir -p "$found" build/fuzz/findings    # found: input that reached new code, for the next run
  build/fuzz/tests/sim/fuzz/fuzz_$target -max_total_time="$seconds" -max_len=4096 -timeout=10 \
    -rss_limit_mb=2048 -dict="tests/sim/fuzz/$target.dict" -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$target-" \
    "$found" "tests/sim/fuzz/corpus/$target" >"$log" 2>&1 ||
    { tail -n 40 "$log"; die "a finding in $target; its input is in build/fuzz/findings/"; }
  sed -n "s/^stat::number_of_executed_units: */  $target: inputs tried: /p" "$log"
}

say "fuzz: trace_file and dtr_log for $seconds seconds"
fuzz trace_file &
beside=$!
fuzz dtr_log
wait "$beside"
