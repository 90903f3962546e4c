// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/contractions.hpp>

#include <cstdint>

namespace gpumem {

/// Norms over the last dimension, `width` wide, each with parameters of its own.
class norm_operations : public contraction_operations {
 public:
  using contraction_operations::contraction_operations;

  /// PyTorch's LayerNorm, one kernel: saves its input and two fp32 statistics a row; autocast runs it in fp32.
  constexpr ref layer_norm(ref x, std::int64_t width) {
    const ref weight = parameter(1, width, role::norm), bias = parameter(1, width, role::norm);
    const ref input = to_fp32(x), y = recording.make(elements(x), type(input));
    const ref statistics = recording.make(2 * (elements(x) / width), dtype::fp32);
    recording.record({.name = "layer norm",
                      .in = {input, weight, bias},
                      .how = {gradient::fresh, gradient::fresh, gradient::fresh},
                      .out = {y},
                      .saved = {input, statistics}});
    if (input != x) recording.until_here(x);
    return y;
  }
  constexpr ref rms_norm(ref x, std::int64_t width) {
    const ref weight = parameter(1, width, role::norm, numbers_of(how.kernels).frozen_norms);
    return numbers_of(how.kernels).fused_norm ? fused_rms_norm(x, width, weight) : eager_rms_norm(x, width, weight);
  }
  /// Hugging Face's GemmaRMSNorm: as LlamaRMSNorm, but times (1 + weight) in fp32 and then back, so that it saves fp32.
  constexpr ref gemma_rms_norm(ref x, std::int64_t width) {
    const ref weight = parameter(1, width, role::norm);
    if (how.kernels == kernel_kind::fused) return fused_rms_norm(x, width, weight);
    const ref normalized = normalize(x, width), wide_weight = cast(weight, dtype::fp32);
    const ref one_more = unary("add constant", wide_weight, dtype::fp32, gradient::pass);
    const ref y = times_weight(normalized, one_more, width);
    recording.until_here(normalized);  // assigned over when the product is there
    return cast(y, type(x));
  }

 private:
  /// Hugging Face's LlamaRMSNorm: to fp32, pow, mean, rsqrt, times, back, times the weight.
  constexpr ref eager_rms_norm(ref x, std::int64_t width, ref weight) {
    const ref normalized = normalize(x, width), back = cast(normalized, type(x)), y = times_weight(back, weight, width);
    recording.until_here(normalized);  // a local of the module
    return y;
  }
  /// x / sqrt(mean(x^2)) in fp32. Backward needs the full product before each row sum.
  constexpr ref normalize(ref x, std::int64_t width) {
    const std::int64_t rows = elements(x) / width;
    const bytes full = storage(dtype::fp32, static_cast<std::uint64_t>(elements(x)));
    const ref wide = cast(x, dtype::fp32);
    const ref square = unary("pow", wide, dtype::fp32, gradient::fresh, wide, full * 2);
    const ref mean = recording.make(rows, dtype::fp32);
    recording.record({.name = "mean",
                      .in = {square},
                      .how = {gradient::fresh},
                      .out = {mean},
                      .saved = {how.runtime.mean_saves_input ? square : ref{}}});
    const ref inverse_root = saving_result("rsqrt", mean, dtype::fp32),
              normalized = recording.make(elements(x), dtype::fp32);
    recording.record({.name = "mul",
                      .in = {wide, inverse_root},
                      .how = {gradient::fresh, gradient::fresh},
                      .out = {normalized},
                      .saved = {wide, inverse_root},
                      .workspace_backward = full});
    return normalized;
  }
  constexpr ref times_weight(ref x, ref weight, std::int64_t width) {
    const ref y = recording.make(elements(x), promote(type(x), type(weight)));
    const bool trained = recording.at(weight).needs_gradient;
    const bytes product = storage(type(y), static_cast<std::uint64_t>(elements(y)));
    recording.record({.name = "times weight",
                      .in = {x, weight},
                      .how = {gradient::fresh, gradient::fresh},
                      .out = {y},
                      .saved = {trained ? x : ref{}, weight},
                      .workspace_backward = trained ? product + column_sum(elements(x) / width, width) : bytes{}});
    return y;
  }
  /// One kernel: saves its input and one fp32 statistic a row; backward sums the weight's gradient in fp32 rows, one a
  /// multiprocessor (Liger-Kernel 0.4, rms_norm.py) or one a row of the input, which a column sum follows (0.2.1).
  constexpr ref fused_rms_norm(ref x, std::int64_t width, ref weight) {
    const kernel_set kernels = numbers_of(how.kernels);
    const std::int64_t rows = elements(x) / width;
    const ref y = recording.make(elements(x), type(x)), statistic = recording.make(rows, dtype::fp32);
    bytes partial{};
    if (recording.at(weight).needs_gradient) {
      const bool per_row = kernels.sums == norm_sums::per_row;
      const auto partial_rows = static_cast<std::uint64_t>(per_row ? rows : how.runtime.multiprocessors);
      partial = storage(dtype::fp32, static_cast<std::uint64_t>(width)) * partial_rows;
      if (per_row) partial += column_sum(rows, width);
    }
    recording.record({.name = "fused rms norm",
                      .in = {x, weight},
                      .how = {kernels.norm_over_gradient ? gradient::view : gradient::fresh, gradient::fresh},
                      .out = {y},
                      .saved = {x, statistic},
                      .workspace_backward = partial});
    return y;
  }
};

}  // namespace gpumem
