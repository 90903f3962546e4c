// SPDX-License-Identifier: MIT
#include "kernels_host.hpp"

#include <utility>

#include "kernels_host_loops.hpp"

namespace gpumem::bench::host {

void scale(float const* x, float* y, std::int64_t elements) {
  map(elements, y, [=](std::int64_t i) { return 1.0001f * x[i]; });
}

std::vector<workload> workloads(std::int64_t rows, std::int64_t columns) {
  matrix_of const m{rows, columns};
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(float));
  std::vector<workload> all;

  all.push_back({.operation = "copy",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor},
                 .fused = predicted::copy.fused(bytes),
                 .chain = {},
                 .run = [m](variant, tensors const& t) { scale(as_floats(t[0]), as_floats(t[1]), m.elements()); },
                 .has_chain = false});
  for (auto const& of_file :
       {softmax_workloads, norm_forward_workloads, norm_backward_workloads, map_workloads, optimizer_workloads}) {
    for (workload& w : of_file(rows, columns)) all.push_back(std::move(w));
  }
  return all;
}

}  // namespace gpumem::bench::host
