// SPDX-License-Identifier: MIT
// Everything that is no config and every option that is none: one line on standard error that names the file or option,
// the field, the value and the rule; nothing on standard output; exit status 2; within a second.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cli_program.hpp"

using namespace cli_program;

namespace {

void check_refusal(std::vector<std::string> const& arguments, std::vector<std::string> const& named) {
  std::string line;
  for (std::string const& a : arguments) line += a.substr(0, 100) + ' ';
  result const r = run(arguments);
  INFO(line << "\nstdout: " << r.out << "\nstderr: " << r.err);
  CHECK(r.status == 2);
  CHECK(r.out.empty());
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  CHECK((!r.err.empty() && r.err.back() == '\n'));
  CHECK(r.err.rfind("gpumem: ", 0) == 0);
  CHECK(r.seconds < 1);
  for (std::string const& text : named) {
    INFO("must say: " << text);
    CHECK(r.err.find(text) != std::string::npos);
  }
}

// A config of Llama's kind in which one field is replaced, or left out where `value` is empty.
std::string llama_with(std::string const& field, std::string const& value) {
  struct entry {
    char const* name;
    char const* value;
  };
  constexpr entry fields[] = {{"model_type", "\"llama\""},     {"vocab_size", "1000"},
                              {"hidden_size", "64"},           {"num_hidden_layers", "2"},
                              {"num_attention_heads", "4"},    {"num_key_value_heads", "2"},
                              {"intermediate_size", "128"},    {"max_position_embeddings", "512"},
                              {"tie_word_embeddings", "false"}};
  std::string json = "{";
  bool replaced = false;
  for (entry const& e : fields) {
    bool const here = field == e.name;
    replaced = replaced || here;
    if (here && value.empty()) continue;
    json += (json.size() > 1 ? ", \"" : "\"") + std::string(e.name) + "\": " + (here ? value : e.value);
  }
  if (!replaced) json += ", \"" + field + "\": " + value;
  return json + "}";
}

std::string valid_config() { return write("valid.json", llama_with("hidden_size", "64")); }

}  // namespace

TEST_CASE("files that cannot be read are refused") {
  for (char const* command : {"parameters", "estimate"}) {
    check_refusal({command, scratch().file("missing.json")}, {"missing.json", "cannot be opened: No such file"});
    check_refusal({command, scratch().file("")}, {"cannot be read: Is a directory"});
    check_refusal({command, scratch().file("caf\xC3\xA9 de nuit.json")},
                  {"caf\xC3\xA9 de nuit.json: cannot be opened"});
    check_refusal({command, scratch().file("two\nlines.json")}, {"two?lines.json: cannot be opened"});
    check_refusal({command, scratch().file(std::string(300, 'n'))}, {"cannot be opened: File name too long"});
    check_refusal({command, ""}, {"cannot be opened"});
    // Reading the first page of a process fails for everyone, root too.
    check_refusal({command, "/proc/self/mem"}, {"/proc/self/mem: cannot be read: Input/output error"});
  }
}

