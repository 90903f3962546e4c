// SPDX-License-Identifier: MIT
// gpumem estimate and gpumem devices: the numbers are the library's, and the output is for people and for programs.
#include <gpumem/estimate.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "cli_program.hpp"
#include "config.hpp"
#include "policies.hpp"

using namespace cli_program;

namespace {

std::string config(char const* name) {
  if (std::string_view(name) == "small_vocabulary")
    return write("small.json", R"({"model_type": "gpt2", "vocab_size": 99, "n_positions": 1024, "n_embd": 768,
        "n_layer": 12, "n_head": 12})");
  return std::string(GPUMEM_CONFIGS "/") + name + ".json";
}

result estimate(char const* name, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"estimate", config(name)});
  return run(options);
}

nlohmann::json estimate_json(char const* name, std::vector<std::string> options = {}) {
  options.insert(options.end(), {"--format", "json"});
  result const r = estimate(name, options);
  INFO(r.err);
  REQUIRE((r.status == 0 || r.status == 1));
  return nlohmann::json::parse(r.out);
}

constexpr gpumem::transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};

void check_moment(nlohmann::json const& json, gpumem::moment const& m) {
  CHECK(json["phase"] == gpumem::name(m.phase));
  CHECK(json["total"] == m.total.value);
  for (int i = 0; i < gpumem::categories; ++i) {
    auto const c = static_cast<gpumem::category>(i);
    CHECK(json[gpumem::name(c)] == m.categories[c].value);
  }
}

std::size_t widest_line(std::string const& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto const columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
    widest = std::max(widest, static_cast<std::size_t>(columns));
  }
  return widest;
}

}  // namespace

TEST_CASE("the defaults of the command line are the defaults of the library") {
  gpumem::plan chosen;
  chosen.precision = gpumem::fp32::numbers;  // so that a family that is forgotten shows
  chosen.optimizer = gpumem::make_plan(gpumem::sgd{}).optimizer;
  chosen.checkpointing.every = 7;
  chosen.attention = gpumem::attention_kind::eager;
  chosen.kernels = gpumem::kernel_kind::fused;
  for (auto const& family : gpumem::cli::policy_families()) gpumem::cli::choose(chosen, family, family.otherwise);
  CHECK(chosen == gpumem::make_plan());
  CHECK(gpumem::cli::policy_families().size() == 6);
}

TEST_CASE("every value of every family reaches the plan") {
  auto const plan_with = [](char const* name, char const* value) {
    gpumem::plan p;
    for (auto const& family : gpumem::cli::policy_families())
      if (family.name == name) gpumem::cli::choose(p, family, value);
    return p;
  };
  using namespace gpumem;
  constexpr dtype fp16 = dtype::fp16;
  CHECK(plan_with("precision", "fp32") == make_plan(fp32{}));
  CHECK(plan_with("precision", "mixed-fp16") == make_plan(mixed<fp16>{}));
  CHECK(plan_with("precision", "autocast-bf16") == make_plan(autocast<>{}));
  CHECK(plan_with("precision", "autocast-fp16") == make_plan(autocast<fp16>{}));
  CHECK(plan_with("precision", "pure-bf16") == make_plan(pure<>{}));
  CHECK(plan_with("precision", "pure-fp16") == make_plan(pure<fp16>{}));
  CHECK(plan_with("precision", "master-bf16") == make_plan(master_weights<>{}));
  CHECK(plan_with("precision", "master-fp16") == make_plan(master_weights<fp16>{}));
  CHECK(plan_with("precision", "megatron-bf16") == make_plan(megatron<>{}));
  CHECK(plan_with("precision", "megatron-fp16") == make_plan(megatron<fp16>{}));
  CHECK(plan_with("optimizer", "adamw-loop") == make_plan(adamw_loop{}));
  CHECK(plan_with("optimizer", "adamw-fused") == make_plan(adamw_fused{}));
  CHECK(plan_with("optimizer", "adamw-8bit") == make_plan(adamw_8bit{}));
  CHECK(plan_with("optimizer", "sgd") == make_plan(sgd{}));
  CHECK(plan_with("optimizer", "sgd-momentum") == make_plan(sgd_momentum{}));
  CHECK(plan_with("optimizer", "none") == make_plan(inference{}));
  CHECK(plan_with("checkpointing", "full") == make_plan(checkpoint_every<1>{}));
  CHECK(plan_with("checkpointing", "every:1") == make_plan(checkpoint_every<1>{}));
  CHECK(plan_with("checkpointing", "every:3") == make_plan(checkpoint_every<3>{}));
  CHECK(plan_with("checkpointing", "first:2") == make_plan(checkpoint_first<2>{}));
  CHECK(plan_with("checkpointing", "selective") == make_plan(selective_checkpointing{}));
  CHECK(plan_with("attention", "eager") == make_plan(eager_attention{}));
  CHECK(plan_with("kernels", "fused") == make_plan(fused_kernels{}));
}

