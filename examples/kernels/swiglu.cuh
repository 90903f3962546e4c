// SPDX-License-Identifier: MIT
// SwiGLU, y = silu(gate) up with silu(x) = x / (1 + exp(-x)), and its gradients. Backward computes silu(gate) again
// rather than read it: three reads and two writes, where a chain makes seven and four.
#pragma once
#include "primitives.cuh"

namespace gpumem::kernels {

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }
__device__ __forceinline__ float silu_derivative(float x) {
  float const s = sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}

struct silu_of {
  __device__ float operator()(float const (&v)[1]) const { return silu(v[0]); }
};
/// Of gate and up.
struct silu_times {
  __device__ float operator()(float const (&v)[2]) const { return silu(v[0]) * v[1]; }
};
/// Of the gradient of silu(x), and x.
struct silu_gradient {
  __device__ float operator()(float const (&v)[2]) const { return v[0] * silu_derivative(v[1]); }
};

template <class T>
void swiglu_forward_fused(device_context const& device, T const* gate, T const* up, T* y, std::int64_t elements) {
  map_elements(device, "swiglu", elements, y, silu_times{}, gate, up);
}

/// silu, multiply.
template <class T>
void swiglu_forward_chain(device_context const& device, T const* gate, T const* up, T* y, T* activated,
                          std::int64_t elements) {
  map_elements(device, "silu", elements, activated, silu_of{}, gate);
  map_elements(device, "multiply", elements, y, multiply{}, activated, up);
}

template <class T>
struct swiglu_backward_tensors {
  T const* gate;
  T const* up;
  T const* dy;
  T* gate_gradient;
  T* up_gradient;
};

template <class T>
__global__ void __launch_bounds__(threads_of_maps)
    swiglu_backward_kernel(swiglu_backward_tensors<T> tensors, std::int64_t elements) {
  constexpr int V = elements_per_packet<T>, P = packets_in_flight<3>;
  std::int64_t const first_packet = static_cast<std::int64_t>(blockIdx.x) * (threads_of_maps * P) + threadIdx.x;

  registers<packet<T>, P> gates, ups, gradients;
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    std::int64_t const first = (first_packet + i * threads_of_maps) * V;
    gates[i] = load_packet(tensors.gate, first, 0, elements, 0.0f);
    ups[i] = load_packet(tensors.up, first, 0, elements, 0.0f);
    gradients[i] = load_packet(tensors.dy, first, 0, elements, 0.0f);
  }
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    std::int64_t const first = (first_packet + i * threads_of_maps) * V;
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      float const gate = to_float(gates[i].values[j]), dy = to_float(gradients[i].values[j]);
      gates[i].values[j] = from_float<T>(dy * to_float(ups[i].values[j]) * silu_derivative(gate));
      ups[i].values[j] = from_float<T>(dy * silu(gate));
    }
    store_packet(tensors.gate_gradient, first, 0, elements, gates[i]);
    store_packet(tensors.up_gradient, first, 0, elements, ups[i]);
  }
}

template <class T>
void swiglu_backward_fused(device_context const& device, swiglu_backward_tensors<T> const& tensors,
                           std::int64_t elements) {
  std::int64_t const packets = (elements + elements_per_packet<T> - 1) / elements_per_packet<T>;
  launch("swiglu_backward", swiglu_backward_kernel<T>, blocks_for(packets, threads_of_maps * packets_in_flight<3>),
         threads_of_maps, 0, device.on, tensors, elements);
}

/// silu(gate) again, times dy; dy times up, through silu.
template <class T>
void swiglu_backward_chain(device_context const& device, swiglu_backward_tensors<T> const& tensors, T* activated,
                           T* activated_gradient, std::int64_t elements) {
  map_elements(device, "silu", elements, activated, silu_of{}, tensors.gate);
  map_elements(device, "multiply", elements, tensors.up_gradient, multiply{}, tensors.dy, activated);
  map_elements(device, "multiply", elements, activated_gradient, multiply{}, tensors.dy, tensors.up);
  map_elements(device, "silu backward", elements, tensors.gate_gradient, silu_gradient{}, activated_gradient,
               tensors.gate);
}

}  // namespace gpumem::kernels
