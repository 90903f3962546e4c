// SPDX-License-Identifier: MIT
// gpumem parameters: exact counts for every model type, and totals that are no counts.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "cli_program.hpp"
#include "config.hpp"

using namespace cli_program;

namespace {

nlohmann::json parameters_of(std::string const& path) {
  result const r = run({"parameters", path, "--format", "json"});
  INFO(path << ": " << r.err);
  REQUIRE(r.status == 0);
  CHECK(r.err.empty());
  return nlohmann::json::parse(r.out);
}

std::uint64_t count_of(std::string const& text) {
  return gpumem::cli::count_parameters(gpumem::cli::describe(text)).total();
}

struct known_count {
  char const* config;
  std::uint64_t parameters;
};

}  // namespace

TEST_CASE("one config of each model type gives the published number") {
  // Published: model cards and checkpoints of the models whose numbers tests/data/configs holds.
  constexpr known_count all[] = {
      {"albert", 11683584},
      {"bert", 109482240},
      {"bloom", 559214592},
      {"cohere", 8028033024},
      {"deepseek_v3", 671026419200},
      {"distilbert", 66362880},
      {"gemma", 2506172416},
      {"gemma2", 2614341888},
      {"gemma3", 3880263168},
      {"gemma3_text", 999885952},
      {"gpt2", 124439808},
      {"gpt_oss", 20914757184},
      {"internlm2", 7737708544},
      {"llama", 6738415616},
      {"mistral", 7241732096},
      {"mixtral", 46702792704},
      {"opt", 331196416},
      {"phi", 1418270720},
      {"phi-msft", 2779683840},
      {"phi3", 3821079552},
      {"qwen2", 494032768},
      {"qwen2_moe", 14315784192},
      {"qwen3", 596049920},
      {"qwen3_moe", 30532122624},
      {"roberta", 124645632},
      {"t5", 60506624},
  };
  std::string listed;
  for (known_count const& k : all) {
    nlohmann::json const answer = parameters_of(std::string(GPUMEM_CONFIGS "/") + k.config + ".json");
    INFO(k.config);
    CHECK(answer["parameters"] == k.parameters);
    CHECK(answer["model"]["model_type"] == k.config);
    CHECK(answer["embeddings"].get<std::uint64_t>() + answer["weights"].get<std::uint64_t>() +
              answer["biases"].get<std::uint64_t>() + answer["norms"].get<std::uint64_t>() ==
          k.parameters);
    listed += (listed.empty() ? "" : ", ") + std::string(k.config);
  }
  CHECK(listed == gpumem::cli::known_model_types());
}

TEST_CASE("other sizes and variants of the same families") {
  // Each line: the parameters that the family's own class holds (built without storage), and a config.
  std::istringstream lines(contents(GPUMEM_CONFIGS "/../config_variants.txt"));
  int variants = 0;
  for (std::string line; std::getline(lines, line); ++variants) {
    std::size_t const space = line.find(' ');
    INFO(line);
    CHECK(count_of(line.substr(space + 1)) == std::stoull(line.substr(0, space)));
  }
  CHECK(variants == 39);
}

TEST_CASE("heads are read by the rules: head_dim wins, class defaults count, null means absent") {
  // Small Gemma: 8 features and a head width of 256 unless it is given.
  std::string const gemma = R"({"model_type": "gemma", "vocab_size": 256000, "hidden_size": 8, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32)";
  CHECK(count_of(gemma + "}") == 2098728);
  CHECK(count_of(gemma + R"(, "head_dim": null})") == 2098728);
  CHECK(count_of(gemma + R"(, "head_dim": 2})") == 2049960);
  // 24 heads do not divide 1792 features; with a width of 128 they need not.
  std::string const wide = R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 1792, "num_hidden_layers": 1,
      "num_attention_heads": 24, "num_key_value_heads": 8, "intermediate_size": 100)";
  CHECK_THROWS(count_of(wide + "}"));
  CHECK(count_of(wide + R"(, "head_dim": 128})") ==
        2 * 100 * 1792 + 3 * 1792 + 1792 * 128 * (2 * 24 + 2 * 8) + 3 * 1792 * 100);
  std::string const llama = R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 1,
      "num_attention_heads": 4, "intermediate_size": 100)";
  CHECK(count_of(llama + R"(, "num_key_value_heads": null, "tie_word_embeddings": null})") == count_of(llama + "}"));
  CHECK(count_of(llama + R"(, "num_key_value_heads": 4})") == count_of(llama + "}"));
  CHECK(count_of(llama + R"(, "num_key_value_heads": 1})") == count_of(llama + "}") - 2 * 3 * 64 * 16);
  CHECK(count_of(llama + R"(, "attention_bias": true, "mlp_bias": true})") == count_of(llama + "}") + 4 * 64 + 264);
}

