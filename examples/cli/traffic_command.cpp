// SPDX-License-Identifier: MIT
#include <gpumem/core/device.hpp>
#include <gpumem/core/error.hpp>
#include <gpumem/estimate.hpp>
#include <gpumem/traffic.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

#include "commands.hpp"
#include "input_error.hpp"
#include "model_facts.hpp"
#include "numbers.hpp"
#include "requests.hpp"

namespace gpumem::cli {
namespace {

using detail::json_array;
using detail::json_object;
using detail::padded;

struct rates {
  std::string name;
  roofline numbers;
  bytes l2_cache{};
};

rates read_rates(estimate_request const& request) {
  rates r;
  std::int64_t bandwidth = 0, tflops = 0;
  if (request.device) {
    named_device const* const d = known_device(*request.device);
    if (d == nullptr) refuse("--device", one_line(*request.device, 40), "not known; gpumem devices lists them");
    r.name = d->name, r.l2_cache = d->numbers.l2_cache, bandwidth = d->numbers.bandwidth, tflops = d->numbers.half_rate;
  } else if (!request.bandwidth || !request.tflops) {
    throw input_error("traffic needs --device ID, or --bandwidth N and --tflops N");
  }
  if (request.bandwidth) bandwidth = positive_number("--bandwidth", *request.bandwidth);
  if (request.tflops) tflops = positive_number("--tflops", *request.tflops);
  if (bandwidth == 0 || tflops == 0)
    refuse("--device", *request.device, "its bandwidth and rate are not known here; give --bandwidth and --tflops");
  r.name += (r.name.empty() ? "" : ": ") + std::to_string(bandwidth) + " GB/s, " + std::to_string(tflops) + " TFLOP/s";
  r.numbers = {.bytes_per_second = static_cast<double>(bandwidth) * 1e9,
               .flops_per_second = static_cast<double>(tflops) * 1e12};
  return r;
}

// The listed rates are those of tensor cores on halves.
void require_half(estimate_request const& request, plan const& p) {
  bool const half = is_half(p.precision.autocast ? p.precision.autocast_type : p.precision.weights);
  if (!half && !request.tflops)
    refuse("--precision", "fp32", "devices' rates are known for half only; give the rate of fp32 with --tflops");
}

std::string number(double x, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, x);
  return text.data();
}
// Three digits or so, whatever the size.
std::string figure(double x) { return number(x, x < 10 ? 3 : x < 100 ? 2 : 1); }
std::string percent(double part) { return number(100 * part, 1) + '%'; }
double giga(std::uint64_t n) { return static_cast<double>(n) / 1e9; }

struct class_row {
  char const* name;
  class_share const& share;
};

/// What the optimizer's step moves, where the table of kernels has it.
struct optimizer_row {
  optimizer_kernel const* kernel = nullptr;
  std::uint64_t parameters = 0;
};

optimizer_row optimizer_of(plan const& p, std::uint64_t parameters) {
  optimizer const chain = make_plan(adamw{}).optimizer, fused = make_plan(adamw_fused{}).optimizer;
  if (p.optimizer == make_plan(adamw_8bit{}).optimizer && !p.precision.separate_master)
    return {is_half(p.precision.master) ? &optimizer_kernels::adamw_8bit_half : &optimizer_kernels::adamw_8bit_fp32,
            parameters};
  if (!(p.optimizer == chain) && !(p.optimizer == fused)) return {};
  bool const half = is_half(p.precision.master), half_gradient = is_half(p.precision.gradients);
  if (half) return {&optimizer_kernels::adamw_half, parameters};
  if (!p.precision.separate_master) return {&optimizer_kernels::adamw_fp32, parameters};
  return {half_gradient ? &optimizer_kernels::adamw_master : &optimizer_kernels::adamw_master_fp32_gradient,
          parameters};
}

struct traffic_answer {
  std::string title;
  std::vector<fact> model, workload, plan;
  rates on;
  traffic_report of;
  step_traffic with_fused_kernels;
  optimizer_row optimizer;
  std::vector<std::string> notes;

