// SPDX-License-Identifier: MIT
// Meaning: an optimizer of one's own names its family, but does not say which tensors it keeps for a parameter.
// Fix: add `static constexpr state_list states(parameter const&)`; an empty list is an answer, too.
#include <gpumem/budget.hpp>
using namespace gpumem;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
struct my_optimizer {
  using family = optimizer_family;
#if GPUMEM_ACCEPT
  static constexpr state_list states(parameter const& p) { return {{{p.elements(), p.type}}}; }
#else
  // expected-error {{an optimizer says which tensors it keeps for one parameter}}
  // expected-error {{my_optimizer}}
#endif
};
using run = budget<gpt2, workload{.sequence = 1024}, my_optimizer>;
static_assert(run::memory.parameters > 0);
