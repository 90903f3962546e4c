// SPDX-License-Identifier: MIT
// The bytes that each operation must move through memory. The kernels' tests count the same bytes; the benchmark
// predicts times from them.
//
// Rule: every distinct input is read once, every output written once. E = rows x columns elements of b bytes; a
// statistic is one float a row (s = 4 bytes); a parameter is one element a column.
#pragma once
#include <cstdint>

namespace gpumem::kernels {

struct bytes_moved {
  std::int64_t reads = 0;
  std::int64_t writes = 0;
  std::int64_t in_place = 0;  // of the writes, those to what the same kernel has just read

  constexpr std::int64_t total() const { return reads + writes; }
  /// A CPU's plain store first reads the line that it changes, unless that is there already.
  constexpr std::int64_t total_with_write_allocate() const { return reads + 2 * writes - in_place; }
  friend constexpr bytes_moved operator+(bytes_moved a, bytes_moved b) {
    return {a.reads + b.reads, a.writes + b.writes, a.in_place + b.in_place};
  }
};

struct matrix {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t element_bytes;

  constexpr std::int64_t tensor() const { return rows * columns * element_bytes; }
  constexpr std::int64_t statistic() const { return rows * 4; }
  constexpr std::int64_t parameter() const { return columns * element_bytes; }
};

namespace predicted {

// ---- the primitives of the chains

/// Element by element: each input read, one output written.
constexpr bytes_moved map(matrix m, std::int64_t inputs) { return {inputs * m.tensor(), m.tensor()}; }
/// Reads x, writes a statistic.
constexpr bytes_moved reduce_rows(matrix m) { return {m.tensor(), m.statistic()}; }
/// Reads x and a statistic, writes y.
constexpr bytes_moved map_rows(matrix m) { return {m.tensor() + m.statistic(), m.tensor()}; }
/// Reads x and a parameter, writes y.
constexpr bytes_moved map_columns(matrix m) { return {m.tensor() + m.parameter(), m.tensor()}; }
/// Reads x, writes one sum a column, as a parameter.
constexpr bytes_moved reduce_columns(matrix m) { return {m.tensor(), m.parameter()}; }
/// Sums of columns that `blocks` blocks leave in fp32, written, and read again to be added up.
constexpr bytes_moved partial_sums(matrix m, std::int64_t blocks) {
  return {blocks * m.columns * 4, blocks * m.columns * 4 + m.parameter()};
}

// ---- the operations; `on_chip` says that a row is kept from its first reading to its last use

/// Reads x, writes y: 2E.
constexpr bytes_moved copy(matrix m) { return map(m, 1); }

/// Reads x, writes y: 2E. Off the chip x is read twice: 3E.
constexpr bytes_moved softmax_forward_fused(matrix m, bool on_chip) { return map(m, on_chip ? 1 : 2); }
/// max, subtract and exp, sum, divide: 6E + 4Ns.
constexpr bytes_moved softmax_forward_chain(matrix m) {
  return reduce_rows(m) + map_rows(m) + reduce_rows(m) + map_rows(m);
}

/// Reads y and dy, writes dx: 3E. Off the chip both are read twice: 5E.
constexpr bytes_moved softmax_backward_fused(matrix m, bool on_chip) { return map(m, on_chip ? 2 : 4); }
/// y dy, its row sum, y times that, subtract: 9E + 2Ns.
constexpr bytes_moved softmax_backward_chain(matrix m) { return map(m, 2) + reduce_rows(m) + map_rows(m) + map(m, 2); }

/// Reads x, residual and gamma, writes sum, y and the statistic: 4E + Cb + Ns. Off the chip the sum is read back: 5E.
constexpr bytes_moved add_rms_norm_fused(matrix m, bool on_chip) {
  return {(on_chip ? 2 : 3) * m.tensor() + m.parameter(), 2 * m.tensor() + m.statistic()};
}
/// add, square, mean, times statistic, times gamma: 10E + Cb + 2Ns.
constexpr bytes_moved add_rms_norm_chain(matrix m) {
  return map(m, 2) + map(m, 1) + reduce_rows(m) + map_rows(m) + map_columns(m);
}

/// Reads x, gamma and beta, writes y, mean and reciprocal: 2E + 2Cb + 2Ns. Off the chip x is read twice: 3E.
constexpr bytes_moved layer_norm_forward_fused(matrix m, bool on_chip) {
  return {(on_chip ? 1 : 2) * m.tensor() + 2 * m.parameter(), m.tensor() + 2 * m.statistic()};
}
/// mean, subtract, square, mean, times statistic, times gamma, plus beta: 12E + 2Cb + 4Ns.
constexpr bytes_moved layer_norm_forward_chain(matrix m) {
  return reduce_rows(m) + map_rows(m) + map(m, 1) + reduce_rows(m) + map_rows(m) + map_columns(m) + map_columns(m);
}
/// Reads x and gamma, writes y and the statistic: 2E + Cb + Ns. Off the chip x is read twice: 3E.
constexpr bytes_moved rms_norm_forward_fused(matrix m, bool on_chip) {
  return {(on_chip ? 1 : 2) * m.tensor() + m.parameter(), m.tensor() + m.statistic()};
}
/// square, mean, times statistic, times gamma: 7E + Cb + 2Ns.
constexpr bytes_moved rms_norm_forward_chain(matrix m) {
  return map(m, 1) + reduce_rows(m) + map_rows(m) + map_columns(m);
}

/// Reads x, dy, gamma and both statistics, writes dx: 3E + Cb + 2Ns; with `blocks` blocks, partial sums for gamma and
/// beta. Off the chip x and dy are read twice: 5E.
constexpr bytes_moved layer_norm_backward_fused(matrix m, std::int64_t blocks, bool on_chip) {
  return map_columns(m) + bytes_moved{(on_chip ? 1 : 3) * m.tensor() + 2 * m.statistic(), 0} + partial_sums(m, blocks) +
         partial_sums(m, blocks);
}
/// subtract mean, times statistic, sum columns, dy xhat, sum columns, times gamma, mean, times xhat, mean, times
/// statistic, subtract mean, subtract, times statistic: 25E + 3Cb + 7Ns.
constexpr bytes_moved layer_norm_backward_chain(matrix m) {
  return map_rows(m) + map_rows(m) + reduce_columns(m) + map(m, 2) + reduce_columns(m) + map_columns(m) +
         reduce_rows(m) + map(m, 2) + reduce_rows(m) + map_rows(m) + map_rows(m) + map(m, 2) + map_rows(m);
}
/// Reads x, dy, gamma and the statistic, writes dx: 3E + Cb + Ns, and the partial sums for gamma. Off the chip: 5E.
constexpr bytes_moved rms_norm_backward_fused(matrix m, std::int64_t blocks, bool on_chip) {
  return map_columns(m) + bytes_moved{(on_chip ? 1 : 3) * m.tensor() + m.statistic(), 0} + partial_sums(m, blocks);
}
/// times statistic, dy xhat, sum columns, times gamma, times xhat, mean, times statistic, subtract, times statistic:
/// 19E
/// + 2Cb + 4Ns.
constexpr bytes_moved rms_norm_backward_chain(matrix m) {
  return map_rows(m) + map(m, 2) + reduce_columns(m) + map_columns(m) + map(m, 2) + reduce_rows(m) + map_rows(m) +
         map(m, 2) + map_rows(m);
}

/// Reads x and bias, writes y: 2E + Cb.
constexpr bytes_moved bias_gelu_fused(matrix m) { return map_columns(m); }
/// add bias, gelu: 4E + Cb.
constexpr bytes_moved bias_gelu_chain(matrix m) { return map_columns(m) + map(m, 1); }

/// Reads x, dy and bias, writes dx: 3E + Cb; with `partial_rows` rows of partial sums for the bias.
constexpr bytes_moved bias_gelu_backward_fused(matrix m, std::int64_t partial_rows) {
  return map_columns(m) + bytes_moved{m.tensor(), 0} + partial_sums(m, partial_rows);
}
/// gelu backward, sum columns: 4E + Cb.
constexpr bytes_moved bias_gelu_backward_chain(matrix m) { return map(m, 2) + reduce_columns(m); }

/// Reads gate and up, writes y: 3E.
constexpr bytes_moved swiglu_forward_fused(matrix m) { return map(m, 2); }
/// silu, multiply: 5E.
constexpr bytes_moved swiglu_forward_chain(matrix m) { return map(m, 1) + map(m, 2); }
/// Reads gate, up and dy, writes two gradients: 5E.
constexpr bytes_moved swiglu_backward_fused(matrix m) { return {3 * m.tensor(), 2 * m.tensor()}; }
/// silu, multiply, multiply, silu backward: 11E.
constexpr bytes_moved swiglu_backward_chain(matrix m) { return map(m, 1) + map(m, 2) + map(m, 2) + map(m, 2); }

/// Reads logits and targets, writes the gradient over the logits, and the losses: 2E + 2Ns. Off the chip: 3E.
constexpr bytes_moved cross_entropy_fused(matrix m, bool on_chip) {
  return {(on_chip ? 1 : 2) * m.tensor() + m.statistic(), m.tensor() + m.statistic(), m.tensor()};
}
/// log-softmax, losses from targets and the values there, fill, log-softmax backward: 6E + 4Ns, in fp32. bf16 logits
/// are widened before and narrowed after: 36 bytes an element.
constexpr bytes_moved cross_entropy_chain(matrix m, bool forward_on_chip, bool backward_on_chip) {
  matrix const wide{m.rows, m.columns, 4};
  bytes_moved const losses{2 * m.statistic(), m.statistic()}, fill{m.statistic(), wide.tensor()};
  bytes_moved const casts{m.tensor() + wide.tensor(), m.tensor() + wide.tensor()};
  return softmax_forward_fused(wide, forward_on_chip) + losses + fill + softmax_backward_fused(wide, backward_on_chip) +
         (m.element_bytes == 4 ? bytes_moved{} : casts);
}

/// A partial sum a block, read again for the norm and the clipping factor.
constexpr bytes_moved finish_norm(std::int64_t blocks) { return {4 * blocks, 4 * blocks + 2 * 4}; }
/// Reads n gradients of b bytes: bn. Clipping costs nothing more, as the optimizer scales what it reads.
constexpr bytes_moved gradient_clipping_fused(std::int64_t n, std::int64_t b, std::int64_t blocks) {
  return bytes_moved{b * n, 0} + finish_norm(blocks);
}
/// square, sum, scale in place: 5bn, and the factor.
constexpr bytes_moved gradient_clipping_chain(std::int64_t n, std::int64_t b, std::int64_t blocks) {
  return bytes_moved{b * n, b * n} + bytes_moved{b * n, 0} + finish_norm(blocks) + bytes_moved{b * n + 4, b * n, b * n};
}

/// Reads weight, two moments and gradient, writes weight and moments: 28 bytes a parameter.
constexpr bytes_moved adamw_fused(std::int64_t n) { return {4 * 4 * n, 3 * 4 * n, 3 * 4 * n}; }
/// mul, lerp, mul, addcmul, sqrt, div, add, addcdiv: 12 reads and 8 writes of fp32, 80 bytes a parameter. All but sqrt
/// write in place.
constexpr bytes_moved adamw_chain(std::int64_t n) { return {12 * 4 * n, 8 * 4 * n, 7 * 4 * n}; }

/// Reads the bf16 gradient, master weight and moments, writes master, moments and the bf16 weight: 28 bytes a
/// parameter.
constexpr bytes_moved adamw_master_fused(std::int64_t n) { return {(2 + 3 * 4) * n, (3 * 4 + 2) * n, 3 * 4 * n}; }
/// Cast the gradient up (2 + 4), the fp32 chain, cast the weight down (4 + 2): 92 bytes a parameter.
constexpr bytes_moved adamw_master_chain(std::int64_t n) {
  return bytes_moved{2 * n, 4 * n} + adamw_chain(n) + bytes_moved{4 * n, 2 * n};
}

/// Reads parameter and gradient of b bytes, two codes and a 256th of two scales; writes all but the gradient, in place:
/// 3b + 4 + 16 / 256 bytes a parameter.
constexpr bytes_moved adamw_8bit_fused(std::int64_t n, std::int64_t b) {
  std::int64_t const scales = 2 * 4 * ((n + 255) / 256), states = 2 * n + scales;
  return {2 * b * n + states, b * n + states, b * n + states};
}
/// Dequantise, AdamW with fp32 moments, greatest magnitudes, quantise: 10 + 3b + 16 + 8 + 10 bytes a parameter, and
/// scales three times.
constexpr bytes_moved adamw_8bit_chain(std::int64_t n, std::int64_t b) {
  std::int64_t const scales = 2 * 4 * ((n + 255) / 256);
  return bytes_moved{2 * n + scales, 8 * n} + bytes_moved{(2 * b + 8) * n, (b + 8) * n, (b + 8) * n} +
         bytes_moved{8 * n, scales} + bytes_moved{8 * n + scales, 2 * n};
}

// What fusion is worth where bytes are all that counts.
constexpr double ratio(bytes_moved chain, bytes_moved fused) {
  return static_cast<double>(chain.total()) / static_cast<double>(fused.total());
}
static_assert(adamw_fused(1000).total() == 28'000 && adamw_chain(1000).total() == 80'000);
static_assert(adamw_master_fused(1000).total() == 28'000 && adamw_master_chain(1000).total() == 92'000);
static_assert(softmax_forward_fused({10, 100, 2}, true).total() == 4'000);
static_assert(softmax_forward_chain({10, 100, 2}).total() == 12'000 + 4 * 10 * 4);
static_assert(ratio(softmax_backward_chain({8192, 4096, 4}), softmax_backward_fused({8192, 4096, 4}, true)) > 2.99);
static_assert(ratio(add_rms_norm_chain({8192, 4096, 4}), add_rms_norm_fused({8192, 4096, 4}, true)) > 2.49);
static_assert(layer_norm_forward_chain({10, 100, 2}).total() == 24'000 + 2 * 100 * 2 + 4 * 10 * 4);
static_assert(layer_norm_backward_chain({10, 100, 2}).total() == 50'000 + 3 * 100 * 2 + 7 * 10 * 4);
static_assert(layer_norm_backward_fused({10, 100, 2}, 5, true).total() ==
              6'000 + 100 * 2 + 2 * 10 * 4 + 2 * (2 * 5 * 100 * 4) + 2 * 100 * 2);
static_assert(rms_norm_backward_chain({10, 100, 2}).total() == 38'000 + 2 * 100 * 2 + 4 * 10 * 4);
static_assert(swiglu_backward_fused({10, 100, 2}).total() == 10'000);
static_assert(swiglu_backward_chain({10, 100, 2}).total() == 22'000);
static_assert(cross_entropy_fused({10, 100, 2}, true).total() == 4'000 + 2 * 10 * 4);
static_assert(cross_entropy_chain({10, 100, 4}, true, true).total() == 24'000 + 4 * 10 * 4);
static_assert(cross_entropy_chain({10, 100, 2}, true, true).total() == 36'000 + 4 * 10 * 4);
static_assert(adamw_8bit_fused(2560, 4).total() == 41'120);  // 16.0625 bytes a parameter
static_assert(adamw_8bit_fused(2560, 2).total() == 25'760);  // 10.0625
static_assert(adamw_8bit_chain(2560, 4).total() == 56 * 2560 + 3 * 2 * 4 * 10);
static_assert(ratio(bias_gelu_chain({8192, 4096, 4}), bias_gelu_fused({8192, 4096, 4})) > 1.99);

}  // namespace predicted
}  // namespace gpumem::kernels
