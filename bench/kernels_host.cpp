// SPDX-License-Identifier: MIT
#include "kernels_host.hpp"

#include <cmath>

namespace gpumem::bench::host {
namespace {

using kernels::bytes_moved;
namespace predicted = kernels::predicted;

constexpr int lanes = 16;  // partial sums that let a reduction vectorise

template <class Term>
float sum_over(std::int64_t count, Term term) {
  float partial[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int j = 0; j < lanes; ++j) partial[j] += term(i + j);
  }
  float sum = 0;
  for (; i < count; ++i) sum += term(i);
  for (float const p : partial) sum += p;
  return sum;
}

float max_over(float const* x, std::int64_t count) {
  float greatest = x[0];
  for (std::int64_t i = 1; i < count; ++i) greatest = x[i] > greatest ? x[i] : greatest;
  return greatest;
}

template <class Operation>
void map(std::int64_t count, float* out, Operation operation) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = operation(i);
}

float gelu(float x) { return x / (1.0f + std::exp(-1.5957691216057308f * (x + 0.044715f * x * x * x))); }

struct matrix_of {
  std::int64_t rows, columns;
  std::int64_t elements() const { return rows * columns; }

  template <class Row>
  void each_row(Row row) const {
    for (std::int64_t r = 0; r < rows; ++r) row(r, r * columns);
  }
};

// ---- softmax

void softmax_forward_fused(matrix_of m, float const* x, float* y) {
  m.each_row([&](std::int64_t, std::int64_t first) {
    float const greatest = max_over(x + first, m.columns);
    map(m.columns, y + first, [&](std::int64_t i) { return std::exp(x[first + i] - greatest); });
    float const factor = 1.0f / sum_over(m.columns, [&](std::int64_t i) { return y[first + i]; });
    map(m.columns, y + first, [&](std::int64_t i) { return y[first + i] * factor; });
  });
}

void softmax_forward_chain(matrix_of m, float const* x, float* y, float* exponentials, float* maxima, float* sums) {
  m.each_row([&](std::int64_t r, std::int64_t first) { maxima[r] = max_over(x + first, m.columns); });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    map(m.columns, exponentials + first, [&](std::int64_t i) { return std::exp(x[first + i] - maxima[r]); });
  });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    sums[r] = sum_over(m.columns, [&](std::int64_t i) { return exponentials[first + i]; });
  });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    map(m.columns, y + first, [&](std::int64_t i) { return exponentials[first + i] / sums[r]; });
  });
}

void softmax_backward_fused(matrix_of m, float const* y, float const* dy, float* dx) {
  m.each_row([&](std::int64_t, std::int64_t first) {
    float const dot = sum_over(m.columns, [&](std::int64_t i) { return y[first + i] * dy[first + i]; });
    map(m.columns, dx + first, [&](std::int64_t i) { return y[first + i] * (dy[first + i] - dot); });
  });
}

void softmax_backward_chain(matrix_of m, float const* y, float const* dy, float* dx, float* products, float* scaled,
                            float* sums) {
  map(m.elements(), products, [&](std::int64_t i) { return y[i] * dy[i]; });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    sums[r] = sum_over(m.columns, [&](std::int64_t i) { return products[first + i]; });
  });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    map(m.columns, scaled + first, [&, sum = sums[r]](std::int64_t i) { return y[first + i] * sum; });
  });
  map(m.elements(), dx, [&](std::int64_t i) { return products[i] - scaled[i]; });
}

// ---- residual add and RMS norm

float reciprocal_rms(float sum_of_squares, std::int64_t columns) {
  return 1.0f / std::sqrt(sum_of_squares / static_cast<float>(columns) + 1e-5f);
}

void add_rms_norm_fused(matrix_of m, float const* __restrict__ x, float const* __restrict__ residual,
                        float const* __restrict__ gamma, float* __restrict__ sum, float* __restrict__ y,
                        float* __restrict__ reciprocal) {
  m.each_row([=](std::int64_t r, std::int64_t first) {
    float const squares = sum_over(m.columns, [=](std::int64_t i) {
      float const s = x[first + i] + residual[first + i];
      sum[first + i] = s;
      return s * s;
    });
    float const factor = reciprocal_rms(squares, m.columns);
    reciprocal[r] = factor;
    map(m.columns, y + first, [=](std::int64_t i) { return sum[first + i] * factor * gamma[i]; });
  });
}

