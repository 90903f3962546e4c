// SPDX-License-Identifier: MIT
// Layer norm, RMS norm, and layer norm after bias, dropout and residual, on the GPU.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bias_dropout_add_layer_norm.cuh"
#include "kernels_gpu_device.cuh"
#include "norm_chain.cuh"
#include "norm_forward.cuh"

namespace gpumem::bench::gpu {

/// Layer norm or RMS norm, forward and backward.
template <class Norm, class T>
std::vector<workload> norm_workloads(device_context const& on, std::int64_t rows, int columns) {
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(T));
  std::string const norm = Norm::centered ? "layer_norm" : "rms_norm";
  auto const t = [](void* p) { return static_cast<T*>(p); };
  auto const f = [](void* p) { return static_cast<float*>(p); };
  bool const on_chip = kernels::row_stays_on_chip<T>(on, columns);
  auto const& forward = Norm::centered ? predicted::layer_norm_forward : predicted::rms_norm_forward;
  auto const& backward = Norm::centered ? predicted::layer_norm_backward : predicted::rms_norm_backward;
  std::vector<workload> all;

  all.push_back({.operation = norm + "_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, parameter, tensor, statistic, statistic, tensor, tensor},
                 .fused = forward.fused(bytes, on_chip),
                 .chain = forward.chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   kernels::norm_parameters<T> const parameters{t(p[1]), t(p[2])};
                   kernels::norm_outputs<T> const outputs{t(p[3]), f(p[4]), f(p[5])};
                   kernels::norm_temporaries<T> const between{t(p[6]), t(p[7]), nullptr, nullptr, nullptr};
                   T const* const x = t(p[0]);
                   if (v == variant::fused) {
                     kernels::norm_forward_fused<Norm>(on, x, parameters, outputs, rows, columns);
                   } else if constexpr (Norm::centered) {
                     layer_norm_forward_chain(on, x, parameters, outputs, between, rows, columns);
                   } else {
                     rms_norm_forward_chain(on, x, parameters, outputs, between, rows, columns);
                   }
                 }});

  auto const plan = kernels::plan_norm_backward<Norm, T>(on, rows, columns);
  if (!plan.possible) return all;
  row_shape const with_partials = predicted::matrix(rows, columns, sizeof(T), plan.blocks);
  std::size_t const partials = Norm::parameters * plan.blocks * static_cast<std::size_t>(columns) * sizeof(float);
  all.push_back({.operation = norm + "_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, parameter, statistic, statistic, tensor, parameter, parameter,
                                  partials, tensor, tensor, tensor, statistic, statistic},
                 .fused = backward.fused(with_partials, plan.on_chip),
                 .chain = backward.chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   kernels::norm_backward_tensors<T> const n{t(p[0]), t(p[1]), t(p[2]), f(p[3]),
                                                             f(p[4]), t(p[5]), f(p[8])};
                   kernels::column_sums<T> const gradients{{t(p[6]), t(p[7]), nullptr}};
                   kernels::norm_temporaries<T> const between{t(p[9]), t(p[10]), t(p[11]), f(p[12]), f(p[13])};
                   if (v == variant::fused) {
                     kernels::norm_backward_fused<Norm>(on, n, gradients, rows, columns);
                   } else if constexpr (Norm::centered) {
                     layer_norm_backward_chain(on, n, gradients, between, rows, columns);
                   } else {
                     rms_norm_backward_chain(on, n, gradients, between, rows, columns);
                   }
                 }});
  return all;
}

/// Bias, dropout, residual and layer norm, forward and backward.
template <class T>
std::vector<workload> dropout_workloads(device_context const& on, std::int64_t rows, int columns) {
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(T));
  std::size_t const mask = bytes.elements();
  auto const t = [](void* p) { return static_cast<T*>(p); };
  auto const f = [](void* p) { return static_cast<float*>(p); };
  auto const m = [](void* p) { return static_cast<std::uint8_t*>(p); };
  bool const on_chip = kernels::row_stays_on_chip<T>(on, columns);
  kernels::dropout const drop{.seed = 1, .dropped = 6554};
  std::vector<workload> all;

  all.push_back({.operation = "bias_dropout_add_layer_norm_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, tensor, tensor, mask, parameter, parameter, tensor, statistic,
                                  statistic, tensor, tensor},
                 .fused = predicted::bias_dropout_add_layer_norm.fused(bytes, on_chip),
                 .chain = predicted::bias_dropout_add_layer_norm.chain(bytes, on_chip),
                 .run = [=](variant v, tensors const& p) {
                   kernels::bias_dropout_add_tensors<T> const n{t(p[0]), t(p[1]), t(p[2]), t(p[3]), m(p[4])};
                   kernels::norm_parameters<T> const parameters{t(p[5]), t(p[6])};
                   kernels::norm_outputs<T> const outputs{t(p[7]), f(p[8]), f(p[9])};
                   if (v == variant::fused) {
                     return bias_dropout_add_layer_norm_fused(on, n, drop, parameters, outputs, rows, columns);
                   }
                   bias_dropout_add_layer_norm_chain(on, n, drop, parameters, outputs, t(p[10]), t(p[11]), rows,
                                                     columns);
                 }});

  using kernels::layer_norm;
  auto const fused = kernels::plan_norm_backward<layer_norm, T, kernels::dropout_gradient_sink<T>>(on, rows, columns);
  auto const chain = kernels::plan_norm_backward<layer_norm, T>(on, rows, columns);
  if (!fused.possible) return all;
  std::size_t const partials = 3 * std::max(fused.blocks, chain.blocks) * bytes.columns * sizeof(float);
  auto const& entry = predicted::bias_dropout_add_layer_norm_backward;
  all.push_back(
      {.operation = "bias_dropout_add_layer_norm_bwd",
       .dtype = dtype,
       .shape = shape,
       .tensor_bytes = {tensor, tensor, parameter, statistic, statistic, tensor, partials, mask, tensor, parameter,
                        parameter, parameter},
       .fused = entry.fused(predicted::matrix(rows, columns, sizeof(T), fused.blocks), fused.on_chip),
       .chain = entry.chain(predicted::matrix(rows, columns, sizeof(T), chain.blocks), chain.on_chip),
       .run = [=](variant v, tensors const& p) {
         kernels::norm_backward_tensors<T> const n{t(p[0]), t(p[1]), t(p[2]), f(p[3]), f(p[4]), t(p[5]), f(p[6])};
         kernels::column_sums<T> const sums{{t(p[9]), t(p[10]), t(p[11])}};
         if (v == variant::fused) {
           return bias_dropout_add_layer_norm_backward_fused(on, n, t(p[8]), m(p[7]), drop, sums, rows, columns);
         }
         bias_dropout_add_layer_norm_backward_chain(on, n, t(p[8]), m(p[7]), drop, sums, rows, columns);
       }});
  return all;
}

}  // namespace gpumem::bench::gpu
