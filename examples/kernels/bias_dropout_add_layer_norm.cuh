// SPDX-License-Identifier: MIT
// What stands between two contractions of a transformer with its norms behind: bias, dropout, residual, layer norm.
//
//   sum = residual + dropout(x + bias),  y = layer norm of sum
//
// Backward, from dy: the residual's gradient is the norm's dx, that of x is what dropout lets through of it, and the
// bias's the sum of the latter over rows. Fused forward: 4 accesses and the mask; backward: 4 and the mask.
#pragma once
#include "dropout.cuh"
#include "norm_backward.cuh"
#include "norm_forward.cuh"

namespace gpumem::kernels {

template <class T>
struct bias_dropout_add_tensors {
  T const* x;
  T const* bias;
  T const* residual;
  T* sum;
  std::uint8_t* mask;
};

template <class T>
struct bias_dropout_add_source {
  struct fetched {
    packet<T> x, residual;
  };
  bias_dropout_add_tensors<T> tensors;
  dropout drop;

  __device__ __forceinline__ fetched fetch(row_packets<T> const& row, int index) const {
    return {row.load(tensors.x, index, 0.0f), row.load(tensors.residual, index, 0.0f)};
  }
  __device__ __forceinline__ packet<T> finish(row_packets<T> const& row, int index, fetched const& in) const {
    packet<T> const bias = load_row_parameters(row, tensors.bias, index);
    std::int64_t const first = row.first_element(index);
    packet_mask<T> const mask = drop.draw<T>(first);
    packet<T> sum;
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      float const biased = to_float(in.x.values[j]) + to_float(bias.values[j]);
      float const kept = mask.keeps(j) ? biased * drop.scale() : 0.0f;
      sum.values[j] = from_float<T>(kept + to_float(in.residual.values[j]));
    }
    row.store(tensors.sum, index, sum);
    mask.store(tensors.mask, first, row.begin, row.begin + row.columns);
    return sum;
  }
  __device__ __forceinline__ packet<T> load_again(row_packets<T> const& row, int index) const {
    return row.load(tensors.sum, index, 0.0f);
  }
};

template <class T>
void bias_dropout_add_layer_norm_fused(device_context const& device, bias_dropout_add_tensors<T> const& tensors,
                                       dropout const& drop, norm_parameters<T> const& parameters,
                                       norm_outputs<T> const& outputs, std::int64_t rows, int columns) {
  norm_forward_of<layer_norm>(device, bias_dropout_add_source<T>{tensors, drop}, parameters, outputs, rows, columns);
}

/// plus bias, dropout, add, layer norm; the norm is one kernel in the chain too.
template <class T>
void bias_dropout_add_layer_norm_chain(device_context const& device, bias_dropout_add_tensors<T> const& tensors,
                                       dropout const& drop, norm_parameters<T> const& parameters,
                                       norm_outputs<T> const& outputs, T* biased, T* dropped, std::int64_t rows,
                                       int columns) {
  std::int64_t const elements = rows * columns;
  map_columns(device, "plus bias", tensors.x, tensors.bias, biased, rows, columns, sum{});
  drop_elements<true>(device, "dropout", static_cast<T const*>(biased), dropped, tensors.mask, drop, elements);
  map_elements(device, "add", elements, tensors.sum, add{}, static_cast<T const*>(dropped), tensors.residual);
  norm_forward_fused<layer_norm>(device, static_cast<T const*>(tensors.sum), parameters, outputs, rows, columns);
}

/// The norm's dx is the residual's gradient. The sink makes that of x of it.
template <class T>
struct dropout_gradient_sink {
  static constexpr int column_sums = 1;  // the bias's gradient
  using fetched = packet_mask<T>;
  T* dx;
  std::uint8_t const* mask;
  dropout drop;

  __device__ __forceinline__ fetched fetch(row_packets<T> const& row, int index) const {
    return fetched::load(mask, row.first_element(index), row.begin, row.begin + row.columns);
  }
  __device__ __forceinline__ packet<T> finish(row_packets<T> const& row, int index, packet<T> const& of_residual,
                                              fetched kept) const {
    packet<T> const result = drop.apply(kept, of_residual);
    row.store(dx, index, result);
    return result;
  }
};

/// `norm.dx` is the residual's gradient; `sums`: gamma's, beta's and the bias's.
template <class T>
void bias_dropout_add_layer_norm_backward_fused(device_context const& device, norm_backward_tensors<T> const& norm,
                                                T* dx, std::uint8_t const* mask, dropout const& drop,
                                                column_sums<T> sums, std::int64_t rows, int columns) {
  norm_backward_into<layer_norm>(device, norm, dropout_gradient_sink<T>{dx, mask, drop}, sums, rows, columns);
}

/// layer norm backward, dropout backward, sum of columns.
template <class T>
void bias_dropout_add_layer_norm_backward_chain(device_context const& device, norm_backward_tensors<T> const& norm,
                                                T* dx, std::uint8_t* mask, dropout const& drop, column_sums<T> sums,
                                                std::int64_t rows, int columns) {
  norm_backward_fused<layer_norm>(device, norm, sums, rows, columns);
  drop_elements<false>(device, "dropout backward", static_cast<T const*>(norm.dx), dx, mask, drop, rows * columns);
  reduce_columns(device, "sum columns", static_cast<T const*>(dx), column_sums<T>{{sums.tensor[2], nullptr, nullptr}}, 1,
                 rows, columns);
}

}  // namespace gpumem::kernels
