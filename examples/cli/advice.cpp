// SPDX-License-Identifier: MIT
#include "advice.hpp"

#include <gpumem/estimate.hpp>
#include <gpumem/format.hpp>

#include <algorithm>

namespace gpumem::cli {
namespace {

struct run {
  workload load;
  gpumem::plan plan;
};

struct change {
  std::string options;
  run changed;
  bytes required{};
  bool changes_arithmetic = false;  // other numbers in the states or the weights, not only another schedule
};

bytes required(transformer const& m, run const& r) { return estimate(m, r.load, r.plan).required(); }

// Divisors of the micro-batch below it, the largest first, so that micro_batch x accumulation stays what it was.
std::vector<std::int64_t> smaller_micro_batches(workload const& load) {
  std::vector<std::int64_t> smaller;
  if (load.accumulation > largest_number / load.micro_batch) return smaller;
  constexpr std::int64_t most_parts = 4096;
  for (std::int64_t parts = 2; parts <= std::min(load.micro_batch, most_parts); ++parts)
    if (load.micro_batch % parts == 0) smaller.push_back(load.micro_batch / parts);
  if (load.micro_batch > most_parts) smaller.push_back(1);
  return smaller;
}

void with_micro_batch(run& r, std::int64_t smaller) {
  r.load.accumulation *= r.load.micro_batch / smaller;
  r.load.micro_batch = smaller;
}

std::string micro_batch_options(run const& r) {
  return "--micro-batch " + std::to_string(r.load.micro_batch) + " --accumulation " +
         std::to_string(r.load.accumulation);
}

// The smallest device that holds the run as it is.
std::string holding_device(transformer const& m, run const& r) {
  named_device const* best = nullptr;
  for (named_device const& d : device_catalogue)
    if ((best == nullptr || d.numbers.capacity < best->numbers.capacity) &&
        required(m, {r.load, on_device(r.plan, d.numbers)}) <= d.numbers.capacity)
      best = &d;
  return best == nullptr ? "; no single device of the catalogue holds the run as it is"
                         : std::string("; ") + best->id + " holds the run as it is";
}

}  // namespace

std::vector<std::string> advise(transformer const& m, workload const& load, plan const& p, bytes capacity) {
  run const given{load, p};
  bytes const needed = required(m, given);
  std::vector<change> changes;
  auto const offer = [&](std::string options, run changed, bool changes_arithmetic) {
    bytes const less = required(m, changed);
    if (less < needed) changes.push_back({std::move(options), changed, less, changes_arithmetic});
  };
  auto const try_plan = [&](std::string options, auto const& alter, bool changes_arithmetic = false) {
    run changed = given;
    alter(changed.plan);
    if (!(changed.plan == p)) offer(std::move(options), changed, changes_arithmetic);
  };
  if (p.optimizer.trains && p.checkpointing.every == 0)
    try_plan("--checkpointing full", [](plan& q) { q.checkpointing = checkpoint_every<1>::numbers; });
  try_plan("--attention flash", [](plan& q) { q.attention = flash_attention::kind; });
  try_plan("--kernels fused", [](plan& q) { q.kernels = fused_kernels::kind; });
  if (p.optimizer == make_plan(adamw{}).optimizer) {
    try_plan("--optimizer adamw-fused", [](plan& q) { q.optimizer = make_plan(adamw_fused{}).optimizer; });
    try_plan(
        "--optimizer adamw-8bit", [](plan& q) { q.optimizer = make_plan(adamw_8bit{}).optimizer; }, true);
  }
  if (p.optimizer.trains)
    try_plan(
        "--precision pure-bf16", [](plan& q) { q.precision = pure<>::numbers; }, true);
  run smallest = given;
  for (std::int64_t const micro_batch : smaller_micro_batches(load)) {
    smallest = given;
    with_micro_batch(smallest, micro_batch);
    if (required(m, smallest) <= capacity) break;
  }
  if (smallest.load.micro_batch != load.micro_batch) offer(micro_batch_options(smallest), smallest, false);

  std::stable_sort(changes.begin(), changes.end(), [&](change const& a, change const& b) {
    bool const a_fits = a.required <= capacity, b_fits = b.required <= capacity;
    if (a_fits != b_fits) return a_fits;
    if (a.changes_arithmetic != b.changes_arithmetic) return b.changes_arithmetic;
    return a.required < b.required;
  });
  auto const line = [&](std::string const& options, bytes b) {
    return options + ": needs " + detail::human(b) + (b <= capacity ? ", fits" : ", does not fit");
  };
  std::vector<std::string> advice;
  if (!changes.empty()) advice.emplace_back("what to change first:");
  for (change const& c : changes)
    if (advice.size() < 6)
      advice.push_back(line(c.options, c.required) + (c.changes_arithmetic ? " (other arithmetic)" : ""));
  if (!changes.empty() && changes.front().required <= capacity) return advice;

  run together = given;
  std::string options;
  for (change const& c : changes) {
    if (c.changes_arithmetic || c.changed.load.micro_batch != load.micro_batch) continue;
    if (c.options.starts_with("--checkpointing")) together.plan.checkpointing = c.changed.plan.checkpointing;
    if (c.options.starts_with("--attention")) together.plan.attention = c.changed.plan.attention;
    if (c.options.starts_with("--kernels")) together.plan.kernels = c.changed.plan.kernels;
    if (c.options.starts_with("--optimizer")) together.plan.optimizer = c.changed.plan.optimizer;
    options += c.options + ' ';
  }
  run best = together;
  for (std::int64_t const micro_batch : smaller_micro_batches(load)) {
    if (required(m, best) <= capacity) break;
    best = together;
    with_micro_batch(best, micro_batch);
  }
  if (best.load.micro_batch != load.micro_batch) options += micro_batch_options(best);
  while (!options.empty() && options.back() == ' ') options.pop_back();
  bytes const least = required(m, best);
  if (options.find(" --") != std::string::npos && least < needed) advice.push_back("together " + line(options, least));
  if (least > capacity)
    advice.push_back("else a shorter sequence, a smaller model or a larger device" + holding_device(m, given));
  return advice;
}

}  // namespace gpumem::cli
