// SPDX-License-Identifier: MIT
// What the backward kernels of layer norm and RMS norm share: their tensors, and one packet's arithmetic.
#pragma once
#include "norm.cuh"

namespace gpumem::kernels {

template <class T>
struct norm_backward_tensors {
  T const* x;
  T const* dy;
  T const* gamma;
  float const* mean;  // of layer norm only
  float const* reciprocal;
  T* dx;
  float* partials;  // [gamma, beta, what the sink sums][block][column]
};

/// What becomes of dx: here, it is the result. Another sink may fetch a tensor beside x and dy, and return one more
/// value a column to be summed.
template <class T>
struct gradient_sink {
  static constexpr int column_sums = 0;
  struct fetched {};

  __device__ __forceinline__ fetched fetch(row_packets<T> const&, int) const { return {}; }
  __device__ __forceinline__ packet<T> finish(row_packets<T> const&, int, packet<T> const& dx, fetched) const {
    return dx;
  }
};

/// Vectors of sums over columns that a backward norm leaves.
template <class Norm, class Sink>
inline constexpr int column_sums_of = Norm::parameters + Sink::column_sums;

/// One packet's part in the sums of its row and of its columns, and its gradient once the former are known.
///
///   dx = reciprocal * (dy gamma - mean of dy gamma - xhat * mean of dy gamma xhat), the first mean in layer norm only
///
/// Beyond the row dy is 0, and so is every product with it.
template <class Norm, class T>
struct norm_gradient {
  packet<T> x, dy, gamma;
  norm_statistics statistics;

  __device__ __forceinline__ float normalised(int j) const {
    return (to_float(x.values[j]) - statistics.mean) * statistics.reciprocal;
  }
  __device__ __forceinline__ float scaled(int j) const { return to_float(dy.values[j]) * to_float(gamma.values[j]); }

  __device__ __forceinline__ void add_to(two_sums& of_row) const {
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      if constexpr (Norm::centered) of_row.first += scaled(j);
      of_row.second += scaled(j) * normalised(j);
    }
  }
  __device__ __forceinline__ packet<T> dx(two_sums of_row, int columns) const {
    float const mean_of_scaled = mean_of{columns}(of_row.first);
    float const mean_of_products = mean_of{columns}(of_row.second);
    packet<T> result;
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      float const centered = scaled(j) - mean_of_scaled - normalised(j) * mean_of_products;
      result.values[j] = from_float<T>(statistics.reciprocal * centered);
    }
    return result;
  }
};

}  // namespace gpumem::kernels