void add_rms_norm_chain(matrix_of m, float const* x, float const* residual, float const* gamma, float* sum, float* y,
                        float* reciprocal, float* squares, float* scaled) {
  map(m.elements(), sum, [&](std::int64_t i) { return x[i] + residual[i]; });
  map(m.elements(), squares, [&](std::int64_t i) { return sum[i] * sum[i]; });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    float const of_row = sum_over(m.columns, [&](std::int64_t i) { return squares[first + i]; });
    reciprocal[r] = reciprocal_rms(of_row, m.columns);
  });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    map(m.columns, scaled + first, [&, factor = reciprocal[r]](std::int64_t i) { return sum[first + i] * factor; });
  });
  m.each_row([&](std::int64_t, std::int64_t first) {
    map(m.columns, y + first, [&](std::int64_t i) { return scaled[first + i] * gamma[i]; });
  });
}

// ---- layer norm

void layer_norm_forward_fused(matrix_of m, float const* x, float const* gamma, float const* beta, float* y, float* mean,
                              float* reciprocal) {
  m.each_row([&](std::int64_t r, std::int64_t first) {
    float const of_row =
        sum_over(m.columns, [&](std::int64_t i) { return x[first + i]; }) / static_cast<float>(m.columns);
    float const squares =
        sum_over(m.columns, [&](std::int64_t i) { return (x[first + i] - of_row) * (x[first + i] - of_row); });
    float const factor = reciprocal_rms(squares, m.columns);
    mean[r] = of_row;
    reciprocal[r] = factor;
    map(m.columns, y + first, [&](std::int64_t i) { return (x[first + i] - of_row) * factor * gamma[i] + beta[i]; });
  });
}

void layer_norm_forward_chain(matrix_of m, float const* x, float const* gamma, float const* beta, float* y, float* mean,
                              float* reciprocal, float* a, float* b) {
  m.each_row([&](std::int64_t r, std::int64_t first) {
    mean[r] = sum_over(m.columns, [&](std::int64_t i) { return x[first + i]; }) / static_cast<float>(m.columns);
  });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    map(m.columns, a + first, [&, of_row = mean[r]](std::int64_t i) { return x[first + i] - of_row; });
  });
  map(m.elements(), b, [&](std::int64_t i) { return a[i] * a[i]; });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    reciprocal[r] = reciprocal_rms(sum_over(m.columns, [&](std::int64_t i) { return b[first + i]; }), m.columns);
  });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    map(m.columns, b + first, [&, factor = reciprocal[r]](std::int64_t i) { return a[first + i] * factor; });
  });
  m.each_row([&](std::int64_t, std::int64_t first) {
    map(m.columns, a + first, [&](std::int64_t i) { return b[first + i] * gamma[i]; });
  });
  m.each_row([&](std::int64_t, std::int64_t first) {
    map(m.columns, y + first, [&](std::int64_t i) { return a[first + i] + beta[i]; });
  });
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

// ---- AdamW

struct step {
  float decay = 0.99999f, one_minus_beta1 = 0.1f, beta2 = 0.999f, one_minus_beta2 = 1e-3f, epsilon = 1e-8f;
  float step_size = 3.7e-3f, root_of_correction = 0.0547f;
};

void adamw_fused(std::int64_t n, float* __restrict__ weight, float* __restrict__ mean, float* __restrict__ square,
                 float const* __restrict__ gradient) {
  step const s;
  for (std::int64_t i = 0; i < n; ++i) {
    float const g = gradient[i];
    float const m = mean[i] + s.one_minus_beta1 * (g - mean[i]);
    float const v = s.beta2 * square[i] + s.one_minus_beta2 * g * g;
    mean[i] = m;
    square[i] = v;
    weight[i] = weight[i] * s.decay - s.step_size * m / (std::sqrt(v) / s.root_of_correction + s.epsilon);
  }
}

void adamw_chain(std::int64_t n, float* weight, float* mean, float* square, float const* gradient, float* temporary) {
  step const s;
  map(n, weight, [&](std::int64_t i) { return weight[i] * s.decay; });
  map(n, mean, [&](std::int64_t i) { return mean[i] + s.one_minus_beta1 * (gradient[i] - mean[i]); });
  map(n, square, [&](std::int64_t i) { return square[i] * s.beta2; });
  map(n, square, [&](std::int64_t i) { return square[i] + s.one_minus_beta2 * gradient[i] * gradient[i]; });
  map(n, temporary, [&](std::int64_t i) { return std::sqrt(square[i]); });
  map(n, temporary, [&](std::int64_t i) { return temporary[i] / s.root_of_correction; });
  map(n, temporary, [&](std::int64_t i) { return temporary[i] + s.epsilon; });
  map(n, weight, [&](std::int64_t i) { return weight[i] - s.step_size * mean[i] / temporary[i]; });
}

