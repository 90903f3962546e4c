// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/breakdown.hpp>

#include <algorithm>  // std::min
#include <cmath>      // std::llround
#include <cstddef>    // std::size_t
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

inline constexpr std::size_t text_width = 80;

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

inline std::string padded(std::string text, std::size_t width, bool right = false) {
  std::string const fill(text.size() < width ? width - text.size() : 0, ' ');
  return right ? fill + text : std::move(text) + fill;
}

// Names of phases and categories as words.
inline std::string words(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (c == '_') c = ' ';
  return text;
}

inline std::string wrapped(std::string_view text, std::string const& first = "", std::string const& rest = "") {
  std::string all, line = first;
  bool empty = true;
  while (!text.empty()) {
    std::size_t const end = std::min(text.find(' '), text.size());
    std::string_view const word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!empty && line.size() + 1 + word.size() > text_width) {
      all += line + '\n';
      line = rest, empty = true;
    }
    if (!empty) line += ' ';
    line += word, empty = false;
  }
  return all + line + '\n';
}

inline std::string bar(bytes part, bytes whole, std::size_t width, bool unicode) {
  std::string drawn;
  const double share = whole.value == 0 ? 0 : static_cast<double>(part.value) / static_cast<double>(whole.value);
  for (std::int64_t cells = std::llround(share * static_cast<double>(width)); cells > 0; --cells)
    drawn += unicode ? "\xE2\x96\x88" : "#";  // FULL BLOCK
  return drawn;
}

inline std::string row(std::string_view name, bytes part, bytes whole, bool unicode, std::string_view mark = "") {
  std::string line = "  " + padded(words(name), 18) + padded(human(part), 13, true) + "  ";
  line += bar(part, whole, 34, unicode) + std::string(mark);
  while (line.back() == ' ') line.pop_back();
  return line + '\n';
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

inline std::string quoted(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string json = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') {
      json += '\\', json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += "\\u00", json += digits[(c >> 4) & 15], json += digits[c & 15];
    } else {
      json += c;
    }
  }
  return json + '"';
}

inline std::string json_object(std::vector<fact> const& facts) {
  std::string json = "{";
  for (fact const& f : facts)
    json += (json.size() > 1 ? ", " : "") + quoted(f.name) + ": " + (f.is_number ? f.value : quoted(f.value));
  return json + '}';
}

inline std::string json_array(std::vector<std::string> const& items) {
  std::string json = "[";
  for (std::string const& item : items) json += (json.size() > 1 ? ", " : "") + quoted(item);
  return json + ']';
}

inline std::string json_moment(moment const& m) {
  std::vector<fact> facts{{"phase", name(m.phase)}};
  for (int i = 0; i < categories; ++i) {
    auto const c = static_cast<category>(i);
    facts.push_back({name(c), std::to_string(m.categories[c].value), true});
  }
  facts.push_back({"total", std::to_string(m.total.value), true});
  return json_object(facts);
}

}  // namespace detail

/// A report for a person, on lines of at most 80 columns; bars of '#' unless `unicode`.
inline std::string to_text(report const& r, bool unicode = false) {
  using namespace detail;
  breakdown const& b = r.memory;
  std::string text;
  if (!r.title.empty()) text += wrapped(r.title, "", "  ");
  if (!r.workload.empty()) text += wrapped(joined(r.workload), "", "  ");
  if (!r.plan.empty()) text += wrapped(joined(r.plan), "", "  ");
  if (!text.empty()) text += '\n';

  constexpr std::uint64_t giga = 1000'000'000;
  text += "peak " + human(b.peak.total) + " (" + in_unit(b.peak.total, giga, "GB", true) + ") in " +
          words(name(b.peak.phase)) + (*b.peak.operation != '\0' ? ", at " + std::string(b.peak.operation) : "") + '\n';
  for (int i = 0; i < categories; ++i) {
    auto const c = static_cast<category>(i);
    text += row(name(c), b.peak.categories[c], b.peak.total, unicode);
  }
  text += "\nthe step\n";
  for (int i = 0; i < r.phases_shown(); ++i) {
    moment const& m = b.timeline[i];
    text += row(name(m.phase), m.total, b.peak.total, unicode, m.phase == b.peak.phase ? " <- peak" : "");
  }
  if (r.machine) {
    text += "\nas programs count it\n";
    for (figure const& f : figures_of(*r.machine))
      text += "  " + padded(f.name, 18) + padded(human(f.size), 13, true) + "  " + f.counted_by + '\n';
  }
  text += '\n' + wrapped(thumb_sentence(b));
  if (r.gpu) text += '\n' + wrapped(held_against(r), "", "  ") + verdict(r) + '\n';
  for (std::string const& a : r.advice) text += wrapped(a, "  ", "    ");
  if (!r.notes.empty()) text += '\n';
  for (std::string const& n : r.notes) text += wrapped("note: " + n, "", "  ");
  return text;
}

