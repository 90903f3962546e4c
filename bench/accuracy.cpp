// SPDX-License-Identifier: MIT
// Every measured record that the project carries beside what the library says of it, and beside the rule of thumb.
#include <gpumem/replay.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measured_blocks.hpp"
#include "measured_rows.hpp"
#include "measured_runs.hpp"
#include "predictions.hpp"

namespace {

using namespace measured;

constexpr double mebi = 1024.0 * 1024, gibi = 1024.0 * mebi;

struct row {
  run seen;
  prediction said;
  [[nodiscard]] double error() const { return error_of(said.bytes, seen.bytes); }
};

struct summary {
  std::string what;
  std::vector<double> errors, thumbs;
};

std::vector<row> rows() {
  std::vector<prediction> const said = predictions();
  std::vector<row> all;
  for (run const& r : read_runs())
    for (prediction const& p : said)
      if (p.id == r.id) all.push_back({r, p});
  return all;
}

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.3f %%", 100 * part);
  return text;
}

double median_size(std::vector<double> errors) {
  for (double& e : errors) e = std::abs(e);
  std::sort(errors.begin(), errors.end());
  const std::size_t n = errors.size();
  return n % 2 == 1 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2;
}
double worst(std::vector<double> const& errors) {
  double most = 0;
  for (double e : errors)
    if (std::abs(e) > std::abs(most)) most = e;
  return most;
}

void print_records(std::vector<row> const& all) {
  std::puts("| record | figure | measured MiB | predicted MiB | error | at | largest category | rule of thumb MiB |");
  std::puts("|---|---|---|---|---|---|---|---|");
  for (row const& r : all) {
    char thumb[32] = "-";
    if (r.said.thumb != 0) std::snprintf(thumb, sizeof thumb, "%.1f", static_cast<double>(r.said.thumb) / mebi);
    std::printf("| %s | %s | %.4f | %.4f | %s | %s | %s | %s |\n", r.seen.id.c_str(), r.seen.figure.c_str(),
                static_cast<double>(r.seen.bytes) / mebi, static_cast<double>(r.said.bytes) / mebi,
                percent(r.error()).c_str(), r.said.where.c_str(), r.said.largest.c_str(), thumb);
  }
}

/// The nine BERT-large runs once more, through the model of PyTorch's caching allocator.
machine_memory replayed(bert_run const& r) {
  return on_machine(bert_large, r.load, r.how, bert_context, devices::v100_16gb.capacity);
}
summary replayed() {
  summary s{"Hugging Face docs, reserved as replayed and context", {}, {}};
  for (bert_run const& r : bert_runs) s.errors.push_back(error_of(replayed(r).device().value, bytes_of(r.id)));
  return s;
}
void print_replayed() {
  std::puts("\n| record | allocated MiB | reserved, replayed MiB | with context MiB | measured MiB | error |");
  std::puts("|---|---|---|---|---|---|");
  for (bert_run const& r : bert_runs) {
    const machine_memory m = replayed(r);
    const std::uint64_t seen = bytes_of(r.id);
    std::printf("| %s | %.1f | %.1f | %.1f | %.1f | %s |\n", r.id, static_cast<double>(m.allocated.value) / mebi,
                static_cast<double>(m.reserved.value) / mebi, static_cast<double>(m.device().value) / mebi,
                static_cast<double>(seen) / mebi, percent(error_of(m.device().value, seen)).c_str());
  }
}

std::vector<summary> summaries(std::vector<row> const& all) {
  std::vector<summary> by_source;
  for (row const& r : all) {
    const std::string what = r.seen.source + ", " + r.seen.figure;
    auto at = std::find_if(by_source.begin(), by_source.end(), [&](summary const& s) { return s.what == what; });
    if (at == by_source.end()) at = by_source.insert(by_source.end(), {what, {}, {}});
    at->errors.push_back(r.error());
    if (r.said.thumb != 0) at->thumbs.push_back(error_of(r.said.thumb, r.seen.bytes));
  }
  by_source.push_back(replayed());
  summary blocks{"saved bytes of a block", {}, {}};
  for (measured_blocks::row const& r : measured_blocks::measured_rows())
    blocks.errors.push_back(error_of(measured_blocks::saved(r.what, r.dims), r.measured));
  by_source.push_back(blocks);
  return by_source;
}

