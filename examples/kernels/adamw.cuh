// SPDX-License-Identifier: MIT
// One step of AdamW. Thirteen operations a parameter against 28 bytes, so the bytes are all that counts. As a chain it
// is the eight kernels that a "foreach" optimizer launches: 80 bytes a parameter, and a temporary as large as the
// parameters.
#pragma once
#include <cmath>

#include "primitives.cuh"
#include "spread.cuh"

namespace gpumem::kernels {

struct adamw_settings {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
};

/// The settings as the kernels need them in the `step`-th step, counted from 1.
struct adamw_step {
  float decay, one_minus_beta1, beta2, one_minus_beta2, epsilon, step_size, root_of_correction;
  /// Null, or where the device keeps the factor of all gradients, by which clipping costs no access of its own. Fused
  /// kernels only.
  float const* gradient_scale = nullptr;

  adamw_step(adamw_settings const& s, int step)
      : decay(static_cast<float>(1.0 - s.learning_rate * s.weight_decay)),
        one_minus_beta1(static_cast<float>(1.0 - s.beta1)),
        beta2(static_cast<float>(s.beta2)),
        one_minus_beta2(static_cast<float>(1.0 - s.beta2)),
        epsilon(static_cast<float>(s.epsilon)),
        step_size(static_cast<float>(s.learning_rate / (1.0 - std::pow(s.beta1, step)))),
        root_of_correction(static_cast<float>(std::sqrt(1.0 - std::pow(s.beta2, step)))) {}

  __device__ __forceinline__ float scale_of_gradients() const {
    return gradient_scale == nullptr ? 1.0f : load_value(gradient_scale);
  }
  __device__ __forceinline__ void update(float& weight, float& mean, float& square, float gradient) const {
    mean += one_minus_beta1 * (gradient - mean);
    square = beta2 * square + one_minus_beta2 * gradient * gradient;
    float const denominator = sqrtf(square) / root_of_correction + epsilon;
    weight = weight * decay - step_size * mean / denominator;
  }
};

/// Weight and the two moments; all fp32.
struct adamw_state {
  float* weight;
  float* mean;
  float* square;
};

// ---- fused

template <class T>
__global__ void __launch_bounds__(threads_of_maps)
    adamw_kernel(adamw_state state, T const* gradient, adamw_step step, std::int64_t elements) {
  constexpr int V = elements_per_packet<T>;
  std::int64_t const first = (static_cast<std::int64_t>(blockIdx.x) * threads_of_maps + threadIdx.x) * V;
  auto weights = load_packet(state.weight, first, 0, elements, 0.0f);
  auto means = load_packet(state.mean, first, 0, elements, 0.0f);
  auto squares = load_packet(state.square, first, 0, elements, 0.0f);
  auto const gradients = load_packet(gradient, first, 0, elements, 0.0f);
  float const scale = step.scale_of_gradients();
  GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
    step.update(weights.values[j], means.values[j], squares.values[j], scale * gradients.values[j]);
  }
  store_packet(state.weight, first, 0, elements, weights);
  store_packet(state.mean, first, 0, elements, means);
  store_packet(state.square, first, 0, elements, squares);
}

/// bf16 gradients and parameters, fp32 master weights. A warp works on 256 elements: one bf16 packet a lane, two of
/// fp32.
template <class T>
__global__ void __launch_bounds__(threads_of_maps)
    adamw_master_kernel(adamw_state master, T* parameter, T const* gradient, adamw_step step, std::int64_t elements) {
  warp_chunk const chunk;
  float const scale = step.scale_of_gradients();
  if (chunk.is_whole(elements)) {
    packet<float> weights[2], means[2], squares[2], gradients[2];
    auto const narrow_gradients = __builtin_bit_cast(packet<T>, load_16_bytes(gradient + chunk.narrow()));
    GPUMEM_UNROLL for (int h = 0; h < 2; ++h) {
      weights[h] = __builtin_bit_cast(packet<float>, load_16_bytes(master.weight + chunk.wide(h)));
      means[h] = __builtin_bit_cast(packet<float>, load_16_bytes(master.mean + chunk.wide(h)));
      squares[h] = __builtin_bit_cast(packet<float>, load_16_bytes(master.square + chunk.wide(h)));
    }
    spread(narrow_gradients, gradients);
    GPUMEM_UNROLL for (int h = 0; h < 2; ++h) {
      GPUMEM_UNROLL for (int j = 0; j < 4; ++j) {
        step.update(weights[h].values[j], means[h].values[j], squares[h].values[j], scale * gradients[h].values[j]);
      }
      store_16_bytes(master.weight + chunk.wide(h), __builtin_bit_cast(uint4, weights[h]));
      store_16_bytes(master.mean + chunk.wide(h), __builtin_bit_cast(uint4, means[h]));
      store_16_bytes(master.square + chunk.wide(h), __builtin_bit_cast(uint4, squares[h]));
    }
    store_16_bytes(parameter + chunk.narrow(), __builtin_bit_cast(uint4, gather(weights)));
    return;
  }
  for (std::int64_t i = chunk.begin + chunk.lane; i < elements; i += lanes_per_warp) {
    float weight = load_value(master.weight + i);
    float mean = load_value(master.mean + i);
    float square = load_value(master.square + i);
    step.update(weight, mean, square, scale * to_float(load_value(gradient + i)));
    store_value(master.weight + i, weight);
    store_value(master.mean + i, mean);
    store_value(master.square + i, square);
    store_value(parameter + i, from_float<T>(weight));
  }
}

