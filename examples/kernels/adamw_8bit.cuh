// SPDX-License-Identifier: MIT
// AdamW with both moments in 8 bits: a code a value, and one fp32 scale for each block of 256 (dynamic_code.hpp).
//
// Codes are computed, not looked up, so no table is read. Fused: 2p + g + 4 + 16/256 bytes a parameter. As a chain the
// moments go through memory as fp32.
#pragma once
#include "adamw.cuh"
#include "dynamic_code.hpp"

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

/// Codes of 8 bits and one scale for each 256 of them.
struct quantised_moments {
  std::uint8_t* mean;
  std::uint8_t* square;
  float* mean_scale;
  float* square_scale;
};

template <class T>
unsigned blocks_of_code_chunks(std::int64_t elements) {
  return blocks_for(elements, threads_of_maps / lanes_per_warp * code_chunk<T>::elements);
}

// ---- fused

/// The end of the tensor, element by element: one block of 256, or what there is of it. All lanes take part.
template <class T>
__device__ __forceinline__ void adamw_8bit_end(T* parameter, T const* gradient, quantised_moments const& moments,
                                               adamw_step const& step, float gradient_scale, std::int64_t elements,
                                               std::int64_t begin, int lane, float (&scales)[2]) {
  constexpr int each = elements_of_scale / lanes_per_warp;
  registers<float, each> means = {}, squares = {};
  float greatest_mean = 0.0f, greatest_square = 0.0f;
  GPUMEM_UNROLL for (int i = 0; i < each; ++i) {
    std::int64_t const at = begin + i * lanes_per_warp + lane;
    if (at < elements) {
      means[i] = signed_code::decode(load_value(moments.mean + at)) * scales[0];
      squares[i] = unsigned_code::decode(load_value(moments.square + at)) * scales[1];
      float weight = to_float(load_value(static_cast<T const*>(parameter) + at));
      step.update(weight, means[i], squares[i], gradient_scale * to_float(load_value(gradient + at)));
      store_value(parameter + at, from_float<T>(weight));
    }
    greatest_mean = max_of{}(greatest_mean, magnitude(means[i]));
    greatest_square = max_of{}(greatest_square, squares[i]);
  }
  scales[0] = reduce_lanes<lanes_per_warp>(greatest_mean, max_of{});
  scales[1] = reduce_lanes<lanes_per_warp>(greatest_square, max_of{});
  GPUMEM_UNROLL for (int i = 0; i < each; ++i) {
    std::int64_t const at = begin + i * lanes_per_warp + lane;
    if (at >= elements) continue;
    unsigned const mean = signed_code::encode(means[i], reciprocal_of_scale(scales[0]));
    unsigned const square = unsigned_code::encode(squares[i], reciprocal_of_scale(scales[1]));
    store_value(moments.mean + at, static_cast<std::uint8_t>(mean));
    store_value(moments.square + at, static_cast<std::uint8_t>(square));
  }
}

