// SPDX-License-Identifier: MIT
// The bytes that each operation must move through memory are the library's (gpumem/recording: row_kernels, map_kernels,
// optimizer_kernels). Here stands only which entry a kernel and a chain have, how much of a row a kernel reads again
// where it does not fit on the chip, and how many blocks leave partial sums.
#pragma once
#include <gpumem/recording/map_kernels.hpp>
#include <gpumem/recording/optimizer_kernels.hpp>
#include <gpumem/recording/row_kernels.hpp>

#include <cstdint>

namespace gpumem::kernels::predicted {

/// rows x columns elements of `element_bytes`, parameters of the same type.
constexpr row_shape matrix(std::int64_t rows, std::int64_t columns, std::size_t element_bytes,
                           std::int64_t blocks = 0) {
  return {.rows = static_cast<std::uint64_t>(rows),
          .columns = static_cast<std::uint64_t>(columns),
          .element_bytes = element_bytes,
          .parameter_bytes = element_bytes,
          .blocks = static_cast<std::uint64_t>(blocks)};
}

/// An operation's entry, as the kernels do it.
struct row_operation {
  row_kernel table;
  std::uint64_t read_again = 0;  // tensors, where a row does not stay on the chip
  std::uint64_t chain_partials = 0, chain_read_again = 0;  // of a chain that has a norm as one kernel

  constexpr traffic fused(row_shape const& s, bool on_chip = true) const {
    return table.reading_again(read_again).fused(s, on_chip);
  }
  /// A chain's sums of columns need no partial sums: its blocks each own their columns.
  constexpr traffic chain(row_shape s, bool on_chip = true) const {
    row_pass const beside{.reads = on_chip ? 0 : chain_read_again, .partials = chain_partials};
    traffic const of_norm = beside.at(s);
    s.blocks = 0;
    return table.chain(s) + of_norm;
  }
};

inline constexpr row_operation copy{row_kernels::copy};
inline constexpr row_operation softmax_forward{row_kernels::softmax_forward, 1};
inline constexpr row_operation softmax_backward{row_kernels::softmax_backward, 2};
inline constexpr row_operation add_rms_norm{row_kernels::add_rms_norm_forward, 1};
inline constexpr row_operation layer_norm_forward{row_kernels::layer_norm_forward, 1};
inline constexpr row_operation layer_norm_backward{row_kernels::layer_norm_backward, 2};
inline constexpr row_operation rms_norm_forward{row_kernels::rms_norm_forward, 1};
inline constexpr row_operation rms_norm_backward{row_kernels::rms_norm_backward, 2};
inline constexpr row_operation bias_dropout_add_layer_norm{row_kernels::bias_dropout_add_layer_norm, 1, 0, 1};
inline constexpr row_operation bias_dropout_add_layer_norm_backward{row_kernels::bias_dropout_add_layer_norm_backward,
                                                                    2, 2, 2};
inline constexpr row_operation bias_gelu{row_kernels::bias_gelu_forward};
inline constexpr row_operation bias_gelu_backward{row_kernels::bias_gelu_backward};
inline constexpr row_operation swiglu_forward{row_kernels::swiglu_forward};
inline constexpr row_operation swiglu_backward{row_kernels::swiglu_backward};
inline constexpr row_operation cross_entropy{row_kernels::cross_entropy, 1};

/// In fp32, bf16 logits cast before and after. Its log-softmax and that one's backward are kernels of this directory, so
/// they too read a row again that does not fit.
constexpr traffic cross_entropy_chain(row_shape const& s, bool forward_on_chip, bool backward_on_chip) {
  row_pass const again{.wide_reads = (forward_on_chip ? 0u : 1u) + (backward_on_chip ? 0u : 2u)};
  return (s.element_bytes == 4 ? row_kernels::cross_entropy : row_kernels::cross_entropy_upcast).chain(s) + again.at(s);
}

inline constexpr optimizer_kernel adamw = optimizer_kernels::adamw_fp32;
inline constexpr optimizer_kernel adamw_master = optimizer_kernels::adamw_master;
constexpr optimizer_kernel adamw_8bit(std::size_t element_bytes) {
  return element_bytes == 4 ? optimizer_kernels::adamw_8bit_fp32 : optimizer_kernels::adamw_8bit_half;
}

/// Norm and factor are made on the device.
constexpr traffic gradient_clipping_fused(std::uint64_t n, std::size_t element_bytes, std::uint64_t blocks) {
  return optimizer_kernels::gradient_clipping(element_bytes).fused(n, blocks) +
         optimizer_kernels::finish_norm.at(0, blocks);
}
constexpr traffic gradient_clipping_chain(std::uint64_t n, std::size_t element_bytes, std::uint64_t blocks) {
  return optimizer_kernels::gradient_clipping(element_bytes).chain(n, blocks) +
         optimizer_kernels::finish_norm.at(0, blocks);
}

}  // namespace gpumem::kernels::predicted
