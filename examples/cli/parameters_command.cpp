// SPDX-License-Identifier: MIT
#include <gpumem/core/error.hpp>

#include "commands.hpp"
#include "input_error.hpp"
#include "model_facts.hpp"

namespace gpumem::cli {
namespace {

// The learned position table, which some counts leave out.
struct position_table_size {
  std::uint64_t operator()(transformer const& m) const {
    return m.position == position::learned ? size(m.positions, m.hidden) : 0;
  }
  std::uint64_t operator()(decoder const& m) const { return size(m.positions, m.hidden); }
  std::uint64_t operator()(encoder const& m) const {
    return size(m.positions, m.embedding_width != 0 ? m.embedding_width : m.hidden);
  }
  std::uint64_t operator()(auto const&) const { return 0; }

  static std::uint64_t size(std::int64_t rows, std::int64_t width) {
    return checked_multiply(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(width));
  }
};

struct share {
  char const* name;
  std::uint64_t elements;
};

parameter_count count(std::string const& path, described_model const& m) {
  try {
    return count_parameters(m);
  } catch (error const& e) {
    throw input_error(printable(path) + ": " + e.what());
  }
}

}  // namespace

answer run_parameters(std::string const& config, std::string const& format) {
  require_format(format);
  described_model m = load_model(config);
  parameter_count const n = count(config, m);
  if (m.tied_head) m.notes.insert(m.notes.begin(), "the head shares the embedding table, which counts once");
  share const shares[] = {
      {"embeddings", n.embeddings}, {"weights", n.weights}, {"biases", n.biases}, {"norms", n.norms}};

  std::uint64_t const position_table = std::visit(position_table_size{}, m.numbers);
  if (position_table != 0)
    m.notes.push_back("without the position table: " + detail::with_thousands(n.total() - position_table));

  if (format == "json") {
    std::string json = "{\n  \"parameters\": " + std::to_string(n.total());
    for (share const& s : shares) json += std::string(",\n  \"") + s.name + "\": " + std::to_string(s.elements);
    json += ",\n  \"position_table\": " + std::to_string(position_table);
    json += ",\n  \"model\": " + detail::json_object(model_facts(m));
    json +=
        ",\n  \"not_counted\": " + detail::json_array(m.not_counted) + ",\n  \"notes\": " + detail::json_array(m.notes);
    return {json + "\n}\n"};
  }
  bool const markdown = format == "markdown";
  std::string text = markdown ? "## " + model_line(m, n.total()) + "\n\n| part | parameters |\n|---|---:|\n"
                              : detail::wrapped(model_line(m, n.total()), "", "  ");
  for (share const& s : shares) {
    std::string const elements = detail::with_thousands(s.elements);
    text += markdown ? std::string("| ") + s.name + " | " + elements + " |\n"
                     : "  " + detail::padded(s.name, 12) + detail::padded(elements, 19, true) + '\n';
  }
  text += markdown
              ? "| total | **" + detail::with_thousands(n.total()) + "** |\n"
              : "  " + detail::padded("total", 12) + detail::padded(detail::with_thousands(n.total()), 19, true) + '\n';
  auto const sentence = [&](std::string const& line) {
    text += markdown ? "> " + line + '\n' : detail::wrapped(line, "", "  ");
  };
  if (markdown && !(m.not_counted.empty() && m.notes.empty())) text += '\n';
  for (std::string const& part : m.not_counted) sentence("not counted: " + part);
  for (std::string const& note : m.notes) sentence("note: " + note);
  return {text};
}

}  // namespace gpumem::cli
