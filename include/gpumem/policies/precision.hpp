// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/dtype.hpp>

#include <concepts>

namespace gpumem {

/// The numbers behind a precision policy.
struct precision {
  dtype weights = dtype::bf16;    // the tensors that the model computes with
  dtype gradients = dtype::fp32;  // the .grad that the optimizer reads
  dtype master = dtype::fp32;     // the tensors that the optimizer updates
  bool separate_master = true;    // master copies exist beside the weights
  bool autocast = false;          // torch.autocast: contractions run in `autocast_type` on casts of fp32 weights
  dtype autocast_type = dtype::bf16;

  friend constexpr bool operator==(precision const&, precision const&) = default;
};

struct precision_family {};

/// A precision policy names its family and holds its `numbers`.
template <class P>
concept precision_policy = std::same_as<typename P::family, precision_family> && requires {
  { P::numbers } -> std::convertible_to<precision>;
};

/// fp32 weights and gradients: 8 bytes a parameter.
struct fp32 {
  using family = precision_family;
  static constexpr precision numbers{.weights = dtype::fp32, .separate_master = false};
};

/// The documents' mixed precision: fp32 master and half copy (6 bytes), fp32 gradients (4). Everything computes in
/// half; a weight's gradient arrives in half and is cast into its fp32 gradient. Hugging Face, "Model training
/// anatomy".
template <dtype H = dtype::bf16>
struct mixed {
  static_assert(is_half(H), "mixed<H>: H is dtype::bf16 or dtype::fp16");
  using family = precision_family;
  static constexpr precision numbers{.weights = H};
};

/// torch.autocast: fp32 weights (4) and gradients (4); each matmul weight has a half cast for the life of the graph.
template <dtype H = dtype::bf16>
struct autocast {
  static_assert(is_half(H), "autocast<H>: H is dtype::bf16 or dtype::fp16");
  using family = precision_family;
  static constexpr precision numbers{
      .weights = dtype::fp32, .separate_master = false, .autocast = true, .autocast_type = H};
};

/// Weights, gradients and states all in half: 2 + 2 and the optimizer's states in half.
template <dtype H = dtype::bf16>
struct pure {
  static_assert(is_half(H), "pure<H>: H is dtype::bf16 or dtype::fp16");
  using family = precision_family;
  static constexpr precision numbers{.weights = H, .gradients = H, .master = H, .separate_master = false};
};

/// Half weights and gradients with an fp32 master (ZeRO, llm.c): 2 + 2 + 4, 16 with Adam. The step reads the half
/// gradients directly; a wrapper that copies them to fp32 first needs 4 bytes a parameter more while it runs.
template <dtype H = dtype::bf16>
struct master_weights {
  static_assert(is_half(H), "master_weights<H>: H is dtype::bf16 or dtype::fp16");
  using family = precision_family;
  static constexpr precision numbers{.weights = H, .gradients = H};
};

/// Megatron-LM's mixed precision: half weights, fp32 main gradients and fp32 master: 2 + 4 + 4, 18 with Adam.
template <dtype H = dtype::bf16>
struct megatron {
  static_assert(is_half(H), "megatron<H>: H is dtype::bf16 or dtype::fp16");
  using family = precision_family;
  static constexpr precision numbers{.weights = H};
};

static_assert(precision_policy<fp32> && precision_policy<mixed<>> && precision_policy<autocast<>> &&
              precision_policy<pure<>> && precision_policy<master_weights<>> && precision_policy<megatron<>>);

}  // namespace gpumem
