// SPDX-License-Identifier: MIT
// gpumem traffic: the numbers are the library's, the refusals one line each.
#include <gpumem/models/encoder_classifier.hpp>
#include <gpumem/traffic.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cli_program.hpp"

using namespace cli_program;

namespace {

std::string gpt2_config() {
  return write("gpt2.json", R"({"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768,
      "n_layer": 12, "n_head": 12, "activation_function": "gelu_new"})");
}
std::string llama_config() {
  return write("llama.json", R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096,
      "intermediate_size": 11008, "num_hidden_layers": 2, "num_attention_heads": 32, "max_position_embeddings": 4096})");
}
std::string bert_large_config() {
  return write("bert.json", R"({"model_type": "bert", "vocab_size": 30522, "hidden_size": 1024,
      "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "max_position_embeddings": 512,
      "type_vocab_size": 2, "hidden_act": "gelu"})");
}

result traffic(std::string const& config, std::vector<std::string> options) {
  options.insert(options.begin(), {"traffic", config});
  return run(options);
}
nlohmann::json traffic_json(std::string const& config, std::vector<std::string> options) {
  options.insert(options.end(), {"--format", "json"});
  result const r = traffic(config, options);
  INFO(r.err);
  REQUIRE(r.status == 0);
  return nlohmann::json::parse(r.out);
}
void check(nlohmann::json const& json, gpumem::class_share const& c) {
  CHECK(json["forward"]["reads"] == c.forward.reads);
  CHECK(json["forward"]["writes"] == c.forward.writes);
  CHECK(json["forward"]["flops"] == c.forward.flops);
  CHECK(json["backward"]["reads"] == c.backward.reads);
  CHECK(json["backward"]["flops"] == c.backward.flops);
  CHECK(json["kernels"] == c.kernels);
  CHECK(json["seconds"].get<double>() == Approx(c.seconds).margin(1e-9));
}

}  // namespace

TEST_CASE("the three classes are the library's", "[cli][traffic]") {
  using namespace gpumem;
  transformer const gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
  plan const p = on_device(make_plan(), devices::h100_80gb);
  step_traffic const expected =
      traffic_of(gpt2, {.micro_batch = 8, .sequence = 1024, .accumulation = 2}, p, roofline_of(devices::h100_80gb));
  nlohmann::json const json =
      traffic_json(gpt2_config(), {"--micro-batch", "8", "--accumulation", "2", "--device", "h100_80gb"});
  REQUIRE(json["classes"].size() == 3);
  check(json["classes"][0], expected.contraction);
  check(json["classes"][1], expected.normalization);
  check(json["classes"][2], expected.elementwise);
  CHECK(json["seconds"].get<double>() == Approx(expected.seconds()).margin(1e-9));
  CHECK(json["seconds_with_fused_runs"].get<double>() == Approx(expected.fused_seconds()).margin(1e-9));
  CHECK(json["seconds_with_fused_kernels"] < json["seconds"]);
  std::string notes = json["notes"].dump();
  CHECK(notes.find("pad the table to 50304") != std::string::npos);
  CHECK(json["optimizer"]["kernel"] == "adamw on fp32 gradients");
  CHECK(json["optimizer"]["fused"]["reads"] == 16 * json["optimizer"]["parameters"].get<std::uint64_t>());
}

TEST_CASE("BERT-large: contractions are the FLOPs, the rest a third of the time and more", "[cli][traffic]") {
  nlohmann::json const json =
      traffic_json(bert_large_config(), {"--micro-batch", "8", "--sequence", "512", "--precision", "pure-fp16",
                                         "--attention", "eager", "--device", "v100_16gb"});
  CHECK(json["classes"][0]["share_of_flops"] > 0.99);
  double const rest =
      json["classes"][1]["share_of_seconds"].get<double>() + json["classes"][2]["share_of_seconds"].get<double>();
  CHECK(rest > 1.0 / 3);
  CHECK(rest < 0.5);
  CHECK(json["notes"].dump().find("vocabulary of 2 ") == std::string::npos);  // the labels are none
}

TEST_CASE("each kernel is held against its chain at the model's shapes", "[cli][traffic]") {
  nlohmann::json const json = traffic_json(llama_config(), {"--sequence", "2048", "--attention", "eager", "--optimizer",
                                                            "adamw-fused", "--device", "a100_80gb"});
  auto const ratio = [&](std::string const& name, int columns) {
    for (auto const& k : json["kernels"])
      if (k["kernel"] == name && k["columns"] == columns)
        return (k["chain"]["reads"].get<double>() + k["chain"]["writes"].get<double>()) /
               (k["fused"]["reads"].get<double>() + k["fused"]["writes"].get<double>());
    return 0.0;
  };
  CHECK(ratio("rms norm, fp32 inside", 4096) == Approx(9.0).margin(0.01));
  CHECK(ratio("rms norm backward", 4096) == Approx(6.33).margin(0.7));  // partial sums of 108 blocks for 2048 rows
  CHECK(ratio("softmax", 2048) == Approx(3.0).margin(0.01));
  CHECK(ratio("swiglu", 11008) == Approx(1.667).margin(0.01));
  CHECK(ratio("swiglu backward", 11008) == Approx(2.2).margin(0.01));
  CHECK(ratio("cross-entropy through fp32", 32000) == Approx(9.0).margin(0.01));
}

