// SPDX-License-Identifier: MIT
// Softmax, cross-entropy, residual + RMS norm and the activations on the GPU.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "add_rms_norm.cuh"
#include "bias_gelu.cuh"
#include "bias_gelu_backward.cuh"
#include "copy.cuh"
#include "cross_entropy.cuh"
#include "kernels_gpu_device.cuh"
#include "softmax.cuh"
#include "swiglu.cuh"

namespace gpumem::bench::gpu {

template <class T>
workload copy_workload(device_context const& on, std::int64_t elements) {
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(1, elements, sizeof(T));
  return {
      .operation = "copy",
      .dtype = dtype,
      .shape = std::to_string(elements),
      .tensor_bytes = {tensor, tensor},
      .fused = predicted::copy.fused(bytes),
      .chain = {},
      .run = [=](variant,
                 tensors const& p) { kernels::copy(on, static_cast<T const*>(p[0]), static_cast<T*>(p[1]), elements); },
      .has_chain = false};
}

/// All operations on rows of one width and type. Tensors are listed as inputs, outputs, intermediates.
template <class T>
std::vector<workload> row_workloads(device_context const& on, std::int64_t rows, int columns) {
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(T));
  auto const t = [](void* p) { return static_cast<T*>(p); };
  auto const f = [](void* p) { return static_cast<float*>(p); };
  std::vector<workload> all;

  all.push_back({.operation = "softmax_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, statistic, statistic},
                 .fused = predicted::softmax_forward.fused(bytes, kernels::row_stays_on_chip<T>(on, columns)),
                 .chain = predicted::softmax_forward.chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   if (v == variant::fused) return softmax_forward_fused(on, t(p[0]), t(p[1]), rows, columns);
                   softmax_forward_chain(on, t(p[0]), t(p[1]), t(p[2]), f(p[3]), f(p[4]), rows, columns);
                 }});
  all.push_back({.operation = "softmax_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, tensor, tensor, statistic},
                 .fused = predicted::softmax_backward.fused(bytes, kernels::row_stays_on_chip<T>(on, columns, 2)),
                 .chain = predicted::softmax_backward.chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   if (v == variant::fused) return softmax_backward_fused(on, t(p[0]), t(p[1]), t(p[2]), rows, columns);
                   softmax_backward_chain(on, t(p[0]), t(p[1]), t(p[2]), t(p[3]), t(p[4]), f(p[5]), rows, columns);
                 }});
  all.push_back({.operation = "add_rms_norm",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, parameter, tensor, tensor, statistic, tensor, tensor},
                 .fused = predicted::add_rms_norm.fused(bytes, kernels::row_stays_on_chip<T>(on, columns)),
                 .chain = predicted::add_rms_norm.chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   kernels::add_rms_norm_tensors<T> const s{t(p[0]), t(p[1]), t(p[2]), t(p[3]), t(p[4]), f(p[5])};
                   if (v == variant::fused) return add_rms_norm_fused(on, s, rows, columns);
                   add_rms_norm_chain(on, s, t(p[6]), t(p[7]), rows, columns);
                 }});
  all.push_back({.operation = "bias_gelu",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, tensor, tensor},
                 .fused = predicted::bias_gelu.fused(bytes),
                 .chain = predicted::bias_gelu.chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   if (v == variant::fused) return bias_gelu_fused(on, t(p[0]), t(p[1]), t(p[2]), rows, columns);
                   bias_gelu_chain(on, t(p[0]), t(p[1]), t(p[2]), t(p[3]), rows, columns);
                 }});
  return all;
}

template <class T>
std::vector<workload> activation_workloads(device_context const& on, std::int64_t rows, int columns) {
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(T));
  std::int64_t const elements = rows * columns;
  auto const t = [](void* p) { return static_cast<T*>(p); };
  auto const f = [](void* p) { return static_cast<float*>(p); };
  std::int64_t const partials = kernels::partials_of_columns<T>(kernels::plan_columns<T>(on, rows, columns), elements);
  std::vector<workload> all;

  all.push_back(
      {.operation = "bias_gelu_bwd",
       .dtype = dtype,
       .shape = shape,
       .tensor_bytes = {tensor, parameter, tensor, tensor, parameter,
                        static_cast<std::size_t>(partials) * sizeof(float)},
       .fused = predicted::bias_gelu_backward.fused(predicted::matrix(rows, columns, sizeof(T), partials / columns)),
       .chain = predicted::bias_gelu_backward.chain(bytes),
       .run = [=](variant v, tensors const& p) {
         kernels::bias_gelu_backward_tensors<T> const n{t(p[0]), t(p[1]), t(p[2]), t(p[3]), f(p[5])};
         if (v == variant::fused) return bias_gelu_backward_fused(on, n, t(p[4]), rows, columns);
         T const *const biased = t(p[0]), *const dy = t(p[2]);
         bias_gelu_backward_chain(on, biased, dy, t(p[3]), t(p[4]), rows, columns);
       }});
  all.push_back({.operation = "swiglu_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, tensor},
                 .fused = predicted::swiglu_forward.fused(bytes),
                 .chain = predicted::swiglu_forward.chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   T const *const gate = t(p[0]), *const up = t(p[1]);
                   if (v == variant::fused) return swiglu_forward_fused(on, gate, up, t(p[2]), elements);
                   swiglu_forward_chain(on, gate, up, t(p[2]), t(p[3]), elements);
                 }});
  all.push_back({.operation = "swiglu_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, tensor, tensor, tensor, tensor},
                 .fused = predicted::swiglu_backward.fused(bytes),
                 .chain = predicted::swiglu_backward.chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   kernels::swiglu_backward_tensors<T> const n{t(p[0]), t(p[1]), t(p[2]), t(p[3]), t(p[4])};
                   if (v == variant::fused) return swiglu_backward_fused(on, n, elements);
                   swiglu_backward_chain(on, n, t(p[5]), t(p[6]), elements);
                 }});
  return all;
}

/// Targets are whatever the fill left there: mostly no column, which costs the same.
template <class T>
workload cross_entropy_workload(device_context const& on, std::int64_t rows, int columns) {
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(T));
  auto const wide = static_cast<std::size_t>(rows * columns) * sizeof(float);
  auto const f = [](void* p) { return static_cast<float*>(p); };
  bool const wide_on_chip = kernels::row_stays_on_chip<float>(on, columns);
  bool const pair_on_chip = kernels::row_stays_on_chip<float>(on, columns, 2);
  return {.operation = "cross_entropy",
          .dtype = dtype,
          .shape = shape,
          .tensor_bytes = {tensor, statistic, statistic, wide, wide, sizeof(T) == 4 ? 16 : wide},
          .fused = predicted::cross_entropy.fused(bytes, kernels::row_stays_on_chip<T>(on, columns)),
          .chain = predicted::cross_entropy_chain(bytes, wide_on_chip, pair_on_chip),
          .run = [=](variant v, tensors const& p) {
            kernels::cross_entropy_tensors<T> const n{static_cast<T*>(p[0]), static_cast<std::int32_t*>(p[1]), f(p[2]),
                                                      1.0f};
            if (v == variant::fused) return cross_entropy_fused(on, n, rows, columns);
            cross_entropy_chain(on, n, {f(p[3]), f(p[4]), f(p[5])}, rows, columns);
          }};
}

}  // namespace gpumem::bench::gpu
