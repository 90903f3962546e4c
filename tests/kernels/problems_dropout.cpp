// SPDX-License-Identifier: MIT
#include "bias_dropout_add_layer_norm.cuh"
#include "norm_reference.hpp"

namespace gpumem::kernels::test {
namespace {

constexpr dropout drop_a_quarter{.seed = 0x0123456789abcdefull, .dropped = 16384};
constexpr double scale_of_kept = 4.0 / 3.0;

/// The mask that a seed stands for, one byte an element.
template <class T>
std::vector<std::uint8_t> mask_of(std::size_t elements) {
  constexpr std::size_t V = elements_per_packet<T>;
  std::vector<std::uint8_t> mask(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    auto const packet = drop_a_quarter.draw<T>(static_cast<std::int64_t>(i / V * V));
    mask[i] = packet.keeps(static_cast<int>(i % V)) ? 1 : 0;
  }
  return mask;
}

output_error compare_masks(buffer<std::uint8_t> const& mask, std::vector<std::uint8_t> const& expected) {
  output_error error{"mask", 1e-5};
  for (std::size_t i = 0; i < mask.size(); ++i) {
    error.difference += mask[i] == expected[i] ? 0 : 1;
    error.norm += 1;
  }
  return error;
}

template <class T>
class bias_dropout_add_layer_norm_problem final : public problem {
 public:
  explicit bias_dropout_add_layer_norm_problem(setting s)
      : s_(std::move(s)), sum_reference_(s_.elements()), y_reference_(s_.elements()) {
    s_.random.normal(x_);
    s_.random.uniform(bias_, -0.5f, 0.5f);
    s_.random.normal(residual_);
    // Not around 0: the mean of such a row is a difference, and would have to be left out of the comparison.
    for (T& value : residual_) value = from_float<T>(to_float(value) + 1.0f);
    s_.random.uniform(gamma_, 0.5f, 1.5f);
    s_.random.uniform(beta_, 0.5f, 1.5f);
    for (std::size_t i = 0; i < s_.elements(); ++i) {
      double const biased = at(x_, i) + at(bias_, i % s_.columns());
      sum_reference_[i] = at(residual_, i) + (mask_reference_[i] != 0 ? biased * scale_of_kept : 0);
    }
    for (std::size_t row = 0; row < s_.rows(); ++row) {
      auto const [mean, reciprocal] = statistics_of<layer_norm>(s_, sum_reference_, row);
      mean_reference_.push_back(mean);
      reciprocal_reference_.push_back(reciprocal);
      for (std::size_t c = 0; c < s_.columns(); ++c) {
        std::size_t const i = row * s_.columns() + c;
        y_reference_[i] = (sum_reference_[i] - mean) * reciprocal * at(gamma_, c) + at(beta_, c);
      }
    }
  }
  void run(variant v) override {
    poison(sum_, mask_, y_, mean_, reciprocal_, biased_, dropped_);
    bias_dropout_add_tensors<T> const tensors{x_.data(), bias_.data(), residual_.data(), sum_.data(), mask_.data()};
    norm_parameters<T> const parameters{gamma_.data(), beta_.data()};
    norm_outputs<T> const outputs{y_.data(), mean_.data(), reciprocal_.data()};
    auto const [rows, columns] = s_.shape;
    if (v == variant::fused) {
      bias_dropout_add_layer_norm_fused(s_.device, tensors, drop_a_quarter, parameters, outputs, rows, columns);
    } else {
      bias_dropout_add_layer_norm_chain(s_.device, tensors, drop_a_quarter, parameters, outputs, biased_.data(),
                                        dropped_.data(), rows, columns);
    }
  }
  std::vector<output_error> errors() const override {
    std::vector<output_error> all{compare("sum", sum_, sum_reference_), compare("y", y_, y_reference_),
                                  compare("mean", mean_, mean_reference_),
                                  compare("reciprocal", reciprocal_, reciprocal_reference_),
                                  compare_masks(mask_, mask_reference_)};
    all[2].limit = all[3].limit = all[0].limit;  // fp32, but of a sum that was rounded to T
    return all;
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(sum_, mask_, y_, mean_, reciprocal_); }
  traffic predicted(variant v) const override {
    auto const& entry = predicted::bias_dropout_add_layer_norm;
    row_shape const m = s_.bytes<T>();
    return v == variant::fused ? entry.fused(m, row_on_chip<T>(s_)) : entry.chain(m, row_on_chip<T>(s_));
  }
  // Fused, what is read again is the sum, that the kernel itself has written.
  bool reads_once(variant v) const override { return v == variant::fused || row_on_chip<T>(s_); }
  std::int64_t repeated_parameter_bytes(variant v) const override {
    std::int64_t const once_a_row = (s_.shape.rows - 1) * s_.parameter_bytes<T>();
    return v == variant::fused ? 3 * once_a_row : 2 * once_a_row + repeats_of_map_columns<T>(s_);
  }
  std::int64_t scalar_bytes(variant) const override {
    return static_cast<std::int64_t>(mask_.size() + 2 * sizeof(float) * s_.rows());
  }

