// SPDX-License-Identifier: MIT
// A budget in CUDA source: asserted in host code, its numbers constants in a kernel.
#include <gpumem/budget.hpp>

#include <cstdint>
#include <cstdio>

using namespace gpumem;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
using run = budget<gpt2, workload{.micro_batch = 8, .sequence = 1024}>;
static_assert(require_fits<run, devices::h100_80gb>);

template <class Budget>
__global__ void write_peak(std::uint64_t* to) {
  *to = Budget::memory.peak.total.value;
}

int main() {
  std::uint64_t *seen = nullptr, peak = 0;
  if (cudaMalloc(&seen, sizeof *seen) != cudaSuccess) {
    std::puts("no device: compiled and linked only");
    return run::memory.parameters == 124'439'808 ? 0 : 1;
  }
  write_peak<run><<<1, 1>>>(seen);
  const bool copied = cudaMemcpy(&peak, seen, sizeof peak, cudaMemcpyDeviceToHost) == cudaSuccess;
  cudaFree(seen);
  return copied && peak == run::memory.peak.total.value ? 0 : 1;
}
