// SPDX-License-Identifier: MIT
#include "problems.hpp"

#include <cmath>
#include <stdexcept>

#include "adamw.cuh"
#include "add_rms_norm.cuh"
#include "bias_gelu.cuh"
#include "copy.cuh"
#include "problem_parts.hpp"
#include "softmax.cuh"

namespace gpumem::kernels::test {
namespace {

/// Softmax of each row.
template <class T>
reference softmax_of(setting const& s, buffer<T> const& x) {
  reference y(s.elements());
  for (std::size_t row = 0; row < s.rows(); ++row) {
    std::size_t const first = row * s.columns();
    double greatest = at(x, first), sum = 0;
    for (std::size_t i = first; i < first + s.columns(); ++i) greatest = std::max(greatest, at(x, i));
    for (std::size_t i = first; i < first + s.columns(); ++i) sum += y[i] = std::exp(at(x, i) - greatest);
    for (std::size_t i = first; i < first + s.columns(); ++i) y[i] /= sum;
  }
  return y;
}

template <class T>
class copy_problem final : public problem {
 public:
  explicit copy_problem(setting s) : s_(std::move(s)) { s_.random.normal(x_); }
  void run(variant) override {
    poison(y_);
    copy(s_.device, x_.data(), y_.data(), s_.shape.rows * s_.shape.columns);
  }
  std::vector<output_error> errors() const override {
    reference expected(x_.size());
    for (std::size_t i = 0; i < x_.size(); ++i) expected[i] = at(x_, i);
    return {compare("y", y_, expected)};
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(y_); }
  traffic predicted(variant) const override { return predicted::copy.fused(s_.bytes<T>()); }

 private:
  setting s_;
  buffer<T> x_{"x", s_.elements()}, y_{"y", s_.elements()};
};

template <class T>
class softmax_forward_problem final : public problem {
 public:
  explicit softmax_forward_problem(setting s) : s_(std::move(s)) {
    s_.random.normal(x_, 2.0f);
    expected_ = softmax_of(s_, x_);
  }
  void run(variant v) override {
    poison(y_, exponentials_, maxima_, sums_);
    if (v == variant::fused) {
      softmax_forward_fused(s_.device, x_.data(), y_.data(), s_.shape.rows, s_.shape.columns);
    } else {
      softmax_forward_chain(s_.device, x_.data(), y_.data(), exponentials_.data(), maxima_.data(), sums_.data(),
                            s_.shape.rows, s_.shape.columns);
    }
  }
  std::vector<output_error> errors() const override { return {compare("y", y_, expected_)}; }
  std::vector<unsigned char> output_bits() const override { return bits_of(y_); }
  traffic predicted(variant v) const override {
    if (v == variant::chain) return predicted::softmax_forward.chain(s_.bytes<T>());
    return predicted::softmax_forward.fused(s_.bytes<T>(), on_chip());
  }
  bool reads_once(variant v) const override { return v == variant::chain || on_chip(); }

 private:
  bool on_chip() const { return row_stays_on_chip<T>(s_.device, s_.shape.columns); }