TEST_CASE("a chain whose tensors may stay in the L2 cache is labelled", "[cli][traffic]") {
  for (int const sequence : {1024, 32768}) {  // 8 MiB and 256 MiB of hidden states in bf16 against 4 x 50 MiB
    std::vector<std::string> const options = {"--sequence", std::to_string(sequence), "--device", "h100_80gb"};
    nlohmann::json const json = traffic_json(llama_config(), options);
    for (auto const& k : json["kernels"])
      CHECK(k["l2_resident"] == (k["rows"].get<std::uint64_t>() * k["columns"].get<std::uint64_t>() *
                                     k["element_bytes"].get<std::uint64_t>() <
                                 std::uint64_t{200} << 20));
    std::string const text = traffic(llama_config(), options).out;
    CHECK((text.find("\nrms norm, fp32 inside *") != std::string::npos) == (sequence == 1024));
  }
  std::string const unknown =
      traffic(llama_config(), {"--bandwidth", "3000", "--tflops", "900"}).out;  // no device, no cache
  CHECK(unknown.find('*') == std::string::npos);
}

TEST_CASE("the step of 8-bit AdamW: 10.0625 bytes a parameter in bf16, as the table says", "[cli][traffic]") {
  nlohmann::json const step = traffic_json(
      llama_config(), {"--precision", "pure-bf16", "--optimizer", "adamw-8bit", "--device", "a100_80gb"})["optimizer"];
  double const parameters = step["parameters"].get<double>();
  CHECK((step["fused"]["reads"].get<double>() + step["fused"]["writes"].get<double>()) / parameters ==
        Approx(10.0625).margin(1e-6));
}

TEST_CASE("text and Markdown show both tables within a terminal's width", "[cli][traffic]") {
  for (std::string const format : {"text", "markdown"}) {
    result const r = traffic(gpt2_config(), {"--micro-batch", "8", "--device", "rtx_4090", "--format", format});
    REQUIRE(r.status == 0);
    CHECK(r.err.empty());
    for (char const* words : {"tensor contraction", "statistical normalization", "element-wise", "layer norm backward",
                              "1008 GB/s, 165 TFLOP/s", "50304"})
      CHECK(r.out.find(words) != std::string::npos);
    CHECK(r.out.find("nan") == std::string::npos);
    if (format == "markdown") continue;
    std::size_t widest = 0;
    for (std::size_t at = 0; at < r.out.size();) {
      std::size_t const end = r.out.find('\n', at);
      widest = std::max(widest, end - at);
      at = end + 1;
    }
    CHECK(widest <= 80);
  }
}

TEST_CASE("fused kernels that this plan has already save nothing more", "[cli][traffic]") {
  std::vector<std::string> options{"--device", "h100_80gb", "--sequence", "1024"};
  CHECK(traffic(llama_config(), options).out.find("With --kernels fused --attention flash: ") != std::string::npos);
  for (char const* option : {"--kernels", "fused", "--attention", "flash"}) options.emplace_back(option);
  CHECK(traffic(llama_config(), options).out.find("--kernels fused --attention flash would save nothing here.") !=
        std::string::npos);
}

TEST_CASE("what traffic cannot answer is one line and exit status 2", "[cli][traffic]") {
  struct refusal {
    std::vector<std::string> options;
    char const* says;
  };
  for (refusal const& refused : {
           refusal{{}, "traffic needs --device ID, or --bandwidth N and --tflops N"},
           refusal{{"--bandwidth", "900"}, "traffic needs --device ID"},
           refusal{{"--device", "b200_180gb"}, "its bandwidth and rate are not known here"},
           refusal{{"--device", "h1000"}, "--device = h1000: not known"},
           refusal{{"--device", "h100_80gb", "--bandwidth", "0"}, "--bandwidth = 0"},
           refusal{{"--device", "h100_80gb", "--tflops", "fast"}, "--tflops = fast"},
           refusal{{"--device", "h100_80gb", "--precision", "fp32"}, "known for half only"},
           refusal{{"--device", "h100_80gb", "--format", "xml"}, "xml"},
           refusal{{"--device", "h100_80gb", "--sequence", "4096"}, "--sequence = 4096"},
           refusal{{"--device", "h100_80gb", "--memory", "24GiB"}, "--memory"},
       }) {
    result const r = traffic(gpt2_config(), refused.options);
    INFO(refused.says << " in " << r.err);
    CHECK(r.status == 2);
    CHECK(r.out.empty());
    CHECK(r.err.find(refused.says) != std::string::npos);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  }
  // Rates given by hand need no device, and stand in for what is not known of one.
  CHECK(traffic(gpt2_config(), {"--bandwidth", "8000", "--tflops", "2250"}).status == 0);
  CHECK(traffic(gpt2_config(), {"--device", "b200_180gb", "--bandwidth", "8000", "--tflops", "2250"}).status == 0);
  CHECK(traffic(gpt2_config(), {"--bandwidth", "900", "--tflops", "15", "--precision", "fp32"}).status == 0);
}
