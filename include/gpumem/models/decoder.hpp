// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/grouped_attention.hpp>

#include <cstdint>

namespace gpumem {

/// A dense decoder whose parameters are counted and whose operations are not recorded: blocks that `transformer` does
/// not describe (norms on queries and keys, one shared norm or four a block, projected embeddings, a biased head).
struct decoder {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  std::int64_t feed_forward = 0;
  std::int64_t positions = 0;        // rows of a learned table; 0: none
  std::int64_t embedding_width = 0;  // 0: hidden; else projected in and out (OPT-350m)
  std::int64_t norms_per_block = 2;  // 1: attention and MLP share it; 4: before and after both
  grouped_attention attention{};
  bool norm_weight = true;
  bool norm_bias = false;
  bool embedding_norm = false;  // after the embedding (BLOOM)
  bool final_norm = true;
  bool gated = true;  // act(gate) * up in place of act(up)
  bool feed_forward_bias = false;
  bool tied_head = true;
  bool head_bias = false;

  friend constexpr bool operator==(decoder const&, decoder const&) = default;
};

/// Refuses numbers that no decoder can have.
constexpr void check(decoder const& m) {
  require_positive("layers", m.layers);
  require_positive("hidden", m.hidden);
  require_positive("vocabulary", m.vocabulary);
  require_positive("feed_forward", m.feed_forward);
  require_not_negative("positions", m.positions);
  require_not_negative("embedding_width", m.embedding_width);
  require_rule(m.norms_per_block == 1 || m.norms_per_block == 2 || m.norms_per_block == 4, "norms_per_block",
               m.norms_per_block, "must be 1, 2 or 4");
  check(m.attention, m.hidden);
}

/// The two or three matrices of an MLP.
constexpr void record_feed_forward(parameter_listing& list, std::int64_t hidden, std::int64_t width, bool gated,
                                   bool bias) {
  list.linear(hidden, width, bias);
  if (gated) list.linear(hidden, width, bias);
  list.linear(width, hidden, bias);
}

/// The parameters of a decoder.
constexpr void record_parameters(tape& onto, decoder const& m) {
  parameter_listing list{onto};
  auto norm = [&] {
    if (m.norm_weight) list.norm(m.hidden, m.norm_bias);
  };
  const std::int64_t embedding_width = m.embedding_width != 0 ? m.embedding_width : m.hidden;
  list.embedding(m.vocabulary, embedding_width);
  if (m.positions != 0) list.embedding(m.positions, m.hidden);
  if (embedding_width != m.hidden) {
    list.linear(embedding_width, m.hidden, false);
    list.linear(m.hidden, embedding_width, false);
  }
  if (m.embedding_norm) norm();
  list.repeat(m.layers, [&] {
    for (std::int64_t i = 0; i < m.norms_per_block; ++i) norm();
    record_parameters(list, m.attention, m.hidden);
    record_feed_forward(list, m.hidden, m.feed_forward, m.gated, m.feed_forward_bias);
  });
  if (m.final_norm) norm();
  if (!m.tied_head) list.linear(embedding_width, m.vocabulary, false);
  if (m.head_bias) list.vector(m.vocabulary, role::bias);
}

static_assert(counted_model<decoder>);

}  // namespace gpumem
