// SPDX-License-Identifier: MIT
#include "kernels_host_loops.hpp"

namespace gpumem::bench::host {
namespace {

struct norm_gradients {
  float *x, *dy, *gamma, *mean, *reciprocal, *dx, *gamma_gradient, *beta_gradient, *a, *b, *c, *first, *second;
};

/// One row: two sums, then its gradient, and its part in those of gamma and beta. RMS norm has mean 0 and no beta.
template <bool Centered>
void norm_backward_row(std::int64_t columns, float const* __restrict__ x, float const* __restrict__ dy,
                       float const* __restrict__ gamma, float mean, float reciprocal, float* __restrict__ dx,
                       float* __restrict__ gamma_gradient, float* __restrict__ beta_gradient) {
  float const of_scaled = Centered ? mean_of{columns}(sum_over(
                                         columns, [=](std::int64_t i) { return dy[i] * gamma[i]; }, dx))
                                   : 0.0f;
  float const of_products = mean_of{columns}(sum_over(
      columns, [=](std::int64_t i) { return dy[i] * gamma[i] * (x[i] - mean) * reciprocal; }, dx));
  for_row(
      columns,
      [=](std::int64_t i) {
        float const normalised = (x[i] - mean) * reciprocal;
        gamma_gradient[i] += dy[i] * normalised;
        if (Centered) beta_gradient[i] += dy[i];
        dx[i] = reciprocal * (dy[i] * gamma[i] - of_scaled - normalised * of_products);
      },
      x + columns, dy + columns);
}

template <bool Centered>
void norm_backward_fused(matrix_of m, norm_gradients const& n) {
  map(m.columns, n.gamma_gradient, [](std::int64_t) { return 0.0f; });
  if (Centered) map(m.columns, n.beta_gradient, [](std::int64_t) { return 0.0f; });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    norm_backward_row<Centered>(m.columns, n.x + first, n.dy + first, n.gamma, Centered ? n.mean[r] : 0.0f,
                                n.reciprocal[r], n.dx + first, n.gamma_gradient, n.beta_gradient);
  });
}

void layer_norm_backward_chain(matrix_of m, norm_gradients const& n) {
  map_rows(m, n.x, n.mean, n.b, minus{});
  map_rows(m, n.b, n.reciprocal, n.a, times{});
  reduce_columns(m, n.dy, n.beta_gradient);
  map_pairs(m.elements(), n.dy, n.a, n.b, times{});
  reduce_columns(m, n.b, n.gamma_gradient);
  map_columns(m, n.dy, n.gamma, n.b, times{});
  reduce_rows(m, n.b, n.first, mean_of{m.columns});
  map_pairs(m.elements(), n.b, n.a, n.c, times{});
  reduce_rows(m, n.c, n.second, mean_of{m.columns});
  map_rows(m, n.a, n.second, n.c, times{});
  map_rows(m, n.b, n.first, n.a, minus{});
  map_pairs(m.elements(), n.a, n.c, n.b, minus{});
  map_rows(m, n.b, n.reciprocal, n.dx, times{});
}

void rms_norm_backward_chain(matrix_of m, norm_gradients const& n) {
  map_rows(m, n.x, n.reciprocal, n.a, times{});
  map_pairs(m.elements(), n.dy, n.a, n.b, times{});
  reduce_columns(m, n.b, n.gamma_gradient);
  map_columns(m, n.dy, n.gamma, n.b, times{});
  map_pairs(m.elements(), n.b, n.a, n.c, times{});
  reduce_rows(m, n.c, n.first, mean_of{m.columns});
  map_rows(m, n.a, n.first, n.c, times{});
  map_pairs(m.elements(), n.b, n.c, n.a, minus{});
  map_rows(m, n.a, n.reciprocal, n.dx, times{});
}

// ---- bias, dropout, residual and layer norm: `n.dx` is the residual's gradient

void dropout_backward(std::int64_t count, float const* __restrict__ dy, std::uint8_t const* __restrict__ mask,
                      float* __restrict__ dx) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = drop(dy[i], mask[i]);
}

