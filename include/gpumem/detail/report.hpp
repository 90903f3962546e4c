// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/breakdown.hpp>
#include <gpumem/core/device.hpp>

#include <cstdint>

namespace gpumem {

// Labels for a compiler's message: the template argument list of a class is the one place in which every compiler
// prints numbers. They are never defined. Needs are rounded up to MiB, what there is down.
template <std::uint64_t>
struct required_MiB;
template <std::uint64_t>
struct available_MiB;
template <std::uint64_t>
struct missing_MiB;
template <std::uint64_t>
struct weights_MiB;
template <std::uint64_t>
struct gradients_MiB;
template <std::uint64_t>
struct optimizer_states_MiB;
template <std::uint64_t>
struct activations_MiB;
template <std::uint64_t>
struct temporaries_MiB;
template <std::uint64_t>
struct overhead_MiB;
template <std::uint64_t>
struct reserve_MiB;
struct peak_in_forward;
struct peak_in_loss;
struct peak_in_backward;
struct peak_in_backward_end;
struct peak_in_optimizer_step;

/// What require_fits instantiates: an error that carries the numbers where the run does not fit.
template <bool Fits, class... Numbers>
struct training_run {
  static_assert(Fits, "gpumem: the training run does not fit the device; the numbers are in training_run<...>");
};

namespace detail {

template <phase>
struct label_of;
template <>
struct label_of<phase::forward> {
  using type = peak_in_forward;
};
template <>
struct label_of<phase::loss> {
  using type = peak_in_loss;
};
template <>
struct label_of<phase::backward> {
  using type = peak_in_backward;
};
template <>
struct label_of<phase::backward_end> {
  using type = peak_in_backward_end;
};
template <>
struct label_of<phase::optimizer_step> {
  using type = peak_in_optimizer_step;
};

/// The labels' numbers. Static members and not default arguments of an alias, on which g++ 12 crashes.
template <class OnDevice>
struct fit_report {
  static constexpr breakdown run = OnDevice::memory;
  static constexpr memory at_peak = run.peak.categories;
  static constexpr bool fits = run.required() <= OnDevice::capacity;
  static constexpr std::uint64_t required = mebibytes_up(run.required()),
                                 available = mebibytes_down(OnDevice::capacity);
  static constexpr std::uint64_t missing = required > available ? required - available : 0;
  static constexpr std::uint64_t weights = mebibytes_up(at_peak.weights), gradients = mebibytes_up(at_peak.gradients),
                                 states = mebibytes_up(at_peak.optimizer_states),
                                 activations = mebibytes_up(at_peak.activations),
                                 temporaries = mebibytes_up(at_peak.temporaries),
                                 overhead = mebibytes_up(at_peak.overhead), reserve = mebibytes_up(run.reserve);
  using type = training_run<fits, required_MiB<required>, available_MiB<available>, missing_MiB<missing>,
                            typename label_of<run.peak.phase>::type, weights_MiB<weights>, gradients_MiB<gradients>,
                            optimizer_states_MiB<states>, activations_MiB<activations>, temporaries_MiB<temporaries>,
                            overhead_MiB<overhead>, reserve_MiB<reserve>>;
};

}  // namespace detail
}  // namespace gpumem
