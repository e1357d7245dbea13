#!/usr/bin/env bash
# What smaller budgets cost synthetic networks: twenty of each kind, in the sixth of six steps.
#
#   scripts/synthetic.sh [--one-step] <kind>...
#
#   --one-step   the same step six times, even where a kind's steps differ
#
# Kinds are those of `coop-sim make`. Traces go to build/synthetic/.
source "$(dirname "$0")/common.sh"

coop_sim=build/release/coop-sim
[[ -x $coop_sim ]] || die "$coop_sim is not built: make build"
steps=6
name=
if [[ ${1:-} == --one-step ]]; then
  steps=1
  name=one-step-
  shift
fi
(($#)) || die "usage: scripts/synthetic.sh [--one-step] <kind>..."

folder=build/synthetic
mkdir -p "$folder"
traces=()
for kind in "$@"; do
  for seed in {0..19}; do
    trace=$folder/$name$kind-$seed.coop.gz
    "$coop_sim" make "$kind" --seed "$seed" --steps "$steps" -o "$trace" >/dev/null
    traces+=("$trace")
  done
done
"$coop_sim" sweep "${traces[@]}" --steps 6 --policies coop,coop-paper,dtr,dte --ratios .8,.6,.5,.4 --summary