  setting s_;
  buffer<T> x_{"x", s_.elements()}, y_{"y", s_.elements()}, exponentials_{"exponentials", s_.elements()};
  buffer<float> maxima_{"maxima", s_.rows()}, sums_{"sums", s_.rows()};
  reference expected_;
};

template <class T>
class softmax_backward_problem final : public problem {
 public:
  explicit softmax_backward_problem(setting s) : s_(std::move(s)), expected_(s_.elements()) {
    // Flat rows: where one probability is near 1, dx is a small difference of what the chain has already rounded.
    s_.random.normal(dx_, 0.5f);
    auto const y = softmax_of(s_, dx_);
    for (std::size_t i = 0; i < y.size(); ++i) y_[i] = from_float<T>(static_cast<float>(y[i]));
    s_.random.normal(dy_);
    for (std::size_t row = 0; row < s_.rows(); ++row) {
      std::size_t const first = row * s_.columns();
      double dot = 0;
      for (std::size_t i = first; i < first + s_.columns(); ++i) dot += at(y_, i) * at(dy_, i);
      for (std::size_t i = first; i < first + s_.columns(); ++i) expected_[i] = at(y_, i) * (at(dy_, i) - dot);
    }
  }
  void run(variant v) override {
    poison(dx_, products_, scaled_, sums_);
    if (v == variant::fused) {
      softmax_backward_fused(s_.device, y_.data(), dy_.data(), dx_.data(), s_.shape.rows, s_.shape.columns);
    } else {
      softmax_backward_chain(s_.device, y_.data(), dy_.data(), dx_.data(), products_.data(), scaled_.data(),
                             sums_.data(), s_.shape.rows, s_.shape.columns);
    }
  }
  std::vector<output_error> errors() const override { return {compare("dx", dx_, expected_)}; }
  std::vector<unsigned char> output_bits() const override { return bits_of(dx_); }
  traffic predicted(variant v) const override {
    if (v == variant::chain) return predicted::softmax_backward.chain(s_.bytes<T>());
    return predicted::softmax_backward.fused(s_.bytes<T>(), on_chip());
  }
  bool reads_once(variant v) const override { return v == variant::chain || on_chip(); }

 private:
  bool on_chip() const { return row_stays_on_chip<T>(s_.device, s_.shape.columns, 2); }

  setting s_;
  buffer<T> y_{"y", s_.elements()}, dy_{"dy", s_.elements()}, dx_{"dx", s_.elements()};
  buffer<T> products_{"products", s_.elements()}, scaled_{"scaled", s_.elements()};
  buffer<float> sums_{"sums", s_.rows()};
  reference expected_;
};

template <class T>
class add_rms_norm_problem final : public problem {
 public:
  explicit add_rms_norm_problem(setting s)
      : s_(std::move(s)), sum_reference_(s_.elements()), y_reference_(s_.elements()) {
    s_.random.typical(x_);
    s_.random.typical(residual_);
    s_.random.uniform(gamma_, 0.5f, 1.5f);
    for (std::size_t row = 0; row < s_.rows(); ++row) {
      double squares = 0;
      for (std::size_t c = 0; c < s_.columns(); ++c) {
        std::size_t const i = row * s_.columns() + c;
        sum_reference_[i] = at(x_, i) + at(residual_, i);
        squares += sum_reference_[i] * sum_reference_[i];
      }
      double const mean = squares / static_cast<double>(s_.columns());
      reciprocal_reference_.push_back(1.0 / std::sqrt(mean + static_cast<double>(rms_norm_epsilon)));
      for (std::size_t c = 0; c < s_.columns(); ++c) {
        std::size_t const i = row * s_.columns() + c;
        y_reference_[i] = sum_reference_[i] * reciprocal_reference_[row] * at(gamma_, c);
      }
    }
  }
  void run(variant v) override {
    poison(sum_, y_, reciprocal_, squares_, scaled_);
    add_rms_norm_tensors<T> const tensors{x_.data(),   residual_.data(), gamma_.data(),
                                          sum_.data(), y_.data(),        reciprocal_.data()};
    if (v == variant::fused) {
      add_rms_norm_fused(s_.device, tensors, s_.shape.rows, s_.shape.columns);
    } else {
      add_rms_norm_chain(s_.device, tensors, squares_.data(), scaled_.data(), s_.shape.rows, s_.shape.columns);
    }
  }
  std::vector<output_error> errors() const override {
    auto reciprocal = compare("reciprocal", reciprocal_, reciprocal_reference_);
    reciprocal.limit = sizeof(T) == 4 ? 1e-5 : 5e-3;  // fp32, but of a sum that was rounded to T
    return {compare("sum", sum_, sum_reference_), compare("y", y_, y_reference_), reciprocal};
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(sum_, y_, reciprocal_); }
  traffic predicted(variant v) const override {
    if (v == variant::chain) return predicted::add_rms_norm.chain(s_.bytes<T>());
    return predicted::add_rms_norm.fused(s_.bytes<T>(), row_stays_on_chip<T>(s_.device, s_.shape.columns));
  }
  std::int64_t repeated_parameter_bytes(variant v) const override {
    if (v == variant::fused) {
      std::int64_t const readers = readers_of_gamma<T>(s_.device, s_.shape.rows, s_.shape.columns);
      return (readers - 1) * s_.parameter_bytes<T>();
    }
    auto const plan = plan_columns<T>(s_.device, s_.shape.rows, s_.shape.columns);
    return plan.template requested_parameters<T>() * static_cast<std::int64_t>(sizeof(T)) - s_.parameter_bytes<T>();
  }

