// SPDX-License-Identifier: MIT
#include "json_table.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "input_error.hpp"
#include "numbers.hpp"

namespace gpumem::cli {
namespace {

std::string slot(int container, std::string_view key) { return std::to_string(container).append(":").append(key); }

// The characters of a broken value, for the message: from where the parser stopped back to the last separator.
std::string value_at(std::string_view text, std::size_t position) {
  constexpr std::string_view separators = ":,[]{} \t\r\n";
  std::size_t const at = std::min(position == 0 ? 0 : position - 1, text.size());
  std::size_t first = at;
  while (first > 0 && at - first < 40 && separators.find(text[first - 1]) == std::string_view::npos) --first;
  std::size_t const end = std::min(text.find_first_of(separators, std::min(at + 1, text.size())), text.size());
  return one_line(text.substr(first, end - first), 40);
}

class table_builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  table_builder(std::string_view text, void (*if_broken)(json_table const&)) : text_(text), if_broken_(if_broken) {}

  json_table table;

  bool null() override { return put({}); }
  bool boolean(bool value) override { return put({json_value::kind::boolean, 0, value ? "true" : "false"}); }
  bool number_integer(number_integer_t value) override {
    return put({json_value::kind::integer, 0, std::to_string(value)});
  }
  bool number_unsigned(number_unsigned_t value) override {
    return put({json_value::kind::integer, 0, std::to_string(value)});
  }
  bool number_float(number_float_t, string_t const& written) override {
    return put({json_value::kind::fraction, 0, written});
  }
  bool string(string_t& value) override { return put({json_value::kind::text, 0, std::move(value)}); }
  bool binary(binary_t&) override { return false; }  // no JSON text has one
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool start_object(std::size_t) override { return open(json_value::kind::object); }
  bool start_array(std::size_t) override { return open(json_value::kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, std::string const&, nlohmann::json::exception const& e) override {
    if (if_broken_ != nullptr) if_broken_(table);
    auto const line =
        1 +
        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(std::min(position, text_.size())), '\n');
    constexpr int number_overflow = 406;  // nlohmann's documented identifiers of exceptions
    if (e.id == number_overflow) refuse(path(), value_at(text_, position), count_rule);
    std::string where = path();
    if (!where.empty()) where += ": ";
    if (position > text_.size())
      throw input_error(where + "the JSON text ends too early, at line " + std::to_string(line));
    throw input_error(where + "not valid JSON at line " + std::to_string(line) + ": " + value_at(text_, position));
  }

 private:
  struct level {
    json_value::kind is;
    int container;
    std::string key;
    std::size_t items;
  };

  [[nodiscard]] std::string path() const {
    std::string names;
    for (level const& l : open_) {
      if (l.key.empty()) continue;
      if (!names.empty()) names += '.';
      names += one_line(l.key, 60);
    }
    return one_line(names, 120);
  }
  bool put(json_value value) {
    if (open_.empty()) throw input_error("must be a JSON object, not a single value");
    level& in = open_.back();
    if (in.is == json_value::kind::array) in.key = std::to_string(in.items++);
    if (!table.insert(in.container, in.key, std::move(value))) throw input_error(path() + ": the key is repeated");
    if (table.size() > json_table::most_values)
      throw input_error("has more than " + std::to_string(json_table::most_values) + " values, which no config has");
    return true;
  }
  bool open(json_value::kind is) {
    if (open_.empty() && is == json_value::kind::array) throw input_error("must be a JSON object, not an array");
    int const container = containers_++;
    if (!open_.empty()) put({is, container, {}});
    if (open_.size() == json_table::deepest)
      throw input_error(one_line(open_.front().key, 60) + ": nests deeper than " + std::to_string(json_table::deepest) +
                        " levels");
    open_.push_back({is, container, {}, 0});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  void (*if_broken_)(json_table const&);
  std::vector<level> open_;
  int containers_ = 0;
};

}  // namespace

json_value const* json_table::find(int container, std::string_view key) const {
  auto const found = values_.find(slot(container, key));
  return found == values_.end() ? nullptr : &found->second;
}

bool json_table::insert(int container, std::string_view key, json_value value) {
  return values_.try_emplace(slot(container, key), std::move(value)).second;
}

json_table read_json(std::string_view text, void (*if_broken)(json_table const&)) {
  if (text.size() > json_table::most_bytes) throw input_error("is larger than 16 MiB, which no config is");
  if (text.empty()) throw input_error("is empty");
  if (text.starts_with("\xEF\xBB\xBF") || text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    throw input_error("begins with a byte order mark; JSON is UTF-8 without one");
  table_builder builder(text, if_broken);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder.table);
}

}  // namespace gpumem::cli
