// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/activate.hpp>
#include <gpumem/models/model.hpp>

#include <cstdint>

namespace gpumem {

/// What stands between the encoder's first token and the labels: BERT's pooler (dense, tanh) and a linear layer;
/// RoBERTa's head, with a dropout before its dense layer as well; DistilBERT's, with ReLU in place of tanh.
enum class classifier_head : std::uint8_t { pooler, roberta, distilbert };

/// An encoder with post-norm blocks (BERT, RoBERTa, DistilBERT) and a sequence classifier on its first token, in
/// numbers. The defaults are BERT's; a 0 takes the default that its comment names. Every number is checked by `check`.
struct encoder_classifier {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;  // must divide hidden
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;     // rows of the learned table
  std::int64_t feed_forward = 0;  // 0: 4 * hidden
  std::int64_t token_types = 2;   // rows of the token-type table; 0: no table (DistilBERT)
  std::int64_t labels = 2;
  std::int64_t padding_rows =
      0;  // rows of the position table before the first token's, numbered per token (RoBERTa: 2)
  gpumem::activation activation = gpumem::activation::gelu;
  classifier_head head = classifier_head::pooler;
  bool attention_dropout = true;
  bool hidden_dropout = true;  // after the embeddings and after the attention's and the MLP's output projection
  bool head_dropout = true;

  [[nodiscard]] constexpr std::int64_t mlp_width() const { return feed_forward != 0 ? feed_forward : 4 * hidden; }

