// SPDX-License-Identifier: MIT
// LibTorch's CPU allocator, counted: every tensor of the process passes through it.
#pragma once
#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>

namespace witness {

struct counts {
  long long live = 0, peak = 0;
  std::unordered_map<void*, std::size_t> sizes{};
  std::mutex one_at_a_time{};
};

inline counts& counted() {
  static auto* const never_destroyed = new counts;  // tensors may go after static objects
  return *never_destroyed;
}

class counting_allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) const override {
    constexpr std::size_t alignment = 64;
    void* const block =
        size == 0 ? nullptr : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (size != 0 && block == nullptr) throw std::bad_alloc();
    counts& c = counted();
    const std::lock_guard lock(c.one_at_a_time);
    if (block != nullptr) c.sizes[block] = size;
    c.live += static_cast<long long>(size);
    if (c.live > c.peak) c.peak = c.live;
    return {block, block, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  static void release(void* block) {
    if (block == nullptr) return;
    counts& c = counted();
    const std::lock_guard lock(c.one_at_a_time);
    const auto at = c.sizes.find(block);
    if (at != c.sizes.end()) c.live -= static_cast<long long>(at->second), c.sizes.erase(at);
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
