// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/expert_decoder.hpp>

#include <cstdint>

namespace gpumem {

/// An attention whose keys and values, and queries where they have a rank, pass through a narrow latent (DeepSeek-V2,
/// arXiv:2405.04434, section 2.1).
struct latent_attention {
  std::int64_t heads = 0;
  std::int64_t query_rank = 0;      // 0: queries are projected at once
  std::int64_t key_value_rank = 0;  // of the latent that keys and values share
  std::int64_t plain_width = 0;     // of a head's query and key without rotary positions
  std::int64_t rotary_width = 0;    // of a head's query, and of the one key for all heads, with rotary positions
  std::int64_t value_width = 0;     // of a head's value
  bool bias = false;                // of the projections into the latents and of the output's

  friend constexpr bool operator==(latent_attention const&, latent_attention const&) = default;
};

/// A decoder with latent attention and expert layers (DeepSeek-V3). Its parameters are counted; its operations are not
/// recorded.
struct latent_decoder {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  latent_attention attention{};
  expert_layers mlp{};
  bool tied_head = false;

  friend constexpr bool operator==(latent_decoder const&, latent_decoder const&) = default;
};

/// Refuses numbers that no decoder with latent attention can have.
constexpr void check(latent_decoder const& m) {
  require_positive("layers", m.layers);
  require_positive("hidden", m.hidden);
  require_positive("vocabulary", m.vocabulary);
  require_positive("heads", m.attention.heads);
  require_not_negative("query_rank", m.attention.query_rank);
  require_positive("key_value_rank", m.attention.key_value_rank);
  require_positive("plain_width", m.attention.plain_width);
  require_positive("rotary_width", m.attention.rotary_width);
  require_positive("value_width", m.attention.value_width);
  check(m.mlp, m.layers);
}

/// Projections and norms of one latent attention.
constexpr void record_parameters(parameter_listing& list, latent_attention const& a, std::int64_t hidden) {
  const std::int64_t queries = product_of("heads", a.heads, a.plain_width + a.rotary_width);
  if (a.query_rank == 0) {
    list.linear(hidden, queries, false);
  } else {
    list.linear(hidden, a.query_rank, a.bias);
    list.norm(a.query_rank, false);
    list.linear(a.query_rank, queries, false);
  }
  list.linear(hidden, a.key_value_rank + a.rotary_width, a.bias);
  list.norm(a.key_value_rank, false);
  list.linear(a.key_value_rank, product_of("heads", a.heads, a.plain_width + a.value_width), false);
  list.linear(product_of("heads", a.heads, a.value_width), hidden, a.bias);
}

/// The parameters of a decoder with latent attention.
constexpr void record_parameters(tape& onto, latent_decoder const& m) { record_expert_stack(onto, m); }

static_assert(counted_model<latent_decoder>);

}  // namespace gpumem
