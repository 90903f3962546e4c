#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Holds the README against the programs: its C++ program is the one of examples/01_static_assert.cpp, every `$ gpumem ...`
# prints what stands below it, and the compiler says what the README says it says.
# Its summary of the accuracy is the one that bench/accuracy prints, where that is built.
# Usage: tests/readme.sh COMPILER DIRECTORY_OF_GPUMEM [ACCURACY_PROGRAM]
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=$1
PATH="$2:$PATH"
failed=0
fail() { echo "README.md: $1"; failed=1; }

program=$(sed -n '/\[readme\]/,/\[readme\]/p' examples/01_static_assert.cpp | grep -v '\[readme\]')
shown=$(sed -n '/^```cpp$/,/^```$/p' README.md | sed '1d;$d' | sed '1,/^$/!b;/^#include/d' )
[ "$(grep -v '^#include' <<< "$shown" | grep -v '^$')" = "$(grep -v '^$' <<< "$program")" ] || fail "its program is not that of examples/01_static_assert.cpp"

said=$("$compiler" -std=c++20 -I include -DGPUMEM_ACCEPT=0 -fsyntax-only tests/compile_fail/readme.cpp 2>&1 || true)
bare() { tr -d ' \n' | sed 's/gpumem:://g; s/[‘’'"'"']//g'; }
promised=$(sed -n '/training_run<false/,/^```$/p' README.md | sed '$d' | bare | grep -o 'training_run<false.*')
grep -qF "$promised" <<< "$(bare <<< "$said")" || fail "the compiler does not say $promised"

commands=$(grep -c '^\$ gpumem ' README.md) || fail "shows no command"
for ((i = 1; i <= commands; ++i)); do
  command=$(grep '^\$ gpumem ' README.md | sed -n "${i}s/^\\$ //p")
  expected=$(awk -v n="$i" '/^\$ gpumem /{ if (++k == n) { on = 1; next } } on && /^```$/ { exit } on' README.md)
  printed=$($command 2>&1 || true)
  [ "$printed" = "$expected" ] || { fail "'$command' prints something else:"; diff <(echo "$expected") <(echo "$printed") || true; }
done
if [ -n "${3:-}" ]; then
  summary() { sed -n '/^| source, figure/,/^$/p' | sed '/^$/d'; }
  diff <(summary < README.md) <("$3" | summary) || fail "the summary of the accuracy is another"
fi
exit $failed
