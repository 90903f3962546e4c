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

inline std::size_t tensor_bytes(row_shape const& s) { return s.elements() * s.element_bytes; }
inline std::size_t parameter_bytes(row_shape const& s) { return s.columns * s.parameter_bytes; }
inline std::size_t statistic_bytes(row_shape const& s) { return s.rows * sizeof(float); }

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

}  // namespace gpumem::bench
