// SPDX-License-Identifier: MIT
// Where bf16 meets fp32, 16 bytes are eight elements of the one and four of the other. A warp takes 256 elements, lane
// l the bf16 packet of elements 8l to 8l+7 and the fp32 packets of elements 4l to 4l+3 and 128+4l to 128+4l+3: all
// accesses have 16 bytes and are contiguous over the warp. Shuffles move the values between the two orders.
#pragma once
#include "primitives.cuh"

namespace gpumem::kernels {

inline constexpr int elements_of_chunk = lanes_per_warp * elements_per_packet<bf16>;
inline constexpr int elements_of_chunks_per_block = threads_of_maps / lanes_per_warp * elements_of_chunk;

struct warp_chunk {
  int lane;
  std::int64_t begin;

  __device__ warp_chunk()
      : lane(static_cast<int>(threadIdx.x) % lanes_per_warp),
        begin(static_cast<std::int64_t>(blockIdx.x) * elements_of_chunks_per_block +
              static_cast<int>(threadIdx.x) / lanes_per_warp * elements_of_chunk) {}

  __device__ bool is_whole(std::int64_t elements) const { return begin + elements_of_chunk <= elements; }
  __device__ std::int64_t narrow() const { return begin + lane * elements_per_packet<bf16>; }
  __device__ std::int64_t wide(int half) const {
    return begin + half * (elements_of_chunk / 2) + lane * elements_per_packet<float>;
  }
};

__device__ __forceinline__ float low_bf16(unsigned pair) { return __builtin_bit_cast(float, pair << 16); }
__device__ __forceinline__ float high_bf16(unsigned pair) { return __builtin_bit_cast(float, pair & 0xffff0000u); }
__device__ __forceinline__ unsigned pair_of_bf16(float low, float high) {
  return round_to_bf16(low).bits | static_cast<unsigned>(round_to_bf16(high).bits) << 16;
}

/// The fp32 packet of half h, lane l is half a bf16 packet: that of lane 16h + l/2, its upper half where l is odd.
__device__ __forceinline__ void spread(packet<bf16> const& narrow, packet<float> (&wide)[2]) {
  uint4 const mine = __builtin_bit_cast(uint4, narrow);
  bool const upper = threadIdx.x % 2 == 1;
  GPUMEM_UNROLL for (unsigned half = 0; half < 2; ++half) {
    unsigned const source = half * (lanes_per_warp / 2) + threadIdx.x % lanes_per_warp / 2;
    unsigned const x = __shfl_sync(whole_warp, mine.x, source);
    unsigned const y = __shfl_sync(whole_warp, mine.y, source);
    unsigned const z = __shfl_sync(whole_warp, mine.z, source);
    unsigned const w = __shfl_sync(whole_warp, mine.w, source);
    unsigned const first = upper ? z : x;
    unsigned const second = upper ? w : y;
    wide[half] = {{low_bf16(first), high_bf16(first), low_bf16(second), high_bf16(second)}};
  }
}

/// The other way: a bf16 packet is made of the fp32 packets of two neighbouring lanes, of the half that its lane is in.
__device__ __forceinline__ packet<bf16> gather(packet<float> const (&wide)[2]) {
  unsigned const lane = threadIdx.x % lanes_per_warp;
  unsigned const source = 2 * lane % lanes_per_warp;
  unsigned received[2][4];
  GPUMEM_UNROLL for (int half = 0; half < 2; ++half) {
    float const(&v)[4] = wide[half].values;
    unsigned const first = pair_of_bf16(v[0], v[1]);
    unsigned const second = pair_of_bf16(v[2], v[3]);
    received[half][0] = __shfl_sync(whole_warp, first, source);
    received[half][1] = __shfl_sync(whole_warp, second, source);
    received[half][2] = __shfl_sync(whole_warp, first, source + 1);
    received[half][3] = __shfl_sync(whole_warp, second, source + 1);
  }
  bool const low = lane < lanes_per_warp / 2;
  uint4 const result{low ? received[0][0] : received[1][0], low ? received[0][1] : received[1][1],
                     low ? received[0][2] : received[1][2], low ? received[0][3] : received[1][3]};
  return __builtin_bit_cast(packet<bf16>, result);
}

// ---- casts, as kernels of a chain

template <class Narrow>
__global__ void __launch_bounds__(threads_of_maps) widen_kernel(Narrow const* x, float* y, std::int64_t elements) {
  warp_chunk const chunk;
  if (chunk.is_whole(elements)) {
    packet<float> wide[2];
    spread(__builtin_bit_cast(packet<Narrow>, load_16_bytes(x + chunk.narrow())), wide);
    GPUMEM_UNROLL for (int h = 0; h < 2; ++h) { store_16_bytes(y + chunk.wide(h), __builtin_bit_cast(uint4, wide[h])); }
    return;
  }
  for (std::int64_t i = chunk.begin + chunk.lane; i < elements; i += lanes_per_warp) {
    store_value(y + i, to_float(load_value(x + i)));
  }
}

template <class Narrow>
__global__ void __launch_bounds__(threads_of_maps) narrow_kernel(float const* x, Narrow* y, std::int64_t elements) {
  warp_chunk const chunk;
  if (chunk.is_whole(elements)) {
    packet<float> wide[2];
    GPUMEM_UNROLL for (int h = 0; h < 2; ++h) {
      wide[h] = __builtin_bit_cast(packet<float>, load_16_bytes(x + chunk.wide(h)));
    }
    store_16_bytes(y + chunk.narrow(), __builtin_bit_cast(uint4, gather(wide)));
    return;
  }
  for (std::int64_t i = chunk.begin + chunk.lane; i < elements; i += lanes_per_warp) {
    store_value(y + i, from_float<Narrow>(load_value(x + i)));
  }
}

inline void widen(device_context const& device, bf16 const* x, float* y, std::int64_t elements) {
  launch("widen", widen_kernel<bf16>, blocks_for(elements, elements_of_chunks_per_block), threads_of_maps, 0, device.on,
         x, y, elements);
}
inline void narrow(device_context const& device, float const* x, bf16* y, std::int64_t elements) {
  launch("narrow", narrow_kernel<bf16>, blocks_for(elements, elements_of_chunks_per_block), threads_of_maps, 0,
         device.on, x, y, elements);
}

}  // namespace gpumem::kernels
