// SPDX-License-Identifier: MIT
#include <cmath>

#include "bias_gelu_backward.cuh"
#include "cross_entropy.cuh"
#include "problem_parts.hpp"
#include "swiglu.cuh"

namespace gpumem::kernels::test {
namespace {

double exact_silu(double x) { return x / (1 + std::exp(-x)); }
double exact_silu_derivative(double x) {
  double const s = 1 / (1 + std::exp(-x));
  return s + x * s * (1 - s);
}
double exact_gelu_derivative(double x) {
  double const root = std::sqrt(2.0 / 3.14159265358979323846);
  double const t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

template <class T>
class swiglu_forward_problem final : public problem {
 public:
  explicit swiglu_forward_problem(setting s) : s_(std::move(s)), expected_(s_.elements()) {
    s_.random.normal(gate_, 2.0f);
    s_.random.normal(up_);
    for (std::size_t i = 0; i < s_.elements(); ++i) expected_[i] = exact_silu(at(gate_, i)) * at(up_, i);
  }
  void run(variant v) override {
    poison(y_, activated_);
    std::int64_t const n = s_.shape.rows * s_.shape.columns;
    if (v == variant::fused) {
      swiglu_forward_fused(s_.device, gate_.data(), up_.data(), y_.data(), n);
    } else {
      swiglu_forward_chain(s_.device, gate_.data(), up_.data(), y_.data(), activated_.data(), n);
    }
  }
  std::vector<output_error> errors() const override { return {compare("y", y_, expected_)}; }
  std::vector<unsigned char> output_bits() const override { return bits_of(y_); }
  traffic predicted(variant v) const override {
    row_shape const m = s_.bytes<T>();
    return v == variant::fused ? predicted::swiglu_forward.fused(m) : predicted::swiglu_forward.chain(m);
  }

 private:
  setting s_;
  buffer<T> gate_{"gate", s_.elements()}, up_{"up", s_.elements()}, y_{"y", s_.elements()};
  buffer<T> activated_{"activated", s_.elements()};
  reference expected_;
};

template <class T>
class swiglu_backward_problem final : public problem {
 public:
  explicit swiglu_backward_problem(setting s)
      : s_(std::move(s)), gate_reference_(s_.elements()), up_reference_(s_.elements()) {
    s_.random.normal(gate_, 2.0f);
    s_.random.normal(up_);
    s_.random.normal(dy_);
    for (std::size_t i = 0; i < s_.elements(); ++i) {
      gate_reference_[i] = at(dy_, i) * at(up_, i) * exact_silu_derivative(at(gate_, i));
      up_reference_[i] = at(dy_, i) * exact_silu(at(gate_, i));
    }
  }
  void run(variant v) override {
    poison(gate_gradient_, up_gradient_, activated_, activated_gradient_);
    swiglu_backward_tensors<T> const tensors{gate_.data(), up_.data(), dy_.data(), gate_gradient_.data(),
                                             up_gradient_.data()};
    std::int64_t const n = s_.shape.rows * s_.shape.columns;
    if (v == variant::fused) {
      swiglu_backward_fused(s_.device, tensors, n);
    } else {
      swiglu_backward_chain(s_.device, tensors, activated_.data(), activated_gradient_.data(), n);
    }
  }
  std::vector<output_error> errors() const override {
    return {compare("gate's gradient", gate_gradient_, gate_reference_),
            compare("up's gradient", up_gradient_, up_reference_)};
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(gate_gradient_, up_gradient_); }
  traffic predicted(variant v) const override {
    row_shape const m = s_.bytes<T>();
    return v == variant::fused ? predicted::swiglu_backward.fused(m) : predicted::swiglu_backward.chain(m);
  }

 private:
  setting s_;
  buffer<T> gate_{"gate", s_.elements()}, up_{"up", s_.elements()}, dy_{"dy", s_.elements()};
  buffer<T> gate_gradient_{"gate's gradient", s_.elements()}, up_gradient_{"up's gradient", s_.elements()};
  buffer<T> activated_{"activated", s_.elements()}, activated_gradient_{"activated's gradient", s_.elements()};
  reference gate_reference_, up_reference_;
};

template <class T>
class bias_gelu_backward_problem final : public problem {
 public:
  explicit bias_gelu_backward_problem(setting s)
      : s_(std::move(s)), dx_reference_(s_.elements()), bias_reference_(s_.columns()) {
    s_.random.typical(x_);
    s_.random.uniform(bias_, -0.5f, 0.5f);
    s_.random.uniform(dy_, 0.5f, 1.5f);  // of one sign, so that the bias's gradient is no difference of large sums
    for (std::size_t i = 0; i < s_.elements(); ++i) {
      // Forward stores x + bias in a chain, so backward starts from what it was rounded to, in both variants.
      biased_[i] = from_float<T>(to_float(x_[i]) + to_float(bias_[i % s_.columns()]));
      dx_reference_[i] = at(dy_, i) * exact_gelu_derivative(at(x_, i) + at(bias_, i % s_.columns()));
      bias_reference_[i % s_.columns()] += dx_reference_[i];
    }
  }
  void run(variant v) override {
    poison(dx_, bias_gradient_, partials_);
    auto const [rows, columns] = s_.shape;
    if (v == variant::fused) {
      bias_gelu_backward_tensors<T> const tensors{x_.data(), bias_.data(), dy_.data(), dx_.data(), partials_.data()};
      bias_gelu_backward_fused(s_.device, tensors, bias_gradient_.data(), rows, columns);
    } else {
      bias_gelu_backward_chain(s_.device, biased_.data(), dy_.data(), dx_.data(), bias_gradient_.data(), rows, columns);
    }
  }
  std::vector<output_error> errors() const override {
    return {compare("dx", dx_, dx_reference_), compare("bias's gradient", bias_gradient_, bias_reference_)};
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(dx_, bias_gradient_); }
  traffic predicted(variant v) const override {
    row_shape const m = s_.bytes<T>(partials() / s_.shape.columns);
    return v == variant::fused ? predicted::bias_gelu_backward.fused(m)
                               : predicted::bias_gelu_backward.chain(m);
  }
  std::int64_t repeated_parameter_bytes(variant v) const override {
    return v == variant::fused ? repeats_of_map_columns<T>(s_) : 0;
  }

 private:
  std::int64_t partials() const {
    return partials_of_columns<T>(plan_columns<T>(s_.device, s_.shape.rows, s_.shape.columns),
                                  s_.shape.rows * s_.shape.columns);
  }

  setting s_;
  buffer<T> x_{"x", s_.elements()}, bias_{"bias", s_.columns()}, biased_{"biased", s_.elements()};
  buffer<T> dy_{"dy", s_.elements()}, dx_{"dx", s_.elements()}, bias_gradient_{"bias's gradient", s_.columns()};
  buffer<float> partials_{"partials", static_cast<std::size_t>(partials())};
  reference dx_reference_, bias_reference_;
};

template <class T>
class cross_entropy_problem final : public problem {
 public:
  explicit cross_entropy_problem(setting s)
      : s_(std::move(s)), gradient_reference_(s_.elements()), loss_reference_(s_.rows()) {
    s_.random.normal(logits_, 2.0f);
    initial_logits_.assign(logits_.begin(), logits_.end());
    buffer<float> choices{"choices", s_.rows()};
    s_.random.uniform(choices, 0.0f, 1.0f);
    for (std::size_t row = 0; row < s_.rows(); ++row) {
      auto const target = static_cast<std::size_t>(choices[row] * 0.999f * static_cast<float>(s_.columns()));
      // Every fifth row is left out, but never all.
      targets_[row] = row % 5 == 3 ? -100 : static_cast<std::int32_t>(target);
      std::size_t const first = row * s_.columns();
      double greatest = at(logits_, first), sum = 0;
      for (std::size_t c = 0; c < s_.columns(); ++c) greatest = std::max(greatest, at(logits_, first + c));
      for (std::size_t c = 0; c < s_.columns(); ++c) sum += std::exp(at(logits_, first + c) - greatest);
      if (targets_[row] < 0) continue;
      loss_reference_[row] = std::log(sum) + greatest - at(logits_, first + target);
      for (std::size_t c = 0; c < s_.columns(); ++c) {
        double const probability = std::exp(at(logits_, first + c) - greatest) / sum;
        gradient_reference_[first + c] = static_cast<double>(weight) * (probability - (c == target ? 1 : 0));
      }
    }
  }
  void run(variant v) override {
    logits_.assign(initial_logits_);
    poison(loss_, log_softmax_, gradient_, wide_);
    cross_entropy_tensors<T> const tensors{logits_.data(), targets_.data(), loss_.data(), weight};
    auto const [rows, columns] = s_.shape;
    if (v == variant::fused) {
      cross_entropy_fused(s_.device, tensors, rows, columns);
    } else {
      cross_entropy_chain(s_.device, tensors, {log_softmax_.data(), gradient_.data(), wide_.data()}, rows, columns);
    }
  }
  std::vector<output_error> errors() const override {
    return {compare("gradient", logits_, gradient_reference_), compare("loss", loss_, loss_reference_)};
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(logits_, loss_); }
  traffic predicted(variant v) const override {
    row_shape const m = s_.bytes<T>();
    return v == variant::fused ? predicted::cross_entropy.fused(m, row_on_chip<T>(s_))
                               : predicted::cross_entropy_chain(m, row_on_chip<float>(s_), wide_pair_on_chip());
  }
  bool reads_once(variant v) const override {
    return v == variant::fused ? row_on_chip<T>(s_) : row_on_chip<float>(s_) && wide_pair_on_chip();
  }

 private:
  static constexpr float weight = 0.25f;
  bool wide_pair_on_chip() const { return row_stays_on_chip<float>(s_.device, s_.shape.columns, 2); }

  setting s_;
  buffer<T> logits_{"logits", s_.elements()};
  std::vector<T> initial_logits_;
  buffer<std::int32_t> targets_{"targets", s_.rows()};
  buffer<float> loss_{"loss", s_.rows()}, log_softmax_{"log-softmax", s_.elements()};
  buffer<float> gradient_{"gradient", s_.elements()}, wide_{"wide", s_.elements()};
  reference gradient_reference_, loss_reference_;
};

}  // namespace

std::vector<operation> map_operations() {
  return {
      {"swiglu_forward", both_variants(), make<swiglu_forward_problem>},
      {"swiglu_backward", both_variants(), make<swiglu_backward_problem>},
      {"bias_gelu_backward", both_variants(), make<bias_gelu_backward_problem>},
      {"cross_entropy", both_variants(), make<cross_entropy_problem>},
  };
}

}  // namespace gpumem::kernels::test
