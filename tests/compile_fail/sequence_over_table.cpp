// SPDX-License-Identifier: MIT
// Meaning: the workload's sequence is longer than the model's learned position table; training would stop at the first
// batch.
// Fix: shorten `sequence`, or raise `positions` if the model really has more rows.
#include <gpumem/budget.hpp>
using namespace gpumem;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
#if GPUMEM_ACCEPT
constexpr workload load{.micro_batch = 1, .sequence = 1024};
#else
constexpr workload load{.micro_batch = 1, .sequence = 1025};
// expected-error {{number_breaks_a_rule}}
// expected-error {{require_rule}}
#endif
static_assert(budget<gpt2, load>::memory.parameters > 0);
