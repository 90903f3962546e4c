// SPDX-License-Identifier: MIT
// The README's program, and the micro-batch at which it no longer compiles.
#include <gpumem/budget.hpp>
using namespace gpumem;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};

#if GPUMEM_ACCEPT
constexpr std::int64_t micro_batch = 8;
#else
constexpr std::int64_t micro_batch = 64;
// expected-error {{the training run does not fit the device}}
#endif
using run = budget<gpt2, workload{.micro_batch = micro_batch, .sequence = 1024}, mixed<dtype::bf16>, adamw,
                   checkpoint_every<1>>;

static_assert(require_fits<run, devices::a100_40gb>);