TEST_CASE("totals that people meet and that are no counts of parameters are not fallen for") {
  auto const llama = [](char const* numbers) {
    return count_of(std::string(R"({"model_type": "llama", )") + numbers + "}");
  };
  // A checkpoint of a tied model that stores the table twice: 24,407,712, 58,073,600 and 134,105,856 elements.
  CHECK(llama(R"("vocab_size": 32000, "hidden_size": 288, "num_hidden_layers": 6, "num_attention_heads": 6,
      "intermediate_size": 768, "tie_word_embeddings": true)") == 15191712);
  CHECK(llama(R"("vocab_size": 32000, "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8,
      "intermediate_size": 1376, "tie_word_embeddings": true)") == 41689600);
  CHECK(llama(R"("vocab_size": 32000, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "intermediate_size": 2048, "tie_word_embeddings": true)") == 109529856);
  // Llama-3.2-1B: 1,498,482,688 counts the tied table twice; untied it would be exactly one table more.
  std::string const one_b = R"("vocab_size": 128256, "hidden_size": 2048, "num_hidden_layers": 16,
      "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192)";
  CHECK(llama((one_b + R"(, "tie_word_embeddings": true)").c_str()) == 1235814400);
  CHECK(llama(one_b.c_str()) == 1235814400 + 262668288);
  // Packed 4-bit checkpoints of Llama-2-7B hold 3,500,412,928 elements; the parameters stay what they were.
  std::string const seven_b = R"("vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
      "num_attention_heads": 32, "intermediate_size": 11008)";
  CHECK(llama(seven_b.c_str()) == 6738415616);
  CHECK(llama((seven_b + R"(, "quantization_config": {"load_in_4bit": true})").c_str()) == 6738415616);
  // Rotary tables (32 x 64 elements in one checkpoint) and block scales are no parameters.
  CHECK(llama((seven_b + R"(, "rope_scaling": {"factor": 2.0})").c_str()) == 6738415616);
  CHECK(parameters_of(GPUMEM_CONFIGS "/gpt_oss.json")["notes"].dump().find("quantization_config") != std::string::npos);
  // A method that covers only the matrices of the blocks says 302,383,104 of this model's parameters.
  std::string const m350 = R"("vocab_size": 32000, "hidden_size": 1024, "num_hidden_layers": 24,
      "num_attention_heads": 16, "intermediate_size": 2736)";
  CHECK(llama(m350.c_str()) == 367969280);
  CHECK(llama(m350.c_str()) == 24 * (4 * 1024 * 1024 + 3 * 1024 * 2736) + 2 * 32000 * 1024 + (2 * 24 + 1) * 1024);
  // Qwen2-72B has three matrices an MLP; two of them with an expansion of 3 give the 56 billion of an old calculator.
  CHECK(count_of(R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 8192, "num_hidden_layers": 80,
      "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 29568})") == 72706203648);
}

TEST_CASE("what is tied, shared or left out is said") {
  nlohmann::json const gpt2 = parameters_of(GPUMEM_CONFIGS "/gpt2.json");
  CHECK(gpt2["notes"].dump().find("the head shares the embedding table") != std::string::npos);
  CHECK(gpt2["model"]["tied_head"] == true);
  CHECK(gpt2["not_counted"].empty());
  CHECK(gpt2["position_table"] == 786432);  // which the count of a well-known small trainer leaves out
  CHECK(gpt2["notes"].dump().find("without the position table: 123,653,376") != std::string::npos);
  CHECK(parameters_of(GPUMEM_CONFIGS "/llama.json")["position_table"] == 0);
  CHECK(parameters_of(GPUMEM_CONFIGS "/gemma3.json")["not_counted"][0] == "vision tower and its projector");
  CHECK(parameters_of(GPUMEM_CONFIGS "/deepseek_v3.json")["not_counted"].size() == 1);
  CHECK(parameters_of(GPUMEM_CONFIGS "/albert.json")["notes"].dump().find("12 layers share 1 stored block") !=
        std::string::npos);
  CHECK(parameters_of(GPUMEM_CONFIGS "/roberta.json")["notes"][0] == "model_type is missing; taken for roberta");
  result const text = run({"parameters", GPUMEM_CONFIGS "/gemma3.json"});
  CHECK(text.out.find("3,880,263,168 parameters") != std::string::npos);
  CHECK(text.out.find("not counted: vision tower and its projector") != std::string::npos);
  CHECK(run({"parameters", GPUMEM_CONFIGS "/gpt2.json", "--format", "markdown"})
            .out.find("| total | **124,439,808** |") != std::string::npos);
}

#if defined(GPUMEM_SHARED_DATA)
TEST_CASE("every downloaded config gives its exact count") {
  std::istringstream table(contents(GPUMEM_SHARED_DATA "/parameter_counts.csv"));
  std::string line;
  std::getline(table, line);
  std::set<std::string> counted;
  while (std::getline(table, line)) {
    std::string const name = line.substr(0, line.find(','));
    INFO(name);
    std::uint64_t const parameters = std::stoull(line.substr(name.size() + 1));
    CHECK(parameters_of(GPUMEM_SHARED_DATA "/configs/" + name)["parameters"] == parameters);
    counted.insert(name);
  }
  CHECK(counted.size() == 35);
  for (auto const& file : std::filesystem::directory_iterator(GPUMEM_SHARED_DATA "/configs"))
    CHECK(counted.count(file.path().filename().string()) == 1);
}

TEST_CASE("configs of models that are not counted are refused with the reason") {
  std::size_t refused = 0;
  for (auto const& file : std::filesystem::directory_iterator(GPUMEM_SHARED_DATA "/configs_to_refuse")) {
    for (char const* command : {"parameters", "estimate"}) {
      result const r = run({command, file.path().string()});
      INFO(r.err);
      CHECK(r.status == 2);
      CHECK(r.out.empty());
      CHECK(r.err.find(file.path().filename().string() + ": model_type = \"") != std::string::npos);
      CHECK(r.err.find("\": not known; known are ") != std::string::npos);
    }
    ++refused;
  }
  CHECK(refused == 3);
}
#endif
