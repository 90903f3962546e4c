// SPDX-License-Identifier: MIT
// A budget in CUDA source: asserted while it compiles, then allocated, one buffer a category, and held against what
// cudaMemGetInfo says is gone. Exits with 77 where there is no device.
#include <gpumem/budget.hpp>

#include <cstdint>
#include <cstdio>

using namespace gpumem;
using namespace gpumem::literals;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
using run = budget<gpt2, workload{.micro_batch = 4, .sequence = 1024}, mixed<dtype::bf16>, adamw, checkpoint_every<1>>;
static_assert(require_fits<run, devices::t4_16gb>);

namespace {

constexpr bytes page = 2_MiB;  // the driver maps memory in pages of 2 MiB (CUDA Driver API, virtual memory management)

bool ask(bytes& free, bytes& total) {
  std::size_t free_now = 0, all = 0;
  if (cudaMemGetInfo(&free_now, &all) != cudaSuccess) return false;
  free = {free_now}, total = {all};
  return true;
}

}  // namespace

int main() {
  constexpr int no_device = 77;
  bytes free_before, free_after, total;
  if (!ask(free_before, total)) return std::puts("no CUDA device"), no_device;
  std::printf("device: %llu MiB, %llu MiB of them free\n", static_cast<unsigned long long>(mebibytes_down(total)),
              static_cast<unsigned long long>(mebibytes_down(free_before)));

  void* buffers[categories] = {};
  bytes asked_for, mapped;
  for (int c = 0; c < categories; ++c) {
    const bytes size = run::memory.peak.categories[static_cast<category>(c)];
    std::printf("  %-17s %8llu MiB\n", name(static_cast<category>(c)),
                static_cast<unsigned long long>(mebibytes_up(size)));
    if (size == bytes{}) continue;
    if (cudaMalloc(&buffers[c], size.value) != cudaSuccess) return std::puts("out of memory"), 1;
    asked_for += size, mapped += align_up(size, page.value) + page;  // and one for the driver's own records
  }
  if (!ask(free_after, total)) return 1;
  for (void* buffer : buffers) cudaFree(buffer);

  const bytes gone = free_before - free_after;
  std::printf("peak %llu B in %s; the device has %llu B less, pages make it up to %llu B\n",
              static_cast<unsigned long long>(run::memory.peak.total.value), name(run::memory.peak.phase),
              static_cast<unsigned long long>(gone.value), static_cast<unsigned long long>(mapped.value));
  const bool same = asked_for == run::memory.peak.total && gone >= asked_for && gone <= mapped;
  return same ? 0 : 1;
}
