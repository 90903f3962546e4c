// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>

namespace gpumem {

/// The classes of Ivanov et al. 2020 (arXiv 2007.00072), and operations that move nothing forward: views and names.
enum class operation_class : std::uint8_t { contraction, normalization, elementwise, view };

/// The fused kernel (row_kernels.hpp, map_kernels.hpp) that does an operation, or the chain that the operation ends.
enum class fused_kernel : std::uint8_t {
  none,
  layer_norm,
  rms_norm,
  softmax,
  gelu,
  gelu_written_out,
  swiglu,
  cross_entropy,
  dropout
};

/// What an operation computes beside what it moves. FLOPs are counted for an element that it writes forward, and of
/// each gradient that it makes. A contraction's `flops` are its products, of 2 x outputs x inner each; backward is one
/// product for each gradient, or `flops_backward` products in one kernel.
struct cost {
  operation_class kind = operation_class::elementwise;
  fused_kernel fused = fused_kernel::none;
  std::uint8_t flops = 1, flops_backward = 1;
  bool gathers = false;    // reads no more of its first input than it writes, and not the input again backward
  std::int64_t inner = 0;  // a contraction's inner dimension; else the length of a row
};

namespace cost_of {
/// A contraction's flops_backward where forward made the gradients, counted for elements of the input (a fused linear
/// loss): backward only scales them.
inline constexpr std::uint8_t scales_forward_gradients = 255;
inline constexpr cost view{.kind = operation_class::view, .flops = 0, .flops_backward = 0};
inline constexpr cost moves{.flops = 0, .flops_backward = 0};
inline constexpr cost gathers{.flops = 0, .flops_backward = 0, .gathers = true};
inline constexpr cost gelu{.fused = fused_kernel::gelu, .flops = 9, .flops_backward = 15};
inline constexpr cost tanh_of_gelu{.fused = fused_kernel::gelu_written_out};
inline constexpr cost silu{.fused = fused_kernel::swiglu, .flops = 4, .flops_backward = 5};
inline constexpr cost gate{.fused = fused_kernel::swiglu, .flops = 5, .flops_backward = 6};
inline constexpr cost dropout{.fused = fused_kernel::dropout, .flops = 2, .flops_backward = 2};
constexpr cost contraction(std::int64_t inner, std::uint8_t products = 1, std::uint8_t products_backward = 0) {
  return {.kind = operation_class::contraction, .flops = products, .flops_backward = products_backward, .inner = inner};
}
constexpr cost rows(std::int64_t length, std::uint8_t flops, std::uint8_t flops_backward,
                    fused_kernel fused = fused_kernel::none) {
  return {.kind = operation_class::normalization,
          .fused = fused,
          .flops = flops,
          .flops_backward = flops_backward,
          .inner = length};
}
constexpr cost layer_norm(std::int64_t width) { return rows(width, 7, 13, fused_kernel::layer_norm); }
constexpr cost rms_norm(std::int64_t width) { return rows(width, 4, 10, fused_kernel::rms_norm); }
constexpr cost softmax(std::int64_t length) { return rows(length, 5, 4, fused_kernel::softmax); }
}  // namespace cost_of

}  // namespace gpumem
