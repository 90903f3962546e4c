// SPDX-License-Identifier: MIT
// The gradient of y = gelu(x + bias): dx = dy gelu'(x + bias), and the bias's, the sum of dx over the rows. Fused: x
// and dy are read once for both. As a chain dx is read again to be summed.
#pragma once
#include "bias_gelu.cuh"

namespace gpumem::kernels {

/// With gelu(x) = x s, s = 1 / (1 + exp(-2u)): s + x s (1 - s) 2u'.
__device__ __forceinline__ float gelu_derivative(float x) {
  constexpr float twice_root_of_two_over_pi = 1.5957691216057308f;
  float const square = x * x;
  float const s = 1.0f / (1.0f + __expf(-twice_root_of_two_over_pi * x * (1.0f + 0.044715f * square)));
  return s + x * s * (1.0f - s) * (twice_root_of_two_over_pi * (1.0f + 3.0f * 0.044715f * square));
}

/// Of dy and x + bias.
struct gelu_gradient {
  __device__ float operator()(float const (&v)[2]) const { return v[0] * gelu_derivative(v[1]); }
};

template <class T>
struct bias_gelu_backward_tensors {
  T const* x;
  T const* bias;
  T const* dy;
  T* dx;
  float* partials;
};

/// Elements of the partial sums: one for each element of the first packet that each thread works on.
template <class T>
__device__ __host__ std::int64_t partials_of_columns(column_plan const& plan, std::int64_t elements) {
  std::int64_t const all = plan.stride * elements_per_packet<T>;
  return all < elements ? all : elements;
}

/// Each thread always sees the same columns, and keeps their sums. Those of a block go through shared memory, so that
/// what it writes is contiguous in fp32 as well.
template <class T>
__global__ void __launch_bounds__(threads_of_maps)
    bias_gelu_backward_kernel(bias_gelu_backward_tensors<T> tensors, std::int64_t elements, int columns,
                              column_plan plan) {
  constexpr int V = elements_per_packet<T>, F = elements_per_packet<float>, P = packets_in_flight<2>;
  GPUMEM_SHARED(float, of_block, threads_of_maps* V);
  std::int64_t const thread = static_cast<std::int64_t>(blockIdx.x) * threads_of_maps + threadIdx.x;

  registers<float, V> sums = {};
  if (thread < plan.stride && thread < plan.packets) {
    packet<T> const bias = load_repeated_parameters(tensors.bias, static_cast<int>(thread * V % columns), columns);
    for (std::int64_t first = thread; first < plan.packets; first += P * plan.stride) {
      registers<packet<T>, P> values, gradients;
      GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
        values[i] = load_packet(tensors.x, (first + i * plan.stride) * V, 0, elements, 0.0f);
        gradients[i] = load_packet(tensors.dy, (first + i * plan.stride) * V, 0, elements, 0.0f);
      }
      GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
        GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
          float const x = to_float(values[i].values[j]) + to_float(bias.values[j]);
          float const dx = to_float(gradients[i].values[j]) * gelu_derivative(x);
          sums[j] += dx;
          values[i].values[j] = from_float<T>(dx);
        }
        store_packet(tensors.dx, (first + i * plan.stride) * V, 0, elements, values[i]);
      }
    }
  }
  GPUMEM_UNROLL for (int part = 0; part < V / F; ++part) {
    packet<float> quarter;
    GPUMEM_UNROLL for (int j = 0; j < F; ++j) quarter.values[j] = sums[part * F + j];
    store_shared_16_bytes(of_block, static_cast<int>(threadIdx.x) * V + part * F, __builtin_bit_cast(uint4, quarter));
  }
  if constexpr (V > F) __syncthreads();  // else each thread finds there what it has put there itself
  std::int64_t const begin = static_cast<std::int64_t>(blockIdx.x) * (threads_of_maps * V);
  GPUMEM_UNROLL for (int part = 0; part < V / F; ++part) {
    int const first = (part * threads_of_maps + static_cast<int>(threadIdx.x)) * F;
    auto const sums_here = __builtin_bit_cast(packet<float>, load_shared_16_bytes(of_block, first));
    store_packet(tensors.partials, begin + first, 0, partials_of_columns<T>(plan, elements), sums_here);
  }
}

/// `partials` has partials_of_columns elements: whole rows.
template <class T>
void bias_gelu_backward_fused(device_context const& device, bias_gelu_backward_tensors<T> const& tensors,
                              T* bias_gradient, std::int64_t rows, int columns) {
  column_plan const plan = plan_columns<T>(device, rows, columns);
  launch("bias_gelu_backward", bias_gelu_backward_kernel<T>,
         blocks_for(std::min(plan.stride, plan.packets), threads_of_maps), threads_of_maps, 0, device.on, tensors,
         rows * columns, columns, plan);
  reduce_columns(device, "sum partials", tensors.partials, column_sums<T>{{bias_gradient, nullptr}}, 1,
                 partials_of_columns<T>(plan, rows * columns) / columns, columns);
}

/// gelu backward from the x + bias that forward kept, then the sum of the columns.
template <class T>
void bias_gelu_backward_chain(device_context const& device, T const* biased, T const* dy, T* dx, T* bias_gradient,
                              std::int64_t rows, int columns) {
  map_elements(device, "gelu backward", rows * columns, dx, gelu_gradient{}, dy, biased);
  reduce_columns(device, "sum columns", dx, column_sums<T>{{bias_gradient, nullptr}}, 1, rows, columns);
}

}  // namespace gpumem::kernels