inline void adamw_fused(device_context const& device, adamw_state const& state, float const* gradient,
                        adamw_step const& step, std::int64_t elements) {
  launch("adamw", adamw_kernel<float>, blocks_for(elements, threads_of_maps * elements_per_packet<float>),
         threads_of_maps, 0, device.on, state, gradient, step, elements);
}
inline void adamw_master_fused(device_context const& device, adamw_state const& master, bf16* parameter,
                               bf16 const* gradient, adamw_step const& step, std::int64_t elements) {
  launch("adamw_master", adamw_master_kernel<bf16>, blocks_for(elements, elements_of_chunks_per_block), threads_of_maps,
         0, device.on, master, parameter, gradient, step, elements);
}

// ---- chains

struct scale_by {
  float factor;
  __device__ float operator()(float const (&v)[1]) const { return factor * v[0]; }
};
struct divide_by {
  float divisor;
  __device__ float operator()(float const (&v)[1]) const { return v[0] / divisor; }
};
struct add_constant {
  float term;
  __device__ float operator()(float const (&v)[1]) const { return v[0] + term; }
};
struct root_of {
  __device__ float operator()(float const (&v)[1]) const { return sqrtf(v[0]); }
};
struct towards {
  float weight;
  __device__ float operator()(float const (&v)[2]) const { return v[0] + weight * (v[1] - v[0]); }
};
struct add_scaled_square {
  float factor;
  __device__ float operator()(float const (&v)[2]) const { return v[0] + factor * v[1] * v[1]; }
};
struct add_scaled_quotient {
  float factor;
  __device__ float operator()(float const (&v)[3]) const { return v[0] + factor * v[1] / v[2]; }
};

/// mul, lerp, mul, addcmul, sqrt, div, add, addcdiv.
inline void adamw_chain(device_context const& device, adamw_state const& state, float const* gradient, float* temporary,
                        adamw_step const& step, std::int64_t elements) {
  auto const [weight, mean, square] = state;
  map_elements(device, "decay", elements, weight, scale_by{step.decay}, weight);
  map_elements(device, "lerp mean", elements, mean, towards{step.one_minus_beta1}, mean, gradient);
  map_elements(device, "scale square", elements, square, scale_by{step.beta2}, square);
  map_elements(device, "add square", elements, square, add_scaled_square{step.one_minus_beta2}, square, gradient);
  map_elements(device, "root", elements, temporary, root_of{}, square);
  map_elements(device, "divide", elements, temporary, divide_by{step.root_of_correction}, temporary);
  map_elements(device, "add epsilon", elements, temporary, add_constant{step.epsilon}, temporary);
  map_elements(device, "add quotient", elements, weight, add_scaled_quotient{-step.step_size}, weight, mean, temporary);
}

/// The gradient is cast up, the new weight down: two more kernels of 6 bytes a parameter.
inline void adamw_master_chain(device_context const& device, adamw_state const& master, bf16* parameter,
                               bf16 const* gradient, float* wide_gradient, float* temporary, adamw_step const& step,
                               std::int64_t elements) {
  widen(device, gradient, wide_gradient, elements);
  adamw_chain(device, master, wide_gradient, temporary, step, elements);
  narrow(device, master.weight, parameter, elements);
}

}  // namespace gpumem::kernels
