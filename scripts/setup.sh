#!/usr/bin/env bash
# Installs what is missing, and nothing else: Debian packages by apt-get, Python packages into .venv.
#
#   scripts/setup.sh          everything the tests need
#   scripts/setup.sh demo     only what the demo needs
#   scripts/setup.sh build    only what a build needs; parts without their library stay off
#   scripts/setup.sh torch <version>
#                             everything, and that PyTorch in .venv-torch-<version> (5 GB)
#
# Where all of it is there already, this neither writes anything nor touches the network.
source "$(dirname "$0")/common.sh"

# What must be there (a command, a header in the compiler's usual places, a library of clang's), and the Debian
# package that brings it. We look for the thing and not for the package: a compiler or a CMake
# from elsewhere serves as well.
build_needs=(
  "${CXX:-g++}:g++"
  cmake:cmake
  ninja:ninja-build
)
demo_needs=(
  CLI/CLI.hpp:libcli11-dev
  simdjson.h:libsimdjson-dev
  zlib.h:zlib1g-dev
)
test_needs=(
  gtest/gtest.h:libgtest-dev
  benchmark/benchmark.h:libbenchmark-dev
  clang++:clang
  libclang_rt.fuzzer:libclang-rt-dev
  clang-format:clang-format
  clang-tidy:clang-tidy
  python3:python3
  rsvg-convert:librsvg2-bin
  chromium:chromium
)

there() {
  case $1 in
    *.h | *.hpp) [[ -e /usr/include/$1 || -e /usr/local/include/$1 ]] ;;
    libclang_rt.*) [[ -e $(clang++ -print-runtime-dir 2>/dev/null)/$1-$(uname -m).a ]] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# Prints the first Python that is new enough.
find_python() {
  local python
  for python in python3 /usr/bin/python3 python3.1{4,3,2,1,0}; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      printf '%s\n' "$python"
      return
    fi
  done
  return 1
}

install_packages() {
  local packages=("$@") root=()
  local command="apt-get install -y --no-install-recommends ${packages[*]}"
  command -v apt-get >/dev/null || die "missing, by their Debian names: ${packages[*]}"
  if (($(id -u) != 0)); then
    if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
      root=(sudo)
    else
      die "missing Debian packages, and neither root nor sudo to install them: ${packages[*]}
  Ask an administrator to run:  $command"
    fi
  fi
  say "setup: installing Debian packages: ${packages[*]}"
  "${root[@]}" apt-get update -qq || die "apt-get update failed (no network?)"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive $command -qq >/dev/null ||
    die "apt-get could not install: ${packages[*]}"
}

# A .venv is made again when what goes into it has changed. uv does the work: it installs PyTorch
# several times faster than pip. All is compiled at once: the tests start Python hundreds of times, and where
# PYTHONDONTWRITEBYTECODE is set none of them would leave what it compiles to the next.
venv_wanted() { sha256sum pyproject.toml scripts/setup.sh; }
venv_ready() {
  local stamp=$1/coop-setup
  [[ -x $1/bin/python && -e $stamp ]] && [[ $(<"$stamp") == "$(venv_wanted)" ]]
}
# make_venv <folder> <what to install>...
make_venv() {
  local venv=$1 uv=uv
  shift
  say "setup: installing Python packages into $venv"
  "$(find_python)" -m venv --clear "$venv"
  if ! command -v uv >/dev/null; then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check uv ||
      die "could not install uv from PyPI (no network?)"
    uv=$venv/bin/uv
  fi
  "$uv" pip install --quiet --compile-bytecode --python "$venv/bin/python" "$@" ||
    die "could not install the Python packages of pyproject.toml (no network?)"
  venv_wanted >"$venv/coop-setup"
}

level=${1:-all}
torch=
if [[ $level == torch ]]; then
  torch=${2:?usage: scripts/setup.sh torch <version>}
  level=all
fi
needs=("${build_needs[@]}")
case $level in
  all) needs+=("${demo_needs[@]}" "${test_needs[@]}") ;;
  demo) needs+=("${demo_needs[@]}") ;;
  build) ;;
  *) die "unknown argument $level; usage: scripts/setup.sh [demo|build|torch <version>]" ;;
esac

missing=()
for need in "${needs[@]}"; do
  there "${need%%:*}" || missing+=("${need#*:}")
done
if [[ $level == all ]] && ! venv_ready .venv; then
  # Debian splits venv off: its python3 alone cannot make one.
  python=$(find_python) && "$python" -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
fi

((${#missing[@]} == 0)) || install_packages "${missing[@]}"
[[ $level != all ]] || venv_ready .venv || make_venv .venv --group dev
[[ -z $torch ]] || venv_ready ".venv-torch-$torch" ||
  make_venv ".venv-torch-$torch" --group torch-tests "torch==$torch"
