// SPDX-License-Identifier: MIT
// The table of fused kernels and chains, row by row: whole tensors moved, side terms to the byte, FLOPs an element, the
// speed-up that the bytes predict, and the intensities as they are published (two digits).
#include <gpumem/recording/map_kernels.hpp>
#include <gpumem/recording/optimizer_kernels.hpp>
#include <gpumem/recording/row_kernels.hpp>

#include "catch.hpp"

using namespace gpumem;
namespace rk = gpumem::row_kernels;
namespace ok = gpumem::optimizer_kernels;

namespace {

constexpr std::uint64_t N = 6, C = 10, E = N * C, G = 3;
constexpr row_shape half{.rows = N, .columns = C, .element_bytes = 2, .parameter_bytes = 2, .blocks = G};
constexpr row_shape full{.rows = N, .columns = C, .element_bytes = 4, .parameter_bytes = 4, .blocks = G};

/// Whole tensors (a fused kernel's and a chain's), then the bytes beside them, in and out.
struct expected {
  std::uint64_t reads, writes, side_in, side_out, chain, chain_side, flops;
};
constexpr std::uint64_t S = 4 * N, P = 4 * G * C;  // a row statistic; one vector of partial sums a block

constexpr bool holds(row_kernel const& k, row_shape const& s, expected const& e) {
  const std::uint64_t tensor = E * s.element_bytes;
  const traffic f = k.fused(s), c = k.chain(s);
  return f.reads == e.reads * tensor + e.side_in && f.writes == e.writes * tensor + e.side_out && c.flops == f.flops &&
         f.flops == e.flops * E && (k.launches() == 0 || c.total() == e.chain * tensor + e.chain_side);
}
constexpr bool rounds_to(double x, double printed, double digit) {
  return x >= printed - digit * 0.55 && x <= printed + digit * 0.55;
}
// So large that side terms do not show.
constexpr row_shape large(std::uint64_t element_bytes, std::uint64_t mask_bits = 8) {
  return {.rows = 8192,
          .columns = 8192,
          .element_bytes = element_bytes,
          .parameter_bytes = element_bytes,
          .mask_bits = mask_bits};
}
constexpr bool speeds_up(row_kernel const& k, double by, std::uint64_t b = 2, std::uint64_t mask_bits = 8,
                         double digit = .01) {
  return rounds_to(k.speedup(large(b, mask_bits)), by, digit);
}
constexpr bool intensities(row_kernel const& k, double of_half, double of_full, double digit) {
  return rounds_to(k.fused(large(2)).intensity(), of_half, digit) &&
         rounds_to(k.fused(large(4)).intensity(), of_full, digit);
}

}  // namespace

TEST_CASE("maps and softmax move what the table says", "[traffic][kernels]") {
  STATIC_REQUIRE(holds(rk::copy, half, {1, 1, 0, 0, 0, 0, 0}));
  STATIC_REQUIRE(holds(rk::residual_add, half, {2, 1, 0, 0, 0, 0, 1}));
  STATIC_REQUIRE(holds(rk::softmax_forward, half, {1, 1, 0, 0, 6, 4 * S, 5}));
  STATIC_REQUIRE(holds(rk::softmax_forward, full, {1, 1, 0, 0, 6, 4 * S, 5}));
  STATIC_REQUIRE(holds(rk::softmax_forward_online, half, {2, 1, 0, 0, 4, 0, 6}));
  STATIC_REQUIRE(holds(rk::softmax_backward, half, {2, 1, 0, 0, 9, 2 * S, 4}));
  STATIC_REQUIRE(rk::softmax_forward.reading_again(1).fused(half).total() == rk::softmax_forward_online.fused(half).total());
  STATIC_REQUIRE(rk::softmax_backward.reading_again(2).fused(half).total() == 5 * E * 2);
  STATIC_REQUIRE(rk::softmax_backward.reading_again(2).fused(half, true) == rk::softmax_backward.fused(half));
  STATIC_REQUIRE(intensities(rk::residual_add, .17, .08, .01));
  STATIC_REQUIRE(intensities(rk::softmax_forward, 1.25, .63, .01));
  STATIC_REQUIRE(intensities(rk::softmax_forward_online, 1.0, .5, .01));
  STATIC_REQUIRE(intensities(rk::softmax_backward, .67, .33, .01));
  STATIC_REQUIRE(speeds_up(rk::softmax_forward, 3.0));
  STATIC_REQUIRE(speeds_up(rk::softmax_forward_online, 1.33));
  STATIC_REQUIRE(speeds_up(rk::softmax_backward, 3.0));
}

