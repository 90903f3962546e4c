// SPDX-License-Identifier: MIT
// Dense decoders that are counted: their blocks are not recorded.
#include "families.hpp"
#include "input_error.hpp"

namespace gpumem::cli {
namespace {

grouped_attention attention_of(head_numbers const& h, bool bias) { return cli::attention_of(h, bias, bias); }

described_model described(decoder const& m, std::int64_t longest, bool learned = false) {
  return {.numbers = m, .longest_sequence = longest, .learned_positions = learned, .tied_head = m.tied_head};
}

// Phi-1 to Phi-2: one LayerNorm a block, biases everywhere, an own head with a bias.
described_model describe_phi_numbers(config_object const& c, decoder m, head_numbers const& h, std::int64_t longest) {
  m.norms_per_block = 1;
  m.norm_bias = m.feed_forward_bias = m.head_bias = true;
  m.gated = false;
  m.attention = attention_of(h, true);
  m.tied_head = c.flag("tie_word_embeddings", false);
  return described(m, longest);
}

}  // namespace

described_model describe_bloom(config_object const& c) {
  decoder m{.layers = c.required({"n_layer", "num_hidden_layers"}),
            .hidden = c.required({"hidden_size", "n_embed"}),
            .vocabulary = c.required({"vocab_size"})};
  m.feed_forward = c.number({"n_inner"}, 4 * m.hidden);
  if (m.feed_forward != 4 * m.hidden) c.refuse_value("n_inner", m.feed_forward, "must be 4 * hidden_size or null");
  m.attention = {.heads = c.required({"n_head", "num_attention_heads"}), .qkv_bias = true, .output_bias = true};
  require_heads_divide(c, "n_head", m.attention.heads, "hidden_size", m.hidden);
  m.norm_bias = m.embedding_norm = m.feed_forward_bias = true;
  m.gated = false;
  m.tied_head = c.flag("tie_word_embeddings", true);
  return described(m, c.number({"seq_length"}, 2048));
}

described_model describe_cohere(config_object const& c) {
  decoder m{.layers = c.required({"num_hidden_layers"}),
            .hidden = c.required({"hidden_size"}),
            .vocabulary = c.required({"vocab_size"}),
            .feed_forward = c.required({"intermediate_size"}),
            .norms_per_block = 1};
  m.attention = attention_of(read_heads(c, m.hidden), c.flag("attention_bias", false));
  if (c.flag("use_qk_norm", false)) m.attention.norms = query_key_norm::per_head;
  m.tied_head = c.flag("tie_word_embeddings", true);
  return described(m, c.number({"max_position_embeddings"}, 8192));
}

described_model describe_opt(config_object const& c) {
  decoder m{.layers = c.required({"num_hidden_layers"}),
            .hidden = c.required({"hidden_size"}),
            .vocabulary = c.required({"vocab_size"}),
            .feed_forward = c.required({"ffn_dim"}),
            .norm_bias = true,
            .gated = false};
  std::int64_t const longest = c.required({"max_position_embeddings"});
  m.positions = longest + 2;  // the table starts behind two rows for padding
  m.embedding_width = c.number({"word_embed_proj_dim"}, m.hidden);
  bool const bias = c.flag("enable_bias", true);
  m.attention = {.heads = c.required({"num_attention_heads"}), .qkv_bias = bias, .output_bias = bias};
  require_heads_divide(c, "num_attention_heads", m.attention.heads, "hidden_size", m.hidden);
  m.feed_forward_bias = bias;
  m.norm_weight = c.flag("layer_norm_elementwise_affine", true);
  m.final_norm = c.flag("do_layer_norm_before", true) && !c.flag("_remove_final_layer_norm", false);
  m.tied_head = c.flag("tie_word_embeddings", true);
  return described(m, longest, true);
}

described_model describe_phi(config_object const& c) {
  decoder m{.layers = c.required({"num_hidden_layers"}),
            .hidden = c.required({"hidden_size"}),
            .vocabulary = c.required({"vocab_size"}),
            .feed_forward = c.required({"intermediate_size"})};
  described_model d = describe_phi_numbers(c, m, read_heads(c, m.hidden), c.number({"max_position_embeddings"}, 2048));
  auto& attention = std::get<decoder>(d.numbers).attention;
  if (c.flag("qk_layernorm", false)) attention.norms = query_key_norm::shared_by_heads, attention.norm_bias = true;
  return d;
}

described_model describe_phi_msft(config_object const& c) {
  decoder m{
      .layers = c.required({"n_layer"}), .hidden = c.required({"n_embd"}), .vocabulary = c.required({"vocab_size"})};
  m.feed_forward = c.number({"n_inner"}, 4 * m.hidden);
  head_numbers h{.heads = c.required({"n_head"})};
  h.kv_heads = c.number({"n_head_kv"}, h.heads);
  require_heads_divide(c, "n_head", h.heads, "n_embd", m.hidden);
  if (h.heads % h.kv_heads != 0)
    c.refuse_value("n_head_kv", h.kv_heads, "must divide n_head = " + std::to_string(h.heads));
  return describe_phi_numbers(c, m, h, c.number({"n_positions"}, 2048));
}

}  // namespace gpumem::cli
