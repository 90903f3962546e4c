// SPDX-License-Identifier: MIT
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace gpumem::cli {

/// Something is wrong with what the user gave; `what()` is the line that he reads.
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A field or option with its value and the rule that the value breaks.
[[noreturn]] inline void refuse(std::string_view field, std::string_view value, std::string_view rule) {
  throw input_error(std::string(field) + " = " + std::string(value) + ": " + std::string(rule));
}

/// `text` on one line and of a length that a person reads: control characters and what is not ASCII become '?'.
std::string one_line(std::string_view text, std::size_t longest);

/// `text` as it is, but for control characters: names of files.
std::string printable(std::string_view text);

}  // namespace gpumem::cli
