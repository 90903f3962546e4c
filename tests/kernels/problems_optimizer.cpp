// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "adamw_8bit_chain.cuh"
#include "gradient_norm.cuh"
#include "problem_parts.hpp"

namespace gpumem::kernels::test {
namespace {

template <class T>
class gradient_clipping_problem final : public problem {
 public:
  explicit gradient_clipping_problem(setting s) : s_(std::move(s)), clipped_reference_(s_.elements()) {
    s_.random.typical(gradient_);
    initial_gradient_.assign(gradient_.begin(), gradient_.end());
    double squares = 0;
    for (std::size_t i = 0; i < s_.elements(); ++i) squares += at(gradient_, i) * at(gradient_, i);
    double const norm = std::sqrt(squares);
    greatest_norm_ = static_cast<float>(0.5 * norm);
    norm_reference_ = {norm};
    scale_reference_ = {static_cast<double>(greatest_norm_) / norm};
    for (std::size_t i = 0; i < s_.elements(); ++i) clipped_reference_[i] = at(gradient_, i) * scale_reference_[0];
  }
  void run(variant v) override {
    gradient_.assign(initial_gradient_);
    poison(norm_, scale_, partials_, squares_);
    ran_ = v;
    clipping const clip{norm_.data(), scale_.data(), partials_.data(), greatest_norm_};
    std::int64_t const n = s_.shape.rows * s_.shape.columns;
    if (v == variant::fused) {
      gradient_clipping_fused(s_.device, gradient_.data(), clip, n);
    } else {
      gradient_clipping_chain(s_.device, gradient_.data(), clip, squares_.data(), n);
    }
  }
  std::vector<output_error> errors() const override {
    std::vector<output_error> all{compare("norm", norm_, norm_reference_), compare("scale", scale_, scale_reference_)};
    // fp32, but the chain sums squares that were rounded to T.
    if (ran_ == variant::chain) all[0].limit = all[1].limit = sizeof(T) == 4 ? 1e-5 : 5e-3;
    if (ran_ == variant::chain) all.push_back(compare("clipped", gradient_, clipped_reference_));
    return all;
  }
  std::vector<unsigned char> output_bits() const override { return bits_of(norm_, scale_, gradient_); }
  traffic predicted(variant v) const override {
    std::uint64_t const n = s_.elements(), blocks = clipping_blocks<T>(s_.device, s_.shape.rows * s_.shape.columns);
    return v == variant::fused ? predicted::gradient_clipping_fused(n, sizeof(T), blocks)
                               : predicted::gradient_clipping_chain(n, sizeof(T), blocks);
  }
  std::int64_t repeated_parameter_bytes(variant v) const override {
    if (v == variant::fused) return 0;
    return 4 * (readers_of_scale<T>(s_.shape.rows * s_.shape.columns) - 1);
  }
  std::int64_t scalar_bytes(variant v) const override {
    std::int64_t const n = s_.shape.rows * s_.shape.columns, partials = clipping_blocks<T>(s_.device, n);
    // Each partial sum is written and read; norm and factor are written.
    return 4 * (2 * partials + 2) + (v == variant::fused ? 0 : 4 * readers_of_scale<T>(n));
  }

 private:
  setting s_;
  buffer<T> gradient_{"gradient", s_.elements()}, squares_{"squares", s_.elements()};
  std::vector<T> initial_gradient_;
  buffer<float> norm_{"norm", 1}, scale_{"scale", 1};
  buffer<float> partials_{"partials", clipping_blocks<T>(s_.device, s_.shape.rows* s_.shape.columns)};
  float greatest_norm_ = 0;
  variant ran_ = variant::fused;
  reference norm_reference_, scale_reference_, clipped_reference_;
};

/// The values of the codes, written down anew: from 1 down, equal steps to a 16th for each leading zero, and all moved so
/// that code 0 is 0.
std::vector<double> values_of_codes(int bits) {
  std::vector<double> values(std::size_t{1} << bits);
  double greatest = 1;
  for (int digits = bits - 1; digits >= 0; --digits, greatest /= 16) {
    std::size_t const steps = std::size_t{1} << digits;
    for (std::size_t i = 0; i < steps; ++i) {
      double const part = static_cast<double>(i + 1) / static_cast<double>(steps);
      values[steps + i] = greatest * (1.0 + 15.0 * part) / 16.0 - std::pow(16.0, -bits);
    }
  }
  return values;
}
std::vector<double> const& values_of_mean_codes() {
  static std::vector<double> const values = [] {
    auto all = values_of_codes(7);
    auto const positive = all;
    for (double const value : positive) all.push_back(-value);
    return all;
  }();
  return values;
}
std::vector<double> const& values_of_square_codes() {
  static std::vector<double> const values = values_of_codes(8);
  return values;
}

template <class T>
class adamw_8bit_problem final : public problem {
 public:
  static constexpr int step_number = 3;
  static constexpr adamw_settings settings{.learning_rate = 1e-2, .weight_decay = 0.1};