 private:
  setting s_;
  buffer<T> x_{"x", s_.elements()}, residual_{"residual", s_.elements()}, gamma_{"gamma", s_.columns()};
  buffer<T> sum_{"sum", s_.elements()}, y_{"y", s_.elements()};
  buffer<T> squares_{"squares", s_.elements()}, scaled_{"scaled", s_.elements()};
  buffer<float> reciprocal_{"reciprocal", s_.rows()};
  reference sum_reference_, y_reference_, reciprocal_reference_;
};

template <class T>
class bias_gelu_problem final : public problem {
 public:
  explicit bias_gelu_problem(setting s) : s_(std::move(s)), expected_(s_.elements()) {
    s_.random.typical(x_);
    s_.random.uniform(bias_, -0.5f, 0.5f);
    for (std::size_t i = 0; i < s_.elements(); ++i) {
      double const x = at(x_, i) + at(bias_, i % s_.columns());
      expected_[i] = 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    }
  }
  void run(variant v) override {
    poison(y_, biased_);
    if (v == variant::fused) {
      bias_gelu_fused(s_.device, x_.data(), bias_.data(), y_.data(), s_.shape.rows, s_.shape.columns);
    } else {
      bias_gelu_chain(s_.device, x_.data(), bias_.data(), y_.data(), biased_.data(), s_.shape.rows, s_.shape.columns);
    }
  }
  std::vector<output_error> errors() const override { return {compare("y", y_, expected_)}; }
  std::vector<unsigned char> output_bits() const override { return bits_of(y_); }
  traffic predicted(variant v) const override {
    return v == variant::fused ? predicted::bias_gelu.fused(s_.bytes<T>()) : predicted::bias_gelu.chain(s_.bytes<T>());
  }
  std::int64_t repeated_parameter_bytes(variant) const override {
    auto const plan = plan_columns<T>(s_.device, s_.shape.rows, s_.shape.columns);
    return plan.template requested_parameters<T>() * static_cast<std::int64_t>(sizeof(T)) - s_.parameter_bytes<T>();
  }

 private:
  setting s_;
  buffer<T> x_{"x", s_.elements()}, bias_{"bias", s_.columns()}, y_{"y", s_.elements()};
  buffer<T> biased_{"biased", s_.elements()};
  reference expected_;
};

/// T is the type of parameters and gradients; with bf16 there are fp32 master weights.
template <class T>
class adamw_problem final : public problem {
 public:
  static constexpr bool has_master = sizeof(T) == sizeof(bf16);
  static constexpr int step_number = 3;
  static constexpr adamw_settings settings{.learning_rate = 1e-2, .weight_decay = 0.1};

