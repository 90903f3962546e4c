// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/decoder.hpp>

#include <cstdint>

namespace gpumem {

/// An encoder of BERT's kind without a task's head. Its parameters are counted; its operations are not recorded. The
/// defaults are BERT's.
struct encoder {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t feed_forward = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;
  std::int64_t token_types = 0;      // rows of the token-type table; 0: no table
  std::int64_t embedding_width = 0;  // 0: hidden; else the tables' width, with a projection to hidden (ALBERT)
  std::int64_t distinct_layers = 0;  // 0: layers; else so many are stored and shared (ALBERT)
  bool distances = false;            // each stored layer has a table of relative positions
  bool pooler = true;

  friend constexpr bool operator==(encoder const&, encoder const&) = default;
};

/// Refuses numbers that no encoder can have.
constexpr void check(encoder const& m) {
  require_positive("layers", m.layers);
  require_positive("hidden", m.hidden);
  require_positive("heads", m.heads);
  require_positive("feed_forward", m.feed_forward);
  require_positive("vocabulary", m.vocabulary);
  require_positive("positions", m.positions);
  require_not_negative("token_types", m.token_types);
  require_not_negative("embedding_width", m.embedding_width);
  require_not_negative("distinct_layers", m.distinct_layers);
  require_rule(m.hidden % m.heads == 0, "heads", m.heads, "must divide hidden");
}

/// The parameters of an encoder.
constexpr void record_parameters(tape& onto, encoder const& m) {
  parameter_listing list{onto};
  const std::int64_t width = m.embedding_width != 0 ? m.embedding_width : m.hidden;
  list.embedding(m.vocabulary, width);
  list.embedding(m.positions, width);
  if (m.token_types != 0) list.embedding(m.token_types, width);
  list.norm(width, true);
  if (m.embedding_width != 0) list.linear(width, m.hidden, true);
  list.repeat(m.distinct_layers != 0 ? m.distinct_layers : m.layers, [&] {
    record_parameters(list, grouped_attention{.heads = m.heads, .qkv_bias = true, .output_bias = true}, m.hidden);
    list.norm(m.hidden, true);
    record_feed_forward(list, m.hidden, m.feed_forward, false, true);
    list.norm(m.hidden, true);
    if (m.distances) list.embedding(2 * m.positions - 1, m.hidden / m.heads);
  });
  if (m.pooler) list.linear(m.hidden, m.hidden, true);
}

static_assert(counted_model<encoder>);

}  // namespace gpumem
