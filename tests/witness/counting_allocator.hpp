// SPDX-License-Identifier: MIT
// LibTorch's CPU allocator, counted: every tensor of the process passes through it.
#pragma once
#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace witness {

struct counts {
  long long live = 0, peak = 0;
};

inline counts& counted() {
  static counts c;
  return c;
}

class counting_allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) const override {
    if (size == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    constexpr std::size_t alignment = 64;
    auto* const block =
        static_cast<char*>(std::aligned_alloc(alignment, (size + 2 * alignment - 1) / alignment * alignment));
    if (block == nullptr) throw std::bad_alloc();
    std::memcpy(block, &size, sizeof size);
    counts& c = counted();
    c.live += static_cast<long long>(size);
    if (c.live > c.peak) c.peak = c.live;
    return {block + alignment, block, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

 private:
  static void release(void* block) {
    if (block == nullptr) return;
    std::size_t size = 0;
    std::memcpy(&size, block, sizeof size);
    counted().live -= static_cast<long long>(size);
    std::free(block);
  }
};

/// Puts it in place for the rest of the process.
inline void count_tensors() {
  static counting_allocator one;
  c10::SetCPUAllocator(&one, 100);
}

/// The worst point from here on.
inline void watch() { counted().peak = counted().live; }

}  // namespace witness
