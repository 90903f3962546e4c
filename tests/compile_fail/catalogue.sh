#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Writes README.md beside it from the files of this folder: what each error means, what to do, the lines that make it,
# and what the compilers say. Usage: tests/compile_fail/catalogue.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=tests/compile_fail
shopt -s extglob
files=("$folder"/!(readme).cpp)  # readme.cpp is the README's own does_not_fit

comment() {  # the words of a comment that starts with "// $1: ", up to the next one or the code
  awk -v label="// $1: " '
    index($0, label) == 1 { on = 1; sub(label, ""); text = $0; next }
    on && /^\/\/ (Meaning|Fix): / { exit }
    on && /^\/\/ / { sub("// ", ""); text = text " " $0; next }
    on { exit }
    END { print toupper(substr(text, 1, 1)) substr(text, 2) }' "$2"
}
half() {  # the accepted or the rejected half of a file, as the preprocessor chooses it
  awk -v want="$1" '
    /^#if GPUMEM_ACCEPT/ { inside = 1; half = "accept"; next }
    /^#else/ && inside { half = "reject"; next }
    /^#endif/ && inside { inside = 0; next }
    /^\/\/ (SPDX|Meaning|Fix)/ { skip = 1 }
    skip && /^#include/ { skip = 0 }
    skip || /^ *\/\/ expected-error/ || /^#include/ || /^using namespace/ { next }
    !inside || half == want { sub(/ *\/\/ expected-error.*/, ""); print }' "$2" | cat -s | sed '/./,$!d'
}
# Errors and the notes that lead to them; no quoted source, no numbers of lines, no paths outside the project, and no
# line longer than a reader wants.
message() {
  awk '/called from:$/ { line = $0; getline; sub(/^ +/, ""); print line " " $0; next } { print }' |  # nvcc: the call
    grep -E '(error|note|required from|In instantiation|expansion of|detected during|instantiation of)' |
    grep -vE '(declared here|^[0-9]+ errors? |error:? .*aborting)' |
    sed -E 's/:[0-9]+:[0-9]+:/:/; s/^([^ ]+)\([0-9]+\):/\1:/; s/ \(declared at line [0-9]+ of [^)]*\)//; s/ at line [0-9]+ of [^ ]*//
            s#(/[^ /:]+)+/include/([^ /:]+/)*#<standard library>/#g; s/^ +//' |
    awk 'length($0) > 700 { $0 = substr($0, 1, 700) " ..." } !seen[$0]++' | head -12
}

declare -A command=(
  [g++]='g++ -std=c++20 -fsyntax-only'
  [clang++]='clang++ -std=c++20 -fsyntax-only -fno-caret-diagnostics'
  [nvcc]='nvcc -std=c++20 -x cu -c -o /dev/null')
{
  echo '# Errors that the compiler gives, and what to do'
  echo
  echo 'Each file of this folder holds a program that compiles and, one `#if` apart, one that does not and must not. CTest'
  echo 'compiles both halves with the compiler at hand, and with nvcc where it is, and looks for the `expected-error` texts.'
  echo '`catalogue.sh` wrote this page from the files; search it for the message in front of you. Line numbers and what'
  echo 'compilers quote of the source are left out.'
  echo
  echo 'Compilers: g++ '"$(g++ -dumpfullversion)"', clang '"$(clang++ -dumpversion)"', nvcc '"$(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')"'.'
  echo
  for file in "${files[@]}"; do echo "- [\`$(basename "$file" .cpp)\`](#$(basename "$file" .cpp))"; done
  for file in "${files[@]}"; do
    printf '\n## %s\n\n' "$(basename "$file" .cpp)"
    printf '**Meaning.** %s\n\n**Fix.** %s\n\n' "$(comment Meaning "$file")" "$(comment Fix "$file")"
    printf 'Broken:\n```cpp\n%s\n```\nFixed:\n```cpp\n%s\n```\n' "$(half reject "$file")" "$(half accept "$file")"
    for compiler in g++ clang++ nvcc; do
      command -v $compiler > /dev/null || continue
      printf '%s:\n```\n%s\n```\n' "$compiler" "$(${command[$compiler]} -DGPUMEM_ACCEPT=0 -Iinclude "$file" 2>&1 | message)"
    done
  done
} > "$folder/README.md.new"
mv "$folder/README.md.new" "$folder/README.md"
