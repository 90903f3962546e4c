// SPDX-License-Identifier: MIT
// AdamW with 8-bit moments as a chain: the moments go through memory as fp32.
#pragma once
#include "adamw_8bit.cuh"

namespace gpumem::kernels {

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