  explicit adamw_problem(setting s) : s_(std::move(s)) {
    s_.random.typical(weight_);
    s_.random.typical(mean_);
    s_.random.uniform(square_, 0.0f, 1.0f);
    s_.random.typical(gradient_);
    initial_weight_.assign(weight_.begin(), weight_.end());
    initial_mean_.assign(mean_.begin(), mean_.end());
    initial_square_.assign(square_.begin(), square_.end());
    double const correction1 = 1 - std::pow(settings.beta1, step_number);
    double const correction2 = 1 - std::pow(settings.beta2, step_number);
    for (std::size_t i = 0; i < s_.elements(); ++i) {
      double const g = at(gradient_, i);
      double const mean = settings.beta1 * at(mean_, i) + (1 - settings.beta1) * g;
      double const square = settings.beta2 * at(square_, i) + (1 - settings.beta2) * g * g;
      double const change = mean / correction1 / (std::sqrt(square / correction2) + settings.epsilon);
      double const decayed = at(weight_, i) * (1 - settings.learning_rate * settings.weight_decay);
      mean_reference_.push_back(mean);
      square_reference_.push_back(square);
      weight_reference_.push_back(decayed - settings.learning_rate * change);
    }
  }
  void run(variant v) override {
    weight_.assign(initial_weight_);
    mean_.assign(initial_mean_);
    square_.assign(initial_square_);
    poison(parameter_, wide_gradient_, temporary_);
    adamw_state const state{weight_.data(), mean_.data(), square_.data()};
    adamw_step const step(settings, step_number);
    std::int64_t const n = s_.shape.rows * s_.shape.columns;
    if constexpr (has_master) {
      if (v == variant::fused) {
        adamw_master_fused(s_.device, state, parameter_.data(), gradient_.data(), step, n);
      } else {
        adamw_master_chain(s_.device, state, parameter_.data(), gradient_.data(), wide_gradient_.data(),
                           temporary_.data(), step, n);
      }
    } else if (v == variant::fused) {
      adamw_fused(s_.device, state, gradient_.data(), step, n);
    } else {
      adamw_chain(s_.device, state, gradient_.data(), temporary_.data(), step, n);
    }
  }
  std::vector<output_error> errors() const override {
    std::vector<output_error> all{compare("weight", weight_, weight_reference_),
                                  compare("mean", mean_, mean_reference_),
                                  compare("square", square_, square_reference_)};
    if (has_master) all.push_back(compare("parameter", parameter_, weight_reference_));
    return all;
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(weight_, mean_, square_, parameter_); }
  traffic predicted(variant v) const override {
    auto const& entry = has_master ? predicted::adamw_master : predicted::adamw;
    return v == variant::fused ? entry.fused(s_.elements()) : entry.chain(s_.elements());
  }

 private:
  setting s_;
  buffer<float> weight_{"weight", s_.elements()}, mean_{"mean", s_.elements()}, square_{"square", s_.elements()};
  buffer<T> gradient_{"gradient", s_.elements()}, parameter_{"parameter", has_master ? s_.elements() : 0};
  buffer<float> wide_gradient_{"wide gradient", s_.elements()}, temporary_{"temporary", s_.elements()};
  std::vector<float> initial_weight_, initial_mean_, initial_square_;
  reference weight_reference_, mean_reference_, square_reference_;
};

std::vector<operation> joined(std::vector<std::vector<operation>> const& lists) {
  std::vector<operation> all;
  for (auto const& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

std::vector<operation> const& operations() {
  auto const both = both_variants();
  static std::vector<operation> const all = joined({
      {{"copy", {variant::fused}, make<copy_problem>},
       {"softmax_forward", both, make<softmax_forward_problem>},
       {"softmax_backward", both, make<softmax_backward_problem>},
       {"add_rms_norm", both, make<add_rms_norm_problem>},
       {"bias_gelu", both, make<bias_gelu_problem>},
       {"adamw", both, make<adamw_problem>}},
      norm_operations(),
      map_operations(),
      dropout_operations(),
      optimizer_operations(),
  });
  return all;
}

operation const& find_operation(std::string const& name) {
  for (auto const& o : operations()) {
    if (o.name == name) return o;
  }
  throw std::invalid_argument(name);
}

}  // namespace gpumem::kernels::test
