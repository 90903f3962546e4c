// SPDX-License-Identifier: MIT
// The GPU that is timed: what its driver says of it, and tensors with data in them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bf16.hpp"
#include "kernels_workload.hpp"
#include "portable.cuh"

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

}  // namespace gpumem::bench::gpu
