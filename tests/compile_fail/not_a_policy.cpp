// SPDX-License-Identifier: MIT
// Meaning: a type in the list of policies belongs to no family: it has no `family`, or its family's constants are not
// there.
// Fix: name a policy, or complete the type; each family's concept in include/gpumem/policies/ says what it must have.
#include <gpumem/budget.hpp>
using namespace gpumem;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
struct my_schedule {
  static constexpr int warm_up = 100;
};
#if GPUMEM_ACCEPT
using run = budget<gpt2, workload{.sequence = 1024}, adamw>;
#else
// expected-error {{constraint}}
// expected-error {{my_schedule}}
using run = budget<gpt2, workload{.sequence = 1024}, adamw, my_schedule>;
#endif
static_assert(run::memory.parameters > 0);