TEST_CASE("texts that are no JSON object are refused") {
  struct broken {
    char const* name;
    std::string text;
    std::vector<std::string> named;
  };
  std::string const valid = llama_with("hidden_size", "64");
  std::vector<broken> const all = {
      {"empty.json", "", {"is empty"}},
      {"blank.json", " \n", {"ends too early, at line 2"}},
      {"truncated.json",
       "{\"model_type\": \"llama\",\n \"hidden_size\": ",
       {"hidden_size: ", "ends too early, at line 2"}},
      {"in_string.json", valid.substr(0, 12), {"ends too early"}},
      {"array.json", "[" + valid + "]", {"must be a JSON object, not an array"}},
      {"number.json", "768", {"must be a JSON object, not a single value"}},
      {"null.json", "null", {"must be a JSON object, not a single value"}},
      {"two.json", valid + valid, {"not valid JSON at line 1"}},
      {"comma.json", "{\"model_type\": \"llama\",}", {"not valid JSON at line 1"}},
      {"nan.json", llama_with("hidden_size", "NaN"), {"hidden_size: not valid JSON at line 1: NaN"}},
      {"infinity.json", llama_with("hidden_size", "-Infinity"), {"hidden_size: not valid JSON at line 1: -Infinity"}},
      {"hexadecimal.json", llama_with("hidden_size", "0x40"), {"hidden_size: not valid JSON", "0x40"}},
      {"octal.json", llama_with("hidden_size", "010"), {"hidden_size: not valid JSON", "010"}},
      {"plus.json", llama_with("hidden_size", "+64"), {"hidden_size: not valid JSON", "+64"}},
      {"deep_arrays.json", "{\"a\": " + std::string(100'000, '['), {"a: ", "nests deeper than 64 levels"}},
      {"deep_objects.json",
       [] {
         std::string text;
         for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
         return text;
       }(),
       {"nests deeper than 64 levels"}},
      {"junk.json", std::string(50'000'000, 'x'), {"is larger than 16 MiB"}},
      {"junk_in_string.json", "{\"a\": \"" + std::string(50'000'000, 'x'), {"is larger than 16 MiB"}},
      {"small_junk.json", std::string(1'000'000, 'x'), {"not valid JSON at line 1: xxx"}},
      {"zeros.json", std::string(1000, '\0'), {"not valid JSON at line 1"}},
      {"bad_utf8.json", llama_with("torch_dtype", "\"\xC3\x28\""), {"torch_dtype: not valid JSON at line 1"}},
      {"surrogate.json", llama_with("torch_dtype", "\"\xED\xA0\x80\""), {"torch_dtype: not valid JSON"}},
      {"mark.json", "\xEF\xBB\xBF" + valid, {"byte order mark"}},
      {"utf16.json", std::string("\xFF\xFE{\0", 4), {"byte order mark"}},
      {"repeated.json", llama_with("a", "1, \"hidden_size\": 64"), {"hidden_size: the key is repeated"}},
      {"repeated_inside.json", llama_with("a", "{\"b\": 1, \"b\": 1}"), {"a.b: the key is repeated"}},
      {"many.json",
       [] {
         std::string text = "{\"a\": [0";
         for (int i = 0; i < 200'000; ++i) text += ",0";
         return text + "]}";
       }(),
       {"has more than 100000 values"}},
  };
  for (broken const& b : all) {
    std::string const path = write(b.name, b.text);
    std::vector<std::string> named = b.named;
    named.emplace_back(b.name);
    check_refusal({"parameters", path}, named);
    check_refusal({"estimate", path}, named);
  }
}

TEST_CASE("fields that are wrong are refused with their name, value and rule") {
  struct wrong {
    char const* field;
    char const* value;  // empty: the field is left out
    std::string says;
  };
  std::string const rule = ": must be an integer from 1 to 2^40";
  std::vector<wrong> const all = {
      {"hidden_size", "", "hidden_size is missing" + rule},
      {"hidden_size", "null", "hidden_size is missing" + rule},
      {"vocab_size", "", "vocab_size is missing" + rule},
      {"intermediate_size", "", "intermediate_size is missing" + rule},
      {"num_hidden_layers", "", "num_hidden_layers is missing" + rule},
      {"num_attention_heads", "", "num_attention_heads is missing" + rule},
      {"hidden_size", "\"64\"", "hidden_size = \"64\"" + rule},
      {"hidden_size", "true", "hidden_size = true" + rule},
      {"hidden_size", "[64]", "hidden_size = [...]" + rule},
      {"hidden_size", "{}", "hidden_size = {...}" + rule},
      {"hidden_size", "64.5", "hidden_size = 64.5" + rule},
      {"hidden_size", "64.0", "hidden_size = 64.0" + rule},
      {"hidden_size", "6.4e1", "hidden_size = 6.4e1" + rule},
      {"hidden_size", "-64", "hidden_size = -64" + rule},
      {"hidden_size", "0", "hidden_size = 0" + rule},
      {"hidden_size", "-0", "hidden_size = 0" + rule},
      {"hidden_size", "1e308", "hidden_size = 1e308" + rule},
      {"hidden_size", "1e400", "hidden_size = 1e400" + rule},
      {"hidden_size", "1099511627777", "hidden_size = 1099511627777" + rule},
      {"hidden_size", "9223372036854775807", "hidden_size = 9223372036854775807" + rule},
      {"hidden_size", "9223372036854775808", "hidden_size = 9223372036854775808" + rule},
      {"hidden_size", "-9223372036854775809", "hidden_size = -9223372036854775809" + rule},
      {"hidden_size", "18446744073709551616", "hidden_size = 18446744073709551616" + rule},
      {"num_hidden_layers", "0", "num_hidden_layers = 0" + rule},
      {"head_dim", "0", "head_dim = 0" + rule},
      {"num_attention_heads", "6", "num_attention_heads = 6: must divide hidden_size = 64 where head_dim is not given"},
      {"num_key_value_heads", "3", "num_key_value_heads = 3: must divide num_attention_heads = 4"},
      {"num_key_value_heads", "8", "num_key_value_heads = 8: must divide num_attention_heads = 4"},
      {"head_dim", "1099511627776", "head_dim = 1099511627776: times num_attention_heads = 4 must be at most 2^40"},
      {"tie_word_embeddings", "1", "tie_word_embeddings = 1: must be true or false"},
      {"attention_bias", "\"no\"", "attention_bias = \"no\": must be true or false"},
      {"attention_dropout", "2", "attention_dropout = 2: must be a number from 0 to 1"},
      {"attention_dropout", "\"0.1\"", "attention_dropout = \"0.1\": must be a number from 0 to 1"},
      {"hidden_act", "7", "hidden_act = 7: must be a string"},
      {"model_type", "", "model_type is missing: must be one of albert, "},
      {"model_type", "7", "model_type = 7: must be a string"},
      {"model_type", "\"mamba\"", "model_type = \"mamba\": not known; known are albert, "},
      {"model_type", "\"LLAMA\"", "model_type = \"LLAMA\": not known; known are albert, "},
      {"model_type", "\"a\\nb\"", "model_type = \"a?b\": not known"},
  };
  for (wrong const& w : all) {
    std::string const path = write("wrong.json", llama_with(w.field, w.value));
    check_refusal({"parameters", path}, {"wrong.json: " + w.says});
    check_refusal({"estimate", path}, {"wrong.json: " + w.says});
  }
}

TEST_CASE("fields of other families follow the same rules") {
  struct wrong {
    char const* text;
    char const* says;
  };
  wrong const all[] = {
      {R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 7, "vocab_size": 9, "n_positions": 8})",
       "n_head = 7: must divide n_embd = 768"},
      {R"({"model_type": "gpt2", "n_embd": 768, "hidden_size": 769, "n_layer": 1, "n_head": 1})",
       "hidden_size = 769: differs from n_embd, which is another name of the same field"},
      {R"({"model_type": "gpt2", "add_cross_attention": true})", "add_cross_attention = true: only false is counted"},
      {R"({"model_type": "gemma3"})", "text_config is missing: must be an object"},
      {R"({"model_type": "gemma3", "text_config": 3})", "text_config = 3: must be an object"},
      {R"({"model_type": "gemma3", "text_config": {"hidden_size": "big"}})",
       "text_config.hidden_size = \"big\": must be an integer from 1 to 2^40"},
      {R"({"model_type": "qwen3_moe", "num_hidden_layers": 2, "hidden_size": 8, "vocab_size": 9,
           "num_attention_heads": 4, "num_experts": 2, "moe_intermediate_size": 4, "mlp_only_layers": [0.5]})",
       "mlp_only_layers.0 = 0.5: must be an integer from 0 to 2^40"},
      {R"({"model_type": "deepseek_v3", "num_hidden_layers": 2, "hidden_size": 8, "vocab_size": 9,
           "num_attention_heads": 4, "kv_lora_rank": 2, "qk_nope_head_dim": 2, "qk_rope_head_dim": 2,
           "v_head_dim": 2})",
       "q_lora_rank is missing"},
      {R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 1099511627776, "vocab_size": 9,
           "num_attention_heads": 1, "intermediate_size": 1099511627776})",
       "must be at most 2^40"},
      {R"({"type_vocab_size": 2, "hidden_size": 64})", "model_type is missing"},
  };
  for (wrong const& w : all) check_refusal({"parameters", write("other.json", w.text)}, {"other.json: ", w.says});
}

