// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/memory.hpp>

#include <cstdint>

namespace gpumem {

/// The documents' sum: parameters times a number of bytes, and everything that forward keeps. It is never the peak.
struct thumb_sum {
  std::uint64_t bytes_per_parameter = 0;
  bytes weights{}, gradients{}, optimizer_states{}, activations{}, total{};

  friend constexpr bool operator==(thumb_sum const&, thumb_sum const&) = default;
};

/// The memory of one training step: its phases, the worst of them, and the figures that people compare by.
struct breakdown {
  std::uint64_t parameters = 0;  // elements; a tied table counts once
  bytes saved_per_layer{};       // by one block without checkpointing, before rounding; the largest where blocks differ
  thumb_sum rule_of_thumb{};
  moment timeline[phases] = {};  // in the order of the step
  moment forward_end{};          // when the loss is known
  moment peak{};                 // the entry of the timeline with the largest total
  bytes reserve{};               // set aside beside the peak
  bytes paged_states{};          // optimizer states in managed memory, which no phase counts

  [[nodiscard]] constexpr moment const& at(phase p) const { return timeline[static_cast<int>(p)]; }
  /// What a device must have for the run to fit: the peak and the reserve.
  [[nodiscard]] constexpr bytes required() const { return peak.total + reserve; }

  friend constexpr bool operator==(breakdown const&, breakdown const&) = default;
};

/// A run's memory as three programs print it, in bytes. `allocated` is torch.cuda.max_memory_allocated: the walk's peak
/// and what the allocator did not split off. `reserved`, of torch.cuda.max_memory_reserved, and `device`, of
/// nvidia-smi, are those of one order of allocations: with expandable segments, or on an emptied cache, they are less.
struct machine_memory {
  bytes allocated{}, reserved{}, context{};

  [[nodiscard]] constexpr bytes device() const { return reserved + context; }
  friend constexpr bool operator==(machine_memory const&, machine_memory const&) = default;
};

}  // namespace gpumem
