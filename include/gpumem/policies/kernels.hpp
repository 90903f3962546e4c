// SPDX-License-Identifier: MIT
#pragma once
#include <concepts>
#include <cstdint>

namespace gpumem {

enum class attention_kind : std::uint8_t { flash, eager, flash_repeated, efficient };
enum class kernel_kind : std::uint8_t { eager, fused, liger, liger_0_2, unsloth };

/// How a fused norm's backward sums the gradient of its weight: one fp32 row for each multiprocessor, or one for each
/// row of the input, which PyTorch then sums.
enum class norm_sums : std::uint8_t { per_multiprocessor, per_row };

/// What a set of kernels does differently from the framework's stock modules, as the recordings read it.
struct kernel_set {
  bool fused_norm = false;          // RMSNorm is one kernel
  bool norm_over_gradient = false;  // its backward writes over its output's gradient
  bool frozen_norms = false;        // no gradient of an RMSNorm's weight is made: the kernel has none
  bool rotary_in_place = false;     // one kernel writes over queries and keys, and over their gradients
  bool fused_activation = false;    // gelu_new, and act(gate) * up, are one kernel each
  norm_sums sums = norm_sums::per_multiprocessor;
};

/// The numbers of a kind. Liger: Liger-Kernel 0.4.2 rms_norm.py, rope.py, swiglu.py, 0.2.1 for the older norm; unsloth:
/// kernels rms_layernorm.py and rope_embedding.py, the MLP being the stock one.
constexpr kernel_set numbers_of(kernel_kind k) {
  switch (k) {
    case kernel_kind::eager: return {};
    case kernel_kind::fused: return {.fused_norm = true, .fused_activation = true};
    case kernel_kind::liger:
      return {.fused_norm = true, .norm_over_gradient = true, .rotary_in_place = true, .fused_activation = true};
    case kernel_kind::liger_0_2:
      return {.fused_norm = true,
              .norm_over_gradient = true,
              .rotary_in_place = true,
              .fused_activation = true,
              .sums = norm_sums::per_row};
    case kernel_kind::unsloth:
      return {.fused_norm = true, .norm_over_gradient = true, .frozen_norms = true, .rotary_in_place = true};
  }
  return {};
}

struct attention_family {};
struct kernels_family {};

/// Attention and kernels policies name their family and hold their `kind`.
template <class A>
concept attention_policy = std::same_as<typename A::family, attention_family> && requires {
  { A::kind } -> std::convertible_to<attention_kind>;
};
template <class K>
concept kernels_policy = std::same_as<typename K::family, kernels_family> && requires {
  { K::kind } -> std::convertible_to<kernel_kind>;
};

/// FlashAttention 2 (PyTorch's flash backend): saves q, k, v, the output and one fp32 statistic a row; no scores.
struct flash_attention {
  using family = attention_family;
  static constexpr attention_kind kind = attention_kind::flash;
};
/// The same where the module copies keys and values to every query head first (Hugging Face's Mistral class
/// until 4.47).
struct flash_attention_repeated {
  using family = attention_family;
  static constexpr attention_kind kind = attention_kind::flash_repeated;
};
/// PyTorch's memory-efficient kernel: as flash, with repeated heads and statistics padded to 32 rows.
struct efficient_attention {
  using family = attention_family;
  static constexpr attention_kind kind = attention_kind::efficient;
};
/// Hugging Face's eager attention: scores and probabilities are tensors.
struct eager_attention {
  using family = attention_family;
  static constexpr attention_kind kind = attention_kind::eager;
};

/// The framework's stock modules: Hugging Face's RMSNorm in six operations, SwiGLU in two, `gelu_new` in eight.
struct eager_kernels {
  using family = kernels_family;
  static constexpr kernel_kind kind = kernel_kind::eager;
};
/// One kernel each for RMSNorm, SwiGLU and `gelu_new` (Apex, Liger's SwiGLU); a norm's gradient is a new tensor.
struct fused_kernels {
  using family = kernels_family;
  static constexpr kernel_kind kind = kernel_kind::fused;
};
/// Liger-Kernel since 0.4: gradients are written over what arrived or was saved; rotary embedding in place.
struct liger_kernels {
  using family = kernels_family;
  static constexpr kernel_kind kind = kernel_kind::liger;
};
/// Liger-Kernel 0.2: the norm's weight gradient goes through one fp32 row for each row of the input.
struct liger_0_2_kernels {
  using family = kernels_family;
  static constexpr kernel_kind kind = kernel_kind::liger_0_2;
};
/// unsloth's kernels, as fms-acceleration puts them into stock models: norms in one kernel with frozen weights, rotary
/// embedding in place, the MLP unchanged.
struct unsloth_kernels {
  using family = kernels_family;
  static constexpr kernel_kind kind = kernel_kind::unsloth;
};

static_assert(attention_policy<flash_attention> && attention_policy<flash_attention_repeated> &&
              attention_policy<efficient_attention> && attention_policy<eager_attention>);
static_assert(kernels_policy<eager_kernels> && kernels_policy<fused_kernels> && kernels_policy<liger_kernels> &&
              kernels_policy<liger_0_2_kernels> && kernels_policy<unsloth_kernels>);

}  // namespace gpumem
