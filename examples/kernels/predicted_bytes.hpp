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

/// Reads x and bias, writes y: 2E + Cb.
constexpr bytes_moved bias_gelu_fused(matrix m) { return map_columns(m); }
/// add bias, gelu: 4E + Cb.
constexpr bytes_moved bias_gelu_chain(matrix m) { return map_columns(m) + map(m, 1); }

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
static_assert(ratio(bias_gelu_chain({8192, 4096, 4}), bias_gelu_fused({8192, 4096, 4})) > 1.99);

}  // namespace predicted
}  // namespace gpumem::kernels