 private:
  setting s_;
  buffer<T> x_{"x", s_.elements()}, bias_{"bias", s_.columns()}, residual_{"residual", s_.elements()};
  buffer<T> gamma_{"gamma", s_.columns()}, beta_{"beta", s_.columns()};
  buffer<T> sum_{"sum", s_.elements()}, y_{"y", s_.elements()};
  buffer<std::uint8_t> mask_{"mask", s_.elements()};
  buffer<float> mean_{"mean", s_.rows()}, reciprocal_{"reciprocal", s_.rows()};
  buffer<T> biased_{"biased", s_.elements()}, dropped_{"dropped", s_.elements()};
  std::vector<std::uint8_t> mask_reference_ = mask_of<T>(s_.elements());
  reference sum_reference_, y_reference_, mean_reference_, reciprocal_reference_;
};

template <class T>
norm_backward_plan plan_of_dropout_backward(device_context const& device, shape s) {
  return plan_norm_backward<layer_norm, T, dropout_gradient_sink<T>>(device, s.rows, s.columns);
}

template <class T>
class bias_dropout_add_layer_norm_backward_problem final : public problem {
 public:
  explicit bias_dropout_add_layer_norm_backward_problem(setting s)
      : s_(std::move(s)), in_(s_), dx_reference_(s_.elements()), bias_reference_(s_.columns()) {
    mask_.assign(mask_of<T>(s_.elements()));
    for (std::size_t i = 0; i < s_.elements(); ++i) {
      dx_reference_[i] = mask_[i] != 0 ? in_.dx_reference[i] * scale_of_kept : 0;
      bias_reference_[i % s_.columns()] += dx_reference_[i];
    }
  }
  void run(variant v) override {
    poison(residual_gradient_, dx_, gamma_gradient_, beta_gradient_, bias_gradient_, partials_);
    norm_backward_tensors<T> const norm = in_.tensors(residual_gradient_, partials_);
    column_sums<T> const sums{{gamma_gradient_.data(), beta_gradient_.data(), bias_gradient_.data()}};
    auto const [rows, columns] = s_.shape;
    if (v == variant::fused) {
      bias_dropout_add_layer_norm_backward_fused(s_.device, norm, dx_.data(), mask_.data(), drop_a_quarter, sums, rows,
                                                 columns);
    } else {
      bias_dropout_add_layer_norm_backward_chain(s_.device, norm, dx_.data(), mask_.data(), drop_a_quarter, sums, rows,
                                                 columns);
    }
  }
  std::vector<output_error> errors() const override {
    return {compare("residual's gradient", residual_gradient_, in_.dx_reference), compare("dx", dx_, dx_reference_),
            compare("gamma's gradient", gamma_gradient_, in_.gamma_reference),
            compare("beta's gradient", beta_gradient_, in_.beta_reference),
            compare("bias's gradient", bias_gradient_, bias_reference_)};
  }
  std::vector<unsigned char> output_bits() const override {
    return bits_of(residual_gradient_, dx_, gamma_gradient_, beta_gradient_, bias_gradient_);
  }
  traffic predicted(variant v) const override {
    auto const& entry = predicted::bias_dropout_add_layer_norm_backward;
    row_shape const m = s_.bytes<T>(plan(v).blocks);
    return v == variant::fused ? entry.fused(m, plan(v).on_chip) : entry.chain(m, plan(v).on_chip);
  }
  bool reads_once(variant v) const override { return plan(v).on_chip; }
  std::int64_t repeated_parameter_bytes(variant v) const override { return repeats_of_norm_backward<T>(s_, plan(v)); }
  std::int64_t scalar_bytes(variant) const override {
    return static_cast<std::int64_t>(mask_.size() + 2 * sizeof(float) * s_.rows());
  }

 private:
  norm_backward_plan plan(variant v) const { return v == variant::fused ? fused_plan_ : chain_plan_; }

  setting s_;
  norm_backward_inputs<layer_norm, T> in_;
  norm_backward_plan fused_plan_ = plan_of_dropout_backward<T>(s_.device, s_.shape);
  norm_backward_plan chain_plan_ = plan_norm_backward<layer_norm, T>(s_.device, s_.shape.rows, s_.shape.columns);
  buffer<std::uint8_t> mask_{"mask", s_.elements()};
  buffer<T> residual_gradient_{"residual's gradient", s_.elements()}, dx_{"dx", s_.elements()};
  buffer<T> gamma_gradient_{"gamma's gradient", s_.columns()}, beta_gradient_{"beta's gradient", s_.columns()};
  buffer<T> bias_gradient_{"bias's gradient", s_.columns()};
  buffer<float> partials_{"partials", 3 * std::max(fused_plan_.blocks, chain_plan_.blocks) * s_.columns()};
  reference dx_reference_, bias_reference_;
};

bool dropout_backward_is_possible(device_context const& device, dtype type, shape s) {
  return type == dtype::fp32 ? plan_of_dropout_backward<float>(device, s).possible
                             : plan_of_dropout_backward<bf16>(device, s).possible;
}

}  // namespace

std::vector<operation> dropout_operations() {
  return {
      {"bias_dropout_add_layer_norm", both_variants(), make<bias_dropout_add_layer_norm_problem>},
      {"bias_dropout_add_layer_norm_backward", both_variants(), make<bias_dropout_add_layer_norm_backward_problem>,
       dropout_backward_is_possible},
  };
}

}  // namespace gpumem::kernels::test
