// SPDX-License-Identifier: MIT
// Dense decoders whose blocks are recorded: `gpumem estimate` answers for them.
#include <gpumem/core/error.hpp>
#include <gpumem/models/families.hpp>

#include <optional>

#include "families.hpp"
#include "input_error.hpp"

namespace gpumem::cli {
namespace {

void set_activation(described_model& to, std::string const& name) {
  if (auto const known = known_activation(name)) {
    std::get<transformer>(to.numbers).activation = *known;
  } else {
    to.not_modelled = "the activation function \"" + one_line(name, 40) + "\"";
  }
}

// What Llama's descendants share; biases, tying and dropout are the family's.
described_model llama_like(config_object const& c, head_defaults const& defaults, bool tied,
                           std::int64_t longest_default) {
  transformer m{.layers = c.required({"num_hidden_layers"}),
                .hidden = c.required({"hidden_size"}),
                .vocabulary = c.required({"vocab_size"}),
                .feed_forward = c.required({"intermediate_size"})};
  head_numbers const h = read_heads(c, m.hidden, defaults);
  m.heads = h.heads, m.kv_heads = h.kv_heads, m.head_dim = h.head_dim;
  m = llama(m, c.flag("tie_word_embeddings", tied));
  m.attention_dropout = c.is_above_zero("attention_dropout", false);
  return {.numbers = m,
          .longest_sequence = c.number({"max_position_embeddings"}, longest_default),
          .tied_head = m.tied_head};
}

// Gemma's descendants: the tanh form whatever hidden_act says, unless hidden_activation names another; class defaults
// where a nested config says nothing.
described_model gemma_like(config_object const& c, transformer (*family)(transformer, bool), std::int64_t vocabulary,
                           std::int64_t longest) {
  transformer m{.layers = c.size({"num_hidden_layers"}, 26),
                .hidden = c.size({"hidden_size"}, 2304),
                .vocabulary = c.size({"vocab_size"}, vocabulary),
                .feed_forward = c.size({"intermediate_size"}, 9216)};
  head_numbers const h = read_heads(c, m.hidden, {.heads = 8, .kv_heads = 4, .head_dim = 256});
  m.heads = h.heads, m.kv_heads = h.kv_heads, m.head_dim = h.head_dim;
  m = family(m, c.flag("tie_word_embeddings", true));
  m.qkv_bias = m.output_bias = c.flag("attention_bias", false);
  m.attention_dropout = c.is_above_zero("attention_dropout", false);
  described_model d{
      .numbers = m, .longest_sequence = c.number({"max_position_embeddings"}, longest), .tied_head = m.tied_head};
  set_activation(d, c.text({"hidden_activation"}, "gelu_pytorch_tanh"));
  return d;
}

}  // namespace

std::optional<activation> known_activation(std::string_view name) {
  if (name == "gelu_new") return activation::gelu_new;
  if (name == "gelu" || name == "gelu_pytorch_tanh") return activation::gelu;
  if (name == "silu" || name == "swish") return activation::silu;
  if (name == "relu") return activation::relu;
  if (name == "gelu_fast") return activation::gelu_fast;
  if (name == "quick_gelu") return activation::quick_gelu;
  return std::nullopt;
}

void require_heads_divide(config_object const& c, std::string_view heads_name, std::int64_t heads,
                          std::string_view hidden_name, std::int64_t hidden) {
  if (hidden % heads != 0)
    c.refuse_value(heads_name, heads, "must divide " + std::string(hidden_name) + " = " + std::to_string(hidden));
}

head_numbers read_heads(config_object const& c, std::int64_t hidden, head_defaults const& defaults) {
  head_numbers h{.heads = c.size({"num_attention_heads"}, defaults.heads)};
  bool const as_many_as_heads =
      defaults.kv_heads == 0 || (defaults.null_kv_is_heads && c.is_null("num_key_value_heads"));
  std::int64_t const kv_default = as_many_as_heads ? h.heads : defaults.kv_heads;
  h.kv_heads = c.number({"num_key_value_heads"}, kv_default);
  h.head_dim = c.number({"head_dim"}, defaults.head_dim);
  if (h.head_dim == 0 && hidden % h.heads != 0)
    c.refuse_value("num_attention_heads", h.heads,
                   "must divide hidden_size = " + std::to_string(hidden) + " where head_dim is not given");
  if (h.heads % h.kv_heads != 0)
    c.refuse_value("num_key_value_heads", h.kv_heads, "must divide num_attention_heads = " + std::to_string(h.heads));
  if (h.head_dim > largest_number / h.heads)
    c.refuse_value("head_dim", h.head_dim,
                   "times num_attention_heads = " + std::to_string(h.heads) + " must be at most 2^40");
  return h;
}

described_model describe_gpt2(config_object const& c) {
  c.require_false("add_cross_attention");
  transformer m{.layers = c.required({"n_layer", "num_hidden_layers"}),
                .hidden = c.required({"n_embd", "hidden_size"}),
                .heads = c.required({"n_head", "num_attention_heads"}),
                .vocabulary = c.required({"vocab_size"}),
                .positions = c.required({"n_positions", "max_position_embeddings"})};
  m.feed_forward = c.number({"n_inner"}, 4 * m.hidden);
  require_heads_divide(c, "n_head", m.heads, "n_embd", m.hidden);
  m.tied_head = c.flag("tie_word_embeddings", true);
  m.embedding_dropout = c.is_above_zero("embd_pdrop", true);
  m.attention_dropout = c.is_above_zero("attn_pdrop", true);
  m.hidden_dropout = c.is_above_zero("resid_pdrop", true);
  described_model d{.numbers = m, .longest_sequence = m.positions, .learned_positions = true, .tied_head = m.tied_head};
  set_activation(d, c.text({"activation_function"}, "gelu_new"));
  return d;
}

described_model describe_llama(config_object const& c) {
  described_model d = llama_like(c, {}, false, 2048);
  auto& m = std::get<transformer>(d.numbers);
  m.qkv_bias = m.output_bias = c.flag("attention_bias", false);
  m.feed_forward_bias = c.flag("mlp_bias", false);
  set_activation(d, c.text({"hidden_act"}, "silu"));
  return d;
}

described_model describe_mistral(config_object const& c) {
  described_model d = llama_like(c, {.kv_heads = 8, .null_kv_is_heads = true}, false, 131072);
  set_activation(d, c.text({"hidden_act"}, "silu"));
  return d;
}

described_model describe_qwen2(config_object const& c) {
  described_model d = llama_like(c, {.kv_heads = 32, .null_kv_is_heads = true}, false, 32768);
  std::get<transformer>(d.numbers).qkv_bias = true;
  set_activation(d, c.text({"hidden_act"}, "silu"));
  return d;
}

described_model describe_gemma(config_object const& c) {
  described_model d = llama_like(c, {.kv_heads = 16, .head_dim = 256}, true, 8192);
  auto& m = std::get<transformer>(d.numbers);
  m = gemma(m, m.tied_head);
  m.qkv_bias = m.output_bias = c.flag("attention_bias", false);
  m.attention_dropout = c.is_above_zero("attention_dropout", false);
  // Its class computes the tanh form whatever hidden_act says, unless hidden_activation names another.
  set_activation(d, c.text({"hidden_activation"}, "gelu_pytorch_tanh"));
  return d;
}

described_model describe_gemma2(config_object const& c) {
  described_model d = gemma_like(c, gemma2, 256000, 8192);
  // 50 and 30 where the config says nothing; null takes the bounds away.
  bool const bounded = !(c.is_null("attn_logit_softcapping") && c.is_null("final_logit_softcapping"));
  std::get<transformer>(d.numbers).softcap = bounded;
  return d;
}

described_model describe_gemma3_text(config_object const& c) { return gemma_like(c, gemma3, 262208, 131072); }

described_model describe_gemma3(config_object const& c) {
  described_model d = describe_gemma3_text(c.object("text_config"));
  d.not_counted.emplace_back("vision tower and its projector");
  return d;
}

described_model describe_internlm2(config_object const& c) {
  described_model d = llama_like(c, {}, false, 2048);
  auto& m = std::get<transformer>(d.numbers);
  m = internlm2(m, m.tied_head);
  m.qkv_bias = m.output_bias = c.flag("bias", true);
  set_activation(d, c.text({"hidden_act"}, "silu"));
  return d;
}

described_model describe_qwen3(config_object const& c) {
  described_model d = llama_like(c, {.kv_heads = 32, .head_dim = 128, .null_kv_is_heads = true}, false, 32768);
  auto& m = std::get<transformer>(d.numbers);
  bool const dropout = m.attention_dropout;
  m = qwen3(m, m.tied_head);
  m.attention_dropout = dropout;
  m.qkv_bias = m.output_bias = c.flag("attention_bias", false);
  set_activation(d, c.text({"hidden_act"}, "silu"));
  return d;
}

described_model describe_phi3(config_object const& c) {
  described_model d = llama_like(c, {}, false, 4096);
  auto& m = std::get<transformer>(d.numbers);
  m.fused_qkv = m.fused_gate_up = true;
  m.hidden_dropout = c.is_above_zero("resid_pdrop", false);
  if (c.fraction("partial_rotary_factor", 1) < 1)
    d.recording_notes.emplace_back("rotary positions are recorded over whole heads, not a part of them");
  set_activation(d, c.text({"hidden_act"}, "silu"));
  return d;
}

}  // namespace gpumem::cli
