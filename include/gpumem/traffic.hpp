// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/transformer.hpp>
#include <gpumem/recording/traffic.hpp>

namespace gpumem {

/// The traffic of one training step of a model: records it as estimate does, and counts what its operations move and
/// compute. The optimizer's step is not in it; optimizer_kernels.hpp has that for each parameter.
template <model M>
constexpr step_traffic traffic_of(M const& m, workload const& load, plan const& p, roofline const& r) {
  check(m, load);
  tape_with_room<> recording;
  operations ops{recording, p};
  const ref loss = record(ops, m, load);
  ops.finish(loss);
  return traffic_of(recording, p, r, static_cast<std::uint64_t>(load.accumulation));
}

}  // namespace gpumem
