// SPDX-License-Identifier: MIT
#include <gpumem/budget.hpp>

using namespace gpumem;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
using run = budget<gpt2, workload{.micro_batch = 8, .sequence = 1024}>;
static_assert(fits<run, devices::h100_80gb>);

int main() { return run::memory.parameters == 124'439'808 ? 0 : 1; }
