// SPDX-License-Identifier: MIT
#include "advice.hpp"

#include <gpumem/format.hpp>

namespace gpumem::cli {
namespace {

char const* options_of(remedy r) {
  switch (r) {
    case remedy::fused_step: return "--optimizer adamw-fused";
    case remedy::flash_attention: return "--attention flash";
    case remedy::fused_kernels: return "--kernels fused";
    case remedy::smaller_micro_batch: break;  // has numbers
    case remedy::checkpoint_blocks: return "--checkpointing full";
    case remedy::states_in_8bit: return "--optimizer adamw-8bit";
    case remedy::half_weights: return "--precision pure-bf16";
  }
  return "";
}

std::string line(fix const& f, bool fits) {
  std::string options;
  bool other_arithmetic = false;
  for (int i = 0; i < remedies; ++i) {
    auto const r = static_cast<remedy>(i);
    if (!f.has(r)) continue;
    if (!options.empty()) options += ' ';
    options += r == remedy::smaller_micro_batch ? "--micro-batch " + std::to_string(f.load.micro_batch) +
                                                      " --accumulation " + std::to_string(f.load.accumulation)
                                                : options_of(r);
    other_arithmetic = other_arithmetic || changes_arithmetic(r);
  }
  return options + ": peak " + detail::human(f.peak) + (fits ? ", fits" : ", does not fit") +
         (other_arithmetic ? " (other arithmetic)" : "");
}

// The smallest device that holds the run as it is.
std::string holding_device(estimator const& memory, workload const& load, plan const& p) {
  named_device const* best = nullptr;
  for (named_device const& d : device_catalogue)
    if ((best == nullptr || d.numbers.capacity < best->numbers.capacity) &&
        memory(load, on_device(p, d.numbers)).required() <= d.numbers.capacity)
      best = &d;
  return best == nullptr ? "; no single device of the catalogue holds the run as it is"
                         : std::string("; ") + best->id + " holds the run as it is";
}

}  // namespace

std::vector<std::string> advise(fixes const& found, estimator const& memory, workload const& load, plan const& p) {
  std::vector<std::string> advice{"what to change first:"};
  for (int i = 0; i < found.count; ++i) advice.push_back(line(found.items[i], true));
  if (found.count != 0) return advice;
  if (found.everything.parts != 0) advice.push_back(line(found.everything, false));
  advice.push_back("a shorter sequence, a smaller model or a larger device" + holding_device(memory, load, p));
  return advice;
}

}  // namespace gpumem::cli
