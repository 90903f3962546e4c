// SPDX-License-Identifier: MIT
// What norms have to give, in float64, for whatever problems have one.
#pragma once
#include <cmath>
#include <utility>

#include "norm_backward.cuh"
#include "problem_parts.hpp"

namespace gpumem::kernels::test {

/// Mean and reciprocal of one row's deviation, or root mean square.
template <class Norm, class Values>
std::pair<double, double> statistics_of(setting const& s, Values const& x, std::size_t row) {
  auto const columns = static_cast<double>(s.columns());
  std::size_t const first = row * s.columns();
  double mean = 0, squares = 0;
  for (std::size_t i = first; Norm::centered && i < first + s.columns(); ++i) mean += at(x, i) / columns;
  for (std::size_t i = first; i < first + s.columns(); ++i) squares += (at(x, i) - mean) * (at(x, i) - mean);
  return {mean, 1 / std::sqrt(squares / columns + static_cast<double>(norm_epsilon))};
}

/// Random inputs of a backward norm, and its results.
template <class Norm, class T>
struct norm_backward_inputs {
  buffer<T> x, dy, gamma;
  buffer<float> mean, reciprocal;
  reference dx_reference, gamma_reference, beta_reference;

  explicit norm_backward_inputs(setting& s)
      : x("x", s.elements()),
        dy("dy", s.elements()),
        gamma("gamma", s.columns()),
        mean("mean", s.rows()),
        reciprocal("reciprocal", s.rows()),
        dx_reference(s.elements()),
        gamma_reference(s.columns()),
        beta_reference(s.columns()) {
    s.random.normal(x);
    s.random.normal(dy);
    // With a part of x in dy, gamma's sums are no differences that rounding in a bf16 chain would decide.
    for (std::size_t i = 0; i < s.elements(); ++i) dy[i] = from_float<T>(to_float(dy[i]) + 0.5f * to_float(x[i]));
    if (s.columns() == 1) {
      // The rms norm of one value is nearly its sign, of gradient 0, unless the value is small beside the root of
      // epsilon.
      s.random.uniform(x, 0.5e-3f, 1.5e-3f);
      s.random.uniform(dy, 0.5f, 1.5f);
    }
    s.random.uniform(gamma, 0.5f, 1.5f);
    for (std::size_t row = 0; row < s.rows(); ++row) add_row(s, row);
  }

  norm_backward_tensors<T> tensors(buffer<T> const& dx, buffer<float> const& partials) const {
    return {x.data(), dy.data(), gamma.data(), mean.data(), reciprocal.data(), dx.data(), partials.data()};
  }

 private:
  void add_row(setting const& s, std::size_t row) {
    auto const columns = static_cast<double>(s.columns());
    auto const [exact_mean, exact_reciprocal] = statistics_of<Norm>(s, x, row);
    mean[row] = static_cast<float>(exact_mean);
    reciprocal[row] = static_cast<float>(exact_reciprocal);
    double const m = at(mean, row), r = at(reciprocal, row);
    double scaled_sum = 0, product_sum = 0;
    for (std::size_t c = 0; c < s.columns(); ++c) {
      std::size_t const i = row * s.columns() + c;
      double const normalised = (at(x, i) - m) * r;
      scaled_sum += at(dy, i) * at(gamma, c);
      product_sum += at(dy, i) * at(gamma, c) * normalised;
      gamma_reference[c] += at(dy, i) * normalised;
      beta_reference[c] += at(dy, i);
    }
    if (!Norm::centered) scaled_sum = 0;
    for (std::size_t c = 0; c < s.columns(); ++c) {
      std::size_t const i = row * s.columns() + c;
      double const normalised = (at(x, i) - m) * r;
      double const scaled = at(dy, i) * at(gamma, c);
      dx_reference[i] = r * (scaled - scaled_sum / columns - normalised * product_sum / columns);
    }
  }
};

/// Requests of gamma beyond its first: once a row; where rows are a block's, for the sums and again for dx.
template <class T>
std::int64_t repeats_of_norm_backward(setting const& s, norm_backward_plan const& plan) {
  return ((plan.in_registers ? 1 : 2) * s.shape.rows - 1) * s.parameter_bytes<T>();
}

}  // namespace gpumem::kernels::test
