// SPDX-License-Identifier: MIT
// Meaning: a number of the model or of the workload is negative. Fields are signed, so that a trainer's `int` passes
// without a warning and -1 reaches this message.
// Fix: correct the field that the message names.
#include <gpumem/budget.hpp>
using namespace gpumem;

#if GPUMEM_ACCEPT
constexpr int layers = 12;
#else
constexpr int layers = -1;
// expected-error {{number_breaks_a_rule}}
#endif
constexpr transformer gpt2{.layers = layers, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
static_assert(budget<gpt2, workload{.sequence = 1024}>::memory.parameters > 0);
