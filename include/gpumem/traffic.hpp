// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/transformer.hpp>
#include <gpumem/recording/fusable.hpp>
#include <gpumem/recording/misfits.hpp>
#include <gpumem/recording/traffic.hpp>

#include <cstdint>

namespace gpumem {

/// What a step moves and computes by class, the fused kernels it has a place for, and the sizes that do not suit tensor
/// cores.
struct traffic_report {
  step_traffic step{};
  fusable_list kernels{};
  misfit_list misfits{};
};

namespace detail {

template <class M, class F>
constexpr auto with_recording(M const& m, workload const& load, plan const& p, F const& f) {
  check(m, load);
  tape_with_room<> recording;
  operations ops{recording, p};
  const ref loss = record(ops, m, load);
  ops.finish(loss);
  return f(recording);
}

}  // namespace detail

/// The traffic of one training step of a model: records it as estimate does, and counts what its operations move and
/// compute. The optimizer's step is not in it; optimizer_kernels.hpp has that for each parameter.
template <model M>
constexpr step_traffic traffic_of(M const& m, workload const& load, plan const& p, roofline const& r) {
  return detail::with_recording(
      m, load, p, [&](tape const& t) { return traffic_of(t, p, r, static_cast<std::uint64_t>(load.accumulation)); });
}
/// The same with the tables beside it.
template <model M>
constexpr traffic_report report_traffic(M const& m, workload const& load, plan const& p, roofline const& r) {
  return detail::with_recording(m, load, p, [&](tape const& t) {
    const auto micro_batches = static_cast<std::uint64_t>(load.accumulation);
    return traffic_report{traffic_of(t, p, r, micro_batches), fusables_of(t, p, micro_batches), misfits_of(t)};
  });
}
/// The roofline of a device, from its datasheet; zero rates where they are not known.
constexpr roofline roofline_of(device const& d) {
  return {.bytes_per_second = static_cast<double>(d.bandwidth) * 1e9,
          .flops_per_second = static_cast<double>(d.half_rate) * 1e12};
}

}  // namespace gpumem
