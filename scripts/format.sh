#!/usr/bin/env bash
# Rewrites the sources in the project's format; with --check only says what would change.
#
#   scripts/format.sh [--check]
source "$(dirname "$0")/common.sh"

ruff=.venv/bin/ruff
for tool in clang-format "$ruff"; do
  command -v "$tool" >/dev/null || die "$tool is missing: run make setup"
done

mapfile -t cpp < <(find src tests bench -name '*.hpp' -o -name '*.cpp')
python=(python examples tests bench scripts)

if [[ ${1:-} == --check ]]; then
  clang-format --dry-run -Werror "${cpp[@]}"
  "$ruff" check "${python[@]}"
  "$ruff" format --check "${python[@]}"
else
  clang-format -i "${cpp[@]}"
  "$ruff" check --fix "${python[@]}"
  "$ruff" format "${python[@]}"
fi
