// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/breakdown.hpp>

#include <cstddef>  // std::size_t
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumem {

/// A name and its value, for lists such as a model's numbers or a plan's policies.
struct fact {
  std::string name;
  std::string value;
  bool is_number = false;  // JSON writes it without quotes
};

/// A device that a run is held against; the reserve is the breakdown's.
struct device_fact {
  std::string id;
  std::string name;
  bytes capacity{};
};

/// A breakdown and what a reader wants to see beside it.
struct report {
  breakdown memory{};
  bool trains = true;  // false: there is no backward and no step
  std::string title{};
  std::vector<fact> model{};
  std::vector<fact> workload{};
  std::vector<fact> plan{};
  std::optional<machine_memory> machine{};
  std::optional<device_fact> gpu{};
  std::vector<std::string> advice{};  // what to change where it does not fit
  std::vector<std::string> notes{};
  std::string basis = "derived";

  /// The phases that happen, in the order of the step.
  [[nodiscard]] int phases_shown() const { return trains ? phases : 2; }
  [[nodiscard]] bool fits() const { return !gpu || memory.required() <= gpu->capacity; }
};

namespace detail {

// Tenths or hundredths of a unit in integers, so that what is needed is rounded up and what there is down.
inline std::string fixed_point(std::uint64_t hundredths) {
  std::string const cents = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + '.' + (cents.size() < 2 ? "0" : "") + cents;
}
inline std::string in_unit(bytes b, std::uint64_t unit, char const* name, bool up) {
  std::uint64_t const whole = b.value / unit, rest = b.value % unit;
  std::uint64_t const part = up ? divide_up(rest * 100, unit) : rest * 100 / unit;
  return fixed_point(whole * 100 + part) + ' ' + name;
}
inline std::string human(bytes b, bool up = true) {
  constexpr std::uint64_t mebi = std::uint64_t{1} << 20, gibi = std::uint64_t{1} << 30;
  return b.value < gibi ? in_unit(b, mebi, "MiB", up) : in_unit(b, gibi, "GiB", up);
}

inline std::string with_thousands(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

// Names of phases and categories as words.
inline std::string words(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (c == '_') c = ' ';
  return text;
}

inline std::string joined(std::vector<fact> const& facts) {
  std::string text;
  for (fact const& f : facts) text += (text.empty() ? "" : ", ") + words(f.name) + ' ' + f.value;
  return text;
}

inline std::string thumb_sentence(breakdown const& b) {
  thumb_sum const& t = b.rule_of_thumb;
  return "rule of thumb: " + std::to_string(t.bytes_per_parameter) + " B x " + with_thousands(b.parameters) +
         " parameters = " + human(t.weights + t.gradients + t.optimizer_states) + ", and " + human(t.activations) +
         " kept by forward: " + human(t.total) + ". It leaves out what lives shortly and is not the peak.";
}

inline std::string held_against(report const& r) {
  return (r.gpu->name.empty() ? r.gpu->id : r.gpu->name) + ": " + human(r.gpu->capacity, false) + " usable; peak " +
         human(r.memory.peak.total) + " + reserve " + human(r.memory.reserve) + " = " + human(r.memory.required());
}

inline std::string verdict(report const& r) {
  bytes const required = r.memory.required(), capacity = r.gpu->capacity;
  return r.fits() ? "it fits, " + human(capacity - required, false) + " to spare"
                  : "it does NOT fit, " + human(required - capacity) + " missing";
}

struct figure {
  char const* name;
  bytes size;
  std::string counted_by;
};
inline std::vector<figure> figures_of(machine_memory const& m) {
  return {{"allocated", m.allocated, "torch.cuda.max_memory_allocated"},
          {"reserved", m.reserved, "torch.cuda.max_memory_reserved, replayed"},
          {"device", m.device(), "nvidia-smi: with " + human(m.context) + " of CUDA context"}};
}

}  // namespace detail
}  // namespace gpumem
