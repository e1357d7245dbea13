#!/usr/bin/env bash
# What smaller budgets cost ResNet-50 and BERT-Large, recorded on an H200: tables here, pictures in build/demo/.
#
#   scripts/demo_sim.sh [<more arguments of coop-sim sweep>...]
source "$(dirname "$0")/common.sh"

coop_sim=build/release/coop-sim
[[ -x $coop_sim ]] || die "$coop_sim is not built: make build"
logs=tests/data/h200
pictures=build/demo
mkdir -p "$pictures"

# One job: search times are measured, and a simulation beside would be measured with them.
"$coop_sim" sweep "$logs/resnet50.log.gz" "$logs/bert_large.log.gz" --inplace --steps 3 \
  --policies coop,dtr,dte --ratios .8,.6,.5,.4 --jobs 1 --reference "$logs/lower_bound.csv" \
  --plot "$pictures/sweep.svg" --plot "$pictures/sweep.html" "$@"
"$coop_sim" run "$logs/bert_large.log.gz" --inplace --policy coop --ratio .5 \
  --map "$pictures/memory_map.html" >/dev/null

say "pictures: $pictures/sweep.html, $pictures/sweep.svg, $pictures/memory_map.html" >&2