TEST_CASE("numbers of options are refused unless they are plain integers") {
  std::string const config = valid_config();
  for (char const* option : {"--micro-batch", "--sequence", "--accumulation"})
    for (char const* value : {"0", "-1", "x", "", "010", "0x10", "1e3", "1.5", "+1", " 1", "1 ", "99999999999999999999",
                              "9223372036854775808", "1099511627777"})
      check_refusal({"estimate", config, option, value},
                    {std::string(option) + " = " + value + ": must be an integer from 1 to 2^40"});
  check_refusal({"estimate", config, "--memory", "0GiB"}, {"--memory = 0GiB: must be a whole number with a unit"});
  for (char const* option : {"--memory", "--reserve"})
    for (char const* value : {"", "00", "-1", "x", "GiB", "24 GiB", "24gib", "1.5GiB", "1e3", "99999999999999999999",
                              "2000000TiB", "1099511627776TB"})
      check_refusal({"estimate", config, option, value},
                    {std::string(option) + " = " + value + ": must be a whole number with a unit"});
}

TEST_CASE("every family refuses unknown values, and says not yet for those to come") {
  std::string const config = valid_config();
  struct option {
    char const* name;
    char const* not_yet;
    char const* known;
  };
  option const families[] = {{"--precision", "fp8", "fp32, mixed-bf16, "},
                             {"--optimizer", "muon", "adamw, "},
                             {"--optimizer", "galore", "adamw, "},
                             {"--checkpointing", "offloaded", "none, full, every:K"},
                             {"--attention", "flex", "eager, flash"},
                             {"--kernels", "compiled", "eager, fused"},
                             {"--loss", "chunked", "eager"}};
  for (option const& f : families) {
    std::string const option = f.name;
    check_refusal({"estimate", config, option, "nonsense"}, {option + " = nonsense: not known; known are " + f.known});
    check_refusal({"estimate", config, option, ""}, {option + " = : not known; known are " + f.known});
    check_refusal({"estimate", config, option, f.not_yet},
                  {option + " = " + f.not_yet + ": not yet; known are " + f.known});
    check_refusal({"estimate", config, option}, {option});
    check_refusal({"estimate", config, option, "eager", option, "eager"}, {option});
  }
  for (char const* value :
       {"every:", "every:0", "every:-1", "every:x", "every:K", "every:01", "every:99999999999999999999"})
    check_refusal({"estimate", config, "--checkpointing", value},
                  {std::string("--checkpointing = ") + value + ": K of every:K must be an integer from 1 to 2^40"});
  for (char const* value : {"first:", "first:0", "first:-1", "first:N"})
    check_refusal({"estimate", config, "--checkpointing", value},
                  {std::string("--checkpointing = ") + value + ": N of first:N must be an integer from 1 to 2^40"});
  check_refusal({"estimate", config, "--labels", "2"}, {"--labels = 2: only encoders end in a classifier"});
  check_refusal({"estimate", config, "--device", "abacus"},
                {"--device = abacus: not known; gpumem devices lists them"});
  check_refusal({"estimate", config, "--device", "t4_16gb", "--memory", "1GiB"}, {"only one of --device and --memory"});
  for (char const* command : {"estimate", "parameters"})
    check_refusal({command, config, "--format", "yaml"},
                  {"--format = yaml: not known; known are text, markdown, json"});
  check_refusal({"devices", "--format", "yaml"}, {"--format = yaml: not known; known are text, markdown, json"});
}

