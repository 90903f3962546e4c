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

/// The tensors of one run, in the order of `workload::tensor_bytes`.
using tensors = std::vector<void*>;

struct workload {
  std::string operation, dtype, shape;
  std::vector<std::size_t> tensor_bytes;
  kernels::bytes_moved fused, chain;
  std::function<void(variant, tensors const&)> run;
  bool has_chain = true;
  bool compute_bound = false;  ///< arithmetic takes longer than memory, so bytes predict nothing

  kernels::bytes_moved moved(variant v) const { return v == variant::fused ? fused : chain; }
  std::string name(variant v) const { return operation + "/" + to_string(v) + "/" + dtype + "/" + shape; }
};

inline std::string to_shape(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

}  // namespace gpumem::bench
