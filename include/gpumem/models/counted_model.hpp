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

}  // namespace gpumem
