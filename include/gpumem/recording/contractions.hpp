// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/column_sum.hpp>
#include <gpumem/recording/elementwise.hpp>

#include <cstdint>

namespace gpumem {

/// The parameters of a linear layer, [out, in] and a bias of `out` where it has one.
struct linear_weights {
  ref matrix{}, bias{};
  std::int64_t in = 0, out = 0;
};

/// Linear layers, embeddings and batched matrix products.
class contraction_operations : public elementwise_operations {
 public:
  using elementwise_operations::elementwise_operations;

  constexpr linear_weights declare_linear(std::int64_t in, std::int64_t out, bool bias) {
    const ref matrix = parameter(out, in, role::weight);
    return {matrix, bias ? parameter(1, out, role::bias) : ref{}, in, out};
  }
  /// x W + b. Saves its input where W is trained (under autocast a half copy of it, one a Linear) and autocast's cast
  /// of W; W's gradient is made before x's, both beside y's; a bias gradient needs a column sum. `flat`: x is 2-D; a
  /// gradient of a 3-D input comes back as a view.
  constexpr ref linear(ref x, linear_weights const& w, bool flat = false) {
    const ref input = to_half(x), matrix = cast_of(w.matrix), bias = w.bias ? cast_of(w.bias) : ref{};
    const std::int64_t rows = elements(x) / w.in;
    const ref y = recording.make(checked(rows, w.out), type(input));
    const bool sums = bias && recording.at(bias).needs_gradient;
    recording.record({.name = "linear",
                      .in = {input, matrix, bias},
                      .how = {flat ? gradient::fresh : gradient::fresh_view, gradient::fresh_view, gradient::fresh},
                      .out = {y},
                      .saved = {recording.at(matrix).needs_gradient ? input : ref{},
                                recording.at(input).needs_gradient ? matrix : ref{}},
                      .workspace_backward = sums ? column_sum(rows, w.out) : bytes{},
                      .cost = cost_of::contraction(w.in)});
    if (input != x) recording.until_here(x);  // the caller's argument outlives the cast inside
    return y;
  }
  /// A linear layer with parameters of its own.
  constexpr ref linear(ref x, std::int64_t in, std::int64_t out, bool bias = true) {
    return linear(x, declare_linear(in, out, bias));
  }
  /// Rows of a table; autocast does not cast it. Its gradient is dense.
  constexpr ref embedding(ref table, ref indices, std::int64_t width) {
    const ref y = recording.make(checked(elements(indices), width), type(table));
    recording.record({.name = "embedding",
                      .in = {table, indices},
                      .how = {gradient::fresh},
                      .out = {y},
                      .saved = {indices},
                      .cost = cost_of::gathers});
    return y;
  }
  /// A batched matrix product over `inner`; saves both operands as laid out.
  constexpr ref matmul(ref a, ref b, std::int64_t out_elements, std::int64_t inner) {
    const ref y = recording.make(out_elements, type(a));
    recording.record({.name = "matmul",
                      .in = {a, b},
                      .how = {gradient::fresh, gradient::fresh},
                      .out = {y},
                      .saved = {a, b},
                      .cost = cost_of::contraction(inner)});
    return y;
  }

 protected:
  constexpr bytes column_sum(std::int64_t rows, std::int64_t columns) const {
    return column_sum_workspace(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), how.runtime);
  }
  static constexpr std::int64_t checked(std::int64_t a, std::int64_t b) {
    require_rule(a <= largest_number / b, "elements of a tensor / its width", a,
                 "the tensor has more than 2^40 elements");
    return a * b;
  }

 private:
  // autocast casts an fp32 parameter once and holds the cast until forward is over.
  constexpr ref cast_of(ref parameter) {
    if (!how.precision.autocast || type(parameter) == how.precision.autocast_type) return parameter;
    if (const ref earlier = recording.find_cast(parameter)) return earlier;
    const ref made = to_half(parameter);
    recording.mark_cast(made, parameter);
    return made;
  }
};

}  // namespace gpumem
