// SPDX-License-Identifier: MIT
// How each family of configs names its numbers, and what its library's class assumes where a field is absent.
#pragma once
#include <optional>

#include "config.hpp"
#include "config_object.hpp"

namespace gpumem::cli {

struct head_numbers {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
};

/// What a class assumes about heads where a config says nothing: 0 stands for "as many as heads" and "hidden / heads".
/// null means absent, but for key-value heads some classes define it as "as many as heads" whatever the default is.
struct head_defaults {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  bool null_kv_is_heads = false;
};

/// Heads, key-value heads and their width, with the rules that hold between them.
head_numbers read_heads(config_object const& c, std::int64_t hidden, head_defaults const& defaults = {});

/// The attention of those heads.
constexpr grouped_attention attention_of(head_numbers const& h, bool qkv_bias, bool output_bias) {
  return {.heads = h.heads,
          .kv_heads = h.kv_heads,
          .head_dim = h.head_dim,
          .qkv_bias = qkv_bias,
          .output_bias = output_bias};
}

/// Refuses heads that do not divide `hidden`, where there is no head_dim.
void require_heads_divide(config_object const& c, std::string_view heads_name, std::int64_t heads,
                          std::string_view hidden_name, std::int64_t hidden);

/// The activation function of a name in Hugging Face's table; none where it is not recorded.
std::optional<activation> known_activation(std::string_view name);

described_model describe_gpt2(config_object const& c);
described_model describe_llama(config_object const& c);
described_model describe_mistral(config_object const& c);
described_model describe_qwen2(config_object const& c);
described_model describe_gemma(config_object const& c);
described_model describe_gemma2(config_object const& c);
described_model describe_gemma3(config_object const& c);
described_model describe_gemma3_text(config_object const& c);
described_model describe_internlm2(config_object const& c);
described_model describe_qwen3(config_object const& c);
described_model describe_phi3(config_object const& c);

described_model describe_bloom(config_object const& c);
described_model describe_cohere(config_object const& c);
described_model describe_opt(config_object const& c);
described_model describe_phi(config_object const& c);
described_model describe_phi_msft(config_object const& c);

described_model describe_deepseek_v3(config_object const& c);
described_model describe_gpt_oss(config_object const& c);
described_model describe_mixtral(config_object const& c);
described_model describe_qwen2_moe(config_object const& c);
described_model describe_qwen3_moe(config_object const& c);

described_model describe_albert(config_object const& c);
described_model describe_bert(config_object const& c);
described_model describe_distilbert(config_object const& c);
described_model describe_roberta(config_object const& c);
described_model describe_t5(config_object const& c);

}  // namespace gpumem::cli