TEST_CASE("the JSON of an estimate is the library's breakdown") {
  gpumem::breakdown const b = gpumem::estimate(gpt2, {.micro_batch = 8, .sequence = 1024});
  nlohmann::json const json = estimate_json("gpt2", {"--micro-batch", "8"});
  CHECK(json["parameters"] == 124439808);
  CHECK(json["saved_per_layer"] == b.saved_per_layer.value);
  REQUIRE(json["timeline"].size() == 5);
  for (std::size_t i = 0; i < 5; ++i) check_moment(json["timeline"][i], b.timeline[i]);
  check_moment(json["peak"], b.peak);
  CHECK(json["rule_of_thumb"]["bytes_per_parameter"] == 18);
  CHECK(json["rule_of_thumb"]["weights"] == 6 * 124439808ull);
  CHECK(json["rule_of_thumb"]["gradients"] == 4 * 124439808ull);
  CHECK(json["rule_of_thumb"]["optimizer_states"] == 8 * 124439808ull);
  CHECK(json["rule_of_thumb"]["activations"] == b.rule_of_thumb.activations.value);
  CHECK(json["rule_of_thumb"]["total"] == b.rule_of_thumb.total.value);
  CHECK(json["device"].is_null());
  CHECK(json["model"]["model_type"] == "gpt2");
  CHECK(json["model"]["hidden"] == 768);
  CHECK(json["workload"] == nlohmann::json({{"micro_batch", 8}, {"sequence", 1024}, {"accumulation", 1}}));
  CHECK(json["plan"]["precision"] == "mixed-bf16");
  CHECK(json["plan"]["optimizer"] == "adamw");
  CHECK(json["plan"]["checkpointing"] == "none");
  CHECK(json["plan"]["attention"] == "flash");
  CHECK(json["plan"]["kernels"] == "eager");
  CHECK(json["plan"]["loss"] == "eager");
  CHECK(json["notes"].size() == 2);  // the assumed sequence and precision
  CHECK(json["basis"] == "measured");
}

TEST_CASE("options reach the estimate") {
  gpumem::plan p = gpumem::make_plan(gpumem::autocast<>{}, gpumem::adamw_8bit{}, gpumem::checkpoint_every<2>{},
                                     gpumem::eager_attention{}, gpumem::fused_kernels{});
  gpumem::breakdown const b = gpumem::estimate(gpt2, {.micro_batch = 2, .sequence = 256, .accumulation = 4}, p);
  nlohmann::json const json =
      estimate_json("gpt2", {"--micro-batch", "2", "--sequence", "256", "--accumulation", "4", "--precision",
                             "autocast-bf16", "--optimizer", "adamw-8bit", "--checkpointing", "every:2", "--attention",
                             "eager", "--kernels", "fused"});
  check_moment(json["peak"], b.peak);
  CHECK(json["notes"].empty());  // nothing was assumed
  CHECK(json["plan"]["checkpointing"] == "every:2");
}

