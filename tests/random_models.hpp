// SPDX-License-Identifier: MIT
// Random models, plans and workloads for properties that hold for all of them.
#pragma once
#include <gpumem/estimate.hpp>
#include <gpumem/models/encoder_classifier.hpp>
#include <gpumem/models/families.hpp>
#include <gpumem/models/transformer.hpp>

#include <cstdint>
#include <random>

namespace random_models {

using namespace gpumem;

class source {
 public:
  explicit source(unsigned seed) : random_{seed} {}

  std::int64_t pick(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>{from, to}(random_);
  }
  bool coin() { return pick(0, 1) != 0; }

  /// A decoder of any family, or any mixture of what families have.
  transformer decoder() {
    const std::int64_t heads = pick(1, 4);
    transformer m{.layers = pick(1, 6),
                  .hidden = 8 * pick(1, 8) * heads,
                  .heads = heads,
                  .vocabulary = pick(10, 3000),
                  .positions = 1024,
                  .kv_heads = coin() ? heads : 1};
    switch (pick(0, 9)) {
      case 0: return llama(m, coin());
      case 1: return qwen3(m, coin());
      case 2: return phi3(m, coin());
      case 3: return internlm2(m, coin());
      case 4: return gemma(m);
      case 5: return gemma2(m);
      case 6: return gemma3(m);
      case 7: return falcon(m);
      case 8: m.kv_heads = 0; return m;
      default: break;
    }
    m.norm = static_cast<norm>(pick(0, 2)), m.position = static_cast<position>(pick(0, 1));
    m.activation = static_cast<activation>(pick(0, 5)), m.block = static_cast<block_order>(pick(0, 2));
    m.gated = coin(), m.fused_qkv = coin(), m.interleaved_qkv = coin(), m.fused_gate_up = coin(), m.qkv_bias = coin();
    m.output_bias = coin(), m.feed_forward_bias = coin(), m.tied_head = coin(), m.embedding_dropout = coin();
    m.attention_dropout = coin(), m.hidden_dropout = coin(), m.qk_norm = coin(), m.scaled_embedding = coin();
    m.softcap = coin();
    return m;
  }
  encoder_classifier encoder() {
    const std::int64_t heads = pick(1, 4);
    const encoder_classifier m{.layers = pick(1, 6),
                               .hidden = 8 * pick(1, 8) * heads,
                               .heads = heads,
                               .vocabulary = pick(10, 3000),
                               .positions = 1024,
                               .labels = pick(1, 5),
                               .activation = static_cast<activation>(pick(0, 5)),
                               .attention_dropout = coin(),
                               .hidden_dropout = coin(),
                               .head_dropout = coin()};
    return coin() ? m : coin() ? roberta(m) : distilbert(m);
  }
  /// Everything but checkpointing, which the tests are about.
  plan how() {
    constexpr precision precisions[] = {fp32::numbers,   mixed<>::numbers,          autocast<>::numbers,
                                        pure<>::numbers, master_weights<>::numbers, megatron<>::numbers};
    const optimizer optimizers[] = {detail::optimizer_of<adamw>(), detail::optimizer_of<adamw_loop>(),
                                    detail::optimizer_of<adamw_8bit>(), detail::optimizer_of<sgd_momentum>()};
    plan p;
    p.precision = precisions[pick(0, 5)], p.optimizer = optimizers[pick(0, 3)];
    p.attention = coin() ? attention_kind::flash : attention_kind::eager;
    p.kernels = coin() ? kernel_kind::eager : kernel_kind::fused;
    if (pick(0, 3) == 0) p.runtime = pytorch_1_13_cpu::numbers;
    return p;
  }
  workload load(std::int64_t longest = 300) {
    return {.micro_batch = pick(1, 3), .sequence = pick(1, longest), .accumulation = pick(1, 3)};
  }

 private:
  std::mt19937 random_;
};

}  // namespace random_models
