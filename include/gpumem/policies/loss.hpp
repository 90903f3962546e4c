// SPDX-License-Identifier: MIT
#pragma once
#include <concepts>
#include <cstdint>

namespace gpumem {

/// What computes the loss from the head's input. eager: log-softmax and nll over the logits. over_logits: one kernel
/// that saves the logits and writes their gradient over them. fused_linear: head and loss together, in chunks, both
/// gradients made in forward.
enum class loss_kind : std::uint8_t { eager, over_logits, fused_linear };

/// How a language model computes its loss, in the numbers that decide bytes per logit.
struct loss_path {
  loss_kind kind = loss_kind::eager;
  bool upcast = true;           // half logits are copied to fp32
  bool model_upcasts = false;   // in the model: the output object holds the fp32 copy, and the half logits go
  bool logits_shifted = false;  // copies the logits without each sequence's last row; else the labels are shifted
  bool outputs_held = false;    // the program refers to the output object until backward is over
  bool variables_held = false;  // the program computes the loss itself: its shifted copy lives as long

  friend constexpr bool operator==(loss_path const&, loss_path const&) = default;
};

struct loss_family {};

/// A loss policy names its family and holds its `numbers`.
template <class L>
concept loss_policy = std::same_as<typename L::family, loss_family> && requires {
  { L::numbers } -> std::convertible_to<loss_path>;
};

/// Current Hugging Face under its Trainer (since 4.49): logits upcast to fp32, log-softmax, nll; labels shifted, logits
/// not copied; the output object is dropped before backward. 12 bytes a logit at the worst point.
struct eager_loss {
  using family = loss_family;
  static constexpr loss_path numbers{};
};
/// Hugging Face until 4.45: the model upcasts, the loss copies the shifted logits. 12 bytes a logit, in forward.
struct eager_loss_4_45 {
  using family = loss_family;
  static constexpr loss_path numbers{.model_upcasts = true, .logits_shifted = true};
};
/// Hugging Face 4.46 to 4.48: the loss upcasts and copies the shifted logits, the output object holds the half ones.
/// 14 bytes a logit.
struct eager_loss_4_46 {
  using family = loss_family;
  static constexpr loss_path numbers{.logits_shifted = true};
};
/// The gradient is written over the logits in the dtype of the stream (llm.c): 2 bytes a logit in half.
struct in_place_loss {
  using family = loss_family;
  static constexpr loss_path numbers{.kind = loss_kind::over_logits, .upcast = false};
};
/// unsloth's Triton cross-entropy in Hugging Face until 4.48: over an fp32, shifted copy of the logits.
struct triton_loss {
  using family = loss_family;
  static constexpr loss_path numbers{.kind = loss_kind::over_logits, .model_upcasts = true, .logits_shifted = true};
};
/// Liger's fused linear cross-entropy (0.4.2): head and loss in chunks of rows; the gradients of the head's input and
/// of its weight are made in forward.
struct fused_linear_loss {
  using family = loss_family;
  static constexpr loss_path numbers{.kind = loss_kind::fused_linear};
};
/// Any of these in a loop that refers to the model's outputs while backward runs (`outputs.loss.backward()`).
template <loss_policy L>
struct outputs_held {
  using family = loss_family;
  static constexpr loss_path numbers = [] {
    loss_path held = L::numbers;
    held.outputs_held = true;
    return held;
  }();
};

static_assert(loss_policy<eager_loss> && loss_policy<eager_loss_4_45> && loss_policy<eager_loss_4_46> &&
              loss_policy<in_place_loss> && loss_policy<triton_loss> && loss_policy<fused_linear_loss> &&
              loss_policy<outputs_held<eager_loss>>);

}  // namespace gpumem