TEST_CASE("without training there are the phases that happen and no others") {
  nlohmann::json const json = estimate_json("gpt2", {"--optimizer", "none"});
  REQUIRE(json["timeline"].size() == 2);
  CHECK(json["timeline"][0]["phase"] == "forward");
  CHECK(json["timeline"][1]["phase"] == "loss");
  CHECK(json["peak"]["gradients"] == 0);
  std::string const text = estimate("gpt2", {"--optimizer", "none"}).out;
  CHECK(text.find("backward") == std::string::npos);
  CHECK(text.find("optimizer step") == std::string::npos);
}

TEST_CASE("the exit status is the verdict") {
  CHECK(estimate("gpt2").status == 0);
  CHECK(estimate("gpt2", {"--device", "t4_16gb"}).status == 0);
  CHECK(estimate("llama", {"--device", "t4_16gb"}).status == 1);
  CHECK(estimate("gpt2", {"--memory", "1GiB"}).status == 1);
  // Exactly enough fits, a byte less does not.
  std::uint64_t const peak = estimate_json("gpt2")["peak"]["total"];
  std::uint64_t const reserve = std::uint64_t{1} << 30;
  CHECK(estimate("gpt2", {"--memory", std::to_string(peak + reserve)}).status == 0);
  CHECK(estimate("gpt2", {"--memory", std::to_string(peak + reserve - 1)}).status == 1);
  CHECK(estimate("gpt2", {"--memory", std::to_string(peak + reserve - 1), "--reserve", "512MiB"}).status == 0);
  CHECK(estimate("gpt2", {"--memory", std::to_string(peak), "--reserve", "0"}).status == 0);
  nlohmann::json const json = estimate_json("llama", {"--device", "t4_16gb", "--reserve", "2GiB"});
  CHECK(json["device"]["id"] == "t4_16gb");
  CHECK(json["device"]["capacity"] == std::uint64_t{14909} << 20);
  CHECK(json["device"]["reserve"] == std::uint64_t{2} << 30);
  CHECK(json["device"]["fits"] == false);
}

TEST_CASE("sizes of memory are read in both kinds of unit") {
  auto const capacity = [](char const* size) {
    return estimate_json("gpt2", {"--memory", size})["device"]["capacity"];
  };
  CHECK(capacity("24GiB") == 25769803776);
  CHECK(capacity("24GB") == 24000000000);
  CHECK(capacity("24576MiB") == 25769803776);
  CHECK(capacity("25769803776") == 25769803776);
  CHECK(capacity("25769803776B") == 25769803776);
}

TEST_CASE("a device's own numbers are walked with") {
  gpumem::device const& h100 = gpumem::devices::h100_80gb;
  gpumem::breakdown const b = gpumem::estimate(gpt2, {.micro_batch = 8, .sequence = 1024}, gpumem::on_device({}, h100));
  nlohmann::json const json = estimate_json("gpt2", {"--micro-batch", "8", "--device", "h100_80gb"});
  check_moment(json["peak"], b.peak);
  CHECK(json["peak"]["overhead"] == 2u * (32u << 20));
}

TEST_CASE("a tensor that 32-bit indices cannot reach is pointed out") {
  std::string const note = "elements, more than 2^31 - 1: kernels with 32-bit indices fail on it";
  // One layer's attention probabilities: 12 heads x 1024 x 1024 for each sequence; 170 of them fit into 31 bits.
  auto const notes = [](char const* micro_batch) {
    return estimate_json("small_vocabulary", {"--attention", "eager", "--micro-batch", micro_batch})["notes"].dump();
  };
  CHECK(notes("170").find(note) == std::string::npos);
  CHECK(notes("171").find("2,151,677,952 " + note) != std::string::npos);
}

TEST_CASE("the sequence defaults to the smaller of 4096 and what the config allows, and says so") {
  CHECK(estimate_json("gpt2")["workload"]["sequence"] == 1024);
  CHECK(estimate_json("llama")["workload"]["sequence"] == 4096);
  CHECK(estimate_json("mistral")["workload"]["sequence"] == 4096);  // of 131072
  CHECK(estimate("llama").out.find("sequence 4096 (assumed)") != std::string::npos);
  CHECK(estimate("llama", {"--sequence", "4096"}).out.find("(assumed)") != std::string::npos);  // the precision
  CHECK(estimate("llama", {"--sequence", "4096", "--precision", "mixed-bf16"}).out.find("assumed") ==
        std::string::npos);
  result const longer = estimate("llama", {"--sequence", "4097"});
  CHECK(longer.status == 0);
  CHECK(longer.out.find("note: sequence 4097 is longer than the 4096 positions of the config") != std::string::npos);
}

