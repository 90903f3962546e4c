// SPDX-License-Identifier: MIT
#include "config.hpp"

#include <gpumem/core/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "families.hpp"
#include "input_error.hpp"
#include "json_table.hpp"

namespace gpumem::cli {
namespace {

struct family {
  std::string_view model_type;
  described_model (*describe)(config_object const&);
};

constexpr family families[] = {
    {"albert", describe_albert},
    {"bert", describe_bert},
    {"bloom", describe_bloom},
    {"cohere", describe_cohere},
    {"deepseek_v3", describe_deepseek_v3},
    {"distilbert", describe_distilbert},
    {"gemma", describe_gemma},
    {"gemma2", describe_gemma2},
    {"gemma3", describe_gemma3},
    {"gemma3_text", describe_gemma3_text},
    {"gpt2", describe_gpt2},
    {"gpt_oss", describe_gpt_oss},
    {"internlm2", describe_internlm2},
    {"llama", describe_llama},
    {"mistral", describe_mistral},
    {"mixtral", describe_mixtral},
    {"opt", describe_opt},
    {"phi", describe_phi},
    {"phi-msft", describe_phi_msft},
    {"phi3", describe_phi3},
    {"qwen2", describe_qwen2},
    {"qwen2_moe", describe_qwen2_moe},
    {"qwen3", describe_qwen3},
    {"qwen3_moe", describe_qwen3_moe},
    {"roberta", describe_roberta},
    {"t5", describe_t5},
};

family const& family_of(std::string_view model_type) {
  for (family const& f : families)
    if (f.model_type == model_type) return f;
  refuse("model_type", '"' + one_line(model_type, 40) + '"', "not known; known are " + known_model_types());
}

// A config of a model that is not known is refused for that, even where its JSON breaks further down: Python writes
// Infinity into some.
void refuse_unknown_model_type(json_table const& read_so_far) {
  json_value const* const type = read_so_far.find(0, "model_type");
  if (type != nullptr && type->is == json_value::kind::text) family_of(type->written);
}

}  // namespace

std::string known_model_types() {
  std::string names;
  for (family const& f : families) names.append(names.empty() ? "" : ", ").append(f.model_type);
  return names;
}

described_model describe(std::string_view text) {
  json_table const table = read_json(text, refuse_unknown_model_type);
  config_object const config{table, 0, ""};
  std::string model_type = config.text({"model_type"}, "");
  bool const early_roberta = model_type.empty() && config.has({"type_vocab_size"}) && config.has({"hidden_size"}) &&
                             config.has({"num_attention_heads"});
  if (early_roberta) model_type = "roberta";
  if (model_type.empty()) throw input_error("model_type is missing: must be one of " + known_model_types());
  described_model d = family_of(model_type).describe(config);
  d.model_type = model_type;
  if (early_roberta) d.notes.emplace_back("model_type is missing; taken for roberta");
  if (config.has({"quantization_config"}))
    d.notes.emplace_back("quantization_config: logical elements are counted, not packed ones or block scales");
  return d;
}

std::string read_file(std::string const& path) {
  auto const fail = [&](std::string const& reason) { throw input_error(printable(path) + ": " + reason); };
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file{std::fopen(path.c_str(), "rb"), std::fclose};
  if (!file) fail(std::string("cannot be opened: ") + std::strerror(errno));
  std::string text;
  char block[1 << 16];
  while (text.size() <= json_table::most_bytes) {
    std::size_t const n = std::fread(block, 1, sizeof block, file.get());
    text.append(block, n);
    if (n == sizeof block) continue;
    if (std::ferror(file.get()) != 0) fail(std::string("cannot be read: ") + std::strerror(errno));
    break;
  }
  return text;
}

parameter_count count_parameters(described_model const& m) {
  return std::visit([](auto const& numbers) { return gpumem::count_parameters(numbers); }, m.numbers);
}

}  // namespace gpumem::cli