TEST_CASE("command lines that ask for nothing are refused on one line") {
  check_refusal({}, {});
  check_refusal({"guess"}, {});
  check_refusal({"estimate"}, {"CONFIG.json"});
  check_refusal({"parameters"}, {"CONFIG.json"});
  check_refusal({"estimate", valid_config(), "--nonsense"}, {"--nonsense"});
  check_refusal({"estimate", valid_config(), "second.json"}, {"second.json"});
  check_refusal({"devices", "extra"}, {"extra"});
  check_refusal({"parameters", valid_config(), "--micro-batch", "1"}, {"--micro-batch"});
}

TEST_CASE("workloads that a model cannot have are refused") {
  std::string const gpt2 =
      write("gpt2.json",
            R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 99, "n_positions": 128})");
  check_refusal({"estimate", gpt2, "--sequence", "129"},
                {"--sequence = 129: longer than the 128 rows of the learned position table"});
  check_refusal({"estimate", gpt2, "--micro-batch", "1099511627776"},
                {"--micro-batch = 1099511627776: times the sequence of 128 must be at most 2^40 tokens"});
  check_refusal({"estimate", gpt2, "--micro-batch", "8589934592"}, {"gpt2.json: --micro-batch 8589934592 with --sequence 128: ", "2^40"});
  std::string const rotary = write("rotary.json", llama_with("max_position_embeddings", "1099511627776"));
  check_refusal({"estimate", rotary, "--sequence", "1099511627776", "--micro-batch", "2"},
                {"--micro-batch = 2: times the sequence of 1099511627776 must be at most 2^40 tokens"});
  check_refusal({"estimate", rotary, "--sequence", "1099511627776"}, {"rotary.json: sequence = 1099511627776: ", "2^40"});
}

TEST_CASE("an answer that cannot be written is refused, and a reader that has gone is not an error") {
  result const full = run({"devices"}, "/dev/full");
  CHECK(full.status == 2);
  CHECK(full.err == "gpumem: standard output: No space left on device\n");
  for (char const* pipe : {" devices | head -0", " parameters " GPUMEM_CONFIGS "/gpt2.json | head -0",
                           " estimate " GPUMEM_CONFIGS "/gpt2.json | true"}) {
    std::string const command = std::string("bash -c 'set -o pipefail; for i in 1 2 3 4 5; do \"") + GPUMEM_PROGRAM +
                                "\"" + pipe + " || exit 3; done' 2>\"" + scratch().file("pipe") + "\"";
    INFO(command);
    CHECK(std::system(command.c_str()) == 0);
    CHECK(contents(scratch().file("pipe")).empty());
  }
}