TEST_CASE("the assumed precision is explained unless it was asked for by name") {
  std::string const sentence = "fp32 master + bf16 copy, fp32 gradients; training";
  CHECK(estimate("gpt2").out.find(sentence) != std::string::npos);
  CHECK(estimate("gpt2", {"--format", "markdown"}).out.find(sentence) != std::string::npos);
  CHECK(estimate_json("gpt2")["notes"].dump().find(sentence) != std::string::npos);
  CHECK(estimate("gpt2", {"--precision", "mixed-bf16"}).out.find(sentence) == std::string::npos);
  CHECK(estimate("gpt2", {"--precision", "autocast-bf16"}).out.find(sentence) == std::string::npos);
}

TEST_CASE("models whose blocks are recorded are estimated, the others are told where to look") {
  for (char const* name : {"gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "gemma3_text",
                           "internlm2", "phi3"}) {
    nlohmann::json const json = estimate_json(name, {"--checkpointing", "full"});
    result const counted = run({"parameters", config(name), "--format", "json"});
    INFO(name);
    CHECK(json["parameters"] == nlohmann::json::parse(counted.out)["parameters"]);
  }
  for (char const* name : {"albert", "bloom", "cohere", "deepseek_v3", "gpt_oss", "mixtral", "opt", "phi", "phi-msft",
                           "qwen2_moe", "qwen3_moe", "t5"}) {
    result const r = estimate(name);
    CHECK(r.status == 2);
    CHECK(r.out.empty());
    CHECK(r.err ==
          "gpumem: " + config(name) + ": activations of " + name + " are not modelled yet; see gpumem parameters\n");
  }
  std::string const tanh = write("tanh.json", R"({"model_type": "gpt2", "vocab_size": 99, "n_positions": 64,
      "n_embd": 64, "n_layer": 2, "n_head": 2, "activation_function": "tanh"})");
  CHECK(
      run({"estimate", tanh}).err.find("activations of gpt2 with the activation function \"tanh\" are not modelled") !=
      std::string::npos);
  CHECK(run({"parameters", tanh}).status == 0);
}

TEST_CASE("what a block of each family saves was measured, to the byte") {
  std::istringstream rows(contents(GPUMEM_CONFIGS "/../saved_bytes_by_family.csv"));
  std::string line;
  std::getline(rows, line);
  int measured = 0;
  for (; std::getline(rows, line); ++measured) {
    std::vector<std::string> c;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) c.push_back(cell);
    REQUIRE(c.size() == 10);
    INFO(line);
    nlohmann::json const described = {{"model_type", c[0]},
                                      {"vocab_size", 200},
                                      {"num_hidden_layers", 3},
                                      {"hidden_size", std::stoll(c[4])},
                                      {"num_attention_heads", std::stoll(c[5])},
                                      {"num_key_value_heads", std::stoll(c[6])},
                                      {"head_dim", std::stoll(c[7])},
                                      {"intermediate_size", std::stoll(c[8])}};
    gpumem::plan p = gpumem::make_plan(gpumem::eager_attention{});
    p.precision = c[1] == "fp32" ? gpumem::fp32::numbers : gpumem::pure<>::numbers;
    gpumem::cli::described_model const m = gpumem::cli::describe(described.dump());
    gpumem::workload const load{.micro_batch = std::stoll(c[2]), .sequence = std::stoll(c[3])};
    CHECK(gpumem::estimate(std::get<gpumem::transformer>(m.numbers), load, p).saved_per_layer.value ==
          std::stoull(c[9]));
  }
  CHECK(measured == 42);
}

