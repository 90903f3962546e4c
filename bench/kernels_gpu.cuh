// SPDX-License-Identifier: MIT
// The GPU side of the kernel benchmark: the kernels of examples/kernels, and what the driver says of the device.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "adamw.cuh"
#include "adamw_8bit.cuh"
#include "add_rms_norm.cuh"
#include "bias_dropout_add_layer_norm.cuh"
#include "bias_gelu.cuh"
#include "bias_gelu_backward.cuh"
#include "copy.cuh"
#include "cross_entropy.cuh"
#include "gradient_norm.cuh"
#include "kernels_workload.hpp"
#include "norm_chain.cuh"
#include "norm_forward.cuh"
#include "softmax.cuh"
#include "swiglu.cuh"

namespace gpumem::bench::gpu {

using kernels::bf16;
using kernels::check;
using kernels::device_context;
namespace predicted = kernels::predicted;

struct device {
  device_context context;
  std::string name, compute_capability, driver;
  std::size_t memory_bytes = 0, free_bytes = 0, l2_bytes = 0;
  double peak_bytes_per_second = 0;  // as the driver reports clock and width; 0 where it does not
};

inline int attribute(cudaDeviceAttr which) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess ? value : 0;
}

/// Empty where there is no GPU or no driver; then `reason` says why.
inline std::vector<device> find_devices(std::string& reason) {
  int count = 0;
  cudaError_t const status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    reason = status != cudaSuccess ? cudaGetErrorString(status) : "no device";
    cudaGetLastError();
    return {};
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  device found;
  found.context.multiprocessors = properties.multiProcessorCount;
  found.context.threads_per_multiprocessor = properties.maxThreadsPerMultiProcessor;
  found.context.shared_bytes_per_block = properties.sharedMemPerBlockOptin;
  found.name = properties.name;
  found.compute_capability = std::to_string(properties.major) + "." + std::to_string(properties.minor);
  int driver = 0;
  cudaDriverGetVersion(&driver);
  found.driver = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  check(cudaMemGetInfo(&found.free_bytes, &found.memory_bytes), "cudaMemGetInfo");
  found.l2_bytes = static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize));
  double const clock_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate);
  found.peak_bytes_per_second = 2 * clock_hz * attribute(cudaDevAttrGlobalMemoryBusWidth) / 8;
  return {found};
}

template <class T>
__global__ void fill_kernel(T* out, std::int64_t elements, std::uint32_t seed) {
  std::int64_t const threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += threads) {
    std::uint32_t hash = static_cast<std::uint32_t>(i) * 2654435761u + seed;
    hash = (hash ^ hash >> 16) * 2246822519u;
    hash = (hash ^ hash >> 13) * 3266489917u;
    out[i] = kernels::from_float<T>(static_cast<float>(hash >> 8) * 0x1p-24f);
  }
}

/// Values in [0, 1), bf16 or fp32 by the workload: zeros would cost less power, and time, than data does.
inline void fill(void* tensor, std::size_t bytes, std::string const& dtype, std::uint32_t seed) {
  if (dtype == "bf16") {
    fill_kernel<<<1024, 256>>>(static_cast<bf16*>(tensor), static_cast<std::int64_t>(bytes / 2), seed);
  } else {
    fill_kernel<<<1024, 256>>>(static_cast<float*>(tensor), static_cast<std::int64_t>(bytes / 4), seed);
  }
  check(cudaGetLastError(), "fill");
}

