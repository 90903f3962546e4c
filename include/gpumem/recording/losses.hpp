// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/attention.hpp>

#include <cstdint>

namespace gpumem {

/// Losses over logits, and the paths that a language model takes from the head's input to its loss.
class loss_operations : public attention_operations {
 public:
  using attention_operations::attention_operations;

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
  /// One kernel over the logits, which it saves and writes their gradient over (unsloth, llm.c): one fp32 statistic and
  /// one fp32 loss a row.
  constexpr ref cross_entropy_over_logits(ref logits, ref targets) {
    const std::int64_t rows = elements(targets);
    const ref statistics = recording.make(rows, dtype::fp32), losses = recording.make(rows, dtype::fp32);
    recording.record({.name = "cross-entropy over the logits",
                      .in = {logits, targets},
                      .how = {gradient::saved},
                      .out = {losses},
                      .saved = {logits, statistics, targets}});
    const ref loss = recording.make(1, dtype::fp32);
    recording.record({.name = "sum", .in = {losses}, .how = {gradient::fresh}, .out = {loss}});
    return loss;
  }
  /// Liger's cross-entropy (0.2.1): the gradient is written over the logits in forward; counting the targets that are
  /// not ignored makes a mask and an int64 copy of it.
  constexpr ref liger_cross_entropy(ref logits, ref targets) {
    const auto rows = static_cast<std::uint64_t>(elements(targets));
    const ref loss = recording.make(1, dtype::fp32);
    recording.make(elements(targets), dtype::fp32);  // the loss of each row
    recording.record({.name = "Liger cross-entropy",
                      .in = {logits, targets},
                      .how = {gradient::saved},
                      .out = {loss},
                      .saved = {logits},
                      .workspace_forward = storage(dtype::u8, rows) + storage(dtype::int64, rows)});
    return loss;
  }
  /// Liger's fused linear cross-entropy (0.4.2, fused_linear_cross_entropy.py). Rows come in chunks of the next power
  /// of two of rows / ceil(vocabulary / hidden); a chunk has its logits, their fp32 copy, and the chunk before's scaled
  /// gradient, which its variable still holds. Both gradients are made in forward and saved.
  constexpr ref fused_linear_cross_entropy(ref x, linear_weights const& head, ref targets) {
    const std::int64_t rows = elements(x) / head.in;
    const auto n = static_cast<std::uint64_t>(rows), wide = static_cast<std::uint64_t>(head.out);
    const std::uint64_t chunks = divide_up(wide, static_cast<std::uint64_t>(head.in)), least = divide_up(n, chunks);
    std::uint64_t chunk = 1;
    while (chunk < least) chunk *= 2;
    const std::uint64_t logits = checked_multiply(chunk, wide);
    const bytes half = storage(type(x), logits), full = storage(dtype::fp32, logits);
    const bytes losses = align_up(storage(dtype::fp32, n), how.runtime.granule);
    const ref loss = recording.make(1, dtype::fp32), dx = recording.make(elements(x), type(x)),
              dw = recording.make(elements(head.matrix), type(head.matrix));
    recording.record(
        {.name = "fused linear cross-entropy",
         .in = {x, head.matrix, targets},
         .how = {gradient::saved, gradient::saved},
         .out = {loss},
         .saved = {dx, dw},
         .workspace_forward = half + full + (n > chunk ? half : bytes{}) + losses + bytes{how.runtime.granule}});
    return loss;
  }

  /// From the input of a language model's head to its loss, as the plan's loss path has it. `shape_logits` records
  /// what the model does to its logits before the loss; a fused linear loss does it inside its kernel.
  template <class ShapeLogits>
  constexpr ref language_model_loss(ref x, linear_weights const& head, ref labels, std::int64_t sequences,
                                    ShapeLogits const& shape_logits) {
    if (how.loss.kind == loss_kind::fused_linear) {
      const ref rows = copy_without_last(x, labels, sequences, head.in);
      const ref targets = recording.make(elements(labels) - sequences, dtype::int64);
      recording.record({.name = "shift labels", .in = {labels}});
      return fused_linear_cross_entropy(rows, head, targets);
    }
    const ref projected = linear(x, head), logits = shape_logits(projected);
    return language_model_loss(logits, labels, sequences);
  }
  /// From the logits on. Hugging Face since 4.49: the labels are padded and shifted, the logits not copied. The output
  /// object holds the logits until the trainer drops it, before backward, or until the step ends.
  constexpr ref language_model_loss(ref logits, ref labels, std::int64_t sequences) {
    loss_path const& path = how.loss;
    const ref full = path.upcast ? cast(logits, dtype::fp32) : logits;
    ref input, targets, loss;
    if (path.logits_shifted) {
      input = copy_without_last(full, labels, sequences, elements(full) / elements(labels));
      targets = recording.make(elements(labels) - sequences, dtype::int64);
      recording.record({.name = "shift labels", .in = {labels}});
    } else {
      const ref padded = recording.make(elements(labels) + sequences, dtype::int64);
      recording.record({.name = "pad labels", .in = {labels}});
      targets = recording.make(elements(labels), dtype::int64);
      recording.record({.name = "shift labels", .in = {padded}});
      input = reshape(full);
    }
    if (path.kind == loss_kind::over_logits)
      loss = cross_entropy_over_logits(input, targets);
    else
      loss = cross_entropy(input, targets);
    const ref output = path.model_upcasts ? full : logits;
    recording.until_here(full), recording.until_here(output), recording.until_here(input);
    if (path.outputs_held) recording.until_step_ends(output);
    if (path.variables_held) recording.until_step_ends(input);
    return loss;
  }

 private:
  /// contiguous() of a tensor of the batch without each sequence's last row.
  constexpr ref copy_without_last(ref x, ref labels, std::int64_t sequences, std::int64_t width) {
    const std::int64_t rows = elements(labels) - sequences;
    require_rule(rows > 0, "sequence", elements(labels) / sequences, "must be at least 2 to shift labels");
    const ref part = slice(x, rows * width);
    return copy(part);
  }
};

}  // namespace gpumem
