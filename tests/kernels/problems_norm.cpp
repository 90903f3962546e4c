// SPDX-License-Identifier: MIT
#include <cmath>
#include <type_traits>

#include "norm_chain.cuh"
#include "norm_forward.cuh"
#include "norm_reference.hpp"

namespace gpumem::kernels::test {
namespace {

template <class Norm, class T>
class norm_forward_problem : public problem {
 public:
  explicit norm_forward_problem(setting s) : s_(std::move(s)), y_reference_(s_.elements()) {
    // Not around 0: the mean of such a row is a difference, and would have to be left out of the comparison.
    s_.random.normal(x_);
    for (T& x : x_) x = from_float<T>(to_float(x) + 2.0f);
    s_.random.uniform(gamma_, 0.5f, 1.5f);
    s_.random.uniform(beta_, 0.5f, 1.5f);
    for (std::size_t row = 0; row < s_.rows(); ++row) {
      auto const [mean, reciprocal] = statistics_of<Norm>(s_, x_, row);
      mean_reference_.push_back(mean);
      reciprocal_reference_.push_back(reciprocal);
      for (std::size_t c = 0; c < s_.columns(); ++c) {
        std::size_t const i = row * s_.columns() + c;
        y_reference_[i] = (at(x_, i) - mean) * reciprocal * at(gamma_, c) + (Norm::centered ? at(beta_, c) : 0.0);
      }
    }
  }
  void run(variant v) override {
    poison(y_, mean_, reciprocal_, a_, b_);
    norm_parameters<T> const parameters{gamma_.data(), beta_.data()};
    norm_outputs<T> const outputs{y_.data(), mean_.data(), reciprocal_.data()};
    norm_temporaries<T> const temporaries{a_.data(), b_.data(), nullptr, nullptr, nullptr};
    auto const [rows, columns] = s_.shape;
    if (v == variant::fused) {
      norm_forward_fused<Norm>(s_.device, x_.data(), parameters, outputs, rows, columns);
    } else if constexpr (Norm::centered) {
      layer_norm_forward_chain(s_.device, x_.data(), parameters, outputs, temporaries, rows, columns);
    } else {
      rms_norm_forward_chain(s_.device, x_.data(), parameters, outputs, temporaries, rows, columns);
    }
  }
  std::vector<output_error> errors() const override {
    std::vector<output_error> all{compare("y", y_, y_reference_),
                                  compare("reciprocal", reciprocal_, reciprocal_reference_)};
    all.back().limit = all.front().limit;  // fp32, but the chain takes it from squares that were rounded to T
    if (Norm::centered) all.push_back(compare("mean", mean_, mean_reference_));
    return all;
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(y_, mean_, reciprocal_); }
  traffic predicted(variant v) const override {
    auto const& entry = Norm::centered ? predicted::layer_norm_forward : predicted::rms_norm_forward;
    return v == variant::chain ? entry.chain(s_.bytes<T>()) : entry.fused(s_.bytes<T>(), row_on_chip<T>(s_));
  }
  bool reads_once(variant v) const override { return v == variant::chain || row_on_chip<T>(s_); }
  std::int64_t repeated_parameter_bytes(variant v) const override {
    std::int64_t const each =
        v == variant::fused ? (s_.shape.rows - 1) * s_.parameter_bytes<T>() : repeats_of_map_columns<T>(s_);
    return each * Norm::parameters;
  }

