#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the library costs a compiler in counts, which are the same on every machine: class and function templates that
# clang instantiates (-ftime-trace) for <cstdint>, for the include, for the first budget and for each further one; and
# the steps of constant evaluation that one budget takes, against the compilers' limits. Usage: bench/instantiations.sh
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo '#include <cstdint>' > "$work/cstdint.cpp"
echo '#include <gpumem/budget.hpp>' > "$work/include.cpp"
budgets() {  # number of budgets
  echo '#include <gpumem/budget.hpp>'
  echo 'using namespace gpumem;'
  echo 'constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};'
  for ((i = 1; i <= $1; ++i)); do
    echo "static_assert(require_fits<budget<gpt2, workload{.micro_batch = $i, .sequence = 1024}, mixed<>, adamw, checkpoint_every<1>>, devices::h200_141gb>);"
  done
}
budgets 1 > "$work/one.cpp"
budgets 11 > "$work/eleven.cpp"

count() {  # unit, event
  clang++ -std=c++20 "-I$here/include" -ftime-trace -ftime-trace-granularity=0 -c "$work/$1.cpp" -o "$work/$1.o"
  grep -o "\"name\":\"$2\"" "$work/$1.json" | wc -l
}
if command -v clang++ > /dev/null; then
  echo "| clang $(clang++ -dumpversion), -ftime-trace | <cstdint> | include | first budget | each further |"
  echo '|---|---|---|---|---|'
  for event in InstantiateClass InstantiateFunction; do
    cstdint=$(count cstdint $event) include=$(count include $event) one=$(count one $event) eleven=$(count eleven $event)
    echo "| $event | $cstdint | $include | $((one - include)) | $(awk -v n=$((eleven - one)) 'BEGIN { print n / 10 }') |"
  done
  echo
fi

# The smallest limit under which a budget still compiles, found by halving, to one per cent.
steps() {  # compiler, option, file
  local low=0 high=$((1 << 26)) middle
  while ((high - low > high / 100)); do
    middle=$(((low + high) / 2))
    if $1 -std=c++20 "-I$here/include" -fsyntax-only "$2=$middle" "$3" 2> /dev/null; then high=$middle; else low=$middle; fi
  done
  echo "$high"
}
one_budget() {  # model, policies
  echo '#include <gpumem/budget.hpp>'
  echo '#include <gpumem/models/families.hpp>'
  echo "constexpr auto m = gpumem::$1;"
  echo "static_assert(gpumem::budget<m, gpumem::workload{.sequence = 64, .accumulation = 2}, $2>::memory.parameters > 0);"
}
numbers='{.layers = 33, .hidden = 512, .heads = 8, .vocabulary = 1000, .positions = 64}'
one_budget "transformer$numbers" 'gpumem::checkpoint_every<1>' > "$work/gpt.cpp"
one_budget "gemma3($numbers)" 'gpumem::autocast<>, gpumem::eager_attention, gpumem::checkpoint_every<2>' > "$work/gemma3.cpp"
echo '| steps of one budget | limit | GPT-2, flash, every block | Gemma 3, autocast, eager, every second block |'
echo '|---|---|---|---|'
if command -v g++ > /dev/null; then
  echo "| g++ $(g++ -dumpversion), -fconstexpr-ops-limit | 33,554,432 | $(steps g++ -fconstexpr-ops-limit "$work/gpt.cpp") | $(steps g++ -fconstexpr-ops-limit "$work/gemma3.cpp") |"
fi
if command -v clang++ > /dev/null; then
  echo "| clang $(clang++ -dumpversion), -fconstexpr-steps | 1,048,576 | $(steps clang++ -fconstexpr-steps "$work/gpt.cpp") | $(steps clang++ -fconstexpr-steps "$work/gemma3.cpp") |"
fi
