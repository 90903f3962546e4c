// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/traffic_count.hpp>

#include <cstdint>

namespace gpumem {

/// One kernel over parameters: bytes it reads and writes for each; fp32 scales for each block of 256 quantized
/// parameters; one fp32 partial sum for each thread block; fp32 scalars.
struct parameter_pass {
  char const* name = "";
  std::uint64_t reads = 0, writes = 0;
  std::uint64_t scale_reads = 0, scale_writes = 0;
  std::uint64_t partial_reads = 0, partial_writes = 0;
  std::uint64_t scalar_reads = 0, scalar_writes = 0;

  [[nodiscard]] constexpr bool empty() const { return *name == '\0'; }
  [[nodiscard]] constexpr traffic at(std::uint64_t parameters, std::uint64_t blocks = 0) const {
    const std::uint64_t scales = divide_up(parameters, 256) * 4;
    return {.reads = checked_add(checked_add(checked_multiply(parameters, reads), scales * scale_reads),
                                 checked_add(checked_multiply(blocks, 4 * partial_reads), 4 * scalar_reads)),
            .writes = checked_add(checked_add(checked_multiply(parameters, writes), scales * scale_writes),
                                  checked_add(checked_multiply(blocks, 4 * partial_writes), 4 * scalar_writes))};
  }
};

/// An optimizer's step as one kernel, beside the kernels that do the same one after the other.
struct optimizer_kernel {
  char const* name = "";
  std::uint64_t flops = 0;  // a parameter
  parameter_pass one{};
  parameter_pass steps[10] = {};

  [[nodiscard]] constexpr traffic fused(std::uint64_t parameters, std::uint64_t blocks = 0) const {
    traffic t = one.empty() ? traffic{} : one.at(parameters, blocks);
    t.flops = checked_multiply(parameters, flops);
    return t;
  }
  [[nodiscard]] constexpr traffic chain(std::uint64_t parameters, std::uint64_t blocks = 0) const {
    traffic t;
    for (parameter_pass const& p : steps)
      if (!p.empty()) t += p.at(parameters, blocks);
    t.flops = checked_multiply(parameters, flops);
    return t;
  }
  [[nodiscard]] constexpr std::uint64_t launches() const {
    std::uint64_t n = 0;
    for (parameter_pass const& p : steps) n += p.empty() ? 0u : 1u;
    return n;
  }
  [[nodiscard]] constexpr double speedup(std::uint64_t parameters) const {
    return byte_ratio(chain(parameters), fused(parameters));
  }
};

namespace optimizer_kernels {
namespace detail {

/// The foreach step of torch/optim/adamw.py on tensors of `width` bytes: 20 accesses.
constexpr optimizer_kernel foreach_adamw(char const* name, parameter_pass const& fused, std::uint64_t width,
                                         parameter_pass const& before = {}, parameter_pass const& after = {},
                                         parameter_pass const& again = {}) {
  const std::uint64_t w = width;
  return {name,
          13,
          fused,
          {before,
           {.name = "weight decay", .reads = w, .writes = w},
           {.name = "lerp", .reads = 2 * w, .writes = w},
           {.name = "mul", .reads = w, .writes = w},
           {.name = "addcmul", .reads = 2 * w, .writes = w},
           {.name = "sqrt", .reads = w, .writes = w},
           {.name = "div", .reads = w, .writes = w},
           {.name = "add", .reads = w, .writes = w},
           {.name = "addcdiv", .reads = 3 * w, .writes = w},
           again.empty() ? after : again}};
}
constexpr optimizer_kernel blockwise_adamw(char const* name, std::uint64_t parameter, std::uint64_t gradient) {
  return {name,
          13,
          {.name = "8-bit adamw",
           .reads = parameter + gradient + 2,
           .writes = parameter + 2,
           .scale_reads = 2,
           .scale_writes = 2},
          {{.name = "dequantize", .reads = 2, .writes = 8, .scale_reads = 2},
           {.name = "adamw", .reads = parameter + gradient + 8, .writes = parameter + 8},
           {.name = "absmax", .reads = 8, .scale_writes = 2},
           {.name = "quantize", .reads = 8, .writes = 2, .scale_reads = 2}}};
}
inline constexpr parameter_pass cast_gradient{.name = "cast the gradient up", .reads = 2, .writes = 4};
inline constexpr parameter_pass cast_weight{.name = "cast the weight down", .reads = 4, .writes = 2};

}  // namespace detail

/// fp32 weights, gradients and moments.
inline constexpr optimizer_kernel adamw_fp32 =
    detail::foreach_adamw("adamw, fp32", {.name = "adamw", .reads = 16, .writes = 12}, 4);
/// capturable=True: the step size is a tensor, which is one division more.
inline constexpr optimizer_kernel adamw_fp32_capturable =
    detail::foreach_adamw("adamw, fp32, capturable", {.name = "adamw", .reads = 16, .writes = 12}, 4, {}, {},
                          {.name = "div", .reads = 4, .writes = 4});
/// A bf16 weight and gradient, an fp32 master and moments.
inline constexpr optimizer_kernel adamw_master =
    detail::foreach_adamw("adamw on half gradients", {.name = "adamw", .reads = 14, .writes = 14}, 4,
                          detail::cast_gradient, detail::cast_weight);
/// The same with an fp32 gradient.
inline constexpr optimizer_kernel adamw_master_fp32_gradient = detail::foreach_adamw(
    "adamw on fp32 gradients", {.name = "adamw", .reads = 16, .writes = 14}, 4, {}, detail::cast_weight);
/// Everything in bf16.
inline constexpr optimizer_kernel adamw_half =
    detail::foreach_adamw("adamw, all half", {.name = "adamw", .reads = 8, .writes = 6}, 2);
/// 8-bit states in blocks of 256 with one fp32 maximum a block and state (bitsandbytes).
inline constexpr optimizer_kernel adamw_8bit_fp32 = detail::blockwise_adamw("8-bit adamw, fp32", 4, 4);
inline constexpr optimizer_kernel adamw_8bit_half = detail::blockwise_adamw("8-bit adamw, half", 2, 2);

/// The sum of squares of gradients of `width` bytes; one partial sum a thread block.
constexpr optimizer_kernel gradient_norm(std::uint64_t width) {
  return {"gradient norm",
          2,
          {.name = "sum of squares", .reads = width, .partial_writes = 1},
          {{.name = "square", .reads = width, .writes = width}, {.name = "sum", .reads = width, .partial_writes = 1}}};
}
/// The second kernel of a norm that is clipped to: from the partial sums, the norm and the factor.
inline constexpr parameter_pass finish_norm{.name = "norm and factor", .partial_reads = 1, .scalar_writes = 2};

/// Norm and clipping: nothing but the norm where the optimizer scales the gradient as it reads it. The chain's
/// last kernel reads the factor. `finish_norm` comes on top of both forms.
constexpr optimizer_kernel gradient_clipping(std::uint64_t width) {
  return {"gradient norm and clipping",
          3,
          {.name = "sum of squares", .reads = width, .partial_writes = 1},
          {{.name = "square", .reads = width, .writes = width},
           {.name = "sum", .reads = width, .partial_writes = 1},
           {.name = "scale", .reads = width, .writes = width, .scalar_reads = 1}}};
}

}  // namespace optimizer_kernels
}  // namespace gpumem
