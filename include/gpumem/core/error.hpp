// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/version.hpp>

#include <cstdint>
#include <exception>
#if !defined(__cpp_exceptions)
#include <cstdlib>  // std::abort
#endif

namespace gpumem {

/// A wrong number at run time: `what()` is one line with the field, its value and the rule it breaks.
/// At compile time the same check is an error that names the function below which it failed in.
class error : public std::exception {
 public:
  error(char const* field, std::int64_t value, char const* rule) noexcept {
    append(field), append(" = "), append(value), append(": "), append(rule);
  }
  error(char const* sentence) noexcept { append(sentence); }
  [[nodiscard]] char const* what() const noexcept override { return text_; }

 private:
  void append(char const* s) noexcept {
    while (*s != '\0' && length_ + 1 < sizeof text_) text_[length_++] = *s++;
    text_[length_] = '\0';
  }
  void append(std::int64_t value) noexcept {
    char digits[24] = {};
    int n = static_cast<int>(sizeof digits) - 1;
    auto rest = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do digits[--n] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (value < 0) digits[--n] = '-';
    append(digits + n);
  }
  char text_[232] = {};
  unsigned length_ = 0;
};

namespace detail {

[[noreturn]] inline void raise(error const& e) {
#if defined(__cpp_exceptions)
  throw e;
#else
  static_cast<void>(e);
  std::abort();
#endif
}

// Not constexpr on purpose: reaching one of these in a constant expression is the compile error, and every compiler
// repeats its name, which is therefore the message.
[[noreturn]] inline void number_breaks_a_rule(char const* field, std::int64_t value, char const* rule) {
  raise(error{field, value, rule});
}
[[noreturn]] inline void byte_count_overflows_64_bits(std::uint64_t, std::uint64_t) {
  raise(error{"the number of bytes or elements overflows 64 bits"});
}
[[noreturn]] inline void bytes_cannot_be_negative(std::uint64_t, std::uint64_t) {
  raise(error{"a difference of bytes would be negative"});
}

}  // namespace detail

/// The largest number accepted for any field of a shape or a workload: 2^40.
inline constexpr std::int64_t largest_number = std::int64_t{1} << 40;

/// Refuses a count outside 1 to 2^40, naming the field.
constexpr void require_positive(char const* field, std::int64_t value) {
  if (value < 1) detail::number_breaks_a_rule(field, value, "must be at least 1");
  if (value > largest_number) detail::number_breaks_a_rule(field, value, "must be at most 2^40");
}

/// As require_positive, for a field in which 0 means "not there" or "the default".
constexpr void require_not_negative(char const* field, std::int64_t value) {
  if (value < 0) detail::number_breaks_a_rule(field, value, "must not be negative");
  if (value != 0) require_positive(field, value);
}

/// Refuses `value` with the rule's sentence unless `holds`.
constexpr void require_rule(bool holds, char const* field, std::int64_t value, char const* rule) {
  if (!holds) detail::number_breaks_a_rule(field, value, rule);
}

}  // namespace gpumem