 private:
  setting s_;
  buffer<T> x_{"x", s_.elements()}, gamma_{"gamma", s_.columns()}, beta_{"beta", s_.columns()};
  buffer<T> y_{"y", s_.elements()}, a_{"a", s_.elements()}, b_{"b", s_.elements()};
  buffer<float> mean_{"mean", s_.rows()}, reciprocal_{"reciprocal", s_.rows()};
  reference y_reference_, mean_reference_, reciprocal_reference_;
};

template <class Norm, class T>
class norm_backward_problem : public problem {
 public:
  explicit norm_backward_problem(setting s) : s_(std::move(s)), in_(s_) {}
  void run(variant v) override {
    poison(dx_, gamma_gradient_, beta_gradient_, partials_, a_, b_, c_, statistic_, second_statistic_);
    norm_backward_tensors<T> const tensors = in_.tensors(dx_, partials_);
    norm_temporaries<T> const temporaries{a_.data(), b_.data(), c_.data(), statistic_.data(), second_statistic_.data()};
    column_sums<T> const gradients{{gamma_gradient_.data(), beta_gradient_.data(), nullptr}};
    auto const [rows, columns] = s_.shape;
    if (v == variant::fused) {
      norm_backward_fused<Norm>(s_.device, tensors, gradients, rows, columns);
    } else if constexpr (Norm::centered) {
      layer_norm_backward_chain(s_.device, tensors, gradients, temporaries, rows, columns);
    } else {
      rms_norm_backward_chain(s_.device, tensors, gradients, temporaries, rows, columns);
    }
  }
  std::vector<output_error> errors() const override {
    std::vector<output_error> all{compare("dx", dx_, in_.dx_reference),
                                  compare("gamma's gradient", gamma_gradient_, in_.gamma_reference)};
    if (Norm::centered) all.push_back(compare("beta's gradient", beta_gradient_, in_.beta_reference));
    return all;
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(dx_, gamma_gradient_, beta_gradient_); }
  traffic predicted(variant v) const override {
    auto const& entry = Norm::centered ? predicted::layer_norm_backward : predicted::rms_norm_backward;
    row_shape const m = s_.bytes<T>(plan_.blocks);
    return v == variant::chain ? entry.chain(m) : entry.fused(m, plan_.on_chip);
  }
  bool reads_once(variant v) const override { return v == variant::chain || plan_.on_chip; }
  std::int64_t repeated_parameter_bytes(variant v) const override {
    return v == variant::chain ? repeats_of_map_columns<T>(s_) : repeats_of_norm_backward<T>(s_, plan_);
  }

 private:
  setting s_;
  norm_backward_inputs<Norm, T> in_;
  norm_backward_plan plan_ = plan_norm_backward<Norm, T>(s_.device, s_.shape.rows, s_.shape.columns);
  buffer<T> dx_{"dx", s_.elements()}, gamma_gradient_{"gamma's gradient", s_.columns()};
  buffer<T> beta_gradient_{"beta's gradient", s_.columns()};
  buffer<float> partials_{"partials", Norm::parameters* plan_.blocks* s_.columns()};
  buffer<T> a_{"a", s_.elements()}, b_{"b", s_.elements()}, c_{"c", s_.elements()};
  buffer<float> statistic_{"statistic", s_.rows()}, second_statistic_{"second statistic", s_.rows()};
};

template <class T>
using layer_norm_forward = norm_forward_problem<layer_norm, T>;
template <class T>
using layer_norm_backward = norm_backward_problem<layer_norm, T>;
template <class T>
using rms_norm_forward = norm_forward_problem<rms_norm, T>;
template <class T>
using rms_norm_backward = norm_backward_problem<rms_norm, T>;

template <class Norm>
bool backward_is_possible(device_context const& device, dtype type, shape s) {
  return type == dtype::fp32 ? plan_norm_backward<Norm, float>(device, s.rows, s.columns).possible
                             : plan_norm_backward<Norm, bf16>(device, s.rows, s.columns).possible;
}

}  // namespace

std::vector<operation> norm_operations() {
  return {
      {"layer_norm_forward", both_variants(), make<layer_norm_forward>},
      {"layer_norm_backward", both_variants(), make<layer_norm_backward>, backward_is_possible<layer_norm>},
      {"rms_norm_forward", both_variants(), make<rms_norm_forward>},
      {"rms_norm_backward", both_variants(), make<rms_norm_backward>, backward_is_possible<rms_norm>},
  };
}

}  // namespace gpumem::kernels::test
