// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/counted_model.hpp>
#include <gpumem/models/model.hpp>

#include <cstdint>

namespace gpumem {

/// The elements of a tape's parameters by role. A tied table is declared once and counts once.
struct parameter_count {
  std::uint64_t embeddings = 0, weights = 0, biases = 0, norms = 0;

  [[nodiscard]] constexpr std::uint64_t total() const {
    return checked_add(checked_add(embeddings, weights), checked_add(biases, norms));
  }
  friend constexpr bool operator==(parameter_count const&, parameter_count const&) = default;
};

/// Sums the parameters on a tape, repeated stretches as often as they run.
constexpr parameter_count count_parameters(tape const& t) {
  parameter_count n;
  for (int id = 1; id <= t.tensors(); ++id) {
    tensor const& p = t.tensor_at(id);
    if (!p.parameter) continue;
    const std::uint64_t elements =
        checked_multiply(static_cast<std::uint64_t>(p.elements), static_cast<std::uint64_t>(t.times(id)));
    std::uint64_t& of = p.role == role::embedding ? n.embeddings
                        : p.role == role::bias    ? n.biases
                        : p.role == role::norm    ? n.norms
                                                  : n.weights;
    of = checked_add(of, elements);
  }
  return n;
}

/// The parameters of a model that is only listed, from that listing.
template <counted_model M>
constexpr parameter_count count_parameters(M const& m) {
  check(m);
  tape_with_room<24, 80> t;
  record_parameters(t, m);
  return count_parameters(static_cast<tape const&>(t));
}

/// The parameters of a model whose operations are recorded, from that recording.
template <model M>
constexpr parameter_count count_parameters(M const& m) {
  constexpr workload one_token{.micro_batch = 1, .sequence = 1};
  check(m, one_token);
  tape_with_room<> t;
  const plan how{};
  operations ops{t, how};
  static_cast<void>(record(ops, m, one_token));
  return count_parameters(static_cast<tape const&>(t));
}

}  // namespace gpumem
