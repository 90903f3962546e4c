// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/transformer_shape.hpp>

namespace gpumem {

// A family's blocks with the numbers of one of its members, as Hugging Face's classes build them. `llama` stands beside
// the shape; Mistral is `llama`.

/// Llama's blocks with biases on q, k and v.
constexpr transformer qwen2(transformer numbers, bool tied_head = false) {
  numbers = llama(numbers, tied_head);
  numbers.qkv_bias = true;
  return numbers;
}
/// Llama's blocks with a norm on each head of queries and keys.
constexpr transformer qwen3(transformer numbers, bool tied_head = false) {
  numbers = llama(numbers, tied_head);
  numbers.qk_norm = true;
  return numbers;
}
/// Llama's blocks with q, k and v, and gate and up, in one projection each.
constexpr transformer phi3(transformer numbers, bool tied_head = false) {
  numbers = llama(numbers, tied_head);
  numbers.fused_qkv = numbers.fused_gate_up = true;
  return numbers;
}
/// Llama's blocks with q, k and v in one projection whose heads are interleaved.
constexpr transformer internlm2(transformer numbers, bool tied_head = false) {
  numbers = llama(numbers, tied_head);
  numbers.fused_qkv = numbers.interleaved_qkv = true;
  return numbers;
}
/// GeGLU, RMSNorm by (1 + weight) in fp32, a scaled embedding that is the head as well.
constexpr transformer gemma(transformer numbers, bool tied_head = true) {
  numbers = llama(numbers, tied_head);
  numbers.norm = norm::gemma_rms_norm, numbers.activation = activation::gelu, numbers.scaled_embedding = true;
  return numbers;
}
/// Gemma with norms before and after attention and MLP, and bounded scores and logits.
constexpr transformer gemma2(transformer numbers, bool tied_head = true) {
  numbers = gemma(numbers, tied_head);
  numbers.block = block_order::sandwich_norm, numbers.softcap = true;
  return numbers;
}
/// Gemma 2 with norms on queries and keys in place of bounds.
constexpr transformer gemma3(transformer numbers, bool tied_head = true) {
  numbers = gemma2(numbers, tied_head);
  numbers.softcap = false, numbers.qk_norm = true;
  return numbers;
}
/// Falcon-7B: LayerNorm, attention and MLP side by side behind one norm, one shared key-value head unless `kv_heads`,
/// rotary positions, one projection for q, k and v, GELU, no biases and no dropout.
constexpr transformer falcon(transformer numbers, bool tied_head = true) {
  numbers = llama(numbers, tied_head);
  numbers.norm = norm::layer_norm, numbers.activation = activation::gelu, numbers.block = block_order::parallel;
  numbers.gated = false, numbers.fused_qkv = true;
  if (numbers.kv_heads == 0) numbers.kv_heads = 1;
  return numbers;
}

}  // namespace gpumem