  explicit adamw_8bit_problem(setting s) : s_(std::move(s)) {
    s_.random.typical(weight_);
    s_.random.typical(gradient_);
    s_.random.uniform(mean_scale_, 0.5f, 1.5f);
    s_.random.uniform(square_scale_, 0.5f, 1.5f);
    buffer<float> choices{"choices", s_.elements()};
    s_.random.uniform(choices, 0.0f, 255.0f);
    for (std::size_t i = 0; i < s_.elements(); ++i) mean_[i] = static_cast<std::uint8_t>(choices[i]);
    s_.random.uniform(choices, 0.0f, 255.0f);
    for (std::size_t i = 0; i < s_.elements(); ++i) square_[i] = static_cast<std::uint8_t>(choices[i]);
    initial_weight_.assign(weight_.begin(), weight_.end());
    initial_mean_.assign(mean_.begin(), mean_.end());
    initial_square_.assign(square_.begin(), square_.end());
    initial_mean_scale_.assign(mean_scale_.begin(), mean_scale_.end());
    initial_square_scale_.assign(square_scale_.begin(), square_scale_.end());
    double const correction1 = 1 - std::pow(settings.beta1, step_number);
    double const correction2 = 1 - std::pow(settings.beta2, step_number);
    mean_scale_reference_.resize(mean_scale_.size());
    square_scale_reference_.resize(square_scale_.size());
    for (std::size_t i = 0; i < s_.elements(); ++i) {
      std::size_t const block = i / 256;
      double const g = at(gradient_, i);
      double const old_mean = values_of_mean_codes()[mean_[i]] * at(mean_scale_, block);
      double const old_square = values_of_square_codes()[square_[i]] * at(square_scale_, block);
      double const mean = settings.beta1 * old_mean + (1 - settings.beta1) * g;
      double const square = settings.beta2 * old_square + (1 - settings.beta2) * g * g;
      double const change = mean / correction1 / (std::sqrt(square / correction2) + settings.epsilon);
      double const decayed = at(weight_, i) * (1 - settings.learning_rate * settings.weight_decay);
      mean_reference_.push_back(mean);
      square_reference_.push_back(square);
      weight_reference_.push_back(decayed - settings.learning_rate * change);
      mean_scale_reference_[block] = std::max(mean_scale_reference_[block], std::abs(mean));
      square_scale_reference_[block] = std::max(square_scale_reference_[block], square);
    }
  }
  void run(variant v) override {
    weight_.assign(initial_weight_);
    mean_.assign(initial_mean_);
    square_.assign(initial_square_);
    mean_scale_.assign(initial_mean_scale_);
    square_scale_.assign(initial_square_scale_);
    poison(wide_mean_, wide_square_);
    quantised_moments const moments{mean_.data(), square_.data(), mean_scale_.data(), square_scale_.data()};
    adamw_step const step(settings, step_number);
    std::int64_t const n = s_.shape.rows * s_.shape.columns;
    T const* const gradient = gradient_.data();
    if (v == variant::fused) {
      adamw_8bit_fused(s_.device, weight_.data(), gradient, moments, step, n);
    } else {
      adamw_8bit_chain(s_.device, weight_.data(), gradient, moments, wide_mean_.data(), wide_square_.data(), step, n);
    }
  }
  std::vector<output_error> errors() const override {
    return {compare("weight", weight_, weight_reference_), compare("mean's scale", mean_scale_, mean_scale_reference_),
            compare("square's scale", square_scale_, square_scale_reference_),
            beyond_nearest("mean", mean_, mean_reference_, mean_scale_reference_, values_of_mean_codes()),
            beyond_nearest("square", square_, square_reference_, square_scale_reference_, values_of_square_codes())};
  }
  std::vector<unsigned char> output_bits() const override {
    return bits_of(weight_, mean_, square_, mean_scale_, square_scale_);
  }
  traffic predicted(variant v) const override {
    auto const entry = predicted::adamw_8bit(sizeof(T));
    return v == variant::fused ? entry.fused(s_.elements()) : entry.chain(s_.elements());
  }
  std::int64_t scalar_bytes(variant v) const override {
    auto const scales = static_cast<std::int64_t>(8 * mean_scale_.size());
    return (v == variant::fused ? 2 : 3) * scales;
  }

 private:
  /// How much further than the nearest code each code is from its exact value: 0, but for what fp32 rounds.
  static output_error beyond_nearest(std::string output, buffer<std::uint8_t> const& codes, reference const& exact,
                                     reference const& scales, std::vector<double> const& values) {
    output_error error{std::move(output), 1e-5};
    for (std::size_t i = 0; i < codes.size(); ++i) {
      double const scale = scales[i / 256];
      double nearest = 1e300;
      for (double const value : values) nearest = std::min(nearest, std::abs(value * scale - exact[i]));
      double const beyond = std::abs(values[codes[i]] * scale - exact[i]) - nearest;
      error.difference += beyond * beyond;
      error.norm += exact[i] * exact[i];
    }
    return error;
  }

  setting s_;
  std::size_t blocks_ = (s_.elements() + 255) / 256;
  buffer<T> weight_{"weight", s_.elements()}, gradient_{"gradient", s_.elements()};
  buffer<std::uint8_t> mean_{"mean", s_.elements()}, square_{"square", s_.elements()};
  buffer<float> mean_scale_{"mean's scale", blocks_}, square_scale_{"square's scale", blocks_};
  buffer<float> wide_mean_{"wide mean", s_.elements()}, wide_square_{"wide square", s_.elements()};
  std::vector<T> initial_weight_;
  std::vector<std::uint8_t> initial_mean_, initial_square_;
  std::vector<float> initial_mean_scale_, initial_square_scale_;
  reference weight_reference_, mean_reference_, square_reference_, mean_scale_reference_, square_scale_reference_;
};

}  // namespace

std::vector<operation> optimizer_operations() {
  return {
      {"gradient_clipping", both_variants(), make<gradient_clipping_problem>},
      {"adamw_8bit", both_variants(), make<adamw_8bit_problem>},
  };
}

}  // namespace gpumem::kernels::test