  [[nodiscard]] std::array<class_row, 3> classes() const {
    return {{{"tensor contraction", of.step.contraction},
             {"statistical normalization", of.step.normalization},
             {"element-wise", of.step.elementwise}}};
  }
  [[nodiscard]] double milliseconds(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / on.numbers.bytes_per_second * 1e3;
  }
};

using table = std::vector<std::vector<std::string>>;  // the first row is the head, the first column the names

std::vector<std::string> kernel_row(traffic_answer const& a, std::string name, std::string shape, std::uint64_t times,
                                    traffic const& fused, traffic const& chain) {
  return {std::move(name),
          std::move(shape),
          std::to_string(times),
          figure(giga(fused.total())),
          figure(giga(chain.total())),
          number(byte_ratio(chain, fused), 2),
          number(a.milliseconds(chain.total() - fused.total()), 2)};
}

table class_table(traffic_answer const& a) {
  table rows{{"class", "kernels", "TFLOP", "of it", "GB", "of it", "ms", "of it"}};
  step_traffic const& s = a.of.step;
  for (class_row const& c : a.classes())
    rows.push_back({c.name, std::to_string(c.share.kernels), figure(giga(c.share.total().flops) / 1e3),
                    percent(s.flop_share(c.share)), figure(giga(c.share.total().total())),
                    percent(s.byte_share(c.share)), figure(c.share.seconds * 1e3), percent(s.time_share(c.share))});
  rows.push_back(
      {"forward and backward", std::to_string(s.contraction.kernels + s.normalization.kernels + s.elementwise.kernels),
       figure(giga(s.total().flops) / 1e3), "", figure(giga(s.total().total())), "", figure(s.seconds() * 1e3), ""});
  return rows;
}

table kernel_table(traffic_answer const& a) {
  table rows{{"kernel", "shape", "times", "fused", "chain", "ratio", "saves"}};
  for (int i = 0; i < a.of.kernels.count; ++i) {
    fusable const& k = a.of.kernels.items[i];
    std::string const mark = k.l2_resident(a.on.l2_cache) ? " *" : "";
    rows.push_back(kernel_row(a, k.kernel->name + mark,
                              std::to_string(k.shape.rows) + " x " + std::to_string(k.shape.columns), k.times,
                              k.fused(), k.chain()));
  }
  if (a.optimizer.kernel != nullptr)
    rows.push_back(kernel_row(a, a.optimizer.kernel->name, std::to_string(a.optimizer.parameters), 1,
                              a.optimizer.kernel->fused(a.optimizer.parameters),
                              a.optimizer.kernel->chain(a.optimizer.parameters)));
  return rows;
}

std::string aligned(table const& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (auto const& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (auto const& row : rows) {
    std::string line = padded(row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) line += "  " + padded(row[i], widths[i], true);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string piped(table const& rows) {
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::string const& cell : rows[r]) text += "| " + cell + ' ';
    text += "|\n";
    if (r != 0) continue;
    for (std::size_t i = 0; i < rows[r].size(); ++i) text += i == 0 ? "|---" : "|---:";
    text += "|\n";
  }
  return text;
}

std::string saves(double from, double to) {
  return number(to * 1e3, 2) + " ms instead of " + number(from * 1e3, 2) + ", " + percent(1 - to / from) + " less";
}
std::string runs_sentence(traffic_answer const& a) {
  return "Each run of operations between two contractions as one kernel, which is a bound: " +
         saves(a.of.step.seconds(), a.of.step.fused_seconds()) + ".";
}
std::string plan_sentence(traffic_answer const& a) {
  double const planned = a.of.step.seconds(), fused = a.with_fused_kernels.seconds();
  std::string const options = "--kernels fused --attention flash";
  return fused < planned ? "With " + options + ": " + saves(planned, fused) + "." : options + " would save nothing here.";
}
constexpr char const* basis_sentence =
    "Times are the larger of bytes / bandwidth and, for contractions, FLOPs / rate, at the full rates above and "
    "without gaps between kernels: shares and ratios hold better than times. The chain is one kernel for each "
    "primitive, whatever this plan runs.";

std::string l2_sentence(traffic_answer const& a) {
  for (int i = 0; i < a.of.kernels.count; ++i)
    if (a.of.kernels.items[i].l2_resident(a.on.l2_cache))
      return "* l2_resident: a tensor is smaller than four times the device's L2 cache of " +
             detail::human(a.on.l2_cache) + ", so the chain may run faster than its bytes say.";
  return "";
}

std::string text_of(traffic_answer const& a) {
  std::string text = detail::wrapped(a.title, "", "  ") + detail::wrapped(detail::joined(a.workload), "", "  ") +
                     detail::wrapped(detail::joined(a.plan), "", "  ") + a.on.name + "\n\n" + aligned(class_table(a)) +
                     '\n' + detail::wrapped(runs_sentence(a));
  text += detail::wrapped(plan_sentence(a)) + "\nfused against chain, in a step (GB; ms saved)\n" +
          aligned(kernel_table(a)) + '\n';
  if (std::string const l2 = l2_sentence(a); !l2.empty()) text += detail::wrapped(l2);
  text += detail::wrapped(basis_sentence);
  for (std::string const& note : a.notes) text += detail::wrapped("note: " + note, "", "  ");
  return text;
}

std::string markdown_of(traffic_answer const& a) {
  std::string const l2 = l2_sentence(a);
  std::string text = a.title + "\n\n" + detail::joined(a.workload) + "\n\n" + detail::joined(a.plan) + "\n\n" +
                     a.on.name + "\n\n" + piped(class_table(a)) + '\n' + runs_sentence(a) + ' ' + plan_sentence(a) +
                     "\n\nFused against chain, in a step (GB; ms saved):\n\n" + piped(kernel_table(a)) + '\n' +
                     (l2.empty() ? l2 : l2 + "\n\n") + basis_sentence + '\n';
  for (std::string const& note : a.notes) text += "\n- " + note;
  return a.notes.empty() ? text : text + '\n';
}

std::string json_traffic(traffic const& t) {
  return json_object({{"reads", std::to_string(t.reads), true},
                      {"writes", std::to_string(t.writes), true},
                      {"flops", std::to_string(t.flops), true}});
}
std::string seconds(double s) { return number(s, 9); }

std::string json_of(traffic_answer const& a) {
  step_traffic const& s = a.of.step;
  std::string classes, kernels;
  char const* const keys[] = {"contraction", "normalization", "elementwise"};
  auto const all = a.classes();
  for (std::size_t i = 0; i < all.size(); ++i)
    classes += std::string(i == 0 ? "\n    " : ",\n    ") +
               json_object({{"class", keys[i]},
                            {"kernels", std::to_string(all[i].share.kernels), true},
                            {"forward", json_traffic(all[i].share.forward), true},
                            {"backward", json_traffic(all[i].share.backward), true},
                            {"seconds", seconds(all[i].share.seconds), true},
                            {"share_of_flops", number(s.flop_share(all[i].share), 6), true},
                            {"share_of_bytes", number(s.byte_share(all[i].share), 6), true},
                            {"share_of_seconds", number(s.time_share(all[i].share), 6), true}});
  for (int i = 0; i < a.of.kernels.count; ++i) {
    fusable const& k = a.of.kernels.items[i];
    kernels += std::string(i == 0 ? "\n    " : ",\n    ") +
               json_object({{"kernel", k.kernel->name},
                            {"rows", std::to_string(k.shape.rows), true},
                            {"columns", std::to_string(k.shape.columns), true},
                            {"element_bytes", std::to_string(k.shape.element_bytes), true},
                            {"times", std::to_string(k.times), true},
                            {"l2_resident", k.l2_resident(a.on.l2_cache) ? "true" : "false", true},
                            {"fused", json_traffic(k.fused()), true},
                            {"chain", json_traffic(k.chain()), true}});
  }
  std::string optimizer = "null";
  if (optimizer_row const& o = a.optimizer; o.kernel != nullptr)
    optimizer = json_object({{"kernel", o.kernel->name},
                             {"parameters", std::to_string(o.parameters), true},
                             {"fused", json_traffic(o.kernel->fused(o.parameters)), true},
                             {"chain", json_traffic(o.kernel->chain(o.parameters)), true}});
  return "{\n  \"classes\": [" + classes + "\n  ],\n  \"seconds\": " + seconds(s.seconds()) +
         ",\n  \"seconds_with_fused_runs\": " + seconds(s.fused_seconds()) +
         ",\n  \"seconds_with_fused_kernels\": " + seconds(a.with_fused_kernels.seconds()) + ",\n  \"kernels\": [" +
         kernels + "\n  ],\n  \"optimizer\": " + optimizer + ",\n  \"rates\": " +
         json_object({{"name", a.on.name},
                      {"bytes_per_second", number(a.on.numbers.bytes_per_second, 0), true},
                      {"flops_per_second", number(a.on.numbers.flops_per_second, 0), true}}) +
         ",\n  \"model\": " + json_object(a.model) + ",\n  \"workload\": " + json_object(a.workload) +
         ",\n  \"plan\": " + json_object(a.plan) + ",\n  \"notes\": " + json_array(a.notes) + "\n}\n";
}

std::string misfit_note(misfit const& m) {
  std::string const what = m.vocabulary ? "a vocabulary of " : "a contraction over ";
  std::string note = what + std::to_string(m.size) + " is no multiple of " + std::to_string(m.multiple);
  if (m.vocabulary) return note + ": pad the table to " + std::to_string(m.padded);
  return note + ", which tensor cores want" + (m.multiple == 8 ? "" : " for their fastest tiles");
}

}  // namespace

answer run_traffic(estimate_request const& request) {
  require_format(request.format);
  traffic_answer a;
  report r;
  plan p;
  read_plan(request, r, p);
  require_half(request, p);
  a.on = read_rates(request);
  if (request.device) p = on_device(p, known_device(*request.device)->numbers);
  described_model const d = load_model(request.config);
  recorded_numbers const recorded = recorded_model(request, d);
  a.notes = d.notes;
  a.notes.insert(a.notes.end(), d.recording_notes.begin(), d.recording_notes.end());
  workload const load = read_workload(request, d, a.notes);
  plan fused = p;
  fused.kernels = fused_kernels::kind, fused.attention = flash_attention::kind;
  std::uint64_t parameters = 0;
  try {
    std::visit(
        [&](auto const& m) {
          a.of = report_traffic(m, load, p, a.on.numbers);
          a.with_fused_kernels = traffic_of(m, load, fused, a.on.numbers);
          parameters = estimate(m, load, p).parameters;
        },
        recorded);
  } catch (error const& e) {
    refuse_run(request, load, e);
  }
  a.optimizer = optimizer_of(p, parameters);
  a.title = model_line(d, parameters);
  a.model = model_facts(d);
  a.plan = r.plan;
  a.workload = {{"micro_batch", std::to_string(load.micro_batch), true},
                {"sequence", std::to_string(load.sequence), true},
                {"accumulation", std::to_string(load.accumulation), true}};
  for (int i = 0; i < a.of.misfits.count; ++i) a.notes.push_back(misfit_note(a.of.misfits.items[i]));
  if (p.optimizer.trains && a.optimizer.kernel == nullptr)
    a.notes.emplace_back(
        "the optimizer's step is not in the tables: they have AdamW's and, without a separate master, that of 8-bit "
        "AdamW");
  if (request.format == "json") {
    if (!request.sequence) a.notes.push_back("sequence " + std::to_string(load.sequence) + " (assumed)");
    return {json_of(a)};
  }
  if (!request.sequence) a.workload[1].value += " (assumed)";
  return {request.format == "markdown" ? markdown_of(a) : text_of(a)};
}

}  // namespace gpumem::cli
