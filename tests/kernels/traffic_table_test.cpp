// SPDX-License-Identifier: MIT
// The bytes that the kernels are counted to move are those of the library's traffic table, row by row, to the byte.
#include <gpumem/traffic.hpp>

#include "catch.hpp"
#include "predicted_bytes.hpp"

namespace {

namespace rk = gpumem::row_kernels;
namespace ok = gpumem::optimizer_kernels;
namespace predicted = gpumem::kernels::predicted;
using gpumem::kernels::bytes_moved;
using gpumem::kernels::matrix;

constexpr std::int64_t N = 67, C = 1000, blocks = 5, n = 2560;

constexpr bool same(bytes_moved mine, gpumem::traffic const& table) {
  return mine.reads == static_cast<std::int64_t>(table.reads) && mine.writes == static_cast<std::int64_t>(table.writes);
}
constexpr matrix of(std::int64_t b) { return {N, C, b}; }
constexpr gpumem::row_shape shape(std::uint64_t b) {
  return {.rows = N, .columns = C, .element_bytes = b, .parameter_bytes = b, .blocks = blocks};
}
/// A sum of columns in a chain needs no partial sums: its blocks each own their columns.
constexpr gpumem::row_shape without_partials(std::uint64_t b) {
  gpumem::row_shape s = shape(b);
  s.blocks = 0;
  return s;
}

template <std::int64_t B>
constexpr bool rows_agree() {
  constexpr gpumem::row_shape s = shape(B), chain = without_partials(B);
  constexpr matrix m = of(B);
  static_assert(same(predicted::copy(m), rk::copy.fused(s)));
  static_assert(same(predicted::softmax_forward_fused(m, true), rk::softmax_forward.fused(s)));
  static_assert(same(predicted::softmax_forward_fused(m, false), rk::softmax_forward_online.fused(s)));
  static_assert(same(predicted::softmax_forward_chain(m), rk::softmax_forward.chain(chain)));
  static_assert(same(predicted::softmax_backward_fused(m, true), rk::softmax_backward.fused(s)));
  static_assert(same(predicted::softmax_backward_chain(m), rk::softmax_backward.chain(chain)));
  static_assert(same(predicted::add_rms_norm_fused(m, true), rk::add_rms_norm_forward.fused(s)));
  static_assert(same(predicted::add_rms_norm_chain(m), rk::add_rms_norm_forward.chain(chain)));
  static_assert(same(predicted::layer_norm_forward_fused(m, true), rk::layer_norm_forward.fused(s)));
  static_assert(same(predicted::layer_norm_forward_chain(m), rk::layer_norm_forward.chain(chain)));
  static_assert(same(predicted::layer_norm_backward_fused(m, blocks, true), rk::layer_norm_backward.fused(s)));
  static_assert(same(predicted::layer_norm_backward_chain(m), rk::layer_norm_backward.chain(chain)));
  static_assert(same(predicted::rms_norm_forward_fused(m, true), rk::rms_norm_forward.fused(s)));
  static_assert(same(predicted::rms_norm_forward_chain(m), rk::rms_norm_forward.chain(chain)));
  static_assert(same(predicted::rms_norm_backward_fused(m, blocks, true), rk::rms_norm_backward.fused(s)));
  static_assert(same(predicted::rms_norm_backward_chain(m), rk::rms_norm_backward.chain(chain)));
  static_assert(same(predicted::bias_gelu_fused(m), rk::bias_gelu_forward.fused(s)));
  static_assert(same(predicted::bias_gelu_chain(m), rk::bias_gelu_forward.chain(chain)));
  static_assert(same(predicted::bias_gelu_backward_fused(m, blocks), rk::bias_gelu_backward.fused(s)));
  static_assert(same(predicted::bias_gelu_backward_chain(m), rk::bias_gelu_backward.chain(chain)));
  static_assert(same(predicted::swiglu_forward_fused(m), rk::swiglu_forward.fused(s)));
  static_assert(same(predicted::swiglu_forward_chain(m), rk::swiglu_forward.chain(chain)));
  static_assert(same(predicted::swiglu_backward_fused(m), rk::swiglu_backward.fused(s)));
  static_assert(same(predicted::swiglu_backward_chain(m), rk::swiglu_backward.chain(chain)));
  static_assert(same(predicted::cross_entropy_fused(m, true), rk::cross_entropy.fused(s)));
  static_assert(same(predicted::cross_entropy_fused(m, false), rk::cross_entropy_rereading.fused(s)));
  return true;
}

/// The table's norm ends with a partial sum a block; the kernels' second launch reads these, and writes norm and
/// factor.
constexpr bytes_moved with_finish(gpumem::traffic const& table) {
  return bytes_moved{static_cast<std::int64_t>(table.reads), static_cast<std::int64_t>(table.writes)} +
         bytes_moved{4 * blocks, 2 * 4};
}
constexpr bool equal(bytes_moved a, bytes_moved b) { return a.reads == b.reads && a.writes == b.writes; }

}  // namespace

TEST_CASE("kernels move what the traffic table says, to the byte") {
  STATIC_REQUIRE(rows_agree<2>());
  STATIC_REQUIRE(rows_agree<4>());
  STATIC_REQUIRE(same(predicted::cross_entropy_chain(of(4), true, true), rk::cross_entropy.chain(shape(4))));
  STATIC_REQUIRE(same(predicted::cross_entropy_chain(of(2), true, true), rk::cross_entropy_upcast.chain(shape(2))));
  STATIC_REQUIRE(same(predicted::adamw_fused(n), ok::adamw_fp32.fused(n)));
  STATIC_REQUIRE(same(predicted::adamw_chain(n), ok::adamw_fp32.chain(n)));
  STATIC_REQUIRE(same(predicted::adamw_master_fused(n), ok::adamw_master.fused(n)));
  STATIC_REQUIRE(same(predicted::adamw_master_chain(n), ok::adamw_master.chain(n)));
  STATIC_REQUIRE(same(predicted::adamw_8bit_fused(n, 4), ok::adamw_8bit_fp32.fused(n)));
  STATIC_REQUIRE(same(predicted::adamw_8bit_chain(n, 4), ok::adamw_8bit_fp32.chain(n)));
  STATIC_REQUIRE(same(predicted::adamw_8bit_fused(n, 2), ok::adamw_8bit_half.fused(n)));
  STATIC_REQUIRE(same(predicted::adamw_8bit_chain(n, 2), ok::adamw_8bit_half.chain(n)));
  STATIC_REQUIRE(
      equal(predicted::gradient_clipping_fused(n, 4, blocks), with_finish(ok::gradient_clipping(4).fused(n, blocks))));
  // Its last kernel reads the factor too.
  STATIC_REQUIRE(equal(predicted::gradient_clipping_chain(n, 2, blocks),
                       with_finish(ok::gradient_clipping(2).chain(n, blocks)) + bytes_moved{4, 0}));
}
