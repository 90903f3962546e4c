// SPDX-License-Identifier: MIT
#include "config_object.hpp"

#include <gpumem/core/error.hpp>

#include <algorithm>
#include <cstdlib>

#include "input_error.hpp"
#include "numbers.hpp"

namespace gpumem::cli {
namespace {

// The value as the file has it: strings in quotes, so that "768" and 768 do not look the same.
std::string as_written(json_value const& v) {
  switch (v.is) {
    case json_value::kind::object: return "{...}";
    case json_value::kind::array: return "[...]";
    case json_value::kind::text: return '"' + one_line(v.written, 40) + '"';
    case json_value::kind::null: return "null";
    default: return one_line(v.written, 40);
  }
}

}  // namespace

config_object::found config_object::find(field_names names) const {
  found first{*names.begin(), nullptr};
  for (std::string_view const name : names) {
    json_value const* const v = table_->find(container_, name);
    if (v == nullptr || v->is == json_value::kind::null) continue;
    if (first.value == nullptr) {
      first = {name, v};
    } else if (v->written != first.value->written) {
      refuse_found({name, v}, "differs from " + full_name(first.name) + ", which is another name of the same field");
    }
  }
  return first;
}

void config_object::refuse_found(found const& f, std::string_view rule) const {
  refuse(full_name(f.name), as_written(*f.value), rule);
}

void config_object::refuse_value(std::string_view name, std::int64_t value, std::string_view rule) const {
  refuse(full_name(name), std::to_string(value), rule);
}

std::optional<std::int64_t> config_object::read(field_names names, bool or_none) const {
  found const f = find(names);
  if (f.value == nullptr) return std::nullopt;
  std::optional<std::int64_t> value;
  if (f.value->is == json_value::kind::integer) value = whole_number(f.value->written);
  if (!value || (*value == 0 && !or_none)) refuse_found(f, or_none ? count_or_none_rule : count_rule);
  return value;
}

std::int64_t config_object::size(field_names names, std::int64_t class_default) const {
  return prefix_.empty() ? required(names) : number(names, class_default);
}

std::int64_t config_object::required(field_names names) const {
  if (auto const value = read(names, false)) return *value;
  throw input_error(full_name(*names.begin()) + " is missing: " + std::string(count_rule));
}

std::int64_t config_object::number(field_names names, std::int64_t otherwise) const {
  return read(names, false).value_or(otherwise);
}

std::int64_t config_object::number_or_none(field_names names, std::int64_t otherwise) const {
  return read(names, true).value_or(otherwise);
}

bool config_object::flag(std::string_view name, bool otherwise) const {
  found const f = find({name});
  if (f.value == nullptr) return otherwise;
  if (f.value->is != json_value::kind::boolean) refuse_found(f, "must be true or false");
  return f.value->written == "true";
}

std::string config_object::text(field_names names, std::string_view otherwise) const {
  found const f = find(names);
  if (f.value == nullptr) return std::string(otherwise);
  if (f.value->is != json_value::kind::text) refuse_found(f, "must be a string");
  return f.value->written;
}

double config_object::fraction(std::string_view name, double otherwise) const {
  found const f = find({name});
  if (f.value == nullptr) return otherwise;
  bool const number = f.value->is == json_value::kind::integer || f.value->is == json_value::kind::fraction;
  double const value = number ? std::strtod(f.value->written.c_str(), nullptr) : -1;
  if (!(value >= 0 && value <= 1)) refuse_found(f, "must be a number from 0 to 1");
  return value;
}

config_object config_object::object(std::string_view name) const {
  found const f = find({name});
  if (f.value == nullptr) throw input_error(full_name(name) + " is missing: must be an object");
  if (f.value->is != json_value::kind::object) refuse_found(f, "must be an object");
  return {*table_, f.value->container, full_name(name) + '.'};
}

std::vector<std::int64_t> config_object::numbers(std::string_view name) const {
  std::vector<std::int64_t> all;
  found const f = find({name});
  if (f.value == nullptr) return all;
  if (f.value->is != json_value::kind::array) refuse_found(f, "must be an array of integers");
  config_object const items{*table_, f.value->container, full_name(name) + '.'};
  for (std::size_t i = 0;; ++i) {
    std::string const key = std::to_string(i);
    if (table_->find(f.value->container, key) == nullptr) break;
    if (!items.has({key})) refuse(items.full_name(key), "null", count_or_none_rule);
    all.push_back(items.number_or_none({key}, 0));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool config_object::has(field_names names) const { return find(names).value != nullptr; }

bool config_object::is_null(std::string_view name) const {
  json_value const* const v = table_->find(container_, name);
  return v != nullptr && v->is == json_value::kind::null;
}

void config_object::require_false(std::string_view name) const {
  if (flag(name, false)) refuse(full_name(name), "true", "only false is counted");
}

}  // namespace gpumem::cli
