// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/owned_array.hpp>
#include <gpumem/recording/walk_options.hpp>

#include <cstdint>

namespace gpumem {

/// PyTorch's caching allocator on one stream (c10/cuda/CUDACachingAllocator.cpp): sizes rounded to 512 B; requests up
/// to 1 MiB from segments of 2 MiB, up to 10 MiB from segments of 20 MiB, larger ones from segments of their own,
/// rounded to 2 MiB; the smallest free block that fits, split where 512 B or, of a large block, more than 1 MiB is
/// left. A new segment that would exceed `room` first gives all unused segments back, as PyTorch does before it fails.
class caching_allocator final : public walk_observer {
 public:
  static constexpr bytes unlimited{std::uint64_t{1} << 62};
  constexpr explicit caching_allocator(bytes room = unlimited) : room_(room.value) {}

  constexpr void allocate(int block, std::uint64_t size) override {
    if (size == 0) return;
    const std::uint64_t rounded = align_up({size}, granule).value;
    const bool small = rounded <= largest_small;
    int b = best_fit(rounded, small);
    if (b == 0) b = new_segment(rounded, small);
    take_from_free(b);
    const std::uint64_t rest = blocks_[b].size - rounded;
    if (small ? rest >= granule : rest > least_large_rest) split(b, rounded);
    if (block >= place_of_.size()) place_of_.grow(2 * block);
    place_of_[block] = b;
    allocated_ += blocks_[b].size;
    if (allocated_ > peak_allocated_) peak_allocated_ = allocated_;
  }
  constexpr void free(int block) override {
    if (block >= place_of_.size() || place_of_[block] == 0) return;  // it had no bytes
    int b = place_of_[block];
    place_of_[block] = 0;
    allocated_ -= blocks_[b].size;
    if (const int next = blocks_[b].next; next != 0 && blocks_[next].free) take_from_free(next), merge(b, next);
    if (const int before = blocks_[b].before; before != 0 && blocks_[before].free)
      take_from_free(before), merge(before, b), b = before;
    add_to_free(b);
  }

  [[nodiscard]] constexpr bytes allocated() const { return {allocated_}; }
  [[nodiscard]] constexpr bytes peak_allocated() const { return {peak_allocated_}; }  // whole blocks, split or not
  [[nodiscard]] constexpr bytes reserved() const { return {reserved_}; }
  [[nodiscard]] constexpr bytes peak_reserved() const { return {peak_reserved_}; }

 private:
  static constexpr std::uint64_t granule = 512, MiB = std::uint64_t{1} << 20, largest_small = MiB,
                                 small_segment = 2 * MiB, large_segment = 20 * MiB, own_segment_from = 10 * MiB,
                                 least_large_rest = MiB;

  struct block_state {
    std::uint64_t size = 0;
    int before = 0, next = 0;            // its neighbours in the segment
    int free_before = 0, free_next = 0;  // in the list of free blocks
    bool small = false, free = false;
  };

  [[nodiscard]] constexpr int best_fit(std::uint64_t size, bool small) const {
    int best = 0;
    for (int b = first_free_[small]; b != 0; b = blocks_[b].free_next)
      if (blocks_[b].size >= size && (best == 0 || blocks_[b].size < blocks_[best].size)) best = b;
    return best;
  }
  constexpr void add_to_free(int b) {
    int& first = first_free_[blocks_[b].small];
    blocks_[b].free = true, blocks_[b].free_before = 0, blocks_[b].free_next = first;
    if (first != 0) blocks_[first].free_before = b;
    first = b;
  }
  constexpr void take_from_free(int b) {
    const int before = blocks_[b].free_before, next = blocks_[b].free_next;
    (before != 0 ? blocks_[before].free_next : first_free_[blocks_[b].small]) = next;
    if (next != 0) blocks_[next].free_before = before;
    blocks_[b].free = false;
  }
  constexpr int place() {
    if (first_unused_ != 0) {
      const int b = first_unused_;
      first_unused_ = blocks_[b].next;
      return b;
    }
    if (++used_ == blocks_.size()) blocks_.grow(2 * used_);
    return used_;
  }
  constexpr int new_segment(std::uint64_t size, bool small) {
    const std::uint64_t whole = small                     ? small_segment
                                : size < own_segment_from ? large_segment
                                                          : align_up({size}, 2 * MiB).value;
    if (reserved_ + whole > room_) give_back(true), give_back(false);
    const int b = place();
    blocks_[b] = {.size = whole, .small = small};
    add_to_free(b);
    reserved_ += whole;
    if (reserved_ > peak_reserved_) peak_reserved_ = reserved_;
    return b;
  }
  constexpr void give_back(bool small) {
    for (int b = first_free_[small], following = 0; b != 0; b = following) {
      following = blocks_[b].free_next;
      if (blocks_[b].before != 0 || blocks_[b].next != 0) continue;  // a part of a segment in use
      take_from_free(b);
      reserved_ -= blocks_[b].size;
      leave_unused(b);
    }
  }
  constexpr void split(int b, std::uint64_t size) {
    const int rest = place();
    blocks_[rest] = {.size = blocks_[b].size - size, .before = b, .next = blocks_[b].next, .small = blocks_[b].small};
    if (const int after = blocks_[b].next; after != 0) blocks_[after].before = rest;
    blocks_[b].size = size, blocks_[b].next = rest;
    add_to_free(rest);
  }
  constexpr void merge(int first, int second) {
    blocks_[first].size += blocks_[second].size, blocks_[first].next = blocks_[second].next;
    if (const int after = blocks_[second].next; after != 0) blocks_[after].before = first;
    leave_unused(second);
  }
  constexpr void leave_unused(int b) { blocks_[b] = {.next = first_unused_}, first_unused_ = b; }

  detail::owned_array<block_state> blocks_{64};
  detail::owned_array<int> place_of_{64};  // by the walk's number of a block
  int used_ = 0, first_unused_ = 0;
  int first_free_[2] = {};  // of large blocks, of small ones
  std::uint64_t room_, allocated_ = 0, peak_allocated_ = 0, reserved_ = 0, peak_reserved_ = 0;
};

}  // namespace gpumem
