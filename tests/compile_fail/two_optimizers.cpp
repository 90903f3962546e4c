// SPDX-License-Identifier: MIT
// Meaning: a family of policies is named twice, here the optimizer; which one should count is not clear.
// Fix: name each family at most once; a family that is not named has its default.
#include <gpumem/budget.hpp>
using namespace gpumem;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
#if GPUMEM_ACCEPT
using run = budget<gpt2, workload{.sequence = 1024}, adamw, checkpoint_every<1>>;
#else
using run = budget<gpt2, workload{.sequence = 1024}, adamw, sgd>;  // expected-error {{two policies of one family}}
#endif
static_assert(run::memory.parameters > 0);
