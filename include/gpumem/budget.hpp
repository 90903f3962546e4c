// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/detail/report.hpp>
#include <gpumem/estimate.hpp>
#include <gpumem/models/transformer.hpp>

namespace gpumem {

/// The memory of a training run as a type: `estimate` with everything known at compile time. The model and the workload
/// are values; policies come in any order, and families that are not named keep their defaults.
template <model auto Model, workload Load, policy... Policies>
struct budget {
  static constexpr auto shape = Model;
  static constexpr workload load = Load;
  static constexpr plan how = make_plan(Policies{}...);
  static constexpr breakdown memory = estimate(Model, Load, how);
};

namespace detail {
template <class Budget, device D>
struct on {
  static constexpr breakdown memory = estimate(Budget::shape, Budget::load, on_device(Budget::how, D));
  static constexpr bytes capacity = D.capacity;
};
}  // namespace detail

/// The breakdown of a budget on a device, with the device's multiprocessors and cuBLAS workspace.
template <class Budget, device D>
inline constexpr breakdown memory_on = detail::on<Budget, D>::memory;

/// Whether peak + reserve fit into what a CUDA program sees of the device.
template <class Budget, device D>
inline constexpr bool fits = memory_on<Budget, D>.required() <= D.capacity;

/// As fits, but insists: a run that does not fit is a compile error with required_MiB, available_MiB, missing_MiB, the
/// phase of the peak and every category in the message.
template <class Budget, device D>
inline constexpr bool require_fits = sizeof(typename detail::fit_report<detail::on<Budget, D>>::type) != 0;

}  // namespace gpumem
