// SPDX-License-Identifier: MIT
// Instantiates every kernel in every type and row strategy, for nvcc to compile.
#include "adamw.cuh"
#include "add_rms_norm.cuh"
#include "bias_gelu.cuh"
#include "copy.cuh"
#include "softmax.cuh"

namespace gpumem::kernels {

template <class T>
void every_kernel_of(device_context const& device, T* t, float* statistic, std::int64_t rows, int columns) {
  copy(device, t, t, rows * columns);
  softmax_forward_fused(device, t, t, rows, columns);
  softmax_forward_chain(device, t, t, t, statistic, statistic, rows, columns);
  softmax_backward_fused(device, t, t, t, rows, columns);
  softmax_backward_chain(device, t, t, t, t, t, statistic, rows, columns);
  add_rms_norm_tensors<T> const tensors{t, t, t, t, t, statistic};
  add_rms_norm_fused(device, tensors, rows, columns);
  add_rms_norm_chain(device, tensors, t, t, rows, columns);
  bias_gelu_fused(device, t, t, t, rows, columns);
  bias_gelu_chain(device, t, t, t, t, rows, columns);
}

void every_kernel(device_context const& device, float* wide, bf16* narrow, std::int64_t rows, int columns) {
  every_kernel_of(device, wide, wide, rows, columns);
  every_kernel_of(device, narrow, wide, rows, columns);
  adamw_step const step({}, 1);
  adamw_state const state{wide, wide, wide};
  adamw_fused(device, state, wide, step, rows * columns);
  adamw_chain(device, state, wide, wide, step, rows * columns);
  adamw_master_fused(device, state, narrow, narrow, step, rows * columns);
  adamw_master_chain(device, state, narrow, narrow, wide, wide, step, rows * columns);
}

}  // namespace gpumem::kernels
