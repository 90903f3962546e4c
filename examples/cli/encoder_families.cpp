// SPDX-License-Identifier: MIT
// Encoders (counted as their base model with pooler, recorded with a classifier's head) and T5.
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

encoder_classifier classifier_of(encoder const& m, config_object const& c) {
  return {.layers = m.layers,
          .hidden = m.hidden,
          .heads = m.heads,
          .vocabulary = m.vocabulary,
          .positions = m.positions,
          .feed_forward = m.feed_forward,
          .token_types = m.token_types,
          .attention_dropout = c.is_above_zero("attention_probs_dropout_prob", true),
          .hidden_dropout = c.is_above_zero("hidden_dropout_prob", true)};
}

void add_classifier(described_model& to, config_object const& c, encoder_classifier numbers,
                    std::string_view activation_field, std::string_view dropout_field) {
  std::string const name = c.text({activation_field}, "gelu");
  if (auto const known = known_activation(name))
    numbers.activation = *known;
  else
    to.not_modelled = "the activation function \"" + one_line(name, 40) + "\"";
  numbers.head_dropout = c.is_above_zero(dropout_field, numbers.hidden_dropout);
  to.classifier = numbers;
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

described_model describe_bert(config_object const& c) {
  encoder const m = read_bert(c);
  described_model d = described(m);
  add_classifier(d, c, classifier_of(m, c), "hidden_act", "classifier_dropout");
  if (m.distances) d.not_modelled = "relative positions";
  return d;
}

described_model describe_roberta(config_object const& c) {
  described_model d = describe_bert(c);
  std::int64_t const token_types = d.classifier->token_types;
  d.classifier = roberta(*d.classifier);
  d.classifier->token_types = token_types;
  d.longest_sequence -= d.classifier->padding_rows;
  return d;
}

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
  described_model d = described(m);
  encoder_classifier numbers = distilbert(classifier_of(m, c));
  numbers.hidden_dropout = c.is_above_zero("dropout", true);
  numbers.attention_dropout = c.is_above_zero("attention_dropout", true);
  add_classifier(d, c, numbers, "activation", "seq_classif_dropout");
  return d;
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
