// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/traffic_count.hpp>

#include <cstdint>

namespace gpumem {

/// The rates of a roofline: bytes and FLOPs a second, and the seconds that a launch costs.
struct roofline {
  double bytes_per_second = 0, flops_per_second = 0, launch = 0;

  /// Seconds of one kernel: launch and the slower of memory and tensor cores. Only contractions compute on tensor
  /// cores; other kernels are bound by memory.
  [[nodiscard]] constexpr double seconds(traffic const& t, bool contraction) const {
    const double memory = static_cast<double>(t.total()) / bytes_per_second;
    const double compute = contraction ? static_cast<double>(t.flops) / flops_per_second : 0.0;
    return launch + (memory > compute ? memory : compute);
  }
};

/// The chance that a chain is faster than its bytes say: below four times the L2 its tensors may stay there.
constexpr bool is_l2_resident(std::uint64_t tensor_bytes, std::uint64_t l2_bytes) {
  return tensor_bytes < checked_multiply(l2_bytes, 4);
}

/// Traffic of a class of operations, its kernels and their predicted seconds.
struct class_share {
  traffic forward{}, backward{};
  std::uint64_t kernels = 0;
  double seconds = 0;

  [[nodiscard]] constexpr traffic total() const { return forward + backward; }
};

/// A step's traffic, forward and backward, by class; the optimizer's step is not in it.
struct step_traffic {
  class_share contraction{}, normalization{}, elementwise{};
  /// The same step with each run of operations between two contractions as one kernel forward and one backward: what
  /// comes in from outside the run, what leaves it and what it saves, everything between on chip. A bound.
  class_share runs_fused{};

  [[nodiscard]] constexpr traffic total() const {
    return contraction.total() + normalization.total() + elementwise.total();
  }
  [[nodiscard]] constexpr double seconds() const {
    return contraction.seconds + normalization.seconds + elementwise.seconds;
  }
  [[nodiscard]] constexpr double fused_seconds() const { return contraction.seconds + runs_fused.seconds; }
  [[nodiscard]] constexpr double flop_share(class_share const& c) const {
    return static_cast<double>(c.total().flops) / static_cast<double>(total().flops);
  }
  [[nodiscard]] constexpr double byte_share(class_share const& c) const {
    return static_cast<double>(c.total().total()) / static_cast<double>(total().total());
  }
  [[nodiscard]] constexpr double time_share(class_share const& c) const { return c.seconds / seconds(); }
};

}  // namespace gpumem