void print_summary(std::vector<summary> const& by_source) {
  std::puts("\n| source, figure | records | median error | worst error | rule of thumb, median | worst |");
  std::puts("|---|---|---|---|---|---|");
  for (summary const& s : by_source) {
    char median[32], thumb_median[32] = "-";
    std::snprintf(median, sizeof median, "%.3f %%", 100 * median_size(s.errors));
    if (!s.thumbs.empty()) std::snprintf(thumb_median, sizeof thumb_median, "%.1f %%", 100 * median_size(s.thumbs));
    std::printf("| %s | %zu | %s | %s | %s | %s |\n", s.what.c_str(), s.errors.size(), median,
                percent(worst(s.errors)).c_str(), thumb_median,
                s.thumbs.empty() ? "-" : percent(worst(s.thumbs)).c_str());
  }
}

constexpr transformer llama_7b =
    llama({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 32000, .feed_forward = 11008});

void print_component(char const* what, bytes said, double seen, char const* reason) {
  const double gib = static_cast<double>(said.value) / gibi;
  std::printf("| %s | %.2f | %.2f | %s | %s |\n", what, seen, gib, percent((gib - seen) / seen).c_str(), reason);
}

/// Records that cannot be predicted whole: what can be said of their parts, and why the rest is left open.
void print_components() {
  constexpr workload lomo{.micro_batch = 8, .sequence = 512};
  constexpr auto half = dtype::fp16;
  const breakdown adam = estimate(llama_7b, lomo, make_plan(master_weights<half>{}, eager_attention{}, adamw{}));
  const breakdown plain = estimate(llama_7b, lomo, make_plan(master_weights<half>{}, eager_attention{}, sgd{}));
  const breakdown kept =
      estimate(llama_7b, lomo, make_plan(master_weights<half>{}, eager_attention{}, sgd{}, checkpoint_every<1>{}));
  const arena all = arena_of(llama_7b, lomo, make_plan(master_weights<half>{}, adamw{}));
  std::puts(
      "\n| LOMO, table 1: LLaMA-7B, 8 x 512, fp16 | measured GiB | predicted GiB | error | |\n|---|---|---|---|---|");
  print_component("weights", all.weights, 12.55, "");
  print_component("gradients", all.gradients, 12.55, "");
  print_component("AdamW: fp32 master and moments", all.masters + adam.peak.categories.optimizer_states, 75.31, "");
  print_component("SGD: fp32 master", all.masters + plain.peak.categories.optimizer_states, 25.10, "");
  print_component(
      "activations", plain.forward_end.categories.activations, 45.61,
      "what the table counts is not stated; LLaMA of early 2023 also saved its scores (+4) and norm inputs (+2)");
  print_component("activations, checkpointed", kept.forward_end.categories.activations, 1.79, "the same");

  std::puts("\n| torchao, Llama-2-7B in bf16 | measured GiB | static part GiB | error | |\n|---|---|---|---|---|");
  const auto static_part = [](plan const& p) {
    const breakdown b = estimate(llama_7b, {.micro_batch = 1, .sequence = 8}, p);
    memory m = b.at(phase::backward_end).categories;
    return m.weights + m.gradients + m.optimizer_states + m.overhead;
  };
  print_component("bitsandbytes 8-bit AdamW", static_part(make_plan(pure<>{}, adamw_8bit{})), 39.3,
                  "the rest: two sequences whose length is not recorded");
  print_component("torchao 8-bit AdamW", static_part(make_plan(pure<>{}, adamw_torchao_8bit{})), 39.1, "the same");
}

}  // namespace

int main() {
  std::vector<row> const all = rows();
  print_records(all);
  print_replayed();
  print_summary(summaries(all));
  print_components();
}
