// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gpumem::cli {

/// A scalar of a JSON text, or the number of the object or array that stands in its place.
struct json_value {
  enum class kind : std::uint8_t { null, boolean, integer, fraction, text, object, array };
  kind is = kind::null;
  int container = 0;    // of an object or array
  std::string written;  // of a scalar: the value as text; a string without its quotes
};

/// A JSON text as a flat table of scalars: no tree, hence nothing that nests. Objects and arrays are numbered, the
/// outermost is 0; an array's keys are 0, 1, 2, ...
class json_table {
 public:
  static constexpr int deepest = 64;
  static constexpr std::size_t most_values = 100'000;
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;

  [[nodiscard]] json_value const* find(int container, std::string_view key) const;
  /// False where the container has the key already.
  bool insert(int container, std::string_view key, json_value value);
  [[nodiscard]] std::size_t size() const { return values_.size(); }

 private:
  std::unordered_map<std::string, json_value> values_;
};

/// Reads a JSON text whose outermost value is an object. Throws input_error with the reason, without a file's name:
/// broken JSON (no byte order mark, no invalid UTF-8), a repeated key, more than the limits above.
/// `if_broken` is called with what was read before broken JSON is reported: it may have a better reason to refuse.
json_table read_json(std::string_view text, void (*if_broken)(json_table const&) = nullptr);

}  // namespace gpumem::cli