template <class T>
__global__ void __launch_bounds__(threads_of_maps)
    adamw_8bit_kernel(T* parameter, T const* gradient, quantised_moments moments, adamw_step step,
                      std::int64_t elements) {
  using chunk_type = code_chunk<T>;
  constexpr int V = chunk_type::V, Q = chunk_type::packets;
  chunk_type const chunk;
  if (chunk.begin >= elements) return;
  float const gradient_scale = step.scale_of_gradients();
  float mean_scales[2], square_scales[2];
  chunk.load_scales(moments.mean_scale, elements, mean_scales);
  chunk.load_scales(moments.square_scale, elements, square_scales);

  if (!chunk.is_whole(elements)) {
    GPUMEM_UNROLL for (int block = 0; block < 2; ++block) {
      float scales[2] = {mean_scales[block], square_scales[block]};
      adamw_8bit_end(parameter, gradient, moments, step, gradient_scale, elements,
                     chunk.begin + block * elements_of_scale, chunk.lane, scales);
      mean_scales[block] = scales[0];
      square_scales[block] = scales[1];
    }
  } else {
    registers<packet<T>, Q> weights, gradients;
    GPUMEM_UNROLL for (int q = 0; q < Q; ++q) {
      weights[q] = __builtin_bit_cast(packet<T>, load_16_bytes(parameter + chunk.first(q)));
      gradients[q] = __builtin_bit_cast(packet<T>, load_16_bytes(gradient + chunk.first(q)));
    }
    typename chunk_type::code_words mean_words, square_words;
    uint4 const mean_codes = load_16_bytes(moments.mean + chunk.codes());
    uint4 const square_codes = load_16_bytes(moments.square + chunk.codes());
    chunk.spread_codes(mean_codes, mean_words);
    chunk.spread_codes(square_codes, square_words);

    registers<registers<float, V>, Q> means, squares;
    GPUMEM_UNROLL for (int block = 0; block < 2; ++block) {
      float greatest_mean = 0.0f, greatest_square = 0.0f;
      GPUMEM_UNROLL for (int i = 0; i < chunk_type::packets_of_scale; ++i) {
        int const q = block * chunk_type::packets_of_scale + i;
        GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
          means[q][j] = decoded<signed_code>(mean_words[q][j / 4], j % 4, mean_scales[block]);
          squares[q][j] = decoded<unsigned_code>(square_words[q][j / 4], j % 4, square_scales[block]);
          float weight = to_float(weights[q].values[j]);
          step.update(weight, means[q][j], squares[q][j], gradient_scale * to_float(gradients[q].values[j]));
          weights[q].values[j] = from_float<T>(weight);
          greatest_mean = max_of{}(greatest_mean, magnitude(means[q][j]));
          greatest_square = max_of{}(greatest_square, squares[q][j]);
        }
        store_16_bytes(parameter + chunk.first(q), __builtin_bit_cast(uint4, weights[q]));
      }
      mean_scales[block] = reduce_lanes<lanes_per_warp>(greatest_mean, max_of{});
      square_scales[block] = reduce_lanes<lanes_per_warp>(greatest_square, max_of{});
      float const of_mean = reciprocal_of_scale(mean_scales[block]);
      float const of_square = reciprocal_of_scale(square_scales[block]);
      GPUMEM_UNROLL for (int i = 0; i < chunk_type::packets_of_scale; ++i) {
        int const q = block * chunk_type::packets_of_scale + i;
        GPUMEM_UNROLL for (int word = 0; word < V / 4; ++word) {
          mean_words[q][word] = square_words[q][word] = 0;
          GPUMEM_UNROLL for (int byte = 0; byte < 4; ++byte) {
            mean_words[q][word] |= signed_code::encode(means[q][word * 4 + byte], of_mean) << 8 * byte;
            square_words[q][word] |= unsigned_code::encode(squares[q][word * 4 + byte], of_square) << 8 * byte;
          }
        }
      }
    }
    store_16_bytes(moments.mean + chunk.codes(), chunk.gather_codes(mean_words));
    store_16_bytes(moments.square + chunk.codes(), chunk.gather_codes(square_words));
  }
  chunk.store_scales(moments.mean_scale, elements, mean_scales);
  chunk.store_scales(moments.square_scale, elements, square_scales);
}

template <class T>
void adamw_8bit_fused(device_context const& device, T* parameter, T const* gradient, quantised_moments const& moments,
                      adamw_step const& step, std::int64_t elements) {
  launch("adamw_8bit", adamw_8bit_kernel<T>, blocks_of_code_chunks<T>(elements), threads_of_maps, 0, device.on,
         parameter, gradient, moments, step, elements);
}

// ---- chain

