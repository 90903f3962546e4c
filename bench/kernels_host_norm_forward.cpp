// SPDX-License-Identifier: MIT
#include "kernels_host_loops.hpp"

namespace gpumem::bench::host {
namespace {

struct norm_tensors {
  float *x, *gamma, *beta, *y, *mean, *reciprocal, *a, *b;
};

/// One row, that the caches hold after its first reading.
void layer_norm_row(std::int64_t columns, float const* __restrict__ x, float const* __restrict__ gamma,
                    float const* __restrict__ beta, float* __restrict__ y, float& mean, float& reciprocal) {
  float const m = mean_of{columns}(sum_over(columns, [=](std::int64_t i) { return x[i]; }));
  float const r = reciprocal_root_of_mean{columns}(sum_over(
      columns, [=](std::int64_t i) { return (x[i] - m) * (x[i] - m); }, y));
  for_row(
      columns, [=](std::int64_t i) { y[i] = (x[i] - m) * r * gamma[i] + beta[i]; }, x + columns);
  mean = m;
  reciprocal = r;
}

void layer_norm_forward_fused(matrix_of m, norm_tensors const& n) {
  m.each_row([&](std::int64_t r, std::int64_t first) {
    layer_norm_row(m.columns, n.x + first, n.gamma, n.beta, n.y + first, n.mean[r], n.reciprocal[r]);
  });
}

void layer_norm_forward_chain(matrix_of m, norm_tensors const& n) {
  reduce_rows(m, n.x, n.mean, mean_of{m.columns});
  map_rows(m, n.x, n.mean, n.a, minus{});
  map_pairs(m.elements(), n.a, n.a, n.b, times{});
  reduce_rows(m, n.b, n.reciprocal, reciprocal_root_of_mean{m.columns});
  map_rows(m, n.a, n.reciprocal, n.b, times{});
  map_columns(m, n.b, n.gamma, n.a, times{});
  map_columns(m, n.a, n.beta, n.y, plus{});
}

void rms_norm_forward_fused(matrix_of m, norm_tensors const& n) {
  m.each_row([&](std::int64_t r, std::int64_t first) {
    float const *const x = n.x + first, *const gamma = n.gamma;
    float const factor =
        reciprocal_root_of_mean{m.columns}(sum_over(m.columns, [=](std::int64_t i) { return x[i] * x[i]; }));
    n.reciprocal[r] = factor;
    map(m.columns, n.y + first, [=](std::int64_t i) { return x[i] * factor * gamma[i]; });
  });
}

void rms_norm_forward_chain(matrix_of m, norm_tensors const& n) {
  map_pairs(m.elements(), n.x, n.x, n.a, times{});
  reduce_rows(m, n.a, n.reciprocal, reciprocal_root_of_mean{m.columns});
  map_rows(m, n.x, n.reciprocal, n.a, times{});
  map_columns(m, n.a, n.gamma, n.y, times{});
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
    float const factor = reciprocal_root_of_mean{m.columns}(squares);
    reciprocal[r] = factor;
    map(m.columns, y + first, [=](std::int64_t i) { return sum[first + i] * factor * gamma[i]; });
  });
}

void add_rms_norm_chain(matrix_of m, float const* x, float const* residual, float const* gamma, float* sum, float* y,
                        float* reciprocal, float* squares, float* scaled) {
  map_pairs(m.elements(), x, residual, sum, plus{});
  map_pairs(m.elements(), sum, sum, squares, times{});
  reduce_rows(m, squares, reciprocal, reciprocal_root_of_mean{m.columns});
  map_rows(m, sum, reciprocal, scaled, times{});
  map_columns(m, scaled, gamma, y, times{});
}

// ---- bias, dropout, residual and layer norm: `n.x` is the sum

struct dropout_tensors {
  float *x, *bias, *residual;
  std::uint8_t* mask;
};

