// SPDX-License-Identifier: MIT
// How a warp reads and writes 8-bit codes beside the values that they stand for, 16 bytes an access for both.
#pragma once
#include "dynamic_code.hpp"
#include "primitives.cuh"

namespace gpumem::kernels {

/// A warp takes 512 elements, two blocks: 16 codes a lane, and packets of T such that each access is contiguous over
/// the warp. Shuffles move codes between the two orders.
template <class T>
struct code_chunk {
  static constexpr int V = elements_per_packet<T>;
  static constexpr int elements = 2 * elements_of_scale;
  static constexpr int packets = elements / (lanes_per_warp * V);
  static constexpr int packets_of_scale = packets / 2;
  static constexpr int words = V / 4;  // four codes in each
  using code_words = unsigned[static_cast<std::size_t>(packets)][static_cast<std::size_t>(words)];

  int lane;
  std::int64_t begin;

  __device__ code_chunk()
      : lane(static_cast<int>(threadIdx.x) % lanes_per_warp),
        begin((static_cast<std::int64_t>(blockIdx.x) * (threads_of_maps / lanes_per_warp) +
               static_cast<int>(threadIdx.x) / lanes_per_warp) *
              elements) {}
  __device__ bool is_whole(std::int64_t all) const { return begin + elements <= all; }
  __device__ std::int64_t codes() const { return begin + lane * 16; }
  __device__ std::int64_t first(int q) const { return begin + (q * lanes_per_warp + lane) * V; }
  __device__ std::int64_t scale(int block) const { return begin / elements_of_scale + block; }

  /// Both scales of the chunk, each read by one lane; 0 for a block that is not there.
  __device__ __forceinline__ void load_scales(float const* scales, std::int64_t all, float (&of_block)[2]) const {
    float mine = 0.0f;
    if (lane < 2 && begin + lane * elements_of_scale < all) mine = load_value(scales + scale(lane));
    GPUMEM_UNROLL for (int block = 0; block < 2; ++block) {
      of_block[block] = __shfl_sync(whole_warp, mine, static_cast<unsigned>(block));
    }
  }
  __device__ __forceinline__ void store_scales(float* scales, std::int64_t all, float const (&of_block)[2]) const {
    if (lane < 2 && begin + lane * elements_of_scale < all) {
      store_value(scales + scale(lane), lane == 0 ? of_block[0] : of_block[1]);
    }
  }
  __device__ __forceinline__ void spread_codes(uint4 const& mine, code_words& out) const {
    GPUMEM_UNROLL for (int q = 0; q < packets; ++q) {
      unsigned const source = static_cast<unsigned>(2 * V * q + lane * V / 16);
      unsigned const x = __shfl_sync(whole_warp, mine.x, source);
      unsigned const y = __shfl_sync(whole_warp, mine.y, source);
      unsigned const z = __shfl_sync(whole_warp, mine.z, source);
      unsigned const w = __shfl_sync(whole_warp, mine.w, source);
      GPUMEM_UNROLL for (int word = 0; word < words; ++word) {
        int const index = lane % (16 / V) * words + word;
        unsigned const low = index == 0 ? x : y;
        out[q][word] = index < 2 ? low : index == 2 ? z : w;
      }
    }
  }
  __device__ __forceinline__ uint4 gather_codes(code_words const& in) const {
    constexpr int lanes_of_packet = 2 * V;
    unsigned result[4] = {};
    GPUMEM_UNROLL for (int q = 0; q < packets; ++q) {
      GPUMEM_UNROLL for (int word = 0; word < 4; ++word) {
        unsigned const source = static_cast<unsigned>(16 / V * (lane % lanes_of_packet) + word / words);
        unsigned const received = __shfl_sync(whole_warp, in[q][word % words], source);
        if (lane / lanes_of_packet == q) result[word] = received;
      }
    }
    return uint4{result[0], result[1], result[2], result[3]};
  }
};

template <class Code>
__device__ __forceinline__ float decoded(unsigned word, int byte, float scale) {
  return Code::decode(word >> 8 * byte & 0xffu) * scale;
}

template <class T>
unsigned blocks_of_code_chunks(std::int64_t elements) {
  return blocks_for(elements, threads_of_maps / lanes_per_warp * code_chunk<T>::elements);
}

}  // namespace gpumem::kernels
