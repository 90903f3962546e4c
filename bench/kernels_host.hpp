// SPDX-License-Identifier: MIT
// The operations as plain loops on one core, for machines without a GPU. Fused: one pass over the memory, a row at a
// time. Chain: one pass after the other over whole arrays. Both move what the kernels move.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels_workload.hpp"

namespace gpumem::bench::host {

/// y = factor * x: one read and one write that no compiler turns into memcpy, whose stores pass the caches by.
void scale(float const* x, float* y, std::int64_t elements);

std::vector<workload> workloads(std::int64_t rows, std::int64_t columns);

}  // namespace gpumem::bench::host
