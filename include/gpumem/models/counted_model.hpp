// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/tensor.hpp>
#include <gpumem/recording/tape.hpp>

#include <cstdint>

namespace gpumem {

/// A model whose parameters can be listed, whether or not its operations are recorded: `check(model)` refuses wrong
/// numbers and `record_parameters(tape, model)` declares every parameter tensor once. Both are found beside the type.
template <class M>
concept counted_model = requires(M const& m, tape& t) {
  check(m);
  record_parameters(t, m);
};

/// a * b for two counts of a shape; refuses a product over 2^40.
constexpr std::int64_t product_of(char const* field, std::int64_t a, std::int64_t b) {
  require_rule(b == 0 || a <= largest_number / b, field, a, "times the number it goes with must be at most 2^40");
  return a * b;
}

/// Declares parameters on a tape in the framework's own modules.
class parameter_listing {
 public:
  constexpr explicit parameter_listing(tape& onto) : tape_(onto) {}

  constexpr void linear(std::int64_t in, std::int64_t out, bool bias) {
    tape_.parameter({.rows = out, .columns = in}, true);
    if (bias) vector(out, role::bias);
  }
  constexpr void embedding(std::int64_t rows, std::int64_t width) {
    tape_.parameter({.rows = rows, .columns = width, .role = role::embedding}, true);
  }
  constexpr void norm(std::int64_t width, bool bias) {
    vector(width, role::norm);
    if (bias) vector(width, role::norm);
  }
  constexpr void vector(std::int64_t width, role of) { tape_.parameter({.columns = width, .role = of}, true); }

  /// What `body` declares exists `count` times (0: not at all).
  template <class Body>
  constexpr void repeat(std::int64_t count, Body const& body) {
    if (count == 0) return;
    tape_.repeat(count, false, ref{}, [&](ref in) {
      body();
      tape_.record({.name = "parameters"});  // a repeated stretch of a tape is a stretch of operations
      return in;
    });
  }

 private:
  tape& tape_;
};

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

/// The parameters of a model from its one listing. The static type is the proof that the model is only counted: there
/// is no second formula beside `record_parameters`.
template <counted_model M>
constexpr parameter_count count_parameters(M const& model) {
  check(model);
  tape_with_room<24, 80> t;
  record_parameters(t, model);
  return count_parameters(static_cast<tape const&>(t));
}

}  // namespace gpumem
