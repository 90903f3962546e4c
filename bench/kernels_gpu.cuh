// SPDX-License-Identifier: MIT
// The GPU side of the kernel benchmark: the kernels of examples/kernels, and what the driver says of the device.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "adamw.cuh"
#include "add_rms_norm.cuh"
#include "bias_gelu.cuh"
#include "copy.cuh"
#include "kernels_workload.hpp"
#include "softmax.cuh"

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
  kernels::matrix const bytes{rows, columns, sizeof(T)};
  auto const tensor = static_cast<std::size_t>(bytes.tensor());
  auto const parameter = static_cast<std::size_t>(bytes.parameter());
  auto const statistic = static_cast<std::size_t>(bytes.statistic());
  std::string const dtype = sizeof(T) == 4 ? "fp32" : "bf16";
  auto const shape = to_shape(rows, columns);
  auto const t = [](void* p) { return static_cast<T*>(p); };
  auto const f = [](void* p) { return static_cast<float*>(p); };
  std::vector<workload> all;

  all.push_back({.operation = "softmax_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, statistic, statistic},
                 .fused = predicted::softmax_forward_fused(bytes, kernels::row_stays_on_chip<T>(on, columns)),
                 .chain = predicted::softmax_forward_chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   if (v == variant::fused) return softmax_forward_fused(on, t(p[0]), t(p[1]), rows, columns);
                   softmax_forward_chain(on, t(p[0]), t(p[1]), t(p[2]), f(p[3]), f(p[4]), rows, columns);
                 }});
  all.push_back({.operation = "softmax_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, tensor, tensor, statistic},
                 .fused = predicted::softmax_backward_fused(bytes, kernels::row_stays_on_chip<T>(on, columns, 2)),
                 .chain = predicted::softmax_backward_chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   if (v == variant::fused) return softmax_backward_fused(on, t(p[0]), t(p[1]), t(p[2]), rows, columns);
                   softmax_backward_chain(on, t(p[0]), t(p[1]), t(p[2]), t(p[3]), t(p[4]), f(p[5]), rows, columns);
                 }});
  all.push_back({.operation = "add_rms_norm",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, parameter, tensor, tensor, statistic, tensor, tensor},
                 .fused = predicted::add_rms_norm_fused(bytes, kernels::row_stays_on_chip<T>(on, columns)),
                 .chain = predicted::add_rms_norm_chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   kernels::add_rms_norm_tensors<T> const s{t(p[0]), t(p[1]), t(p[2]), t(p[3]), t(p[4]), f(p[5])};
                   if (v == variant::fused) return add_rms_norm_fused(on, s, rows, columns);
                   add_rms_norm_chain(on, s, t(p[6]), t(p[7]), rows, columns);
                 }});
  all.push_back({.operation = "bias_gelu",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, tensor, tensor},
                 .fused = predicted::bias_gelu_fused(bytes),
                 .chain = predicted::bias_gelu_chain(bytes),
                 .run = [=](variant v, tensors const& p) {
                   if (v == variant::fused) return bias_gelu_fused(on, t(p[0]), t(p[1]), t(p[2]), rows, columns);
                   bias_gelu_chain(on, t(p[0]), t(p[1]), t(p[2]), t(p[3]), rows, columns);
                 }});
  return all;
}

template <class T>
workload copy_workload(device_context const& on, std::int64_t elements) {
  kernels::matrix const bytes{1, elements, sizeof(T)};
  auto const tensor = static_cast<std::size_t>(bytes.tensor());
  return {
      .operation = "copy",
      .dtype = sizeof(T) == 4 ? "fp32" : "bf16",
      .shape = std::to_string(elements),
      .tensor_bytes = {tensor, tensor},
      .fused = predicted::copy(bytes),
      .chain = {},
      .run = [=](variant,
                 tensors const& p) { kernels::copy(on, static_cast<T const*>(p[0]), static_cast<T*>(p[1]), elements); },
      .has_chain = false};
}

inline std::vector<workload> optimizer_workloads(device_context const& on, std::int64_t n) {
  auto const wide = static_cast<std::size_t>(n) * sizeof(float);
  auto const narrow = static_cast<std::size_t>(n) * sizeof(bf16);
  kernels::adamw_step const step({}, 1);
  auto const f = [](void* p) { return static_cast<float*>(p); };
  auto const b = [](void* p) { return static_cast<bf16*>(p); };
  std::vector<workload> all;
  all.push_back({.operation = "adamw",
                 .dtype = "fp32",
                 .shape = std::to_string(n),
                 .tensor_bytes = {wide, wide, wide, wide, wide},
                 .fused = predicted::adamw_fused(n),
                 .chain = predicted::adamw_chain(n),
                 .run = [=](variant v, tensors const& p) {
                   kernels::adamw_state const s{f(p[0]), f(p[1]), f(p[2])};
                   if (v == variant::fused) return adamw_fused(on, s, f(p[3]), step, n);
                   adamw_chain(on, s, f(p[3]), f(p[4]), step, n);
                 }});
  all.push_back({.operation = "adamw_master",
                 .dtype = "bf16",
                 .shape = std::to_string(n),
                 .tensor_bytes = {wide, wide, wide, narrow, narrow, wide, wide},
                 .fused = predicted::adamw_master_fused(n),
                 .chain = predicted::adamw_master_chain(n),
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
  for (int const columns : {256, 1024, 4096, 32768}) {
    for (auto& w : row_workloads<float>(on, elements / columns, columns)) all.push_back(std::move(w));
    for (auto& w : row_workloads<bf16>(on, elements / columns, columns)) all.push_back(std::move(w));
  }
  for (auto& w : optimizer_workloads(on, elements)) all.push_back(std::move(w));
  return all;
}

}  // namespace gpumem::bench::gpu
