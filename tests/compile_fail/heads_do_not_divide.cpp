// SPDX-License-Identifier: MIT
// Meaning: the width of a head is not given and hidden / heads has a remainder.
// Fix: give `head_dim`, where the model has one of its own (Gemma, Mistral-Nemo), or correct `heads`.
#include <gpumem/budget.hpp>
using namespace gpumem;

#if GPUMEM_ACCEPT
constexpr std::int64_t head_dim = 128;
#else
constexpr std::int64_t head_dim = 0;
// expected-error {{number_breaks_a_rule}}
// expected-error {{require_rule}}
#endif
constexpr transformer odd =
    llama({.layers = 1, .hidden = 1792, .heads = 24, .vocabulary = 32000, .head_dim = head_dim, .feed_forward = 4096});
static_assert(budget<odd, workload{.sequence = 1024}>::memory.parameters > 0);
