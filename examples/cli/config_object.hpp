// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json_table.hpp"

namespace gpumem::cli {

/// The names that a field has been written with; the first is the one that messages use.
using field_names = std::initializer_list<std::string_view>;

/// One object of a config, read field by field. null means absent. Every refusal names the field, its value and the
/// rule.
class config_object {
 public:
  config_object(json_table const& table, int container, std::string prefix)
      : table_(&table), container_(container), prefix_(std::move(prefix)) {}

  /// A number that decides the size. It is required, except in a nested object: libraries write those without what
  /// equals the class default.
  [[nodiscard]] std::int64_t size(field_names names, std::int64_t class_default) const;
  /// A required number.
  [[nodiscard]] std::int64_t required(field_names names) const;
  [[nodiscard]] std::int64_t number(field_names names, std::int64_t otherwise) const;
  /// As number, for a field in which 0 means "none".
  [[nodiscard]] std::int64_t number_or_none(field_names names, std::int64_t otherwise) const;
  [[nodiscard]] bool flag(std::string_view name, bool otherwise) const;
  [[nodiscard]] std::string text(field_names names, std::string_view otherwise) const;
  /// A number from 0 to 1, such as a dropout's probability.
  [[nodiscard]] double fraction(std::string_view name, double otherwise) const;
  [[nodiscard]] bool is_above_zero(std::string_view name, bool otherwise) const {
    return fraction(name, otherwise ? 1 : 0) > 0;
  }
  [[nodiscard]] config_object object(std::string_view name) const;
  /// The distinct numbers of an array, in order; none where it is absent.
  [[nodiscard]] std::vector<std::int64_t> numbers(std::string_view name) const;
  /// Whether the field is there with a value other than null.
  [[nodiscard]] bool has(field_names names) const;
  [[nodiscard]] bool is_null(std::string_view name) const;
  /// Refuses a flag that is true, where only false is counted.
  void require_false(std::string_view name) const;
  /// Refuses `value` of a field of this object.
  [[noreturn]] void refuse_value(std::string_view name, std::int64_t value, std::string_view rule) const;

 private:
  struct found {
    std::string_view name;
    json_value const* value;
  };
  [[nodiscard]] found find(field_names names) const;
  [[nodiscard]] std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }
  [[noreturn]] void refuse_found(found const& f, std::string_view rule) const;
  [[nodiscard]] std::optional<std::int64_t> read(field_names names, bool or_none) const;

  json_table const* table_;
  int container_;
  std::string prefix_;
};

}  // namespace gpumem::cli
