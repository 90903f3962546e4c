// SPDX-License-Identifier: MIT
// Encoders (as their base model with pooler) and T5.
#include "families.hpp"
#include "input_error.hpp"

namespace gpumem::cli {
namespace {

bool has_distances(config_object const& c) {
  std::string const kind = c.text({"position_embedding_type"}, "absolute");
  return kind == "relative_key" || kind == "relative_key_query";
}

described_model described(encoder const& m) {
  return {.numbers = m, .longest_sequence = m.positions, .learned_positions = true};
}

encoder read_bert(config_object const& c) {
  c.require_false("add_cross_attention");
  encoder m{.layers = c.required({"num_hidden_layers"}),
            .hidden = c.required({"hidden_size"}),
            .heads = c.required({"num_attention_heads"}),
            .feed_forward = c.required({"intermediate_size"}),
            .vocabulary = c.required({"vocab_size"}),
            .positions = c.required({"max_position_embeddings"}),
            .token_types = c.number_or_none({"type_vocab_size"}, 2),
            .distances = has_distances(c)};
  require_heads_divide(c, "num_attention_heads", m.heads, "hidden_size", m.hidden);
  return m;
}

}  // namespace

described_model describe_bert(config_object const& c) { return described(read_bert(c)); }

described_model describe_albert(config_object const& c) {
  encoder m = read_bert(c);
  m.embedding_width = c.number({"embedding_size"}, 128);
  std::int64_t const groups = c.number({"num_hidden_groups"}, 1), inner = c.number({"inner_group_num"}, 1);
  m.distinct_layers = product_of("num_hidden_groups", groups, inner);
  described_model d = described(m);
  d.notes.push_back(std::to_string(m.layers) + " layers share " + std::to_string(m.distinct_layers) +
                    (m.distinct_layers == 1 ? " stored block" : " stored blocks"));
  return d;
}

described_model describe_distilbert(config_object const& c) {
  encoder m{.layers = c.required({"n_layers", "num_hidden_layers"}),
            .hidden = c.required({"dim", "hidden_size"}),
            .heads = c.required({"n_heads", "num_attention_heads"}),
            .feed_forward = c.required({"hidden_dim"}),
            .vocabulary = c.required({"vocab_size"}),
            .positions = c.required({"max_position_embeddings"}),
            .pooler = false};
  require_heads_divide(c, "n_heads", m.heads, "dim", m.hidden);
  return described(m);
}

described_model describe_t5(config_object const& c) {
  encoder_decoder m{.encoder_layers = c.required({"num_layers", "num_hidden_layers"}),
                    .hidden = c.required({"d_model", "hidden_size"}),
                    .heads = c.required({"num_heads", "num_attention_heads"}),
                    .head_dim = c.required({"d_kv", "head_dim"}),
                    .feed_forward = c.required({"d_ff"}),
                    .vocabulary = c.required({"vocab_size"}),
                    .relative_buckets = c.number({"relative_attention_num_buckets"}, 32),
                    .tied_head = c.flag("tie_word_embeddings", true)};
  m.decoder_layers = c.number({"num_decoder_layers"}, m.encoder_layers);
  std::string const projection = c.text({"feed_forward_proj"}, "relu");
  m.gated = c.flag("is_gated_act", projection.starts_with("gated-"));
  described_model d{.numbers = m, .tied_head = m.tied_head};
  return d;
}

}  // namespace gpumem::cli
