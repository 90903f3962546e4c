// SPDX-License-Identifier: MIT
// Layer norm and RMS norm as chains of primitives, forward and backward.
#pragma once
#include "norm_backward.cuh"

namespace gpumem::kernels {

/// Tensors that live only between the launches of a chain.
template <class T>
struct norm_temporaries {
  T* a;
  T* b;
  T* c;
  float* statistic;
  float* second_statistic;
};

/// mean, subtract, square, mean, times reciprocal, times gamma, plus beta.
template <class T>
void layer_norm_forward_chain(device_context const& device, T const* x, norm_parameters<T> const& parameters,
                              norm_outputs<T> const& outputs, norm_temporaries<T> const& t, std::int64_t rows,
                              int columns) {
  reduce_rows(device, "mean", x, outputs.mean, rows, columns, sum_of{}, mean_of{columns});
  map_rows(device, "subtract mean", x, outputs.mean, t.a, rows, columns, difference{});
  map_elements(device, "square", rows * columns, t.b, square{}, t.a);
  reduce_rows(device, "mean, root, reciprocal", t.b, outputs.reciprocal, rows, columns, sum_of{},
              reciprocal_root_of_mean{columns});
  map_rows(device, "multiply by row", t.a, outputs.reciprocal, t.b, rows, columns, product{});
  map_columns(device, "multiply by gamma", t.b, parameters.gamma, t.a, rows, columns, product{});
  map_columns(device, "add beta", t.a, parameters.beta, outputs.y, rows, columns, sum{});
}

/// square, mean, times reciprocal, times gamma.
template <class T>
void rms_norm_forward_chain(device_context const& device, T const* x, norm_parameters<T> const& parameters,
                            norm_outputs<T> const& outputs, norm_temporaries<T> const& t, std::int64_t rows,
                            int columns) {
  map_elements(device, "square", rows * columns, t.a, square{}, x);
  reduce_rows(device, "mean, root, reciprocal", t.a, outputs.reciprocal, rows, columns, sum_of{},
              reciprocal_root_of_mean{columns});
  map_rows(device, "multiply by row", x, outputs.reciprocal, t.a, rows, columns, product{});
  map_columns(device, "multiply by gamma", t.a, parameters.gamma, outputs.y, rows, columns, product{});
}

/// xhat (two), beta's sum, dy xhat, gamma's sum, dy gamma, mean, times xhat, mean, xhat times mean, subtract mean,
/// subtract, times reciprocal.
template <class T>
void layer_norm_backward_chain(device_context const& device, norm_backward_tensors<T> const& n,
                               column_sums<T> parameter_gradients, norm_temporaries<T> const& t, std::int64_t rows,
                               int columns) {
  std::int64_t const elements = rows * columns;
  T *const gamma_gradient = parameter_gradients.tensor[0], *const beta_gradient = parameter_gradients.tensor[1];
  map_rows(device, "subtract mean", n.x, n.mean, t.b, rows, columns, difference{});
  map_rows(device, "multiply by row", t.b, n.reciprocal, t.a, rows, columns, product{});
  reduce_columns(device, "sum columns", n.dy, column_sums<T>{{beta_gradient, nullptr}}, 1, rows, columns);
  map_elements(device, "multiply", elements, t.b, multiply{}, n.dy, t.a);
  reduce_columns(device, "sum columns", t.b, column_sums<T>{{gamma_gradient, nullptr}}, 1, rows, columns);
  map_columns(device, "multiply by gamma", n.dy, n.gamma, t.b, rows, columns, product{});
  reduce_rows(device, "mean", t.b, t.statistic, rows, columns, sum_of{}, mean_of{columns});
  map_elements(device, "multiply", elements, t.c, multiply{}, t.b, t.a);
  reduce_rows(device, "mean", t.c, t.second_statistic, rows, columns, sum_of{}, mean_of{columns});
  map_rows(device, "multiply by row", t.a, t.second_statistic, t.c, rows, columns, product{});
  map_rows(device, "subtract mean", t.b, t.statistic, t.a, rows, columns, difference{});
  map_elements(device, "subtract", elements, t.b, subtract{}, t.a, t.c);
  map_rows(device, "multiply by row", t.b, n.reciprocal, n.dx, rows, columns, product{});
}

/// xhat, dy xhat, gamma's sum, dy gamma, times xhat, mean, xhat times mean, subtract, times reciprocal.
template <class T>
void rms_norm_backward_chain(device_context const& device, norm_backward_tensors<T> const& n,
                             column_sums<T> parameter_gradients, norm_temporaries<T> const& t, std::int64_t rows,
                             int columns) {
  std::int64_t const elements = rows * columns;
  map_rows(device, "multiply by row", n.x, n.reciprocal, t.a, rows, columns, product{});
  map_elements(device, "multiply", elements, t.b, multiply{}, n.dy, t.a);
  reduce_columns(device, "sum columns", t.b, parameter_gradients, 1, rows, columns);
  map_columns(device, "multiply by gamma", n.dy, n.gamma, t.b, rows, columns, product{});
  map_elements(device, "multiply", elements, t.c, multiply{}, t.b, t.a);
  reduce_rows(device, "mean", t.c, t.statistic, rows, columns, sum_of{}, mean_of{columns});
  map_rows(device, "multiply by row", t.a, t.statistic, t.c, rows, columns, product{});
  map_elements(device, "subtract", elements, t.a, subtract{}, t.b, t.c);
  map_rows(device, "multiply by row", t.a, n.reciprocal, n.dx, rows, columns, product{});
}

}  // namespace gpumem::kernels