  friend constexpr bool operator==(encoder_classifier const&, encoder_classifier const&) = default;
};

/// The same numbers as RoBERTa: positions numbered per token behind two rows for padding, no pooler, its own head.
constexpr encoder_classifier roberta(encoder_classifier numbers) {
  numbers.padding_rows = 2, numbers.token_types = 1, numbers.head = classifier_head::roberta;
  return numbers;
}

/// The same numbers as DistilBERT: no token types, no pooler, a head with ReLU.
constexpr encoder_classifier distilbert(encoder_classifier numbers) {
  numbers.token_types = 0, numbers.head = classifier_head::distilbert;
  return numbers;
}

/// Refuses numbers that no encoder can have, naming the field, its value and the rule.
constexpr void check(encoder_classifier const& m) {
  require_positive("layers", m.layers);
  require_positive("hidden", m.hidden);
  require_positive("heads", m.heads);
  require_positive("vocabulary", m.vocabulary);
  require_positive("positions", m.positions);
  require_not_negative("feed_forward", m.feed_forward);
  require_not_negative("token_types", m.token_types);
  require_positive("labels", m.labels);
  require_not_negative("padding_rows", m.padding_rows);
  require_rule(m.hidden % m.heads == 0, "heads", m.heads, "must divide hidden");
}

/// As above, and refuses a sequence that is longer than the position table allows.
constexpr void check(encoder_classifier const& m, workload const& load) {
  check(m), check(load);
  require_rule(load.sequence <= m.positions - m.padding_rows, "sequence", load.sequence,
               "must not exceed the learned position table");
}

namespace detail {

/// Embeddings of tokens, token types and positions, summed, normed and dropped out (BertEmbeddings).
constexpr ref record_embeddings(operations& ops, encoder_classifier const& m, workload const& load, ref ids) {
  tape& t = ops.recording;
  const ref table = ops.parameter(m.vocabulary, m.hidden, role::embedding), words = ops.embedding(table, ids, m.hidden);
  ref types, sum = words;
  if (m.token_types != 0) {
    const ref type_ids = t.constant(load.tokens(), dtype::int64);
    const ref type_table = ops.parameter(m.token_types, m.hidden, role::embedding);
    types = ops.embedding(type_table, type_ids, m.hidden);
    sum = ops.add(words, types);
  }
  const ref position_table = ops.parameter(m.positions, m.hidden, role::embedding);
  const ref position_ids = t.make(m.padding_rows != 0 ? load.tokens() : load.sequence, dtype::int64);
  t.record({.name = "position ids"});
  const ref positions = ops.embedding(position_table, position_ids, m.hidden);
  if (types)
    sum = ops.add_in_place(sum, positions);
  else
    sum = ops.add_broadcast(sum, positions);
  const ref normed = ops.layer_norm(sum, m.hidden), embedded = ops.dropout(normed, m.hidden_dropout);
  t.until_here(words), t.until_here(sum), t.until_here(positions);  // locals of the module
  if (types) t.until_here(types);
  return embedded;
}

/// One post-norm block: attention and MLP, each added to what it read, and the sum normed (BertLayer).
constexpr ref record_block(operations& ops, encoder_classifier const& m, workload const& load, ref mask, ref x) {
  tape& t = ops.recording;
  const ref q = ops.linear(x, m.hidden, m.hidden), k = ops.linear(x, m.hidden, m.hidden),
            v = ops.linear(x, m.hidden, m.hidden);
  const ref mixed = ops.attention(q, k, v,
                                  {.batch = load.micro_batch,
                                   .sequence = load.sequence,
                                   .heads = m.heads,
                                   .kv_heads = m.heads,
                                   .head_dim = m.hidden / m.heads,
                                   .dropout = m.attention_dropout,
                                   .mask = mask});
  t.until_here(q), t.until_here(k), t.until_here(v);
  const ref projected = ops.linear(mixed, m.hidden, m.hidden), dropped = ops.dropout(projected, m.hidden_dropout);
  const ref attended = ops.add(dropped, x), middle = ops.layer_norm(attended, m.hidden);
  t.until_here(dropped), t.until_here(mixed);
  const ref up = ops.linear(middle, m.hidden, m.mlp_width()), inner = activate(ops, m.activation, up);
  const ref down = ops.linear(inner, m.mlp_width(), m.hidden), thinned = ops.dropout(down, m.hidden_dropout);
  const ref sum = ops.add(thinned, middle), y = ops.layer_norm(sum, m.hidden);
  t.until_here(thinned), t.until_here(inner);
  return y;
}

/// The first token of each sequence through the head (BertPooler, RobertaClassificationHead, DistilBERT's two layers).
constexpr ref record_head(operations& ops, encoder_classifier const& m, workload const& load, ref x) {
  const bool flat = true;
  const std::int64_t features = load.micro_batch * m.hidden;
  ref first = ops.slice(x, features);
  if (m.head == classifier_head::roberta) first = ops.dropout(first, m.head_dropout);
  const linear_weights dense = ops.declare_linear(m.hidden, m.hidden, true);
  const ref mixed = ops.linear(first, dense, flat);
  const ref bounded =
      m.head == classifier_head::distilbert ? ops.relu(mixed) : ops.saving_result("tanh", mixed, ops.type(mixed));
  const ref dropped = ops.dropout(bounded, m.head_dropout);
  const linear_weights classifier = ops.declare_linear(m.hidden, m.labels, true);
  return ops.linear(dropped, classifier, flat);
}

}  // namespace detail

/// Records a micro-batch of an encoder as Hugging Face runs it for sequence classification: embeddings, blocks, head
/// and, where it trains, the cross-entropy of the labels.
constexpr ref record(operations& ops, encoder_classifier const& m, workload const& load) {
  tape& t = ops.recording;
  const ref ids = t.constant(load.tokens(), dtype::int64), labels = t.constant(load.micro_batch, dtype::int64);
  t.constant(load.tokens(), dtype::int64);  // the batch's attention mask
  ref mask, x = detail::record_embeddings(ops, m, load, ids);
  if (ops.how.attention == attention_kind::eager) {
    mask = t.make(load.tokens(), ops.stream());
    t.record({.name = "extended mask"});
  }
  x = ops.blocks(m.layers, x, [&](ref in) { return detail::record_block(ops, m, load, mask, in); });
  t.enter_loss();
  const ref logits = detail::record_head(ops, m, load, x);
  if (!ops.how.optimizer.trains) return logits;
  const ref loss = ops.cross_entropy(logits, labels);
  t.until_here(logits), t.until_here(x);  // the model's output object
  return loss;
}

static_assert(model<encoder_classifier>);

}  // namespace gpumem