TEST_CASE("norms move what the table says", "[traffic][kernels]") {
  constexpr std::uint64_t w = 2 * C, v = 4 * C;  // one vector of parameters, bf16 and fp32
  STATIC_REQUIRE(holds(rk::layer_norm_forward, half, {1, 1, 2 * w, 2 * S, 12, 4 * S + 2 * w, 7}));
  STATIC_REQUIRE(holds(rk::layer_norm_forward, full, {1, 1, 2 * v, 2 * S, 12, 4 * S + 2 * v, 7}));
  STATIC_REQUIRE(
      holds(rk::layer_norm_backward, half, {2, 1, w + 2 * S + 2 * P, 2 * w + 2 * P, 25, 7 * S + 3 * w + 4 * P, 13}));
  STATIC_REQUIRE(rk::layer_norm_backward_two_kernels.chain(half).total() == 5 * E * 2 + 4 * S + w + 2 * w + 4 * P);
  STATIC_REQUIRE(holds(rk::rms_norm_forward, half, {1, 1, w, S, 7, 2 * S + w, 4}));
  STATIC_REQUIRE(holds(rk::rms_norm_backward, half, {2, 1, w + S + P, w + P, 19, 4 * S + 2 * w + 2 * P, 10}));
  STATIC_REQUIRE(holds(rk::add_rms_norm_forward, half, {2, 2, w, S, 10, 2 * S + w, 5}));
  STATIC_REQUIRE(holds(rk::add_then_rms_norm_forward, half, {2, 2, w, S, 5, S + w, 5}));
  STATIC_REQUIRE(holds(rk::add_layer_norm_forward, half, {2, 2, 2 * w, 2 * S, 15, 4 * S + 2 * w, 8}));
  STATIC_REQUIRE(holds(rk::rms_norm_backward_add, half, {3, 1, w + S + P, w + P, 6, S + 2 * w + 2 * P, 11}));
  STATIC_REQUIRE(
      holds(rk::layer_norm_backward_add, half, {3, 1, w + 2 * S + 2 * P, 2 * w + 2 * P, 6, 2 * S + 3 * w + 4 * P, 14}));
  // 36 bytes an element: 6 + 8 + 4 + 8 + 6 + 4.
  STATIC_REQUIRE(rk::rms_norm_forward_upcast.chain(half).total() == 36 * E + 2 * S + w);
  STATIC_REQUIRE(rk::rms_norm_forward_upcast.fused(half).total() == 4 * E + S + w);

  STATIC_REQUIRE(intensities(rk::layer_norm_forward, 1.75, .88, .01));
  STATIC_REQUIRE(intensities(rk::layer_norm_backward, 2.2, 1.1, .1));
  STATIC_REQUIRE(intensities(rk::rms_norm_forward, 1.0, .5, .01));
  STATIC_REQUIRE(intensities(rk::rms_norm_backward, 1.7, .8, .1));
  STATIC_REQUIRE(intensities(rk::add_rms_norm_forward, .63, .31, .01));
  STATIC_REQUIRE(intensities(rk::add_layer_norm_forward, 1.0, .5, .01));

  STATIC_REQUIRE(speeds_up(rk::layer_norm_forward, 6.0));
  STATIC_REQUIRE(speeds_up(rk::layer_norm_forward_rereading, 1.5));
  STATIC_REQUIRE(speeds_up(rk::layer_norm_backward, 8.3, 4, 8, .1));
  STATIC_REQUIRE(speeds_up(rk::layer_norm_backward_two_kernels, 1.67));
  STATIC_REQUIRE(speeds_up(rk::rms_norm_forward, 3.5));
  STATIC_REQUIRE(speeds_up(rk::rms_norm_forward_upcast, 9.0));
  STATIC_REQUIRE(speeds_up(rk::rms_norm_backward, 6.3, 2, 8, .1));
  STATIC_REQUIRE(speeds_up(rk::add_rms_norm_forward, 2.5));
  STATIC_REQUIRE(speeds_up(rk::add_then_rms_norm_forward, 1.25));
  STATIC_REQUIRE(speeds_up(rk::add_layer_norm_forward, 3.75));
  STATIC_REQUIRE(speeds_up(rk::rms_norm_backward_add, 1.5));
  STATIC_REQUIRE(speeds_up(rk::layer_norm_backward_add, 1.5));
}

