// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/attention.hpp>

#include <cstdint>

namespace gpumem {

/// Everything that a model records with: the operations of the headers above, losses, and the repeated blocks that the
/// plan's gradient checkpointing is about.
class operations : public attention_operations {
 public:
  using attention_operations::attention_operations;

  /// Records every block of `blocks` by itself where set: the same memory from a longer tape, which is how tests know
  /// that a repeat is right.
  bool unrolled = false;

  /// Runs `body` `count` times, one after the other: the model's blocks, checkpointed as the plan says.
  template <class Body>
  constexpr ref blocks(std::int64_t count, ref x, Body const& body) {
    const std::int64_t every = how.optimizer.trains ? how.checkpointing.every : 0;
    if (every == 0) return groups(count, 1, false, x, body);
    x = groups(count / every, every, true, x, body);
    return groups(1, count % every, true, x, body);
  }
  /// log-softmax in fp32 under autocast, and nll: each gradient has the size of the logits.
  constexpr ref cross_entropy(ref logits, ref targets) {
    const ref input = to_fp32(logits), log_softmax = saving_result("log softmax", input, type(input));
    const ref loss = recording.make(1, type(log_softmax)), total_weight = recording.make(1, type(log_softmax));
    recording.record({.name = "nll",
                      .in = {log_softmax, targets},
                      .how = {gradient::fresh},
                      .out = {loss},
                      .saved = {log_softmax, targets, total_weight}});
    return loss;
  }
  /// The language-model loss of Hugging Face (4.49 and later): logits to fp32, labels padded and shifted,
  /// cross-entropy; the output object holds the logits until the trainer drops it, before backward.
  constexpr ref language_model_loss(ref logits, ref labels, std::int64_t sequences) {
    const ref full = cast(logits, dtype::fp32);
    const ref padded = recording.make(elements(labels) + sequences, dtype::int64);
    recording.record({.name = "pad labels", .in = {labels}});
    const ref shifted = recording.make(elements(labels), dtype::int64);
    recording.record({.name = "shift labels", .in = {padded}});
    const ref flat = reshape(full), loss = cross_entropy(flat, shifted);
    recording.until_here(full), recording.until_here(logits);
    return loss;
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
