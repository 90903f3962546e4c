// SPDX-License-Identifier: MIT
// The CUDA names that the kernels use, for a compiler that is not nvcc. Include last, and never beside cuda_runtime.h.
#pragma once
#include <cmath>
#include <cstdint>

#include "executor.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define threadIdx (::simt::thread_index())
#define blockIdx (::simt::block_index())
#define blockDim (::simt::block_dimensions())
#define gridDim (::simt::grid_dimensions())

using simt::dim3;

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline void __syncthreads(simt::place at = simt::place::here()) { simt::block_barrier(at); }

template <class T>
T __shfl_sync(unsigned mask, T value, unsigned source, int = 32, simt::place at = simt::place::here()) {
  return simt::shuffle(mask, value, source, at);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int = 32, simt::place at = simt::place::here()) {
  return simt::shuffle(mask, value, simt::lane_index() ^ static_cast<unsigned>(lanes), at);
}
template <class T>
T atomicAdd(T* address, T value, simt::place at = simt::place::here()) {
  simt::account(simt::access::atomic, address, sizeof(T), at);
  T const before = *address;  // no other fiber runs in between
  *address = before + value;
  return before;
}

inline float __expf(float x) { return std::exp(x); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