TEST_CASE("losses and activations move what the table says", "[traffic][kernels]") {
  constexpr std::uint64_t w = 2 * C;
  STATIC_REQUIRE(holds(rk::cross_entropy, full, {1, 1, S, S, 6, 4 * S, 7}));
  STATIC_REQUIRE(holds(rk::cross_entropy_rereading, full, {2, 1, S, S, 6, 4 * S, 7}));
  STATIC_REQUIRE(rk::cross_entropy_upcast.chain(half).total() == 36 * E + 4 * S);
  STATIC_REQUIRE(rk::cross_entropy_upcast.fused(half).total() == 4 * E + 2 * S);
  STATIC_REQUIRE(holds(rk::bias_gelu_forward, half, {1, 1, w, 0, 4, w, 10}));
  STATIC_REQUIRE(holds(rk::bias_gelu_forward_primitives, half, {1, 1, w, 0, 20, w, 10}));
  STATIC_REQUIRE(holds(rk::bias_gelu_backward, half, {2, 1, w + P, w + P, 4, w + 2 * P, 16}));
  // A mask of one byte an element in the chain; of 8, 1 or 0 bits in the fused kernel.
  STATIC_REQUIRE(holds(rk::bias_dropout_add, half, {2, 1, w, E, 7, E + w, 4}));
  STATIC_REQUIRE(holds(rk::bias_dropout_add_layer_norm, half, {2, 2, 3 * w, 2 * S + E, 9, E + 3 * w + 2 * S, 11}));
  // Backward reads the mask that forward wrote: 3 + 2 + 1 tensors as a chain.
  STATIC_REQUIRE(holds(rk::bias_dropout_add_layer_norm_backward, half,
                       {2, 2, w + 2 * S + 3 * P + E, 3 * w + 3 * P, 6, E + w + 2 * S + 3 * w + 6 * P, 16}));
  STATIC_REQUIRE(rk::bias_dropout_add.fused({.rows = N, .columns = C, .mask_bits = 1}).writes == E * 2 + 8);
  STATIC_REQUIRE(rk::bias_dropout_add.fused({.rows = N, .columns = C, .mask_bits = 0}).writes == E * 2);
  STATIC_REQUIRE(holds(rk::swiglu_forward, half, {2, 1, 0, 0, 5, 0, 5}));
  STATIC_REQUIRE(holds(rk::swiglu_forward_primitives, half, {2, 1, 0, 0, 8, 0, 5}));
  STATIC_REQUIRE(holds(rk::swiglu_backward, half, {3, 2, 0, 0, 11, 0, 11}));

  STATIC_REQUIRE(intensities(rk::cross_entropy, 1.75, .88, .01));
  STATIC_REQUIRE(intensities(rk::bias_gelu_forward, 2.5, 1.25, .01));
  STATIC_REQUIRE(intensities(rk::bias_gelu_backward, 2.7, 1.3, .1));
  STATIC_REQUIRE(intensities(rk::bias_dropout_add, .57, .31, .01));
  STATIC_REQUIRE(intensities(rk::bias_dropout_add_layer_norm, 1.2, .65, .05));
  STATIC_REQUIRE(intensities(rk::swiglu_forward, .83, .42, .01));
  STATIC_REQUIRE(intensities(rk::swiglu_backward, 1.1, .55, .01));

  STATIC_REQUIRE(speeds_up(rk::cross_entropy, 3.0, 4));
  STATIC_REQUIRE(speeds_up(rk::cross_entropy_rereading, 2.0, 4));
  STATIC_REQUIRE(speeds_up(rk::cross_entropy_upcast, 9.0));
  STATIC_REQUIRE(speeds_up(rk::bias_gelu_forward, 2.0));
  STATIC_REQUIRE(speeds_up(rk::bias_gelu_forward_primitives, 10.0));
  STATIC_REQUIRE(speeds_up(rk::bias_gelu_backward, 1.33));
  STATIC_REQUIRE(speeds_up(rk::bias_dropout_add, 2.14));
  STATIC_REQUIRE(speeds_up(rk::bias_dropout_add, 2.5, 2, 0));
  STATIC_REQUIRE(speeds_up(rk::bias_dropout_add_layer_norm, 2.11));
  STATIC_REQUIRE(speeds_up(rk::bias_dropout_add_layer_norm, 2.38, 2, 0));
  STATIC_REQUIRE(speeds_up(rk::swiglu_forward, 1.67));
  STATIC_REQUIRE(speeds_up(rk::swiglu_forward_primitives, 2.67));
  STATIC_REQUIRE(speeds_up(rk::swiglu_backward, 2.2));
}

