// SPDX-License-Identifier: MIT
// Meaning: a number of the model or of the workload is zero where at least one is needed, often because a field was not
// given. The message names the field, its value and the rule in the call of number_breaks_a_rule, or in the call of
// require_positive that leads there.
// Fix: give the field.
#include <gpumem/budget.hpp>
using namespace gpumem;

#if GPUMEM_ACCEPT
constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
#else
constexpr transformer gpt2{.hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
// expected-error {{number_breaks_a_rule}}
// expected-error {{require_positive}}
#endif
static_assert(budget<gpt2, workload{.sequence = 1024}>::memory.parameters > 0);