/// A report as Markdown.
inline std::string to_markdown(report const& r) {
  using namespace detail;
  breakdown const& b = r.memory;
  std::string text = "## " + (r.title.empty() ? std::string("GPU memory of a training step") : r.title) + "\n\n";
  for (auto const* facts : {&r.workload, &r.plan})
    if (!facts->empty()) text += "- " + joined(*facts) + '\n';
  text += "\n| phase |";
  for (int i = 0; i < categories; ++i) text += ' ' + words(name(static_cast<category>(i))) + " |";
  text += " total |\n|---|---:|---:|---:|---:|---:|---:|---:|\n";
  for (int i = 0; i < r.phases_shown(); ++i) {
    moment const& m = b.timeline[i];
    bool const peak = m.phase == b.peak.phase;
    text += "| " + words(name(m.phase)) + (peak ? " (peak)" : "") + " |";
    for (int c = 0; c < categories; ++c) text += ' ' + human(m.categories[static_cast<category>(c)]) + " |";
    text += (peak ? " **" : " ") + human(m.total) + (peak ? "** |\n" : " |\n");
  }
  if (r.machine) {
    text += "\n| figure | size | counted by |\n|---|---:|---|\n";
    for (figure const& f : figures_of(*r.machine))
      text += std::string("| ") + f.name + " | " + human(f.size) + " | " + f.counted_by + " |\n";
  }
  text += '\n' + thumb_sentence(b) + '\n';
  if (r.gpu) text += '\n' + held_against(r) + ": **" + verdict(r) + "**\n";
  if (!r.advice.empty()) text += '\n';
  for (std::string const& a : r.advice) text += "- " + a + '\n';
  if (!r.notes.empty()) text += '\n';
  for (std::string const& n : r.notes) text += "> " + n + '\n';
  return text;
}

/// A report as JSON: sizes in bytes, as integers.
inline std::string to_json(report const& r) {
  using namespace detail;
  breakdown const& b = r.memory;
  thumb_sum const& t = b.rule_of_thumb;
  auto const number = [](char const* name, std::uint64_t n) { return fact{name, std::to_string(n), true}; };
  std::string json = "{\n  \"parameters\": " + std::to_string(b.parameters) +
                     ",\n  \"saved_per_layer\": " + std::to_string(b.saved_per_layer.value) + ",\n  \"timeline\": [";
  for (int i = 0; i < r.phases_shown(); ++i) json += (i == 0 ? "\n    " : ",\n    ") + json_moment(b.timeline[i]);
  json += "\n  ],\n  \"peak\": " + json_moment(b.peak);
  std::vector<fact> const thumb = {number("bytes_per_parameter", t.bytes_per_parameter),
                                   number("weights", t.weights.value),
                                   number("gradients", t.gradients.value),
                                   number("optimizer_states", t.optimizer_states.value),
                                   number("activations", t.activations.value),
                                   number("total", t.total.value)};
  json += ",\n  \"rule_of_thumb\": " + json_object(thumb);
  std::string machine = "null";
  if (r.machine) {
    std::vector<fact> facts;
    for (figure const& f : figures_of(*r.machine)) facts.push_back(number(f.name, f.size.value));
    facts.push_back(number("context", r.machine->context.value));
    machine = json_object(facts);
  }
  json += ",\n  \"machine\": " + machine;
  std::string held_against = "null";
  if (r.gpu) {
    std::vector<fact> const gpu = {{"id", r.gpu->id},
                                   number("capacity", r.gpu->capacity.value),
                                   number("reserve", b.reserve.value),
                                   {"fits", r.fits() ? "true" : "false", true}};
    held_against = json_object(gpu);
  }
  json += ",\n  \"device\": " + held_against + ",\n  \"model\": " + json_object(r.model) +
          ",\n  \"workload\": " + json_object(r.workload) + ",\n  \"plan\": " + json_object(r.plan) +
          ",\n  \"notes\": " + json_array(r.notes);
  return json + ",\n  \"basis\": " + quoted(r.basis) + "\n}\n";
}

}  // namespace gpumem