TEST_CASE("optimizer steps move what the table says, to the byte", "[traffic][kernels]") {
  constexpr std::uint64_t n = 256 * 1000;
  STATIC_REQUIRE(ok::adamw_fp32.fused(n) == traffic{16 * n, 12 * n, 13 * n});
  STATIC_REQUIRE(ok::adamw_fp32.chain(n).total() == 80 * n);
  STATIC_REQUIRE(ok::adamw_fp32.launches() == 8);
  STATIC_REQUIRE(ok::adamw_fp32_capturable.chain(n).total() == 88 * n);
  STATIC_REQUIRE(ok::adamw_master.fused(n) == traffic{14 * n, 14 * n, 13 * n});
  STATIC_REQUIRE(ok::adamw_master.chain(n).total() == 92 * n);
  STATIC_REQUIRE(ok::adamw_master_fp32_gradient.fused(n).total() == 30 * n);
  STATIC_REQUIRE(ok::adamw_master_fp32_gradient.chain(n).total() == 86 * n);
  STATIC_REQUIRE(ok::adamw_half.fused(n).total() == 14 * n);
  STATIC_REQUIRE(ok::adamw_half.chain(n).total() == 40 * n);
  // 2p + g + 4 + 16 / 256 bytes a parameter, the last block's scale whole.
  STATIC_REQUIRE(ok::adamw_8bit_fp32.fused(n).total() == 16 * n + 16 * 1000);
  STATIC_REQUIRE(ok::adamw_8bit_half.fused(n).total() == 10 * n + 16 * 1000);
  STATIC_REQUIRE(ok::adamw_8bit_half.fused(n + 1).total() == 10 * (n + 1) + 16 * 1001);
  // 56 bytes a parameter, and the maxima between the four kernels.
  STATIC_REQUIRE(ok::adamw_8bit_fp32.chain(n).total() == 56 * n + 24 * 1000);
  STATIC_REQUIRE(ok::gradient_norm(2).fused(n, 132) == traffic{2 * n, 4 * 132, 2 * n});
  STATIC_REQUIRE(ok::gradient_norm(4).chain(n, 132).total() == 3 * 4 * n + 4 * 132);
  STATIC_REQUIRE(ok::gradient_clipping(4).chain(n).total() == 5 * 4 * n + 4);

  STATIC_REQUIRE(ok::finish_norm.at(n, 132) == traffic{4 * 132, 2 * 4, 0});

  STATIC_REQUIRE(rounds_to(ok::adamw_fp32.speedup(n), 2.86, .01));
  STATIC_REQUIRE(rounds_to(ok::adamw_master.speedup(n), 3.29, .01));
  STATIC_REQUIRE(rounds_to(ok::adamw_master_fp32_gradient.speedup(n), 2.87, .01));
  STATIC_REQUIRE(rounds_to(ok::adamw_half.speedup(n), 2.86, .01));
  STATIC_REQUIRE(rounds_to(ok::adamw_8bit_fp32.speedup(n), 3.5, .1));
  STATIC_REQUIRE(ok::gradient_norm(4).speedup(n) == 3.0);
  STATIC_REQUIRE(rounds_to(ok::gradient_clipping(4).speedup(n), 5.0, .01));
  STATIC_REQUIRE(rounds_to(ok::adamw_fp32.fused(n).intensity(), .46, .01));
}
