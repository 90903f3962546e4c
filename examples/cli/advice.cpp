// SPDX-License-Identifier: MIT
#include "advice.hpp"

#include <gpumem/estimate.hpp>
#include <gpumem/format.hpp>
#include <gpumem/search.hpp>

#include <algorithm>

namespace gpumem::cli {
namespace {

struct run {
  workload load;
  gpumem::plan plan;
};

// A remedy as options of the command line.
struct alteration {
  char const* options;
  remedy what;

  bool applies(run const& r) const { return gpumem::applies(what, r.plan, r.load); }
  bool other_arithmetic() const { return changes_arithmetic(what); }
};

constexpr alteration alterations[] = {
    {"--checkpointing full", remedy::checkpoint_blocks}, {"--attention flash", remedy::flash_attention},
    {"--kernels fused", remedy::fused_kernels},          {"--optimizer adamw-fused", remedy::fused_step},
    {"--optimizer adamw-8bit", remedy::states_in_8bit},  {"--precision pure-bf16", remedy::half_weights},
};

struct change {
  std::string options;
  bytes required{};
  bool other_arithmetic = false;
};

bytes required(estimator const& m, run const& r) { return m(r.load, r.plan).required(); }

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
std::string holding_device(estimator const& m, run const& r) {
  named_device const* best = nullptr;
  for (named_device const& d : device_catalogue)
    if ((best == nullptr || d.numbers.capacity < best->numbers.capacity) &&
        required(m, {r.load, on_device(r.plan, d.numbers)}) <= d.numbers.capacity)
      best = &d;
  return best == nullptr ? "; no single device of the catalogue holds the run as it is"
                         : std::string("; ") + best->id + " holds the run as it is";
}

}  // namespace

std::vector<std::string> advise(estimator const& m, workload const& load, plan const& p, bytes capacity) {
  run const given{load, p};
  bytes const needed = required(m, given);
  std::vector<change> changes;
  for (alteration const& a : alterations) {
    if (!a.applies(given)) continue;
    run changed = given;
    apply(a.what, changed.plan);
    bytes const less = required(m, changed);
    if (less < needed) changes.push_back({a.options, less, a.other_arithmetic()});
  }
  run smallest = given;
  for (std::int64_t const micro_batch : smaller_micro_batches(load)) {
    smallest = given;
    with_micro_batch(smallest, micro_batch);
    if (required(m, smallest) <= capacity) break;
  }
  if (bytes const less = required(m, smallest); less < needed) changes.push_back({micro_batch_options(smallest), less});

  std::stable_sort(changes.begin(), changes.end(), [&](change const& a, change const& b) {
    bool const a_fits = a.required <= capacity, b_fits = b.required <= capacity;
    if (a_fits != b_fits) return a_fits;
    if (a.other_arithmetic != b.other_arithmetic) return b.other_arithmetic;
    return a.required < b.required;
  });
  auto const line = [&](std::string const& options, bytes b) {
    return options + ": needs " + detail::human(b) + (b <= capacity ? ", fits" : ", does not fit");
  };
  std::vector<std::string> advice;
  if (!changes.empty()) advice.emplace_back("what to change first:");
  for (change const& c : changes)
    if (advice.size() < 6)
      advice.push_back(line(c.options, c.required) + (c.other_arithmetic ? " (other arithmetic)" : ""));
  if (!changes.empty() && changes.front().required <= capacity) return advice;

  run together = given;
  std::string options;
  bytes least = needed;
  int parts = 0;
  auto const keep_if_less = [&](run const& changed, std::string const& how) {
    bytes const less = required(m, changed);
    if (less >= least) return;
    together = changed, least = less, ++parts;
    options += (options.empty() ? "" : " ") + how;
  };
  for (int round = 0; round < 2; ++round)  // what does not help at first may do so once another part has shrunk
    for (alteration const& a : alterations) {
      if (a.other_arithmetic() || !a.applies(together)) continue;
      run changed = together;
      apply(a.what, changed.plan);
      keep_if_less(changed, a.options);
    }
  if (least > capacity) {
    run changed = together;
    for (std::int64_t const micro_batch : smaller_micro_batches(load)) {
      changed = together;
      with_micro_batch(changed, micro_batch);
      if (required(m, changed) <= capacity) break;
    }
    keep_if_less(changed, micro_batch_options(changed));
  }
  if (parts > 1) advice.push_back("together " + line(options, least));
  if (least > capacity)
    advice.push_back("else a shorter sequence, a smaller model or a larger device" + holding_device(m, given));
  return advice;
}

}  // namespace gpumem::cli
