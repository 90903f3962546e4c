// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/error.hpp>
#include <gpumem/core/workload.hpp>

#include <cstdint>

namespace gpumem {

/// `gemma_rms_norm` multiplies by (1 + weight) in fp32, `rms_norm` by the weight in the model's dtype (Llama).
enum class norm : std::uint8_t { layer_norm, rms_norm, gemma_rms_norm };
enum class position : std::uint8_t { learned, rotary };

/// The activation function of the MLP. `gelu_new`, `gelu_fast` and `quick_gelu` are Hugging Face's forms written in
/// Python; `gelu` is any GELU that is one kernel (erf, or PyTorch's own tanh form).
enum class activation : std::uint8_t { gelu_new, gelu, silu, relu, gelu_fast, quick_gelu };

/// How a block is put together: norms before attention and MLP; before and after both (Gemma 2); or one norm before
/// both, which run side by side (Falcon).
enum class block_order : std::uint8_t { pre_norm, sandwich_norm, parallel };

/// A dense decoder-only transformer in numbers. The defaults are GPT-2's; `llama` gives Llama's. A 0 takes the default
/// that its comment names. Every number is checked by `check`.
struct transformer {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;     // rows of a learned table; with rotary positions not used for memory
  std::int64_t kv_heads = 0;      // 0: heads
  std::int64_t head_dim = 0;      // 0: hidden / heads, which must then divide
  std::int64_t feed_forward = 0;  // 0: 4 * hidden
  gpumem::norm norm = gpumem::norm::layer_norm;
  gpumem::position position = gpumem::position::learned;
  gpumem::activation activation = gpumem::activation::gelu_new;
  bool gated = false;            // act(gate) * up in place of act(up)
  bool fused_qkv = true;         // one projection for q, k and v
  bool interleaved_qkv = false;  // with fused_qkv: a group's queries, keys and values lie together (InternLM2)
  bool fused_gate_up = false;    // one projection for gate and up (Phi-3)
  bool qkv_bias = true;
  bool output_bias = true;  // of the attention's output projection
  bool feed_forward_bias = true;
  bool tied_head = true;  // the head's matrix is the embedding table
  bool embedding_dropout = true;
  bool attention_dropout = true;
  bool hidden_dropout = true;  // after the attention's and the MLP's output projection
  bool multipliers = false;    // embeddings, both branches and logits are scaled by constants (Granite)
  block_order block = block_order::pre_norm;
  bool qk_norm = false;           // a norm on each head of queries and keys, its weight shared by heads (Qwen3)
  bool scaled_embedding = false;  // the embedding is multiplied by a constant (Gemma)
  bool softcap = false;           // tanh bounds the scores of eager attention and the logits (Gemma 2)

  [[nodiscard]] constexpr std::int64_t key_value_heads() const { return kv_heads != 0 ? kv_heads : heads; }
  [[nodiscard]] constexpr std::int64_t head_width() const { return head_dim != 0 ? head_dim : hidden / heads; }
  [[nodiscard]] constexpr std::int64_t mlp_width() const { return feed_forward != 0 ? feed_forward : 4 * hidden; }

  friend constexpr bool operator==(transformer const&, transformer const&) = default;
};

/// The same numbers with Llama's blocks: RMSNorm, rotary positions, SwiGLU, separate q, k and v, no biases, no dropout,
/// and a head of its own unless `tied_head`.
constexpr transformer llama(transformer numbers, bool tied_head = false) {
  numbers.norm = norm::rms_norm, numbers.position = position::rotary, numbers.activation = activation::silu;
  numbers.gated = true, numbers.fused_qkv = false, numbers.tied_head = tied_head;
  numbers.qkv_bias = numbers.output_bias = numbers.feed_forward_bias = false;
  numbers.embedding_dropout = numbers.attention_dropout = numbers.hidden_dropout = false;
  return numbers;
}

/// Refuses numbers that no transformer can have, naming the field, its value and the rule.
constexpr void check(transformer const& m) {
  require_positive("layers", m.layers);
  require_positive("hidden", m.hidden);
  require_positive("heads", m.heads);
  require_positive("vocabulary", m.vocabulary);
  require_not_negative("positions", m.positions);
  require_not_negative("kv_heads", m.kv_heads);
  require_not_negative("head_dim", m.head_dim);
  require_not_negative("feed_forward", m.feed_forward);
  require_rule(m.head_dim != 0 || m.hidden % m.heads == 0, "heads", m.heads,
               "must divide hidden where head_dim is not given");
  require_rule(m.heads % m.key_value_heads() == 0, "kv_heads", m.kv_heads, "must divide heads");
  require_rule(m.head_width() <= largest_number / m.heads, "head_dim", m.head_width(),
               "times heads must be at most 2^40");
  if (m.position == position::learned) require_positive("positions", m.positions);
}

/// As above, and refuses a sequence that is longer than a learned position table.
constexpr void check(transformer const& m, workload const& load) {
  check(m), check(load);
  require_rule(load.sequence <= largest_number / m.head_width(), "sequence", load.sequence,
               "times head_dim must be at most 2^40");
  if (m.position == position::learned)
    require_rule(load.sequence <= m.positions, "sequence", load.sequence, "must not exceed the learned position table");
}

}  // namespace gpumem
