#!/bin/sh
# SPDX-License-Identifier: MIT
# bench/gpu.sh [RESULTS_DIRECTORY]
#
# One command for a machine with an NVIDIA GPU: builds, checks every kernel against float64 references (under
# compute-sanitizer too, where it works), times everything, and writes JSON and a Markdown table.
# Needs nvcc, CMake and a Google Benchmark that find_package finds; set CMAKE_PREFIX_PATH for one of your own.
# Exits with 77 where there is no GPU: then everything is built, and nothing timed.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
results=${1:-$root/bench/results}
build=${GPUMEM_BUILD_DIRECTORY:-$root/build/gpu}
no_gpu=77
seconds_for_timing=480
seconds_for_sanitizer=120

say() { printf '\n== %s\n' "$*"; }

# ---- build, for this GPU where it can be asked

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ' || true)
case $capability in
  '' | *[!0-9]*) architectures='75-virtual;90-real' ;;
  *) architectures=$capability-real ;;
esac
say "building for $architectures in $build"
cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES="$architectures" \
  -DGPUMEM_BUILD_TESTS=OFF -DGPUMEM_BUILD_EXAMPLES=OFF -DGPUMEM_BUILD_BENCHMARKS=ON -DGPUMEM_ENABLE_CUDA=ON
cmake --build "$build" --parallel --target gpumem_bench_kernels kernels_gpu_check
bench=$build/bench/kernels
check=$build/bench/kernels_gpu_check

# ---- check

mkdir -p "$results"
check_log=$(mktemp)
trap 'rm -f "$check_log"' EXIT

say 'every kernel and chain against float64 references'
status=0
"$check" > "$check_log" 2>&1 || status=$?
cat "$check_log"
if [ "$status" -eq "$no_gpu" ]; then
  say 'no GPU: nothing was timed'
  exit "$no_gpu"
fi
if [ "$status" -ne 0 ]; then
  say 'a kernel is wrong: nothing was timed'
  exit 1
fi

sanitizer=$(command -v compute-sanitizer || true)
sanitized=''
for tool in memcheck racecheck; do
  [ -n "$sanitizer" ] || break
  say "compute-sanitizer, $tool"
  found_errors=99
  status=0
  timeout "$seconds_for_sanitizer" "$sanitizer" --tool "$tool" --error-exitcode "$found_errors" "$check" --quick \
    > "$check_log" 2>&1 || status=$?
  tail -n 5 "$check_log"
  case $status in
    0) sanitized="$sanitized $tool" ;;
    "$found_errors") say "$tool found errors"; exit 1 ;;
    124) say "$tool took more than $seconds_for_sanitizer s and was stopped" ;;
    *) say "$tool does not work here (status $status)" ;;
  esac
done

# ---- time

gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 || true)
name=$(printf '%s' "${gpu:-gpu}" | tr -c 'A-Za-z0-9' '_')
json=$results/$name.json
table=$(mktemp)
trap 'rm -f "$check_log" "$table"' EXIT

say "timing, at most $seconds_for_timing s"
timeout "$seconds_for_timing" "$bench" --gpumem_table="$table" --benchmark_out="$json" --benchmark_out_format=json

{
  printf '# %s\n\n' "${gpu:-GPU}"
  printf 'Driver %s, %s, commit %s. ' \
    "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || echo unknown)" \
    "$(nvcc --version 2>/dev/null | sed -n 's/.*\(release [0-9.]*\).*/nvcc \1/p' || echo 'nvcc not on PATH')" \
    "$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)"
  printf 'compute-sanitizer:%s. Median of 30 runs, cold buffers.\n\n' "${sanitized:- not run}"
  cat "$table"
} > "$results/$name.md"
say "written: $json and $results/$name.md"
