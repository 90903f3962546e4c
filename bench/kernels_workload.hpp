// SPDX-License-Identifier: MIT
// What the kernel benchmark times: an operation at a shape, fused or as a chain, on a GPU or in loops on the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "predicted_bytes.hpp"

namespace gpumem::bench {

enum class variant { fused, chain };
inline char const* to_string(variant v) { return v == variant::fused ? "fused" : "chain"; }

/// What an operation moves through memory.
struct bytes_moved {
  traffic moved;
  std::uint64_t in_place;  ///< of the writes, those to what the same kernel has just read

  bytes_moved(traffic const& t = {}, std::uint64_t written_in_place = 0) : moved(t), in_place(written_in_place) {}
  double total() const { return static_cast<double>(moved.total()); }
  /// A CPU's plain store first reads the line that it changes, unless that is there already.
  double total_with_write_allocate() const { return static_cast<double>(moved.reads + 2 * moved.writes - in_place); }
};

/// The tensors of one run, in the order of `workload::tensor_bytes`.
using tensors = std::vector<void*>;

struct workload {
  std::string operation, dtype, shape;
  std::vector<std::size_t> tensor_bytes;
  bytes_moved fused, chain;
  std::function<void(variant, tensors const&)> run;
  bool has_chain = true;
  bool compute_bound = false;  ///< arithmetic takes longer than memory, so bytes predict nothing

  bytes_moved moved(variant v) const { return v == variant::fused ? fused : chain; }
  std::string name(variant v) const { return operation + "/" + to_string(v) + "/" + dtype + "/" + shape; }
};

inline std::string to_shape(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

inline char const* dtype_of(std::size_t element_bytes) { return element_bytes == sizeof(float) ? "fp32" : "bf16"; }

/// What the workloads on one matrix share: its place in the table of bytes, sizes in bytes of a tensor, of a parameter
/// a column and of an fp32 statistic a row, and names.
struct matrix_sizes {
  row_shape bytes;
  std::size_t tensor, parameter, statistic;
  std::string shape, dtype;
};
inline matrix_sizes sizes_of(std::int64_t rows, std::int64_t columns, std::size_t element_bytes) {
  row_shape const s = kernels::predicted::matrix(rows, columns, element_bytes);
  return {.bytes = s,
          .tensor = static_cast<std::size_t>(s.elements() * s.element_bytes),
          .parameter = static_cast<std::size_t>(s.columns * s.parameter_bytes),
          .statistic = static_cast<std::size_t>(s.rows * sizeof(float)),
          .shape = to_shape(rows, columns),
          .dtype = dtype_of(element_bytes)};
}

}  // namespace gpumem::bench
