// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/activate.hpp>
#include <gpumem/models/model.hpp>
#include <gpumem/models/transformer_shape.hpp>

#include <cstdint>

namespace gpumem {
namespace detail {

/// What every block of a transformer reads beside its input: the rotary tables and, for eager attention, the mask.
struct block_context {
  transformer const& model;
  workload const& load;
  ref cosine{}, sine{}, mask{};
};

constexpr ref norm_of(operations& ops, transformer const& m, ref x, std::int64_t width) {
  switch (m.norm) {
    case norm::layer_norm: return ops.layer_norm(x, width);
    case norm::rms_norm: return ops.rms_norm(x, width);
    case norm::gemma_rms_norm: return ops.gemma_rms_norm(x, width);
  }
  return x;
}
constexpr ref norm_of(operations& ops, transformer const& m, ref x) { return norm_of(ops, m, x, m.hidden); }

constexpr ref record_attention(operations& ops, block_context const& c, ref x) {
  transformer const& m = c.model;
  const std::int64_t tokens = c.load.tokens(), width = m.heads * m.head_width(),
                     kv_width = m.key_value_heads() * m.head_width();
  ref fused, q, k, v;
  if (m.fused_qkv) {
    fused = ops.linear(x, m.hidden, width + 2 * kv_width, m.qkv_bias);
    if (m.interleaved_qkv)
      ops.slice_heads(fused, q, k, v, tokens * width, tokens * kv_width);
    else
      ops.split(fused, q, k, v, tokens * width, tokens * kv_width);
  } else {
    q = ops.linear(x, m.hidden, width, m.qkv_bias);
    k = ops.linear(x, m.hidden, kv_width, m.qkv_bias);
    v = ops.linear(x, m.hidden, kv_width, m.qkv_bias);
  }
  if (m.qk_norm) {
    const ref raw_q = q, raw_k = k;
    q = norm_of(ops, m, q, m.head_width());
    ops.recording.until_here(raw_q);  // the argument of the call
    k = norm_of(ops, m, k, m.head_width());
    ops.recording.until_here(raw_k);
  }
  if (m.position == position::rotary) {
    const ref old_q = q, old_k = k;
    q = ops.rotary(q, c.cosine, c.sine);
    k = ops.rotary(k, c.cosine, c.sine);
    ops.recording.until_here(old_q), ops.recording.until_here(old_k);  // arguments of one call for both
  }
  const bool llama_like = m.norm != norm::layer_norm;
  const attention_shape shape{.batch = c.load.micro_batch,
                              .sequence = c.load.sequence,
                              .heads = m.heads,
                              .kv_heads = m.key_value_heads(),
                              .head_dim = m.head_width(),
                              .dropout = m.attention_dropout,
                              .softmax_in_fp32 = llama_like,
                              .softcap = m.softcap,
                              .mask = c.mask};
  k = ops.heads_for_attention(k, shape);
  v = ops.heads_for_attention(v, shape);
  const ref mixed = ops.attention(q, k, v, shape);
  const ref projected = ops.linear(mixed, width, m.hidden, m.output_bias);
  ops.recording.until_here(q), ops.recording.until_here(k), ops.recording.until_here(v);  // locals of the module
  return ops.dropout(projected, m.hidden_dropout);
}

constexpr ref record_mlp(operations& ops, transformer const& m, ref x) {
  const std::int64_t width = m.mlp_width();
  ref inner;
  if (!m.gated) {
    inner = ops.linear(x, m.hidden, width, m.feed_forward_bias);
    inner = activate(ops, m.activation, inner);
  } else {
    ref gate, up;
    if (m.fused_gate_up) {
      const ref both = ops.linear(x, m.hidden, 2 * width, m.feed_forward_bias);
      ops.split(both, gate, up);
    } else {
      gate = ops.linear(x, m.hidden, width, m.feed_forward_bias);
    }
    if (m.activation != activation::relu && numbers_of(ops.how.kernels).fused_activation) {
      if (!up) up = ops.linear(x, m.hidden, width, m.feed_forward_bias);
      inner = ops.fused_gate(gate, up);
    } else {
      const ref activated = activate(ops, m.activation, gate);
      if (!up) up = ops.linear(x, m.hidden, width, m.feed_forward_bias);
      inner = ops.mul(activated, up);
    }
  }
  const ref y = ops.linear(inner, width, m.hidden, m.feed_forward_bias);
  return ops.dropout(y, m.hidden_dropout);
}

/// One block: attention and MLP, each behind a norm and added to the residual stream.
constexpr ref record_block(operations& ops, block_context const& c, ref x) {
  const bool after = c.model.block == block_order::sandwich_norm;
  const ref normed = norm_of(ops, c.model, x);
  ref attended = record_attention(ops, c, normed);
  if (c.model.block == block_order::parallel) {
    const ref beside = record_mlp(ops, c.model, normed);
    ops.recording.until_here(normed);
    const ref middle = ops.add(x, attended), sum = ops.add(middle, beside);
    ops.recording.until_here(attended), ops.recording.until_here(beside);
    return sum;
  }
  ops.recording.until_here(normed);
  if (after) attended = norm_of(ops, c.model, attended);
  if (c.model.multipliers) attended = ops.scale(attended);
  const ref middle = ops.add(x, attended), normed_again = norm_of(ops, c.model, middle);
  ref mlp = record_mlp(ops, c.model, normed_again);
  ops.recording.until_here(normed_again);
  if (after) mlp = norm_of(ops, c.model, mlp);
  if (c.model.multipliers) mlp = ops.scale(mlp);
  return ops.add(middle, mlp);
}

}  // namespace detail

/// Records a micro-batch of a decoder-only transformer as Hugging Face runs it: embeddings, blocks, final norm, head
/// and, where it trains, the language-model loss.
constexpr ref record(operations& ops, transformer const& m, workload const& load) {
  tape& t = ops.recording;
  const std::int64_t tokens = load.tokens();
  const ref ids = t.constant(tokens, dtype::int64), labels = t.constant(tokens, dtype::int64);
  t.constant(tokens, dtype::int64);  // the batch's attention mask
  const ref table = ops.parameter(m.vocabulary, m.hidden, role::embedding);
  detail::block_context context{m, load};
  ref x = ops.embedding(table, ids, m.hidden);
  if (m.multipliers) x = ops.scale(x);
  ref embedded = x, positions;
  if (m.position == position::learned) {
    const ref position_table = ops.parameter(m.positions, m.hidden, role::embedding);
    const ref position_ids = t.make(load.sequence, dtype::int64);
    t.record({.name = "position ids"});
    positions = ops.embedding(position_table, position_ids, m.hidden);
    x = ops.add_broadcast(embedded, positions);
  } else {
    context.cosine = t.make(load.sequence * m.head_width(), ops.stream());
    context.sine = t.make(load.sequence * m.head_width(), ops.stream());
    t.record({.name = "rotary tables"});
    if (ops.how.attention == attention_kind::eager) {
      require_rule(load.sequence <= largest_number / tokens, "sequence", load.sequence,
                   "squared, times micro_batch, must be at most 2^40");
      context.mask = t.make(load.micro_batch * load.sequence * load.sequence, ops.stream());
      t.record({.name = "causal mask"});
    }
  }
  if (m.scaled_embedding) x = ops.scale(x);
  x = ops.dropout(x, m.embedding_dropout);
  x = ops.blocks(m.layers, x, [&](ref in) { return detail::record_block(ops, context, in); });
  x = detail::norm_of(ops, m, x);
  if (positions) t.until_here(positions);  // locals of the model's forward
  if (context.mask) t.until_here(context.mask);
  if (positions || m.scaled_embedding) t.until_here(embedded);
  t.enter_loss();
  const linear_weights head = m.tied_head ? linear_weights{.matrix = table, .in = m.hidden, .out = m.vocabulary}
                                          : ops.declare_linear(m.hidden, m.vocabulary, false);
  const auto shape_logits = [&](ref logits) {
    if (m.multipliers) logits = ops.scale(logits);
    return m.softcap ? ops.softcap(logits) : logits;
  };
  if (!ops.how.optimizer.trains) return shape_logits(ops.linear(x, head));
  const ref loss = ops.language_model_loss(x, head, labels, load.micro_batch, shape_logits);
  t.until_here(x);  // the model's output object holds it
  return loss;
}

static_assert(model<transformer>);

}  // namespace gpumem
