// SPDX-License-Identifier: MIT
#include "model_facts.hpp"

#include <gpumem/core/error.hpp>

#include "input_error.hpp"

namespace gpumem::cli {
namespace {

void add(std::vector<fact>& to, char const* name, std::int64_t value) {
  if (value != 0) to.push_back({name, std::to_string(value), true});
}

void add_attention(std::vector<fact>& to, grouped_attention const& a, std::int64_t hidden) {
  add(to, "heads", a.heads), add(to, "kv_heads", a.key_value_heads()), add(to, "head_dim", a.head_width(hidden));
}

void add_experts(std::vector<fact>& to, expert_layers const& e) {
  add(to, "dense_layers", e.dense_layers), add(to, "feed_forward", e.dense_width);
  add(to, "experts", e.experts), add(to, "expert_width", e.expert_width), add(to, "shared_width", e.shared_width);
}

// layers and hidden come first in every model: a person reads them first.
struct fact_writer {
  std::vector<fact>& to;

  void operator()(transformer const& m) const {
    add(to, "layers", m.layers), add(to, "hidden", m.hidden), add(to, "heads", m.heads);
    add(to, "kv_heads", m.key_value_heads()), add(to, "head_dim", m.head_width());
    add(to, "feed_forward", m.mlp_width()), add(to, "vocabulary", m.vocabulary), add(to, "positions", m.positions);
  }
  void operator()(decoder const& m) const {
    add(to, "layers", m.layers), add(to, "hidden", m.hidden);
    add_attention(to, m.attention, m.hidden);
    add(to, "feed_forward", m.feed_forward), add(to, "vocabulary", m.vocabulary), add(to, "positions", m.positions);
  }
  void operator()(expert_decoder const& m) const {
    add(to, "layers", m.layers), add(to, "hidden", m.hidden);
    add_attention(to, m.attention, m.hidden);
    add_experts(to, m.mlp), add(to, "vocabulary", m.vocabulary);
  }
  void operator()(latent_decoder const& m) const {
    add(to, "layers", m.layers), add(to, "hidden", m.hidden), add(to, "heads", m.attention.heads);
    add(to, "query_rank", m.attention.query_rank), add(to, "key_value_rank", m.attention.key_value_rank);
    add_experts(to, m.mlp), add(to, "vocabulary", m.vocabulary);
  }
  void operator()(encoder const& m) const {
    add(to, "layers", m.layers), add(to, "hidden", m.hidden), add(to, "heads", m.heads);
    add(to, "feed_forward", m.feed_forward), add(to, "vocabulary", m.vocabulary), add(to, "positions", m.positions);
  }
  void operator()(encoder_decoder const& m) const {
    add(to, "encoder_layers", m.encoder_layers), add(to, "decoder_layers", m.decoder_layers);
    add(to, "hidden", m.hidden), add(to, "heads", m.heads), add(to, "head_dim", m.head_dim);
    add(to, "feed_forward", m.feed_forward), add(to, "vocabulary", m.vocabulary);
  }
};

}  // namespace

described_model load_model(std::string const& path) {
  std::string const text = read_file(path), file = printable(path) + ": ";
  try {
    return describe(text);
  } catch (input_error const& e) {
    throw input_error(file + e.what());
  } catch (error const& e) {
    throw input_error(file + e.what());
  }
}

std::vector<fact> model_facts(described_model const& m) {
  std::vector<fact> facts{{"model_type", m.model_type}};
  std::visit(fact_writer{facts}, m.numbers);
  facts.push_back({"tied_head", m.tied_head ? "true" : "false", true});
  return facts;
}

std::string model_line(described_model const& m, std::uint64_t parameters) {
  std::vector<fact> facts;
  std::visit(fact_writer{facts}, m.numbers);
  std::string line = m.model_type + ": ", heads;
  for (fact const& f : facts) {
    if (f.name == "heads") heads = f.value;
    if (f.name == "head_dim" || (f.name == "kv_heads" && f.value == heads)) continue;
    std::string words = detail::words(f.name);
    if (f.name.ends_with("layers") || f.name.ends_with("heads")) {
      if (f.value == "1") words.pop_back();
      line += f.value + ' ' + words + ", ";
    } else {
      line += words + ' ' + f.value + ", ";
    }
  }
  return line + detail::with_thousands(parameters) + " parameters";
}

void require_format(std::string const& format) {
  if (format != "text" && format != "markdown" && format != "json")
    refuse("--format", one_line(format, 40), "not known; known are text, markdown, json");
}

}  // namespace gpumem::cli
