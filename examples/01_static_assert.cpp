// SPDX-License-Identifier: MIT
// The budget of a training run as a compile-time check: raise the micro-batch until the compiler refuses.
#include <gpumem/budget.hpp>
#include <iostream>

// [readme]
using namespace gpumem;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};

using run = budget<gpt2, workload{.micro_batch = 8, .sequence = 1024}, mixed<dtype::bf16>, adamw, checkpoint_every<1>>;

static_assert(bytes_per_parameter<mixed<dtype::bf16>, adamw> == 18);  // the rule of thumb, where it is wanted
static_assert(require_fits<run, devices::a100_40gb>);                 // does not compile if it does not fit
// [readme]

int main() {
  std::cout << "peak " << mebibytes_up(run::memory.peak.total) << " MiB in " << name(run::memory.peak.phase) << '\n';
  for (const moment& m : run::memory.timeline)
    std::cout << "  " << name(m.phase) << ": " << mebibytes_up(m.total) << " MiB\n";
}
