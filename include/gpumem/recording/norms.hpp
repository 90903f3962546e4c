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
    const ref weight = parameter(1, width, role::norm);
    return how.kernels == kernel_kind::fused ? fused_rms_norm(x, width, weight) : eager_rms_norm(x, width, weight);
  }
  /// Gemma's RMSNorm, which multiplies by 1 + weight, in fp32.
  constexpr ref gemma_rms_norm(ref x, std::int64_t width) {
    const ref weight = parameter(1, width, role::norm);
    return how.kernels == kernel_kind::fused ? fused_rms_norm(x, width, weight)
                                             : eager_gemma_rms_norm(x, width, weight);
  }

 private:
  /// x / rms(x) in fp32, one operation at a time: to fp32, pow, mean, rsqrt, times. Backward needs the full product
  /// before each row sum.
  constexpr ref normalize(ref x, std::int64_t width) {
    const std::int64_t rows = elements(x) / width;
    const bytes full = storage(dtype::fp32, static_cast<std::uint64_t>(elements(x)));
    const ref wide = cast(x, dtype::fp32);
    const ref square = unary("pow", wide, dtype::fp32, gradient::fresh, wide, full * 2);
    const ref mean = recording.make(rows, dtype::fp32);
    recording.record({.name = "mean", .in = {square}, .how = {gradient::fresh}, .out = {mean}});
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
  /// x times a factor for each of its columns, whose gradient is a column sum.
  constexpr ref times_weight(ref x, ref factor, std::int64_t width) {
    const ref y = recording.make(elements(x), promote(type(x), type(factor)));
    const bool trained = recording.at(factor).needs_gradient;
    const bytes product = storage(type(y), static_cast<std::uint64_t>(elements(y)));
    recording.record({.name = "times weight",
                      .in = {x, factor},
                      .how = {gradient::fresh, gradient::fresh},
                      .out = {y},
                      .saved = {trained ? x : ref{}, factor},
                      .workspace_backward = trained ? product + column_sum(elements(x) / width, width) : bytes{}});
    return y;
  }
  /// Hugging Face's LlamaRMSNorm: normalized in fp32, back, times the weight.
  constexpr ref eager_rms_norm(ref x, std::int64_t width, ref weight) {
    const ref normalized = normalize(x, width), back = cast(normalized, type(x));
    const ref y = times_weight(back, weight, width);
    recording.until_here(normalized);  // a local of the module
    return y;
  }
  /// Hugging Face's GemmaRMSNorm: normalized in fp32, times 1 + weight in fp32, back.
  constexpr ref eager_gemma_rms_norm(ref x, std::int64_t width, ref weight) {
    const ref normalized = normalize(x, width), wide_weight = cast(weight, dtype::fp32);
    const ref factor = unary("add constant", wide_weight, dtype::fp32, gradient::pass);
    const ref product = times_weight(normalized, factor, width), y = cast(product, type(x));
    if (y != product) recording.until_here(product);  // a local of the module
    return y;
  }
  /// One kernel (Liger, Apex): saves its input and one fp32 statistic a row; backward sums the weight's gradient in one
  /// fp32 row a multiprocessor (Liger-Kernel 0.4, rms_norm.py).
  constexpr ref fused_rms_norm(ref x, std::int64_t width, ref weight) {
    const ref y = recording.make(elements(x), type(x)), statistic = recording.make(elements(x) / width, dtype::fp32);
    const auto partial_rows = static_cast<std::uint64_t>(how.runtime.multiprocessors);
    recording.record({.name = "fused rms norm",
                      .in = {x, weight},
                      .how = {gradient::fresh, gradient::fresh},
                      .out = {y},
                      .saved = {x, statistic},
                      .workspace_backward = storage(dtype::fp32, static_cast<std::uint64_t>(width)) * partial_rows});
    return y;
  }
};

}  // namespace gpumem
