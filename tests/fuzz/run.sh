#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the fuzz target with clang++ under ASan and UBSan and runs it for a number of seconds (60). Fails on a finding;
# prints the executions per second. Needs clang and libFuzzer (Debian: clang-14, libclang-rt-14-dev).
set -euo pipefail
seconds=${1:-60}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/fuzz
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="${CXX_CLANG:-clang++}" \
  -DGPUMEM_BUILD_FUZZERS=ON -DGPUMEM_BUILD_BENCHMARKS=OFF -DGPUMEM_ENABLE_CUDA=OFF >/dev/null
cmake --build "$build" --target gpumem_fuzz_config >/dev/null
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
log=$found/log
mkdir "$found/corpus"
if ! "$build/tests/fuzz/gpumem_fuzz_config" -max_total_time="$seconds" -max_len=4096 -timeout=5 -rss_limit_mb=2048 \
  -print_final_stats=1 -dict="$here/config.dict" -artifact_prefix="$build/" \
  "$found/corpus" "$here/corpus" "$here/../data/configs" >"$log" 2>&1; then
  tail -n 60 "$log"
  exit 1
fi
awk '/stat::number_of_executed_units/ {units = $2} /stat::average_exec_per_sec/ {rate = $2} /cov: / {for (i = 1; i < NF; ++i) if ($i == "cov:") coverage = $(i + 1)}
  END {printf "fuzz: no finding in %s executions, %s a second, %s edges covered\n", units, rate, coverage}' "$log"
