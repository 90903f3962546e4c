// SPDX-License-Identifier: MIT
#pragma once
#include <concepts>
#include <cstdint>

namespace gpumem {

enum class attention_kind : std::uint8_t { flash, eager };
enum class kernel_kind : std::uint8_t { eager, fused };
enum class loss_kind : std::uint8_t { eager };

struct attention_family {};
struct kernels_family {};
struct loss_family {};

/// Attention, kernels and loss policies name their family and hold their `kind`.
template <class A>
concept attention_policy = std::same_as<typename A::family, attention_family> && requires {
  { A::kind } -> std::convertible_to<attention_kind>;
};
template <class K>
concept kernels_policy = std::same_as<typename K::family, kernels_family> && requires {
  { K::kind } -> std::convertible_to<kernel_kind>;
};
template <class L>
concept loss_policy = std::same_as<typename L::family, loss_family> && requires {
  { L::kind } -> std::convertible_to<loss_kind>;
};

/// FlashAttention 2 (PyTorch's flash backend): saves q, k, v, the output and one fp32 statistic a row; no scores.
struct flash_attention {
  using family = attention_family;
  static constexpr attention_kind kind = attention_kind::flash;
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
/// One kernel each for RMSNorm, SwiGLU and `gelu_new` (Liger, Apex).
struct fused_kernels {
  using family = kernels_family;
  static constexpr kernel_kind kind = kernel_kind::fused;
};

/// Current Hugging Face under its Trainer: logits upcast to fp32, log-softmax, nll; labels shifted, logits not copied;
/// the output object is dropped before backward. 12 bytes a logit at the worst point.
struct eager_loss {
  using family = loss_family;
  static constexpr loss_kind kind = loss_kind::eager;
};

static_assert(attention_policy<flash_attention> && attention_policy<eager_attention> && kernels_policy<eager_kernels> &&
              kernels_policy<fused_kernels> && loss_policy<eager_loss>);

}  // namespace gpumem
