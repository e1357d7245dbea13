#!/usr/bin/env bash
# One wheel, installed by pip into .venv's version of Python and into another one: works there from anywhere, and
# pip removes all of it.
#
#   scripts/try_wheel.sh
#
# The other one is what OTHER_PYTHON names, else the first of python3.10 to python3.14 that there is. It gets .venv's
# version of PyTorch (5 GB, removed again). Where there is no other Python, that half is skipped.
source "$(dirname "$0")/common.sh"

folder=$PWD/build/installed
version='import sys; print("%d.%d" % sys.version_info[:2])'
unset PYTHONPATH COOP_PLUGIN COOP_SIM  # nothing but what is installed
export COOP_DEVICE=cpu

# Prints it; nothing if there is none.
find_other_python() {
  local python ours
  ours=$(.venv/bin/python -c "$version")
  for python in python3.1{0,1,2,3,4}; do
    # Some are there by name alone, as pyenv's are.
    if "$python" -c 'import ensurepip' 2>/dev/null && [[ $("$python" -c "$version") != "$ours" ]]; then
      printf '%s\n' "$python"
      return
    fi
  done
}

files_of() { find "$1" -not -name __pycache__ -not -name '*.pyc' | sort; }

# try_in <venv>: PyTorch is in it. Each command runs from elsewhere.
try_in() {
  local venv=$1 site left
  say "install: $("$venv/bin/python" --version)"
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  files_of "$venv" >"$folder/before"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "$folder"/*.whl
  [[ -e $site/coop/py.typed ]] || die "py.typed is not installed"

  rm -rf "$folder"/{plain,budget}
  cp -r tests/python/cli/scripts "$folder/plain"
  cp -r tests/python/cli/scripts "$folder/budget"
  (
    cd "$folder/budget"
    "$venv/bin/coop" doctor >doctor.txt || { cat doctor.txt; die "coop doctor finds fault"; }
    "$venv/bin/coop" run --budget 19MiB with_config.py >losses.txt 2>lines.txt || { cat lines.txt; exit 1; }
    grep '^coop: evicted *[1-9]' lines.txt
    "$venv/bin/coop" plan --steps 2 --ratios .9 with_config.py >plan.txt
    grep '^smallest ' plan.txt
    "$venv/bin/coop" sim --help >/dev/null
    "$venv/bin/coop-sim" policies | grep -q '^coop-paper '
    "$venv/bin/python" -c '
import coop, torch
x = torch.ones(1 << 18)
with coop.budget("8MiB"):
    kept = [x * i for i in range(16)]
    assert [it[0].item() for it in kept] == [*range(16)] and coop.stats().recomputations > 0'
    cd "$folder/plain"
    "$venv/bin/python" with_config.py >losses.txt
  )
  cmp "$folder"/{plain,budget}/losses.txt
  cmp "$folder"/{plain,budget}/weights.txt

  "$venv/bin/pip" uninstall --quiet --yes torch-coop
  left=$(files_of "$venv" | comm -13 "$folder/before" -)
  [[ -z $left ]] || die "pip uninstall leaves $left"
}

rm -rf "$folder"
mkdir -p "$folder"
.venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$folder" .
[[ $(echo "$folder"/*.whl) == */torch_coop-*-py3-none-linux_*.whl ]] || die "the wheel is bound to one version of Python"

.venv/bin/python -m venv "$folder/ours"
.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
  >"$(echo "$folder"/ours/lib/python3*/site-packages)/torch.pth"
try_in "$folder/ours"

other=${OTHER_PYTHON:-$(find_other_python)}
if [[ $other ]]; then
  torch=$(.venv/bin/python -c 'from importlib.metadata import version; print(version("torch"))')
  uv=$(command -v uv || echo .venv/bin/uv)
  "$other" -m venv "$folder/other"
  "$uv" pip install --quiet --python "$folder/other/bin/python" "torch==$torch" 'numpy>=2,<3' ||
    die "could not install PyTorch $torch for $other (no network?)"
  try_in "$folder/other"
else
  say "install: skipped for another version of Python: there is none (OTHER_PYTHON=<python> names one)"
fi
rm -rf "$folder"
