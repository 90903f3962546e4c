// SPDX-License-Identifier: MIT
// The GPU side of the kernel benchmark: the kernels of examples/kernels at the shapes that reach each of them.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels_gpu_norms.cuh"
#include "kernels_gpu_optimizers.cuh"
#include "kernels_gpu_rows.cuh"

namespace gpumem::bench::gpu {

/// `elements` a tensor; several widths, for each row strategy is another kernel.
inline std::vector<workload> workloads(device_context const& on, std::int64_t elements) {
  std::vector<workload> all{copy_workload<float>(on, elements), copy_workload<bf16>(on, elements)};
  auto const append = [&all](std::vector<workload> more) {
    for (auto& w : more) all.push_back(std::move(w));
  };
  for (int const columns : {256, 1024, 4096, 32768}) {
    std::int64_t const rows = elements / columns;
    append(row_workloads<float>(on, rows, columns));
    append(row_workloads<bf16>(on, rows, columns));
    append(norm_workloads<kernels::layer_norm, float>(on, rows, columns));
    append(norm_workloads<kernels::layer_norm, bf16>(on, rows, columns));
    append(norm_workloads<kernels::rms_norm, float>(on, rows, columns));
    append(norm_workloads<kernels::rms_norm, bf16>(on, rows, columns));
    append(dropout_workloads<float>(on, rows, columns));
    append(dropout_workloads<bf16>(on, rows, columns));
  }
  append(activation_workloads<float>(on, elements / 4096, 4096));
  append(activation_workloads<bf16>(on, elements / 4096, 4096));
  for (int const vocabulary : {32768, 131072}) {
    all.push_back(cross_entropy_workload<float>(on, elements / vocabulary, vocabulary));
    all.push_back(cross_entropy_workload<bf16>(on, elements / vocabulary, vocabulary));
  }
  append(optimizer_workloads(on, elements));
  append(parameter_workloads<float>(on, elements));
  append(parameter_workloads<bf16>(on, elements));
  return all;
}

}  // namespace gpumem::bench::gpu
