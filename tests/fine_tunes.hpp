// SPDX-License-Identifier: MIT
// Full fine-tunes on one A100 80 GB: torch 2.4.1, transformers 4.45.2 (aliger, agranite) or 4.48.1 (a), bf16 weights,
// AdamW with foreach, reentrant checkpoints of every block, FlashAttention 2 (foundation-model-stack/fms-acceleration).
#pragma once
#include <gpumem/estimate.hpp>
#include <gpumem/models/transformer.hpp>

#include <cstdint>

namespace measured {

using namespace gpumem;

inline constexpr transformer mistral_7b =
    llama({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 32000, .kv_heads = 8, .feed_forward = 14336});
inline constexpr transformer llama3_8b =
    llama({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 128256, .kv_heads = 8, .feed_forward = 14336});
/// The log's 3,510,819,072 parameters have no biases; its end-of-train bytes say that every linear layer has one.
constexpr transformer powerlm_3b(bool biases) {
  transformer m = llama({.layers = 40, .hidden = 2304, .heads = 36, .vocabulary = 49152, .feed_forward = 9216}, true);
  m.multipliers = true, m.qkv_bias = m.output_bias = m.feed_forward_bias = biases;
  return m;
}
inline constexpr transformer santacoder_1b{.layers = 24,
                                           .hidden = 2048,
                                           .heads = 16,
                                           .vocabulary = 49280,
                                           .positions = 2048,
                                           .kv_heads = 1,
                                           .activation = activation::gelu};

template <policy... Policies>
constexpr plan fine_tuning(Policies... policies) {
  return make_plan(pure<>{}, checkpoint_every<1>{}, policies...);
}
inline constexpr plan stock_4_45 = fine_tuning(eager_loss_4_45{}), stock_4_48 = fine_tuning(eager_loss_4_46{}),
                      fast = fine_tuning(triton_loss{}, unsloth_kernels{}),
                      fast_repeated = fine_tuning(triton_loss{}, unsloth_kernels{}, flash_attention_repeated{}),
                      fast_liger = fine_tuning(fused_linear_loss{}, unsloth_kernels{}),
                      fast_liger_repeated =
                          fine_tuning(fused_linear_loss{}, unsloth_kernels{}, flash_attention_repeated{});

/// A run: its identifier in tests/data/measured_runs.csv, and how it ran.
struct fine_tune {
  char const* id;
  transformer model;
  workload load;
  plan how;
};

inline constexpr fine_tune fine_tunes[] = {
    {"fms-a-005", santacoder_1b, {4, 2048}, fast},
    {"fms-a-009", mistral_7b, {4, 4096}, stock_4_48},
    {"fms-a-011", mistral_7b, {8, 4096}, stock_4_48},
    {"fms-a-013", mistral_7b, {4, 4096}, fast},
    {"fms-agranite-088", powerlm_3b(false), {8, 4096}, stock_4_45},
    {"fms-agranite-092", powerlm_3b(false), {8, 4096}, fast},
    {"fms-aliger-114", llama3_8b, {4, 4096}, fast},
    {"fms-aliger-116", llama3_8b, {8, 4096}, fast_liger},
    {"fms-aliger-172", mistral_7b, {4, 4096}, fast_repeated},
    {"fms-aliger-173", mistral_7b, {8, 4096}, fast_repeated},
    {"fms-aliger-174", mistral_7b, {4, 4096}, fast_liger_repeated},
    {"fms-aliger-176", mistral_7b, {16, 4096}, fast_liger_repeated},
};

}  // namespace measured
