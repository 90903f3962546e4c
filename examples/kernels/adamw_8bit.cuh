// SPDX-License-Identifier: MIT
// AdamW with both moments in 8 bits: a code a value, and one fp32 scale for each block of 256 (dynamic_code.hpp).
//
// Codes are computed, not looked up, so no table is read: 2p + g + 4 + 16/256 bytes a parameter.
#pragma once
#include "adamw.cuh"
#include "code_chunk.cuh"

namespace gpumem::kernels {

/// Codes of 8 bits and one scale for each 256 of them.
struct quantised_moments {
  std::uint8_t* mean;
  std::uint8_t* square;
  float* mean_scale;
  float* square_scale;
};

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

}  // namespace gpumem::kernels