/// All operations on rows of one width and type. Tensors are listed as inputs, outputs, intermediates.
template <class T>
std::vector<workload> row_workloads(device_context const& on, std::int64_t rows, int columns) {
  row_shape const bytes = predicted::matrix(rows, columns, sizeof(T));
  std::size_t const tensor = tensor_bytes(bytes);
  std::size_t const parameter = parameter_bytes(bytes);
  std::size_t const statistic = statistic_bytes(bytes);
  std::string const dtype = sizeof(T) == 4 ? "fp32" : "bf16";
  auto const shape = to_shape(rows, columns);
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

/// Layer norm or RMS norm, forward and backward.
template <class Norm, class T>
std::vector<workload> norm_workloads(device_context const& on, std::int64_t rows, int columns) {
  row_shape const bytes = predicted::matrix(rows, columns, sizeof(T));
  std::size_t const tensor = tensor_bytes(bytes);
  std::size_t const parameter = parameter_bytes(bytes);
  std::size_t const statistic = statistic_bytes(bytes);
  std::string const dtype = sizeof(T) == 4 ? "fp32" : "bf16", norm = Norm::centered ? "layer_norm" : "rms_norm";
  auto const shape = to_shape(rows, columns);
  auto const t = [](void* p) { return static_cast<T*>(p); };
  auto const f = [](void* p) { return static_cast<float*>(p); };
  bool const on_chip = kernels::row_stays_on_chip<T>(on, columns);
  auto const& forward = Norm::centered ? predicted::layer_norm_forward : predicted::rms_norm_forward;
  auto const& backward = Norm::centered ? predicted::layer_norm_backward : predicted::rms_norm_backward;
  std::vector<workload> all;

  all.push_back(
      {.operation = norm + "_fwd",
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
  row_shape const bytes = predicted::matrix(rows, columns, sizeof(T));
  std::size_t const tensor = tensor_bytes(bytes);
  std::size_t const parameter = parameter_bytes(bytes);
  std::size_t const statistic = statistic_bytes(bytes);
  std::size_t const mask = bytes.elements();
  std::string const dtype = sizeof(T) == 4 ? "fp32" : "bf16";
  auto const shape = to_shape(rows, columns);
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
  all.push_back({.operation = "bias_dropout_add_layer_norm_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, parameter, statistic, statistic, tensor, partials, mask, tensor,
                                  parameter, parameter, parameter},
                 .fused = entry.fused(predicted::matrix(rows, columns, sizeof(T), fused.blocks), fused.on_chip),
                 .chain = entry.chain(predicted::matrix(rows, columns, sizeof(T), chain.blocks), chain.on_chip),
                 .run = [=](variant v, tensors const& p) {
                   kernels::norm_backward_tensors<T> const n{t(p[0]), t(p[1]), t(p[2]), f(p[3]),
                                                             f(p[4]), t(p[5]), f(p[6])};
                   kernels::column_sums<T> const sums{{t(p[9]), t(p[10]), t(p[11])}};
                   if (v == variant::fused) {
                     return bias_dropout_add_layer_norm_backward_fused(on, n, t(p[8]), m(p[7]), drop, sums, rows,
                                                                       columns);
                   }
                   bias_dropout_add_layer_norm_backward_chain(on, n, t(p[8]), m(p[7]), drop, sums, rows, columns);
                 }});
  return all;
}

template <class T>
std::vector<workload> activation_workloads(device_context const& on, std::int64_t rows, int columns) {
  row_shape const bytes = predicted::matrix(rows, columns, sizeof(T));
  std::int64_t const elements = rows * columns;
  std::size_t const tensor = tensor_bytes(bytes);
  std::size_t const parameter = parameter_bytes(bytes);
  std::string const dtype = sizeof(T) == 4 ? "fp32" : "bf16";
  auto const shape = to_shape(rows, columns);
  auto const t = [](void* p) { return static_cast<T*>(p); };
  auto const f = [](void* p) { return static_cast<float*>(p); };
  std::int64_t const partials = kernels::partials_of_columns<T>(kernels::plan_columns<T>(on, rows, columns), elements);
  std::vector<workload> all;

  all.push_back({.operation = "bias_gelu_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, tensor, tensor, parameter,
                                  static_cast<std::size_t>(partials) * sizeof(float)},
                 .fused = predicted::bias_gelu_backward.fused(
                     predicted::matrix(rows, columns, sizeof(T), partials / columns)),
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
  row_shape const bytes = predicted::matrix(rows, columns, sizeof(T));
  std::size_t const tensor = tensor_bytes(bytes);
  std::size_t const statistic = statistic_bytes(bytes);
  auto const wide = static_cast<std::size_t>(rows * columns) * sizeof(float);
  auto const f = [](void* p) { return static_cast<float*>(p); };
  bool const wide_on_chip = kernels::row_stays_on_chip<float>(on, columns);
  bool const pair_on_chip = kernels::row_stays_on_chip<float>(on, columns, 2);
  return {.operation = "cross_entropy",
          .dtype = sizeof(T) == 4 ? "fp32" : "bf16",
          .shape = to_shape(rows, columns),
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

template <class T>
std::vector<workload> parameter_workloads(device_context const& on, std::int64_t n) {
  auto const narrow = static_cast<std::size_t>(n) * sizeof(T), wide = static_cast<std::size_t>(n) * sizeof(float);
  auto const count = static_cast<std::size_t>(n), codes = count;
  std::size_t const scales = (codes + 255) / 256 * sizeof(float);
  std::string const dtype = sizeof(T) == 4 ? "fp32" : "bf16";
  auto const t = [](void* p) { return static_cast<T*>(p); };
  auto const f = [](void* p) { return static_cast<float*>(p); };
  auto const code = [](void* p) { return static_cast<std::uint8_t*>(p); };
  kernels::adamw_step const step({}, 1);
  unsigned const blocks = kernels::clipping_blocks<T>(on, n);
  std::vector<workload> all;

  all.push_back({.operation = "adamw_8bit",
                 .dtype = dtype,
                 .shape = std::to_string(n),
                 .tensor_bytes = {narrow, narrow, codes, codes, scales, scales, wide, wide},
                 .fused = predicted::adamw_8bit(sizeof(T)).fused(count),
                 .chain = predicted::adamw_8bit(sizeof(T)).chain(count),
                 .run = [=](variant v, tensors const& p) {
                   kernels::quantised_moments const moments{code(p[2]), code(p[3]), f(p[4]), f(p[5])};
                   T const* const gradient = t(p[1]);
                   if (v == variant::fused) return adamw_8bit_fused(on, t(p[0]), gradient, moments, step, n);
                   adamw_8bit_chain(on, t(p[0]), gradient, moments, f(p[6]), f(p[7]), step, n);
                 }});
  all.push_back({.operation = "clipping",
                 .dtype = dtype,
                 .shape = std::to_string(n),
                 .tensor_bytes = {narrow, 16, 16, blocks * sizeof(float), narrow},
                 .fused = predicted::gradient_clipping_fused(count, sizeof(T), blocks),
                 .chain = predicted::gradient_clipping_chain(count, sizeof(T), blocks),
                 .run = [=](variant v, tensors const& p) {
                   kernels::clipping const clip{f(p[1]), f(p[2]), f(p[3]), 1.0f};
                   if (v == variant::fused) return gradient_clipping_fused(on, t(p[0]), clip, n);
                   gradient_clipping_chain(on, t(p[0]), clip, t(p[4]), n);
                 }});
  return all;
}

template <class T>
workload copy_workload(device_context const& on, std::int64_t elements) {
  row_shape const bytes = predicted::matrix(1, elements, sizeof(T));
  std::size_t const tensor = tensor_bytes(bytes);
  return {
      .operation = "copy",
      .dtype = sizeof(T) == 4 ? "fp32" : "bf16",
      .shape = std::to_string(elements),
      .tensor_bytes = {tensor, tensor},
      .fused = predicted::copy.fused(bytes),
      .chain = {},
      .run = [=](variant,
                 tensors const& p) { kernels::copy(on, static_cast<T const*>(p[0]), static_cast<T*>(p[1]), elements); },
      .has_chain = false};
}

inline std::vector<workload> optimizer_workloads(device_context const& on, std::int64_t n) {
  auto const count = static_cast<std::size_t>(n), wide = count * sizeof(float), narrow = count * sizeof(bf16);
  kernels::adamw_step const step({}, 1);
  auto const f = [](void* p) { return static_cast<float*>(p); };
  auto const b = [](void* p) { return static_cast<bf16*>(p); };
  std::vector<workload> all;
  all.push_back({.operation = "adamw",
                 .dtype = "fp32",
                 .shape = std::to_string(n),
                 .tensor_bytes = {wide, wide, wide, wide, wide},
                 .fused = predicted::adamw.fused(count),
                 .chain = predicted::adamw.chain(count),
                 .run = [=](variant v, tensors const& p) {
                   kernels::adamw_state const s{f(p[0]), f(p[1]), f(p[2])};
                   if (v == variant::fused) return adamw_fused(on, s, f(p[3]), step, n);
                   adamw_chain(on, s, f(p[3]), f(p[4]), step, n);
                 }});
  all.push_back({.operation = "adamw_master",
                 .dtype = "bf16",
                 .shape = std::to_string(n),
                 .tensor_bytes = {wide, wide, wide, narrow, narrow, wide, wide},
                 .fused = predicted::adamw_master.fused(count),
                 .chain = predicted::adamw_master.chain(count),
                 .run = [=](variant v, tensors const& p) {
                   kernels::adamw_state const s{f(p[0]), f(p[1]), f(p[2])};
                   if (v == variant::fused) return adamw_master_fused(on, s, b(p[3]), b(p[4]), step, n);
                   adamw_master_chain(on, s, b(p[3]), b(p[4]), f(p[5]), f(p[6]), step, n);
                 }});
  return all;
}

/// `elements` a tensor; several widths, for each row strategy is another kernel.
inline std::vector<workload> workloads(device_context const& on, std::int64_t elements) {
  std::vector<workload> all{copy_workload<float>(on, elements), copy_workload<bf16>(on, elements)};
  auto const append = [&all](std::vector<workload> more) {
    for (auto& w : more) all.push_back(std::move(w));
  };
  for (int const columns : {256, 1024, 4096, 32768}) {
    std::int64_t const rows = elements / columns;
    append(row_workloads<float>(on, rows, columns));
    append(row_workloads<bf16>(on, rows, columns));
    append(norm_workloads<kernels::layer_norm, float>(on, rows, columns));
    append(norm_workloads<kernels::layer_norm, bf16>(on, rows, columns));
    append(norm_workloads<kernels::rms_norm, float>(on, rows, columns));
    append(norm_workloads<kernels::rms_norm, bf16>(on, rows, columns));
    append(dropout_workloads<float>(on, rows, columns));
    append(dropout_workloads<bf16>(on, rows, columns));
  }
  append(activation_workloads<float>(on, elements / 4096, 4096));
  append(activation_workloads<bf16>(on, elements / 4096, 4096));
  for (int const vocabulary : {32768, 131072}) {
    all.push_back(cross_entropy_workload<float>(on, elements / vocabulary, vocabulary));
    all.push_back(cross_entropy_workload<bf16>(on, elements / vocabulary, vocabulary));
  }
  append(optimizer_workloads(on, elements));
  append(parameter_workloads<float>(on, elements));
  append(parameter_workloads<bf16>(on, elements));
  return all;
}

}  // namespace gpumem::bench::gpu
