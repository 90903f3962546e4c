#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the library costs a compiler: seconds for the include over <array> and for each further distinct budget, for the
# compilers that are here. Median of five runs; front end only (nvcc: to an object file). Usage: bench/compile_time.sh
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

model='llama({.layers = LAYERS, .hidden = 4096, .heads = 32, .vocabulary = 128256, .kv_heads = 8, .feed_forward = 14336})'
echo '#include <array>' > "$work/array.cpp"
echo '#include <gpumem/budget.hpp>' > "$work/include.cpp"
budgets() {  # layers, number of budgets
  echo '#include <gpumem/budget.hpp>'
  echo 'using namespace gpumem;'
  for ((i = 1; i <= $2; ++i)); do
    echo "static_assert(require_fits<budget<${model/LAYERS/$1}, workload{.micro_batch = $i, .sequence = 1024}, pure<>, adamw_8bit, checkpoint_every<1>>, device{.capacity = {1ull << 50}}>);"
  done
}
for layers in 32 126; do
  budgets $layers 1 > "$work/one_$layers.cpp"
  budgets $layers 11 > "$work/eleven_$layers.cpp"
done

median_of_five() {
  for _ in 1 2 3 4 5; do
    local start end
    start=$(date +%s%N)
    "$@" || { echo "does not compile: $*" >&2; exit 1; }
    end=$(date +%s%N)
    echo $((end - start))
  done | sort -n | sed -n 3p
}
milliseconds() { awk -v ns="$1" 'BEGIN { printf "%.0f", ns / 1e6 }'; }

printf '| compiler | <array> ms | include ms | include over <array> ms | first budget ms | each further, 32 layers ms | each further, 126 layers ms |\n|---|---|---|---|---|---|---|\n'
for compiler in g++ clang++ nvcc; do
  command -v $compiler > /dev/null || continue
  flags=(-std=c++20 "-I$here/include")
  if [ $compiler = nvcc ]; then flags+=(-x cu -c -o /dev/null); else flags+=(-fsyntax-only); fi
  declare -A ns=()
  for unit in array include one_32 eleven_32 one_126 eleven_126; do
    ns[$unit]=$(median_of_five $compiler "${flags[@]}" "$work/$unit.cpp")
  done
  printf '| %s | %s | %s | %s | %s | %s | %s |\n' "$($compiler --version | grep -oE '(g\+\+|clang version|release) [^,]*|[0-9]+\.[0-9]+\.[0-9]+' | head -1 | sed "s/^release/nvcc/; s/^[0-9]/$compiler &/")" \
    "$(milliseconds ${ns[array]})" "$(milliseconds ${ns[include]})" "$(milliseconds $((ns[include] - ns[array])))" \
    "$(milliseconds $((ns[one_32] - ns[include])))" "$(milliseconds $(((ns[eleven_32] - ns[one_32]) / 10)))" "$(milliseconds $(((ns[eleven_126] - ns[one_126]) / 10)))"
done
