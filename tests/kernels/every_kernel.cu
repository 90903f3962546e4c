// SPDX-License-Identifier: MIT
// Instantiates every kernel in every type and row strategy, for nvcc to compile.
#include "adamw.cuh"
#include "adamw_8bit_chain.cuh"
#include "add_rms_norm.cuh"
#include "bias_dropout_add_layer_norm.cuh"
#include "bias_gelu.cuh"
#include "bias_gelu_backward.cuh"
#include "copy.cuh"
#include "cross_entropy.cuh"
#include "gradient_norm.cuh"
#include "norm_chain.cuh"
#include "norm_forward.cuh"
#include "softmax.cuh"
#include "swiglu.cuh"

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
  bias_gelu_backward_fused(device, bias_gelu_backward_tensors<T>{t, t, t, t, statistic}, t, rows, columns);
  bias_gelu_backward_chain(device, t, t, t, t, rows, columns);
  norm_parameters<T> const parameters{t, t};
  norm_outputs<T> const outputs{t, statistic, statistic};
  norm_temporaries<T> const temporaries{t, t, t, statistic, statistic};
  norm_backward_tensors<T> const backward{t, t, t, statistic, statistic, t, statistic};
  column_sums<T> const sums{{t, t, t}};
  norm_forward_fused<layer_norm>(device, t, parameters, outputs, rows, columns);
  norm_forward_fused<rms_norm>(device, t, parameters, outputs, rows, columns);
  norm_backward_fused<layer_norm>(device, backward, sums, rows, columns);
  norm_backward_fused<rms_norm>(device, backward, sums, rows, columns);
  layer_norm_forward_chain(device, t, parameters, outputs, temporaries, rows, columns);
  rms_norm_forward_chain(device, t, parameters, outputs, temporaries, rows, columns);
  layer_norm_backward_chain(device, backward, sums, temporaries, rows, columns);
  rms_norm_backward_chain(device, backward, sums, temporaries, rows, columns);
  std::uint8_t* const mask = nullptr;
  bias_dropout_add_tensors<T> const added{t, t, t, t, mask};
  dropout const drop{1, 1};
  bias_dropout_add_layer_norm_fused(device, added, drop, parameters, outputs, rows, columns);
  bias_dropout_add_layer_norm_chain(device, added, drop, parameters, outputs, t, t, rows, columns);
  bias_dropout_add_layer_norm_backward_fused(device, backward, t, mask, drop, sums, rows, columns);
  bias_dropout_add_layer_norm_backward_chain(device, backward, t, mask, drop, sums, rows, columns);
  swiglu_forward_fused(device, t, t, t, rows * columns);
  swiglu_forward_chain(device, t, t, t, t, rows * columns);
  swiglu_backward_tensors<T> const swiglu{t, t, t, t, t};
  swiglu_backward_fused(device, swiglu, rows * columns);
  swiglu_backward_chain(device, swiglu, t, t, rows * columns);
  cross_entropy_tensors<T> const losses{t, nullptr, statistic, 1.0f};
  cross_entropy_fused(device, losses, rows, columns);
  cross_entropy_chain(device, losses, {statistic, statistic, statistic}, rows, columns);
  clipping const clip{statistic, statistic, statistic, 1.0f};
  gradient_clipping_fused(device, t, clip, rows * columns);
  gradient_clipping_chain(device, t, clip, t, rows * columns);
  adamw_step const step({}, 1);
  quantised_moments const moments{nullptr, nullptr, statistic, statistic};
  adamw_8bit_fused(device, t, t, moments, step, rows * columns);
  adamw_8bit_chain(device, t, t, moments, statistic, statistic, step, rows * columns);
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
