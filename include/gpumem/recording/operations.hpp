// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/losses.hpp>
#include <gpumem/recording/tape_room.hpp>

#include <cstdint>

namespace gpumem {

/// Everything that a model records with: the operations of the headers above, and the repeated blocks that the
/// plan's gradient checkpointing is about.
class operations : public loss_operations {
 public:
  using loss_operations::loss_operations;

  /// Records every block of `blocks` by itself where set: the same memory from a longer tape, which is how tests know
  /// that a repeat is right.
  bool unrolled = false;

  /// Runs `body` `count` times, one after the other: the model's blocks, checkpointed as the plan says.
  template <class Body>
  constexpr ref blocks(std::int64_t count, ref x, Body const& body) {
    const std::int64_t every = how.optimizer.trains ? how.checkpointing.every : 0, first = how.checkpointing.first;
    if (every == 0) return groups(count, 1, false, x, body);
    const std::int64_t chosen = first == 0 || first > count ? count : first;
    x = groups(chosen / every, every, true, x, body);
    x = groups(1, chosen % every, true, x, body);
    return groups(count - chosen, 1, false, x, body);
  }
  /// Ends the recording of a forward pass whose value is `loss`: the program holds it, autocast's casts go.
  constexpr void finish(ref loss) {
    recording.until_step_ends(loss);
    recording.casts_until_here();
    recording.close_segment();
  }

 private:
  template <class Body>
  constexpr ref groups(std::int64_t count, std::int64_t size, bool checkpointed, ref x, Body const& body) {
    if (count == 0 || size == 0) return x;
    if (!unrolled) return recording.repeat_groups(count, size, checkpointed, x, body);
    for (std::int64_t g = 0; g < count; ++g)
      x = recording.repeat(1, checkpointed, x, [&](ref y) {
        for (std::int64_t i = 0; i < size; ++i) y = body(y);
        return y;
      });
    return x;
  }
};

}  // namespace gpumem
