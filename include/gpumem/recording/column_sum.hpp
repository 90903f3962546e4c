// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/policies/runtime.hpp>

#include <cstdint>

namespace gpumem {
namespace detail {

constexpr std::uint64_t smaller(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }
constexpr std::uint64_t last_power_of_two(std::uint64_t n) {
  std::uint64_t p = 1;
  while (p <= n / 2) p *= 2;
  return p;
}

}  // namespace detail

/// What PyTorch allocates to sum the rows of a [rows, columns] matrix on CUDA, for every bias gradient and every eager
/// norm's weight gradient: staging of 4 * columns * ctas * block.x * vector and one semaphore a block, where rows are
/// split over blocks (aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig and global_memory_size).
constexpr bytes column_sum_workspace(std::uint64_t rows, std::uint64_t columns, runtime const& r) {
  using detail::smaller;
  if (r.multiprocessors == 0 || rows < 2) return {};
  std::uint64_t vector = 4;
  while (columns % vector != 0) vector /= 2;
  const std::uint64_t threads = 512 / vector, outputs = columns / vector;
  const std::uint64_t widest = smaller(detail::last_power_of_two(outputs), threads);
  const std::uint64_t y = smaller(smaller(detail::last_power_of_two(rows), threads), threads / smaller(widest, 32));
  const std::uint64_t x = smaller(widest, threads / y);
  const bool rows_over_y = rows >= y * 16 || rows >= 256;
  const std::uint64_t grid = divide_up(outputs, rows_over_y ? x : x * y);
  const std::uint64_t values = rows_over_y ? divide_up(rows, y) : rows;
  const std::uint64_t resident = static_cast<std::uint64_t>(r.threads_per_multiprocessor) / (x * y);
  const std::uint64_t target = static_cast<std::uint64_t>(r.multiprocessors) * resident;
  if (!rows_over_y || values < 256 || grid > target) return {};
  const std::uint64_t filling = smaller(divide_up(target, grid), divide_up(values, 16)), least = divide_up(values, 256);
  const std::uint64_t ctas = filling > least ? filling : least;
  if (ctas <= 1) return {};
  return align_up({4 * columns * ctas * x * vector}, r.granule) + align_up({4 * grid}, r.granule);
}

}  // namespace gpumem