TEST_CASE("encoders end in a classifier of two labels or as many as are asked for") {
  // BertForSequenceClassification and its likes: the base model, RoBERTa's and DistilBERT's heads in place of the
  // pooler.
  CHECK(estimate_json("bert")["parameters"] == 109'482'240 + 768 * 2 + 2);
  CHECK(estimate_json("bert", {"--labels", "5"})["parameters"] == 109'482'240 + 768 * 5 + 5);
  CHECK(estimate_json("roberta")["parameters"] == 124'647'170);
  CHECK(estimate_json("distilbert")["parameters"] == 66'955'010);
  CHECK(estimate_json("bert")["notes"].dump().find("with a classifier of 2 labels") != std::string::npos);
  CHECK(estimate_json("roberta")["notes"].dump().find("sequence 512 (assumed)") != std::string::npos);
  CHECK(estimate("roberta", {"--sequence", "513"}).status == 2);
  std::string const distances = write("distances.json", R"({"model_type": "bert", "vocab_size": 99, "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64,
      "position_embedding_type": "relative_key"})");
  CHECK(run({"estimate", distances}).err.find("activations of bert with relative positions are not modelled") !=
        std::string::npos);
}

TEST_CASE("selective checkpointing under flash attention says what it is worth") {
  std::string const sentence = "selective checkpointing under flash attention saves only the softmax statistics";
  CHECK(estimate_json("gpt2", {"--checkpointing", "selective"})["notes"].dump().find(sentence) != std::string::npos);
  CHECK(estimate_json("gpt2", {"--checkpointing", "selective", "--attention", "eager"})["notes"].dump().find(
            sentence) == std::string::npos);
}

TEST_CASE("basis is measured only for blocks whose saved bytes were measured") {
  CHECK(estimate_json("llama", {"--precision", "fp32"})["basis"] == "measured");
  CHECK(estimate_json("llama", {"--precision", "autocast-bf16"})["basis"] == "derived");
  CHECK(estimate_json("gpt2", {"--precision", "autocast-bf16"})["basis"] == "measured");
  CHECK(estimate_json("qwen2")["basis"] == "derived");                           // biases of q, k and v
  CHECK(estimate_json("gemma")["basis"] == "derived");                           // GELU in the gate
  CHECK(estimate_json("phi3")["basis"] == "derived");                            // fused projections
  CHECK(estimate_json("qwen3", {"--precision", "fp32"})["basis"] == "derived");  // norms on queries and keys
  CHECK(estimate_json("bert", {"--precision", "autocast-bf16"})["basis"] == "measured");
  CHECK(estimate_json("distilbert")["basis"] == "measured");
}