/// One moment from its codes, to fp32.
template <class Code>
__global__ void __launch_bounds__(threads_of_maps, 1)
    dequantise_kernel(std::uint8_t const* codes, float const* scale, float* values, std::int64_t elements) {
  code_chunk<float> const chunk;
  if (chunk.begin >= elements) return;
  float scales[2];
  chunk.load_scales(scale, elements, scales);
  if (!chunk.is_whole(elements)) {
    for (std::int64_t i = chunk.begin + chunk.lane; i < elements; i += lanes_per_warp) {
      float const scale_here = i - chunk.begin < elements_of_scale ? scales[0] : scales[1];
      store_value(values + i, Code::decode(load_value(codes + i)) * scale_here);
    }
    return;
  }
  code_chunk<float>::code_words words;
  chunk.spread_codes(load_16_bytes(codes + chunk.codes()), words);
  GPUMEM_UNROLL for (int q = 0; q < code_chunk<float>::packets; ++q) {
    packet<float> result;
    GPUMEM_UNROLL for (int j = 0; j < 4; ++j) result.values[j] = decoded<Code>(words[q][0], j, scales[q / 2]);
    store_16_bytes(values + chunk.first(q), __builtin_bit_cast(uint4, result));
  }
}

/// The greatest magnitude of each 256 values: a warp takes two such blocks.
template <int Threads>
__global__ void __launch_bounds__(Threads) absmax_kernel(float const* values, float* scale, std::int64_t elements) {
  code_chunk<float> const chunk;
  if (chunk.begin >= elements) return;
  float scales[2] = {};
  GPUMEM_UNROLL for (int q = 0; q < code_chunk<float>::packets; ++q) {
    packet<float> const loaded = load_packet(values, chunk.first(q), 0, elements, 0.0f);
    GPUMEM_UNROLL for (int j = 0; j < 4; ++j) { scales[q / 2] = max_of{}(scales[q / 2], magnitude(loaded.values[j])); }
  }
  GPUMEM_UNROLL for (int block = 0; block < 2; ++block) {
    scales[block] = reduce_lanes<lanes_per_warp>(scales[block], max_of{});
  }
  chunk.store_scales(scale, elements, scales);
}

template <class Code>
__global__ void __launch_bounds__(threads_of_maps)
    quantise_kernel(float const* values, float const* scale, std::uint8_t* codes, std::int64_t elements) {
  code_chunk<float> const chunk;
  if (chunk.begin >= elements) return;
  float scales[2];
  chunk.load_scales(scale, elements, scales);
  float const reciprocals[2] = {reciprocal_of_scale(scales[0]), reciprocal_of_scale(scales[1])};
  if (!chunk.is_whole(elements)) {
    for (std::int64_t i = chunk.begin + chunk.lane; i < elements; i += lanes_per_warp) {
      float const reciprocal = i - chunk.begin < elements_of_scale ? reciprocals[0] : reciprocals[1];
      store_value(codes + i, static_cast<std::uint8_t>(Code::encode(load_value(values + i), reciprocal)));
    }
    return;
  }
  code_chunk<float>::code_words words;
  GPUMEM_UNROLL for (int q = 0; q < code_chunk<float>::packets; ++q) {
    auto const loaded = __builtin_bit_cast(packet<float>, load_16_bytes(values + chunk.first(q)));
    words[q][0] = 0;
    GPUMEM_UNROLL for (int j = 0; j < 4; ++j) {
      words[q][0] |= Code::encode(loaded.values[j], reciprocals[q / 2]) << 8 * j;
    }
  }
  store_16_bytes(codes + chunk.codes(), chunk.gather_codes(words));
}

