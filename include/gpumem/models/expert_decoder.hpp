// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/decoder.hpp>

#include <cstdint>

namespace gpumem {

/// The MLPs of a decoder with expert layers: `dense_layers` of its layers have one plain gated MLP, the others a
/// router, `experts` gated MLPs and, where they have a width, shared ones.
struct expert_layers {
  std::int64_t dense_layers = 0;
  std::int64_t dense_width = 0;   // of the plain MLP; needed where there are dense layers
  std::int64_t experts = 0;       // of each expert layer, all of them, not those that a token visits
  std::int64_t expert_width = 0;  // of one expert
  std::int64_t shared_width = 0;  // of the shared experts together; 0: none
  bool shared_gate = false;       // a gate on the shared expert (Qwen2-MoE)
  bool router_bias = false;
  bool expert_bias = false;

  friend constexpr bool operator==(expert_layers const&, expert_layers const&) = default;
};

/// A decoder with expert layers (Mixtral, Qwen-MoE, gpt-oss). Its parameters are counted; its operations are not
/// recorded.
struct expert_decoder {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  grouped_attention attention{};
  expert_layers mlp{};
  bool tied_head = false;

  friend constexpr bool operator==(expert_decoder const&, expert_decoder const&) = default;
};

/// Refuses numbers that no stack of `layers` layers can have.
constexpr void check(expert_layers const& e, std::int64_t layers) {
  require_not_negative("dense_layers", e.dense_layers);
  require_rule(e.dense_layers <= layers, "dense_layers", e.dense_layers, "must not exceed layers");
  require_not_negative("shared_width", e.shared_width);
  if (e.dense_layers != 0) require_positive("dense_width", e.dense_width);
  if (e.dense_layers == layers) return;
  require_positive("experts", e.experts);
  require_positive("expert_width", e.expert_width);
}

/// Refuses numbers that no decoder with expert layers can have.
constexpr void check(expert_decoder const& m) {
  require_positive("layers", m.layers);
  require_positive("hidden", m.hidden);
  require_positive("vocabulary", m.vocabulary);
  check(m.attention, m.hidden);
  check(m.mlp, m.layers);
}

/// The MLPs of all layers.
constexpr void record_parameters(parameter_listing& list, expert_layers const& e, std::int64_t layers,
                                 std::int64_t hidden) {
  const std::int64_t expert_layer_count = layers - e.dense_layers;
  list.repeat(e.dense_layers, [&] { record_feed_forward(list, hidden, e.dense_width, true, false); });
  list.repeat(expert_layer_count, [&] {
    list.linear(hidden, e.experts, e.router_bias);
    if (e.shared_width != 0) record_feed_forward(list, hidden, e.shared_width, true, false);
    if (e.shared_gate) list.linear(hidden, 1, false);
  });
  list.repeat(product_of("experts", e.experts, expert_layer_count),
              [&] { record_feed_forward(list, hidden, e.expert_width, true, e.expert_bias); });
}

/// The parameters of a stack of pre-norm blocks with some attention and expert layers.
template <class Decoder>
constexpr void record_expert_stack(tape& onto, Decoder const& m) {
  parameter_listing list{onto};
  list.embedding(m.vocabulary, m.hidden);
  list.repeat(m.layers, [&] {
    list.norm(m.hidden, false), list.norm(m.hidden, false);
    record_parameters(list, m.attention, m.hidden);
  });
  record_parameters(list, m.mlp, m.layers, m.hidden);
  list.norm(m.hidden, false);
  if (!m.tied_head) list.linear(m.hidden, m.vocabulary, false);
}

/// The parameters of a decoder with expert layers.
constexpr void record_parameters(tape& onto, expert_decoder const& m) { record_expert_stack(onto, m); }

static_assert(counted_model<expert_decoder>);

}  // namespace gpumem
