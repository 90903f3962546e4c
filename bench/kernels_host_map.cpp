// SPDX-License-Identifier: MIT
#include "kernels_host_loops.hpp"

namespace gpumem::bench::host {
namespace {

float gelu(float x) { return x / (1.0f + std::exp(-1.5957691216057308f * (x + 0.044715f * x * x * x))); }

float gelu_derivative(float x) {
  float const s = 1.0f / (1.0f + std::exp(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
  return s + x * s * (1.0f - s) * 1.5957691216057308f * (1.0f + 0.134145f * x * x);
}
float silu(float x) { return x / (1.0f + std::exp(-x)); }
float silu_derivative(float x) {
  float const s = 1.0f / (1.0f + std::exp(-x));
  return s + x * s * (1.0f - s);
}

// ---- bias and GELU

void bias_gelu_fused(matrix_of m, float const* x, float const* bias, float* y) {
  m.each_row([&](std::int64_t, std::int64_t first) {
    map(m.columns, y + first, [&](std::int64_t i) { return gelu(x[first + i] + bias[i]); });
  });
}

void bias_gelu_chain(matrix_of m, float const* x, float const* bias, float* y, float* biased) {
  m.each_row([&](std::int64_t, std::int64_t first) {
    map(m.columns, biased + first, [&](std::int64_t i) { return x[first + i] + bias[i]; });
  });
  map(m.elements(), y, [&](std::int64_t i) { return gelu(biased[i]); });
}

void bias_gelu_backward_fused(matrix_of m, float const* x, float const* bias, float const* dy, float* dx,
                              float* bias_gradient) {
  map(m.columns, bias_gradient, [](std::int64_t) { return 0.0f; });
  m.each_row([=](std::int64_t, std::int64_t first) {
    for (std::int64_t i = 0; i < m.columns; ++i) {
      dx[first + i] = dy[first + i] * gelu_derivative(x[first + i] + bias[i]);
      bias_gradient[i] += dx[first + i];
    }
  });
}

void bias_gelu_backward_chain(matrix_of m, float const* biased, float const* dy, float* dx, float* bias_gradient) {
  map(m.elements(), dx, [=](std::int64_t i) { return dy[i] * gelu_derivative(biased[i]); });
  reduce_columns(m, dx, bias_gradient);
}

// ---- SwiGLU

void swiglu_forward_fused(std::int64_t n, float const* gate, float const* up, float* y) {
  map(n, y, [=](std::int64_t i) { return silu(gate[i]) * up[i]; });
}

void swiglu_forward_chain(std::int64_t n, float const* gate, float const* up, float* y, float* activated) {
  map(n, activated, [=](std::int64_t i) { return silu(gate[i]); });
  map_pairs(n, activated, up, y, times{});
}

void swiglu_backward_fused(std::int64_t n, float const* gate, float const* up, float const* dy, float* gate_gradient,
                           float* up_gradient) {
  for (std::int64_t i = 0; i < n; ++i) {
    gate_gradient[i] = dy[i] * up[i] * silu_derivative(gate[i]);
    up_gradient[i] = dy[i] * silu(gate[i]);
  }
}

void swiglu_backward_chain(std::int64_t n, float const* gate, float const* up, float const* dy, float* gate_gradient,
                           float* up_gradient, float* activated, float* activated_gradient) {
  map(n, activated, [=](std::int64_t i) { return silu(gate[i]); });
  map_pairs(n, dy, activated, up_gradient, times{});
  map_pairs(n, dy, up, activated_gradient, times{});
  map(n, gate_gradient, [=](std::int64_t i) { return activated_gradient[i] * silu_derivative(gate[i]); });
}

}  // namespace

std::vector<workload> map_workloads(std::int64_t rows, std::int64_t columns) {
  matrix_of const m{rows, columns};
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(float));
  std::vector<workload> all;

  all.push_back({.operation = "bias_gelu",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, tensor, tensor},
                 .fused = predicted::bias_gelu.fused(bytes),
                 .chain = predicted::bias_gelu.chain(bytes),
                 .run =
                     [m](variant v, tensors const& t) {
                       if (v == variant::fused) {
                         return bias_gelu_fused(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]));
                       }
                       bias_gelu_chain(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]));
                     },
                 .compute_bound = exp_is_slow});
  all.push_back({.operation = "bias_gelu_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, tensor, tensor, parameter},
                 .fused = predicted::bias_gelu_backward.fused(bytes),
                 .chain = predicted::bias_gelu_backward.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   float *const x = as_floats(t[0]), *const dy = as_floats(t[2]), *const dx = as_floats(t[3]);
                   if (v == variant::fused) {
                     return bias_gelu_backward_fused(m, x, as_floats(t[1]), dy, dx, as_floats(t[4]));
                   }
                   bias_gelu_backward_chain(m, x, dy, dx, as_floats(t[4]));
                 },
                 .compute_bound = exp_is_slow});
  all.push_back({.operation = "swiglu_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, tensor},
                 .fused = predicted::swiglu_forward.fused(bytes),
                 .chain = predicted::swiglu_forward.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   float *const gate = as_floats(t[0]), *const up = as_floats(t[1]), *const y = as_floats(t[2]);
                   if (v == variant::fused) return swiglu_forward_fused(m.elements(), gate, up, y);
                   swiglu_forward_chain(m.elements(), gate, up, y, as_floats(t[3]));
                 },
                 .compute_bound = exp_is_slow});
  all.push_back({.operation = "swiglu_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, tensor, tensor, tensor, tensor},
                 .fused = predicted::swiglu_backward.fused(bytes),
                 .chain = predicted::swiglu_backward.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   float *const gate = as_floats(t[0]), *const up = as_floats(t[1]), *const dy = as_floats(t[2]);
                   float *const of_gate = as_floats(t[3]), *const of_up = as_floats(t[4]);
                   if (v == variant::fused) return swiglu_backward_fused(m.elements(), gate, up, dy, of_gate, of_up);
                   swiglu_backward_chain(m.elements(), gate, up, dy, of_gate, of_up, as_floats(t[5]), as_floats(t[6]));
                 },
                 .compute_bound = exp_is_slow});
  return all;
}

}  // namespace gpumem::bench::host
