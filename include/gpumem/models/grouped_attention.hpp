// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/counted_model.hpp>

#include <cstdint>

namespace gpumem {

/// Norms on queries and keys: none, one over the width of a head that all heads share, or a weight for every head.
enum class query_key_norm : std::uint8_t { none, shared_by_heads, per_head };

/// The parameters of an attention with grouped key-value heads.
struct grouped_attention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // 0: heads
  std::int64_t head_dim = 0;  // 0: hidden / heads, which must then divide
  query_key_norm norms = query_key_norm::none;
  bool norm_bias = false;
  bool qkv_bias = false;
  bool output_bias = false;
  bool sinks = false;  // one learned logit a head (gpt-oss)

  [[nodiscard]] constexpr std::int64_t key_value_heads() const { return kv_heads != 0 ? kv_heads : heads; }
  [[nodiscard]] constexpr std::int64_t head_width(std::int64_t hidden) const {
    return head_dim != 0 ? head_dim : hidden / heads;
  }
  friend constexpr bool operator==(grouped_attention const&, grouped_attention const&) = default;
};

/// Refuses numbers that no attention over `hidden` features can have.
constexpr void check(grouped_attention const& a, std::int64_t hidden) {
  require_positive("heads", a.heads);
  require_not_negative("kv_heads", a.kv_heads);
  require_not_negative("head_dim", a.head_dim);
  require_rule(a.head_dim != 0 || hidden % a.heads == 0, "heads", a.heads,
               "must divide hidden where head_dim is not given");
  require_rule(a.heads % a.key_value_heads() == 0, "kv_heads", a.kv_heads, "must divide heads");
}

/// Projections, norms and sinks of one attention.
constexpr void record_parameters(parameter_listing& list, grouped_attention const& a, std::int64_t hidden) {
  const std::int64_t width = a.head_width(hidden), kv_heads = a.key_value_heads();
  const std::int64_t queries = product_of("heads", a.heads, width), keys = product_of("kv_heads", kv_heads, width);
  list.linear(hidden, queries, a.qkv_bias);
  list.linear(hidden, keys, a.qkv_bias);
  list.linear(hidden, keys, a.qkv_bias);
  list.linear(queries, hidden, a.output_bias);
  if (a.norms == query_key_norm::shared_by_heads) list.norm(width, a.norm_bias), list.norm(width, a.norm_bias);
  if (a.norms == query_key_norm::per_head) list.norm(queries, a.norm_bias), list.norm(keys, a.norm_bias);
  if (a.sinks) list.vector(a.heads, role::weight);
}

}  // namespace gpumem