void dropout_row(std::int64_t columns, std::int64_t first, float const* __restrict__ x, float const* __restrict__ bias,
                 float const* __restrict__ residual, float* __restrict__ sum, std::uint8_t* __restrict__ mask) {
  for (std::int64_t i = 0; i < columns; ++i) {
    std::uint8_t const kept = draw(first + i);
    mask[i] = kept;
    sum[i] = drop(x[i] + bias[i], kept) + residual[i];
  }
}

void bias_dropout_add_layer_norm_fused(matrix_of m, dropout_tensors const& d, norm_tensors const& n) {
  m.each_row([&](std::int64_t r, std::int64_t first) {
    dropout_row(m.columns, first, d.x + first, d.bias, d.residual + first, n.x + first, d.mask + first);
    layer_norm_row(m.columns, n.x + first, n.gamma, n.beta, n.y + first, n.mean[r], n.reciprocal[r]);
  });
}

void dropout_all(std::int64_t count, float const* __restrict__ x, float* __restrict__ y,
                 std::uint8_t* __restrict__ mask) {
  for (std::int64_t i = 0; i < count; ++i) {
    mask[i] = draw(i);
    y[i] = drop(x[i], mask[i]);
  }
}

void bias_dropout_add_layer_norm_chain(matrix_of m, dropout_tensors const& d, norm_tensors const& n) {
  map_columns(m, d.x, d.bias, n.a, plus{});
  dropout_all(m.elements(), n.a, n.b, d.mask);
  map_pairs(m.elements(), n.b, d.residual, n.x, plus{});
  layer_norm_forward_fused(m, n);
}

}  // namespace

std::vector<workload> norm_forward_workloads(std::int64_t rows, std::int64_t columns) {
  matrix_of const m{rows, columns};
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(float));
  std::vector<workload> all;

  all.push_back({.operation = "layer_norm_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, parameter, tensor, statistic, statistic, tensor, tensor},
                 .fused = predicted::layer_norm_forward.fused(bytes),
                 .chain = predicted::layer_norm_forward.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   norm_tensors const n{as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                        as_floats(t[4]), as_floats(t[5]), as_floats(t[6]), as_floats(t[7])};
                   v == variant::fused ? layer_norm_forward_fused(m, n) : layer_norm_forward_chain(m, n);
                 }});
  all.push_back({.operation = "rms_norm_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, tensor, statistic, tensor},
                 .fused = predicted::rms_norm_forward.fused(bytes),
                 .chain = predicted::rms_norm_forward.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   norm_tensors const n{as_floats(t[0]), as_floats(t[1]), nullptr,         as_floats(t[2]),
                                        nullptr,         as_floats(t[3]), as_floats(t[4]), nullptr};
                   v == variant::fused ? rms_norm_forward_fused(m, n) : rms_norm_forward_chain(m, n);
                 }});
  all.push_back({.operation = "add_rms_norm",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, parameter, tensor, tensor, statistic, tensor, tensor},
                 .fused = predicted::add_rms_norm.fused(bytes, true),
                 .chain = predicted::add_rms_norm.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   if (v == variant::fused) {
                     return add_rms_norm_fused(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                               as_floats(t[4]), as_floats(t[5]));
                   }
                   add_rms_norm_chain(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                      as_floats(t[4]), as_floats(t[5]), as_floats(t[6]), as_floats(t[7]));
                 }});
  all.push_back({.operation = "bias_dropout_add_layer_norm_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, parameter, tensor, bytes.elements(), tensor, parameter, parameter, tensor,
                                  statistic, statistic, tensor, tensor},
                 .fused = predicted::bias_dropout_add_layer_norm.fused(bytes),
                 .chain = predicted::bias_dropout_add_layer_norm.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   dropout_tensors const d{as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_bytes(t[3])};
                   norm_tensors const n{as_floats(t[4]), as_floats(t[5]), as_floats(t[6]),  as_floats(t[7]),
                                        as_floats(t[8]), as_floats(t[9]), as_floats(t[10]), as_floats(t[11])};
                   if (v == variant::fused) return bias_dropout_add_layer_norm_fused(m, d, n);
                   bias_dropout_add_layer_norm_chain(m, d, n);
                 }});
  return all;
}

}  // namespace gpumem::bench::host
