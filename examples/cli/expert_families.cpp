// SPDX-License-Identifier: MIT
// Decoders with expert layers: every expert counts, not only those that a token visits.
#include <gpumem/core/error.hpp>

#include "families.hpp"
#include "input_error.hpp"

namespace gpumem::cli {
namespace {

expert_decoder read_sizes(config_object const& c) {
  return {.layers = c.required({"num_hidden_layers"}),
          .hidden = c.required({"hidden_size"}),
          .vocabulary = c.required({"vocab_size"}),
          .tied_head = c.flag("tie_word_embeddings", false)};
}

described_model described(expert_decoder const& m, std::int64_t longest) {
  return {.numbers = m, .longest_sequence = longest, .tied_head = m.tied_head};
}

// Qwen's rule: every decoder_sparse_step-th layer has experts, unless mlp_only_layers names it.
expert_layers read_qwen_experts(config_object const& c, std::int64_t layers) {
  expert_layers e{.experts = c.number_or_none({"num_experts", "num_local_experts"}, 0)};
  if (!c.has({"num_experts", "num_local_experts"})) e.experts = c.required({"num_experts"});
  std::int64_t const step = c.number({"decoder_sparse_step"}, 1);
  std::int64_t with_experts = e.experts == 0 ? 0 : layers / step;
  for (std::int64_t const layer : c.numbers("mlp_only_layers"))
    if (e.experts != 0 && layer < layers && (layer + 1) % step == 0) --with_experts;
  e.dense_layers = layers - with_experts;
  if (e.dense_layers != 0) e.dense_width = c.required({"intermediate_size"});
  if (with_experts != 0) e.expert_width = c.required({"moe_intermediate_size"});
  return e;
}

}  // namespace

described_model describe_mixtral(config_object const& c) {
  expert_decoder m = read_sizes(c);
  m.attention = attention_of(read_heads(c, m.hidden, {.kv_heads = 8, .null_kv_is_heads = true}), false, false);
  m.mlp = {.experts = c.required({"num_local_experts", "num_experts"}),
           .expert_width = c.required({"intermediate_size"})};
  return described(m, c.number({"max_position_embeddings"}, 131072));
}

described_model describe_qwen2_moe(config_object const& c) {
  expert_decoder m = read_sizes(c);
  m.attention = attention_of(read_heads(c, m.hidden, {.kv_heads = 16}), c.flag("qkv_bias", true), false);
  m.mlp = read_qwen_experts(c, m.layers);
  m.mlp.shared_width = c.number_or_none({"shared_expert_intermediate_size"}, 5632);
  m.mlp.shared_gate = true;
  return described(m, c.number({"max_position_embeddings"}, 32768));
}

described_model describe_qwen3_moe(config_object const& c) {
  expert_decoder m = read_sizes(c);
  bool const bias = c.flag("attention_bias", false);
  m.attention = attention_of(read_heads(c, m.hidden, {.kv_heads = 4}), bias, bias);
  m.attention.norms = query_key_norm::shared_by_heads;
  m.mlp = read_qwen_experts(c, m.layers);
  return described(m, c.number({"max_position_embeddings"}, 32768));
}

described_model describe_gpt_oss(config_object const& c) {
  expert_decoder m = read_sizes(c);
  bool const bias = c.flag("attention_bias", true);
  m.attention =
      attention_of(read_heads(c, m.hidden, {.kv_heads = 8, .head_dim = 64, .null_kv_is_heads = true}), bias, bias);
  m.attention.sinks = true;
  m.mlp = {.experts = c.required({"num_local_experts", "num_experts"}),
           .expert_width = c.required({"intermediate_size"}),
           .router_bias = true,
           .expert_bias = true};
  return described(m, c.number({"max_position_embeddings"}, 131072));
}

described_model describe_deepseek_v3(config_object const& c) {
  latent_decoder m{.layers = c.required({"num_hidden_layers"}),
                   .hidden = c.required({"hidden_size"}),
                   .vocabulary = c.required({"vocab_size"}),
                   .tied_head = c.flag("tie_word_embeddings", false)};
  m.attention = {.heads = c.required({"num_attention_heads"}),
                 .key_value_rank = c.required({"kv_lora_rank"}),
                 .plain_width = c.required({"qk_nope_head_dim"}),
                 .rotary_width = c.required({"qk_rope_head_dim"}),
                 .value_width = c.required({"v_head_dim"}),
                 .bias = c.flag("attention_bias", false)};
  // The one null that is not an absence: it says that queries have no latent, where the class default is 1536.
  if (!c.is_null("q_lora_rank")) m.attention.query_rank = c.required({"q_lora_rank"});
  std::int64_t const width = c.required({"moe_intermediate_size"}), shared = c.number_or_none({"n_shared_experts"}, 1);
  if (shared > largest_number / width)
    c.refuse_value("n_shared_experts", shared, "times moe_intermediate_size must be at most 2^40");
  m.mlp = {.dense_layers = c.number_or_none({"first_k_dense_replace"}, 3),
           .dense_width = c.required({"intermediate_size"}),
           .experts = c.required({"n_routed_experts"}),
           .expert_width = width,
           .shared_width = shared * width,
           .router_bias = true};
  if (m.mlp.dense_layers > m.layers) m.mlp.dense_layers = m.layers;
  described_model d{
      .numbers = m, .longest_sequence = c.number({"max_position_embeddings"}, 4096), .tied_head = m.tied_head};
  d.notes.emplace_back("the router's bias that balances the experts counts, though no gradient trains it");
  std::int64_t const extra = c.number_or_none({"num_nextn_predict_layers"}, 0);
  if (extra != 0)
    d.not_counted.emplace_back(
        "layers that predict further tokens (num_nextn_predict_layers = " + std::to_string(extra) + ")");
  return d;
}

}  // namespace gpumem::cli
