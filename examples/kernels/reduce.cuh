// SPDX-License-Identifier: MIT
// Reductions over the lanes that share a row, and over a whole block.
#pragma once
#include "packet.cuh"

namespace gpumem::kernels {

inline constexpr unsigned whole_warp = 0xffffffffu;
inline constexpr int lanes_per_warp = 32;

struct sum_of {
  static constexpr float identity = 0.0f;
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct max_of {
  static constexpr float identity = lowest;
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

/// Reduces over each group of `Lanes` neighbouring lanes; every lane gets the result. The whole warp has to take part.
template <int Lanes, class Operation>
__device__ __forceinline__ float reduce_lanes(float value, Operation operation) {
  GPUMEM_UNROLL for (int distance = Lanes / 2; distance > 0; distance /= 2) {
    value = operation(value, __shfl_xor_sync(whole_warp, value, distance));
  }
  return value;
}

/// Reduces over a block of whole warps; every thread gets the result. One barrier: each warp reduces the warps' results
/// for itself instead of waiting for one that does. Callable once in a kernel for each `Call`: a second call would need
/// a barrier before it overwrites what others still read.
template <int Call = 0, class Operation>
__device__ __forceinline__ float reduce_block(float value, Operation operation) {
  GPUMEM_SHARED(float, of_warp, lanes_per_warp);
  int const lane = static_cast<int>(threadIdx.x) % lanes_per_warp;
  int const warp = static_cast<int>(threadIdx.x) / lanes_per_warp;
  int const warps = static_cast<int>(blockDim.x) / lanes_per_warp;
  value = reduce_lanes<lanes_per_warp>(value, operation);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = lane < warps ? of_warp[lane] : Operation::identity;
  return reduce_lanes<lanes_per_warp>(value, operation);
}

struct two_sums {
  float first = 0.0f, second = 0.0f;
};

template <int Lanes>
__device__ __forceinline__ two_sums reduce_lanes(two_sums value) {
  return {reduce_lanes<Lanes>(value.first, sum_of{}), reduce_lanes<Lanes>(value.second, sum_of{})};
}

/// As reduce_block, for two sums, and callable in every round of a loop: rounds take turns with two arrays, so that no
/// thread overwrites what another still reads in the round before, and one barrier a round is enough.
__device__ __forceinline__ two_sums reduce_block_in_round(two_sums value, int round) {
  GPUMEM_SHARED(float, first_of_warp, 2 * lanes_per_warp);
  GPUMEM_SHARED(float, second_of_warp, 2 * lanes_per_warp);
  int const lane = static_cast<int>(threadIdx.x) % lanes_per_warp;
  int const warp = static_cast<int>(threadIdx.x) / lanes_per_warp;
  int const begin = round % 2 * lanes_per_warp;
  value = reduce_lanes<lanes_per_warp>(value);
  if (lane == 0) {
    first_of_warp[begin + warp] = value.first;
    second_of_warp[begin + warp] = value.second;
  }
  __syncthreads();
  value = {};
  if (lane < static_cast<int>(blockDim.x) / lanes_per_warp) {
    value = {first_of_warp[begin + lane], second_of_warp[begin + lane]};
  }
  return reduce_lanes<lanes_per_warp>(value);
}

/// The value of the first thread, for every thread of the block.
__device__ __forceinline__ float broadcast_in_block(float value) {
  GPUMEM_SHARED(float, of_first, 1);
  if (threadIdx.x == 0) of_first[0] = value;
  __syncthreads();
  return of_first[0];
}

}  // namespace gpumem::kernels