void bias_dropout_add_layer_norm_backward_fused(matrix_of m, norm_gradients const& n, std::uint8_t const* mask,
                                                float* dx, float* bias_gradient) {
  for (float* const sums : {n.gamma_gradient, n.beta_gradient, bias_gradient}) {
    map(m.columns, sums, [](std::int64_t) { return 0.0f; });
  }
  m.each_row([&](std::int64_t r, std::int64_t first) {
    norm_backward_row<true>(m.columns, n.x + first, n.dy + first, n.gamma, n.mean[r], n.reciprocal[r], n.dx + first,
                            n.gamma_gradient, n.beta_gradient);
    dropout_backward(m.columns, n.dx + first, mask + first, dx + first);
    map_pairs(m.columns, bias_gradient, dx + first, bias_gradient, plus{});
  });
}

void bias_dropout_add_layer_norm_backward_chain(matrix_of m, norm_gradients const& n, std::uint8_t const* mask,
                                                float* dx, float* bias_gradient) {
  norm_backward_fused<true>(m, n);
  dropout_backward(m.elements(), n.dx, mask, dx);
  reduce_columns(m, dx, bias_gradient);
}

}  // namespace

std::vector<workload> norm_backward_workloads(std::int64_t rows, std::int64_t columns) {
  matrix_of const m{rows, columns};
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(float));
  std::vector<workload> all;

  all.push_back({.operation = "layer_norm_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, parameter, statistic, statistic, tensor, parameter, parameter, tensor,
                                  tensor, tensor, statistic, statistic},
                 .fused = predicted::layer_norm_backward.fused(bytes),
                 .chain = predicted::layer_norm_backward.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   norm_gradients const n{as_floats(t[0]), as_floats(t[1]), as_floats(t[2]),  as_floats(t[3]),
                                          as_floats(t[4]), as_floats(t[5]), as_floats(t[6]),  as_floats(t[7]),
                                          as_floats(t[8]), as_floats(t[9]), as_floats(t[10]), as_floats(t[11]),
                                          as_floats(t[12])};
                   v == variant::fused ? norm_backward_fused<true>(m, n) : layer_norm_backward_chain(m, n);
                 }});
  all.push_back(
      {.operation = "rms_norm_bwd",
       .dtype = dtype,
       .shape = shape,
       .tensor_bytes = {tensor, tensor, parameter, statistic, tensor, parameter, tensor, tensor, tensor, statistic},
       .fused = predicted::rms_norm_backward.fused(bytes),
       .chain = predicted::rms_norm_backward.chain(bytes),
       .run = [m](variant v, tensors const& t) {
         norm_gradients const n{as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), nullptr,         as_floats(t[3]),
                                as_floats(t[4]), as_floats(t[5]), nullptr,         as_floats(t[6]), as_floats(t[7]),
                                as_floats(t[8]), as_floats(t[9]), nullptr};
         v == variant::fused ? norm_backward_fused<false>(m, n) : rms_norm_backward_chain(m, n);
       }});
  all.push_back({.operation = "bias_dropout_add_layer_norm_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, parameter, statistic, statistic, tensor, parameter, parameter,
                                  bytes.elements(), tensor, parameter},
                 .fused = predicted::bias_dropout_add_layer_norm_backward.fused(bytes),
                 .chain = predicted::bias_dropout_add_layer_norm_backward.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   norm_gradients const n{as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                          as_floats(t[4]), as_floats(t[5]), as_floats(t[6]), as_floats(t[7]),
                                          nullptr,         nullptr,         nullptr,         nullptr,
                                          nullptr};
                   std::uint8_t const* const mask = as_bytes(t[8]);
                   float *const dx = as_floats(t[9]), *const bias_gradient = as_floats(t[10]);
                   if (v == variant::fused) {
                     return bias_dropout_add_layer_norm_backward_fused(m, n, mask, dx, bias_gradient);
                   }
                   bias_dropout_add_layer_norm_backward_chain(m, n, mask, dx, bias_gradient);
                 }});
  return all;
}

}  // namespace gpumem::bench::host