/// fp32 moments beside parameters and gradients in bf16.
template <class T>
__global__ void __launch_bounds__(threads_of_maps)
    adamw_wide_moments_kernel(T* parameter, T const* gradient, float* mean, float* square, adamw_step step,
                              std::int64_t elements) {
  warp_chunk const chunk;
  if (chunk.is_whole(elements)) {
    packet<float> weights[2], means[2], squares[2], gradients[2];
    auto const narrow_weights = __builtin_bit_cast(packet<T>, load_16_bytes(parameter + chunk.narrow()));
    auto const narrow_gradients = __builtin_bit_cast(packet<T>, load_16_bytes(gradient + chunk.narrow()));
    GPUMEM_UNROLL for (int h = 0; h < 2; ++h) {
      means[h] = __builtin_bit_cast(packet<float>, load_16_bytes(mean + chunk.wide(h)));
      squares[h] = __builtin_bit_cast(packet<float>, load_16_bytes(square + chunk.wide(h)));
    }
    spread(narrow_weights, weights);
    spread(narrow_gradients, gradients);
    GPUMEM_UNROLL for (int h = 0; h < 2; ++h) {
      GPUMEM_UNROLL for (int j = 0; j < 4; ++j) {
        step.update(weights[h].values[j], means[h].values[j], squares[h].values[j], gradients[h].values[j]);
      }
      store_16_bytes(mean + chunk.wide(h), __builtin_bit_cast(uint4, means[h]));
      store_16_bytes(square + chunk.wide(h), __builtin_bit_cast(uint4, squares[h]));
    }
    store_16_bytes(parameter + chunk.narrow(), __builtin_bit_cast(uint4, gather(weights)));
    return;
  }
  for (std::int64_t i = chunk.begin + chunk.lane; i < elements; i += lanes_per_warp) {
    float weight = to_float(load_value(static_cast<T const*>(parameter) + i));
    float mean_here = load_value(static_cast<float const*>(mean) + i);
    float square_here = load_value(static_cast<float const*>(square) + i);
    step.update(weight, mean_here, square_here, to_float(load_value(gradient + i)));
    store_value(mean + i, mean_here);
    store_value(square + i, square_here);
    store_value(parameter + i, from_float<T>(weight));
  }
}

inline void adamw_with_wide_moments(device_context const& device, float* parameter, float const* gradient, float* mean,
                                    float* square, adamw_step const& step, std::int64_t elements) {
  adamw_fused(device, adamw_state{parameter, mean, square}, gradient, step, elements);
}
inline void adamw_with_wide_moments(device_context const& device, bf16* parameter, bf16 const* gradient, float* mean,
                                    float* square, adamw_step const& step, std::int64_t elements) {
  launch("adamw", adamw_wide_moments_kernel<bf16>, blocks_for(elements, elements_of_chunks_per_block), threads_of_maps,
         0, device.on, parameter, gradient, mean, square, step, elements);
}

/// Dequantise, AdamW, greatest magnitudes, quantise; all but AdamW for each moment.
template <class T>
void adamw_8bit_chain(device_context const& device, T* parameter, T const* gradient, quantised_moments const& moments,
                      float* mean, float* square, adamw_step const& step, std::int64_t elements) {
  unsigned const blocks = blocks_of_code_chunks<float>(elements);
  launch("dequantise mean", dequantise_kernel<signed_code>, blocks, threads_of_maps, 0, device.on, moments.mean,
         moments.mean_scale, mean, elements);
  launch("dequantise square", dequantise_kernel<unsigned_code>, blocks, threads_of_maps, 0, device.on, moments.square,
         moments.square_scale, square, elements);
  adamw_with_wide_moments(device, parameter, gradient, mean, square, step, elements);
  launch("absmax of mean", absmax_kernel<threads_of_maps>, blocks, threads_of_maps, 0, device.on, mean,
         moments.mean_scale, elements);
  launch("absmax of square", absmax_kernel<threads_of_maps>, blocks, threads_of_maps, 0, device.on, square,
         moments.square_scale, elements);
  launch("quantise mean", quantise_kernel<signed_code>, blocks, threads_of_maps, 0, device.on, mean, moments.mean_scale,
         moments.mean, elements);
  launch("quantise square", quantise_kernel<unsigned_code>, blocks, threads_of_maps, 0, device.on, square,
         moments.square_scale, moments.square, elements);
}

}  // namespace gpumem::kernels
