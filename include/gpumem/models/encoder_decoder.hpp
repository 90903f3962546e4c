// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/decoder.hpp>

#include <cstdint>

namespace gpumem {

/// An encoder and a decoder with cross-attention over one token table, of T5's kind: RMSNorm, no biases, relative
/// positions in the first block of each stack. Its parameters are counted; its operations are not recorded.
struct encoder_decoder {
  std::int64_t encoder_layers = 0;
  std::int64_t decoder_layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t feed_forward = 0;
  std::int64_t vocabulary = 0;
  std::int64_t relative_buckets = 32;
  bool gated = false;
  bool tied_head = true;

  friend constexpr bool operator==(encoder_decoder const&, encoder_decoder const&) = default;
};

/// Refuses numbers that no encoder-decoder can have.
constexpr void check(encoder_decoder const& m) {
  require_positive("encoder_layers", m.encoder_layers);
  require_positive("decoder_layers", m.decoder_layers);
  require_positive("hidden", m.hidden);
  require_positive("heads", m.heads);
  require_positive("head_dim", m.head_dim);
  require_positive("feed_forward", m.feed_forward);
  require_positive("vocabulary", m.vocabulary);
  require_positive("relative_buckets", m.relative_buckets);
}

/// The parameters of an encoder-decoder.
constexpr void record_parameters(tape& onto, encoder_decoder const& m) {
  parameter_listing list{onto};
  auto attention = [&] {
    list.norm(m.hidden, false);
    record_parameters(list, grouped_attention{.heads = m.heads, .head_dim = m.head_dim}, m.hidden);
  };
  auto feed_forward = [&] {
    list.norm(m.hidden, false);
    record_feed_forward(list, m.hidden, m.feed_forward, m.gated, false);
  };
  list.embedding(m.vocabulary, m.hidden);
  list.embedding(m.relative_buckets, m.heads);
  list.embedding(m.relative_buckets, m.heads);
  list.repeat(m.encoder_layers, [&] { attention(), feed_forward(); });
  list.repeat(m.decoder_layers, [&] { attention(), attention(), feed_forward(); });
  list.norm(m.hidden, false), list.norm(m.hidden, false);
  if (!m.tied_head) list.linear(m.hidden, m.vocabulary, false);
}

static_assert(counted_model<encoder_decoder>);

}  // namespace gpumem
