// SPDX-License-Identifier: MIT
// The kinds of transformer block whose saved bytes were measured (tests/data/README.md), as models and plans of ours.
#pragma once
#include <gpumem/estimate.hpp>
#include <gpumem/models/encoder_classifier.hpp>
#include <gpumem/models/transformer.hpp>

#include <cstdint>

namespace measured_blocks {

enum class architecture : std::uint8_t { gpt2, llama, bert };
enum class precision : std::uint8_t { fp32, bf16, autocast };

struct kind {
  architecture arch = architecture::gpt2;
  bool flash = false;
  bool fused = false;  // GPT-2 and BERT: GELU in one kernel; Llama: RMSNorm and SwiGLU in one kernel each
  precision prec = precision::fp32;
  bool dropout = false;
};

struct shape {
  std::int64_t batch = 1, sequence = 1, hidden = 1, heads = 1, kv_heads = 1, feed_forward = 1;
};

constexpr gpumem::transformer model(kind const& k, shape const& s) {
  gpumem::transformer m{.layers = 1,
                        .hidden = s.hidden,
                        .heads = s.heads,
                        .vocabulary = 8,
                        .positions = s.sequence,
                        .kv_heads = s.kv_heads,
                        .feed_forward = s.feed_forward};
  if (k.arch == architecture::llama) return gpumem::llama(m);
  m.activation = k.fused ? gpumem::activation::gelu : gpumem::activation::gelu_new;
  m.embedding_dropout = m.attention_dropout = m.hidden_dropout = k.dropout;
  return m;
}

constexpr gpumem::encoder_classifier bert_model(kind const& k, shape const& s) {
  return {.layers = 1,
          .hidden = s.hidden,
          .heads = s.heads,
          .vocabulary = 8,
          .positions = s.sequence,
          .feed_forward = s.feed_forward,
          .attention_dropout = k.dropout,
          .hidden_dropout = k.dropout};
}

constexpr gpumem::plan plan_of(kind const& k) {
  gpumem::plan p;
  p.precision = k.prec == precision::fp32   ? gpumem::fp32::numbers
                : k.prec == precision::bf16 ? gpumem::pure<>::numbers
                                            : gpumem::autocast<>::numbers;
  p.attention = k.flash ? gpumem::attention_kind::flash : gpumem::attention_kind::eager;
  p.kernels = k.fused ? gpumem::kernel_kind::fused : gpumem::kernel_kind::eager;
  return p;
}

constexpr std::uint64_t saved(kind const& k, shape const& s) {
  const gpumem::workload load{.micro_batch = s.batch, .sequence = s.sequence};
  const gpumem::breakdown b = k.arch == architecture::bert ? gpumem::estimate(bert_model(k, s), load, plan_of(k))
                                                           : gpumem::estimate(model(k, s), load, plan_of(k));
  return b.saved_per_layer.value;
}

}  // namespace measured_blocks
