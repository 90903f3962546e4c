// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/estimate.hpp>

#include <cstdint>

namespace gpumem {

/// The static arenas of a program that allocates once and frees nothing: the sum of a recording, without a walk.
struct arena {
  std::uint64_t parameters = 0;
  bytes weights{}, masters{}, gradients{}, optimizer_states{};
  bytes activations{};               // every storage that the recording makes, as often as it exists
  std::uint64_t largest_tensor = 0;  // elements of the largest buffer over all layers: what an index must reach

  [[nodiscard]] constexpr bytes total() const { return weights + masters + gradients + optimizer_states + activations; }
  friend constexpr bool operator==(arena const&, arena const&) = default;
};

/// The arenas of a recording. Nothing is rounded; parameters and batch are not activations.
constexpr arena arena_of(tape const& t, plan const& how) {
  plan unrounded = how;
  unrounded.runtime = bare::numbers;
  const detail::parameter_sums sums = detail::sum_parameters(t, unrounded);
  arena a{.parameters = sums.elements,
          .weights = storage(how.precision.weights, sums.elements),
          .masters = sums.masters,
          .gradients = how.optimizer.trains ? storage(how.precision.gradients, sums.elements) : bytes{},
          .optimizer_states = sums.states};
  for (int i = 1; i <= t.tensors(); ++i) {
    tensor const& x = t.tensor_at(i);
    if (x.storage != i || x.resident) continue;
    const std::uint64_t elements =
        checked_multiply(static_cast<std::uint64_t>(x.elements), static_cast<std::uint64_t>(t.times(i)));
    a.activations += storage(x.type, elements);
    if (elements > a.largest_tensor) a.largest_tensor = elements;
  }
  return a;
}

/// The arenas of a model: records it and adds up. Refuses wrong numbers as `estimate` does.
template <model M>
constexpr arena arena_of(M const& m, workload const& load, plan const& how = {}) {
  check(m, load);
  tape_with_room<> recording;
  operations ops{recording, how};
  const ref loss = record(ops, m, load);
  ops.finish(loss);
  return arena_of(recording, how);
}

}  // namespace gpumem