float* as_floats(void* tensor) { return static_cast<float*>(tensor); }

}  // namespace

void scale(float const* x, float* y, std::int64_t elements) {
  map(elements, y, [&](std::int64_t i) { return 1.0001f * x[i]; });
}

std::vector<workload> workloads(std::int64_t rows, std::int64_t columns) {
  matrix_of const m{rows, columns};
  kernels::matrix const bytes{rows, columns, sizeof(float)};
  auto const tensor = static_cast<std::size_t>(bytes.tensor());
  auto const parameter = static_cast<std::size_t>(bytes.parameter());
  auto const statistic = static_cast<std::size_t>(bytes.statistic());
  auto const shape = to_shape(rows, columns);
  std::vector<workload> all;

  all.push_back({.operation = "copy",
                 .dtype = "fp32",
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor},
                 .fused = predicted::copy(bytes),
                 .chain = {},
                 .run = [m](variant, tensors const& t) { scale(as_floats(t[0]), as_floats(t[1]), m.elements()); },
                 .has_chain = false});
  all.push_back({.operation = "softmax_fwd",
                 .dtype = "fp32",
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, statistic, statistic},
                 .fused = predicted::softmax_forward_fused(bytes, true),
                 .chain = predicted::softmax_forward_chain(bytes),
                 .run =
                     [m](variant v, tensors const& t) {
                       if (v == variant::fused) return softmax_forward_fused(m, as_floats(t[0]), as_floats(t[1]));
                       softmax_forward_chain(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                             as_floats(t[4]));
                     },
                 .compute_bound = true});
  all.push_back({.operation = "softmax_bwd",
                 .dtype = "fp32",
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, tensor, tensor, statistic},
                 .fused = predicted::softmax_backward_fused(bytes, true),
                 .chain = predicted::softmax_backward_chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   if (v == variant::fused) {
                     return softmax_backward_fused(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]));
                   }
                   softmax_backward_chain(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                          as_floats(t[4]), as_floats(t[5]));
                 }});
  all.push_back({.operation = "add_rms_norm",
                 .dtype = "fp32",
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, parameter, tensor, tensor, statistic, tensor, tensor},
                 .fused = predicted::add_rms_norm_fused(bytes, true),
                 .chain = predicted::add_rms_norm_chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   if (v == variant::fused) {
                     return add_rms_norm_fused(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                               as_floats(t[4]), as_floats(t[5]));
                   }
                   add_rms_norm_chain(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                      as_floats(t[4]), as_floats(t[5]), as_floats(t[6]), as_floats(t[7]));
                 }});
  all.push_back({.operation = "layer_norm_fwd",
                 .dtype = "fp32",
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, parameter, tensor, statistic, statistic, tensor, tensor},
                 .fused = predicted::layer_norm_forward_fused(bytes, true),
                 .chain = predicted::layer_norm_forward_chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   if (v == variant::fused) {
                     return layer_norm_forward_fused(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]),
                                                     as_floats(t[3]), as_floats(t[4]), as_floats(t[5]));
                   }
                   layer_norm_forward_chain(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                            as_floats(t[4]), as_floats(t[5]), as_floats(t[6]), as_floats(t[7]));
                 }});
  all.push_back({.operation = "bias_gelu",
                 .dtype = "fp32",
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, tensor, tensor},
                 .fused = predicted::bias_gelu_fused(bytes),
                 .chain = predicted::bias_gelu_chain(bytes),
                 .run =
                     [m](variant v, tensors const& t) {
                       if (v == variant::fused) {
                         return bias_gelu_fused(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]));
                       }
                       bias_gelu_chain(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]));
                     },
                 .compute_bound = true});
  all.push_back({.operation = "adamw",
                 .dtype = "fp32",
                 .shape = std::to_string(m.elements()),
                 .tensor_bytes = {tensor, tensor, tensor, tensor, tensor},
                 .fused = predicted::adamw_fused(m.elements()),
                 .chain = predicted::adamw_chain(m.elements()),
                 .run = [n = m.elements()](variant v, tensors const& t) {
                   if (v == variant::fused) {
                     return adamw_fused(n, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]));
                   }
                   adamw_chain(n, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]), as_floats(t[4]));
                 }});
  return all;
}

}  // namespace gpumem::bench::host
