// SPDX-License-Identifier: MIT
// Layer norm, y = (x - mean) / deviation * gamma + beta, and RMS norm, y = x / rms * gamma: what forward, backward and
// the chains share.
#pragma once
#include "column_primitives.cuh"

namespace gpumem::kernels {

inline constexpr float norm_epsilon = 1e-5f;

struct layer_norm {
  static constexpr bool centered = true;
  static constexpr int parameters = 2;
};
struct rms_norm {
  static constexpr bool centered = false;
  static constexpr int parameters = 1;
};

/// From a sum of squares over a row: the reciprocal of the root of their mean.
struct reciprocal_root_of_mean {
  int columns;
  __device__ float operator()(float sum_of_squares) const {
    return rsqrtf(sum_of_squares / static_cast<float>(columns) + norm_epsilon);
  }
};
struct mean_of {
  int columns;
  __device__ float operator()(float sum) const { return sum / static_cast<float>(columns); }
};

/// `beta` and `mean` are of layer norm only.
template <class T>
struct norm_parameters {
  T const* gamma;
  T const* beta;
};
template <class T>
struct norm_outputs {
  T* y;
  float* mean;
  float* reciprocal;
};

struct norm_statistics {
  float mean = 0.0f, reciprocal = 0.0f;

  template <class Norm, class T>
  __device__ __forceinline__ void store(norm_outputs<T> const& outputs, std::int64_t row) const {
    if constexpr (Norm::centered) store_value(outputs.mean + row, mean);
    store_value(outputs.reciprocal + row, reciprocal);
  }
};

}  // namespace gpumem::kernels
