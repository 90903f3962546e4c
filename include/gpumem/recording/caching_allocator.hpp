// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/walk_state.hpp>

#include <cstddef>  // std::size_t
#include <cstdint>

namespace gpumem {

/// PyTorch's caching allocator on one stream (c10/cuda/CUDACachingAllocator.cpp): sizes rounded to 512 B; requests up
/// to 1 MiB from segments of 2 MiB, up to 10 MiB from segments of 20 MiB, larger ones from segments of their own,
/// rounded to 2 MiB; the smallest free block that fits, split where 512 B or, of a large block, more than 1 MiB is
/// left. `reserved` is an upper bound: under pressure PyTorch gives unused segments back before it fails. As a walk's
/// observer it has room for a number of blocks.
template <int Blocks = 4096>
class caching_allocator final : public walk_observer {
 public:
  constexpr void allocate(int block, std::uint64_t size) override {
    if (size == 0) return;
    const std::uint64_t rounded = align_up({size}, granule).value;
    const bool small = rounded <= largest_small;
    int b = best_fit(rounded, small);
    if (b == 0) b = new_segment(rounded, small);
    const std::uint64_t rest = blocks_[b].size - rounded;
    if (small ? rest >= granule : rest > least_large_rest) split(b, rounded);
    blocks_[b].owner = block;
    allocated_ += blocks_[b].size;
    if (allocated_ > peak_allocated_) peak_allocated_ = allocated_;
  }
  constexpr void free(int block) override {
    int b = 1;
    while (b <= used_ && blocks_[b].owner != block) ++b;
    if (b > used_) return;  // it had no bytes
    allocated_ -= blocks_[b].size;
    blocks_[b].owner = 0;
    if (const int next = blocks_[b].next; next != 0 && blocks_[next].owner == 0) merge(b, next);
    if (const int before = blocks_[b].before; before != 0 && blocks_[before].owner == 0) merge(before, b);
  }

  [[nodiscard]] constexpr bytes allocated() const { return {allocated_}; }
  [[nodiscard]] constexpr bytes peak_allocated() const { return {peak_allocated_}; }  // whole blocks, split or not
  [[nodiscard]] constexpr bytes reserved() const { return {reserved_}; }

 private:
  static constexpr std::uint64_t granule = 512, MiB = std::uint64_t{1} << 20, largest_small = MiB,
                                 small_segment = 2 * MiB, large_segment = 20 * MiB, own_segment_from = 10 * MiB,
                                 least_large_rest = MiB;
  static constexpr int nobody = -1;  // a place in the table that is no block

  struct block_state {
    std::uint64_t size = 0;
    int owner = nobody;  // 0: free
    int before = 0, next = 0;
    bool small = false;
  };

  constexpr int best_fit(std::uint64_t size, bool small) const {
    int best = 0;
    for (int b = 1; b <= used_; ++b)
      if (blocks_[b].owner == 0 && blocks_[b].small == small && blocks_[b].size >= size &&
          (best == 0 || blocks_[b].size < blocks_[best].size))
        best = b;
    return best;
  }
  constexpr int place() {
    for (; unused_ <= used_; ++unused_)
      if (blocks_[unused_].owner == nobody) return unused_;
    require_rule(used_ < Blocks, "blocks of a caching_allocator", Blocks, "is all that it has room for");
    return ++used_;
  }
  constexpr int new_segment(std::uint64_t size, bool small) {
    const std::uint64_t whole = small                     ? small_segment
                                : size < own_segment_from ? large_segment
                                                          : align_up({size}, 2 * MiB).value;
    const int b = place();
    blocks_[b] = {.size = whole, .owner = 0, .small = small};
    reserved_ += whole;
    return b;
  }
  constexpr void split(int b, std::uint64_t size) {
    const int rest = place();
    blocks_[rest] = {blocks_[b].size - size, 0, b, blocks_[b].next, blocks_[b].small};
    if (const int after = blocks_[b].next; after != 0) blocks_[after].before = rest;
    blocks_[b].size = size, blocks_[b].next = rest;
  }
  constexpr void merge(int first, int second) {
    blocks_[first].size += blocks_[second].size, blocks_[first].next = blocks_[second].next;
    if (const int after = blocks_[second].next; after != 0) blocks_[after].before = first;
    blocks_[second] = {};
    if (second < unused_) unused_ = second;
  }

  block_state blocks_[std::size_t{Blocks} + 1] = {};
  int used_ = 0, unused_ = 1;  // no unused place is before `unused_`
  std::uint64_t allocated_ = 0, peak_allocated_ = 0, reserved_ = 0;
};

}  // namespace gpumem
