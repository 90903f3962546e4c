// SPDX-License-Identifier: MIT
#include "numbers.hpp"

#include <gpumem/core/error.hpp>

#include "input_error.hpp"

namespace gpumem::cli {

std::optional<std::int64_t> whole_number(std::string_view digits) {
  if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) return std::nullopt;
  std::int64_t value = 0;
  for (char const c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
    if (value > largest_number) return std::nullopt;
  }
  return value;
}

std::int64_t positive_number(std::string_view field, std::string_view digits) {
  auto const value = whole_number(digits);
  if (!value || *value == 0) refuse(field, one_line(digits, 40), count_rule);
  return *value;
}

bytes size_in_bytes(std::string_view field, std::string_view text, bool or_none) {
  struct unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  static constexpr unit units[] = {{"", 1},
                                   {"B", 1},
                                   {"KiB", 1ULL << 10},
                                   {"MiB", 1ULL << 20},
                                   {"GiB", 1ULL << 30},
                                   {"TiB", 1ULL << 40},
                                   {"KB", 1000},
                                   {"MB", 1000'000},
                                   {"GB", 1000'000'000},
                                   {"TB", 1000'000'000'000}};
  std::size_t const split = std::min(text.find_first_not_of("0123456789"), text.size());
  auto const amount = whole_number(text.substr(0, split));
  constexpr std::uint64_t most = std::uint64_t{1} << 60;
  for (unit const& u : units)
    if (amount && (*amount != 0 || or_none) && text.substr(split) == u.name &&
        static_cast<std::uint64_t>(*amount) <= most / u.bytes)
      return bytes{static_cast<std::uint64_t>(*amount) * u.bytes};
  refuse(field, one_line(text, 40),
         "must be a whole number with a unit, such as 24GiB, 24GB or 512MiB; none means bytes");
}

std::string one_line(std::string_view text, std::size_t longest) {
  std::string line;
  for (char const c : text.substr(0, longest)) line += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > longest) line += "...";
  return line;
}

std::string printable(std::string_view text) {
  std::string name(text);
  for (char& c : name)
    if ((c >= 0 && c < ' ') || c == '\x7F') c = '?';
  return name;
}

}  // namespace gpumem::cli
