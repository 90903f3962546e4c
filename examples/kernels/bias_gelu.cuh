// SPDX-License-Identifier: MIT
// y = gelu(x + bias), the bias one number a column. Fused: one read, one write. As a chain of two: two of each.
#pragma once
#include "column_primitives.cuh"

namespace gpumem::kernels {

/// The tanh form, 0.5 x (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), written as x / (1 + exp(-2u)): the same
/// function with one exponential and one division.
__device__ __forceinline__ float gelu(float x) {
  constexpr float twice_root_of_two_over_pi = 1.5957691216057308f;
  float const twice_u = twice_root_of_two_over_pi * (x + 0.044715f * x * x * x);
  return x / (1.0f + __expf(-twice_u));
}

struct bias_then_gelu {
  __device__ float operator()(float x, float bias) const { return gelu(x + bias); }
};
struct add_bias {
  __device__ float operator()(float x, float bias) const { return x + bias; }
};
struct gelu_of {
  __device__ float operator()(float const (&v)[1]) const { return gelu(v[0]); }
};

template <class T>
void bias_gelu_fused(device_context const& device, T const* x, T const* bias, T* y, std::int64_t rows, int columns) {
  map_columns(device, "bias_gelu", x, bias, y, rows, columns, bias_then_gelu{});
}

template <class T>
void bias_gelu_chain(device_context const& device, T const* x, T const* bias, T* y, T* biased, std::int64_t rows,
                     int columns) {
  map_columns(device, "add bias", x, bias, biased, rows, columns, add_bias{});
  map_elements(device, "gelu", rows * columns, y, gelu_of{}, biased);
}

}  // namespace gpumem::kernels