TEST_CASE("text is for a person: at most 80 columns, ASCII where it is no terminal") {
  for (char const* name : {"gpt2", "llama", "mistral", "qwen2", "gemma", "gemma3", "phi3", "bert"})
    for (char const* device : {"t4_16gb", "h200_141gb"}) {
      result const r = estimate(name, {"--device", device, "--micro-batch", "4"});
      INFO(r.out);
      CHECK(widest_line(r.out) <= 80);
      CHECK(std::all_of(r.out.begin(), r.out.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
      CHECK(r.out.find(" <- peak\n") != std::string::npos);
      CHECK(r.out.find(" \n") == std::string::npos);
      CHECK((r.out.find("it fits, ") != std::string::npos) == (r.status == 0));
      CHECK((r.out.find("it does NOT fit, ") != std::string::npos) == (r.status == 1));
      CHECK((r.out.find("what to change first:") != std::string::npos) == (r.status == 1));
    }
  CHECK(widest_line(run({"devices"}).out) <= 80);
  CHECK(widest_line(run({"parameters", config("deepseek_v3")}).out) <= 80);
}

TEST_CASE("bars are blocks on a terminal that shows them, and '#' elsewhere") {
  std::string const block = "\xE2\x96\x88";
  std::vector<std::string> const arguments = {"estimate", config("gpt2")};
  std::string const shown = run_on_terminal(arguments, "C.UTF-8");
  INFO(shown);
  CHECK(shown.find(block) != std::string::npos);
  CHECK(shown.find("##") == std::string::npos);
  CHECK(widest_line(shown) <= 81);  // a terminal ends lines with a carriage return
  std::string const ascii = run_on_terminal(arguments, "C");
  CHECK(ascii.find(block) == std::string::npos);
  CHECK(ascii.find("##") != std::string::npos);
}

TEST_CASE("what to change first is true: two changes, each fits and has the peak that is printed") {
  result const r = estimate("gpt2", {"--micro-batch", "8", "--device", "rtx_3070"});
  CHECK(r.status == 1);
  CHECK(r.out.find("what to change first:\n  --micro-batch 4 --accumulation 2: peak ") != std::string::npos);
  CHECK(r.out.find("\n  --checkpointing full: peak ") != std::string::npos);
  for (std::vector<std::string> const& change : std::vector<std::vector<std::string>>{
           {"--micro-batch", "4", "--accumulation", "2"}, {"--micro-batch", "8", "--checkpointing", "full"}}) {
    std::vector<std::string> options = {"--device", "rtx_3070"};
    options.insert(options.end(), change.begin(), change.end());
    result const changed = estimate("gpt2", options);
    CHECK(changed.status == 0);
    std::size_t const at = changed.out.find("\npeak ") + 6;
    std::string const peak = changed.out.substr(at, changed.out.find(" (", at) - at);
    INFO(peak);
    CHECK(r.out.find(change[change.size() - 2] + ' ' + change.back() + ": peak " + peak + ", fits\n") !=
          std::string::npos);
  }
}

TEST_CASE("where no change suffices, how far all of them go and what would hold the run") {
  result const r = estimate("llama", {"--device", "t4_16gb"});
  CHECK(r.status == 1);
  CHECK(r.out.find(", fits") == std::string::npos);
  CHECK(r.out.find("does not fit (other arithmetic)\n") != std::string::npos);
  CHECK(r.out.find("h200_141gb holds the\n    run as it is") != std::string::npos);
}

TEST_CASE("a micro-batch of very many sequences gets its advice at once") {
  result const r = estimate("gpt2", {"--micro-batch", "1000003", "--sequence", "16", "--device", "rtx_3070"});
  CHECK(r.status == 1);
  CHECK(r.out.find("what to change first:\n") != std::string::npos);
}

TEST_CASE("allocated, reserved and device figures apart, in text, Markdown and JSON") {
  nlohmann::json const json = estimate_json("gpt2", {"--device", "rtx_3070"});
  nlohmann::json const& machine = json["machine"];
  CHECK(machine["allocated"] >= json["peak"]["total"]);
  CHECK(machine["reserved"] >= machine["allocated"]);
  CHECK(machine["context"] == 426u << 20);  // the report nearest to compute capability 8.6
  CHECK(machine["device"].get<std::uint64_t>() ==
        machine["reserved"].get<std::uint64_t>() + machine["context"].get<std::uint64_t>());
  CHECK(estimate_json("gpt2", {"--device", "h100_80gb"})["machine"]["context"] == 563u << 20);

  std::string const text = estimate("gpt2").out;
  for (char const* counted_by :
       {"torch.cuda.max_memory_allocated\n", "torch.cuda.max_memory_reserved, replayed\n", "nvidia-smi: with "})
    CHECK(text.find(counted_by) != std::string::npos);
  CHECK(estimate("gpt2", {"--format", "markdown"}).out.find("\n| reserved | ") != std::string::npos);
}

TEST_CASE("segments that exceed the device are said") {
  std::string const sentence = "replayed in the allocator's segments it needs more than the device has";
  for (char const* memory : {"11700MiB", "12GiB", "13GiB", "16GiB"}) {
    nlohmann::json const json = estimate_json("gpt2", {"--micro-batch", "8", "--memory", memory});
    CHECK(json["device"]["fits"] == true);
    CHECK((json["notes"].dump().find(sentence) != std::string::npos) ==
          (json["machine"]["device"] > json["device"]["capacity"]));
  }
  CHECK(estimate_json("gpt2", {"--micro-batch", "8", "--memory", "16GiB"})["notes"].dump().find(sentence) ==
        std::string::npos);
}

TEST_CASE("a model of very many blocks is estimated, and its reserved memory is not") {
  std::string const deep = write("deep.json", R"({"model_type": "gpt2", "vocab_size": 1000, "n_positions": 64,
                                                  "n_embd": 64, "n_layer": 1000000, "n_head": 2})");
  result const r = run({"estimate", deep, "--format", "json"});
  REQUIRE(r.status == 0);
  CHECK(nlohmann::json::parse(r.out)["machine"].is_null());
  CHECK(r.out.find("reserved memory is not known: ") != std::string::npos);
}

TEST_CASE("the devices are the catalogue with both totals") {
  nlohmann::json const json = nlohmann::json::parse(run({"devices", "--format", "json"}).out);
  REQUIRE(json.size() == std::size(gpumem::device_catalogue));
  for (std::size_t i = 0; i < json.size(); ++i) {
    gpumem::named_device const& d = gpumem::device_catalogue[i];
    CHECK(json[i]["id"] == d.id);
    CHECK(json[i]["name"] == d.name);
    CHECK(json[i]["capacity"] == d.numbers.capacity.value);
    CHECK((json[i]["board_total"].is_null() ? 0 : json[i]["board_total"].get<std::uint64_t>()) ==
          d.numbers.board_total.value);
  }
  std::string const text = run({"devices"}).out;
  CHECK(text.find("a100_40gb                   A100 40GB SXM") != std::string::npos);
  CHECK(text.find("40192   40960   8.0") != std::string::npos);
  CHECK(run({"devices", "--format", "markdown"}).out.find("| h100_80gb | H100 SXM5 | 80998 | 81559 | 9.0 |") !=
        std::string::npos);
}

TEST_CASE("the program prints what its README shows") {
  std::istringstream readme(contents(GPUMEM_README));
  std::string shown, line;
  result last;
  int commands = 0;
  auto const check_last = [&] {
    if (commands > 0) CHECK(last.out == shown);
    shown.clear();
  };
  bool inside = false;
  while (std::getline(readme, line)) {
    if (line.rfind("```", 0) == 0) {
      if (inside) check_last();
      inside = line == "```console";
    } else if (inside && line.rfind("$ gpumem ", 0) == 0) {
      check_last();
      std::istringstream words(line.substr(9));
      std::vector<std::string> arguments;
      for (std::string word; words >> word;)
        arguments.push_back(word.ends_with(".json") ? GPUMEM_CONFIGS "/" + word : word);
      last = run(arguments);
      ++commands;
    } else if (inside) {
      shown += line + '\n';
    }
  }
  CHECK(commands == 3);
}

TEST_CASE("help and version are answers") {
  for (std::vector<std::string> const& arguments : std::vector<std::vector<std::string>>{
           {"--help"}, {"estimate", "--help"}, {"parameters", "-h"}, {"devices", "-h"}}) {
    result const r = run(arguments);
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    CHECK(r.out.find("Usage: gpumem") != std::string::npos);
  }
  CHECK(run({"--version"}).out.rfind("gpumem 0.", 0) == 0);
}

TEST_CASE("micro-batch max finds the largest that fits, and needs to know into what") {
  nlohmann::json const json = estimate_json("gpt2", {"--micro-batch", "max", "--device", "a100_40gb"});
  std::int64_t const most = json["workload"]["micro_batch"];
  CHECK(json["device"]["fits"] == true);
  CHECK(json["notes"][0] == "micro-batch " + std::to_string(most) + " is the largest that fits");
  CHECK(estimate("gpt2", {"--micro-batch", std::to_string(most), "--device", "a100_40gb"}).status == 0);
  CHECK(estimate("gpt2", {"--micro-batch", std::to_string(most + 1), "--device", "a100_40gb"}).status == 1);
  result const none = estimate("llama", {"--micro-batch", "max", "--device", "t4_16gb"});
  CHECK(none.status == 1);
  CHECK(none.out.find("note: not even a micro-batch of 1 fits") != std::string::npos);
  result const nowhere = estimate("gpt2", {"--micro-batch", "max"});
  CHECK(nowhere.status == 2);
  CHECK(nowhere.err.find("--micro-batch = max: needs --device or --memory") != std::string::npos);
}
