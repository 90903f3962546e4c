// SPDX-License-Identifier: MIT
// What one estimate costs at run time: record, walk, sums.
#include <benchmark/benchmark.h>
#include <gpumem/estimate.hpp>
#include <gpumem/models/transformer.hpp>

using namespace gpumem;

namespace {

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
constexpr transformer mistral_7b =
    llama({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 32000, .kv_heads = 8, .feed_forward = 14336});
constexpr transformer llama_405b =
    llama({.layers = 126, .hidden = 16384, .heads = 128, .vocabulary = 128256, .kv_heads = 8, .feed_forward = 53248});

void sweep_micro_batches(benchmark::State& state, transformer const& m, plan const& p) {
  std::int64_t micro_batch = 0;
  for (auto _ : state) {
    micro_batch = micro_batch % 64 + 1;
    breakdown b = estimate(m, {.micro_batch = micro_batch, .sequence = 1024}, p);
    benchmark::DoNotOptimize(b);
  }
  state.SetItemsProcessed(state.iterations());
}

}  // namespace

BENCHMARK_CAPTURE(sweep_micro_batches, gpt2_mixed_eager, gpt2, make_plan(eager_attention{}));
BENCHMARK_CAPTURE(sweep_micro_batches, gpt2_autocast_eager, gpt2, make_plan(autocast<>{}, eager_attention{}));
BENCHMARK_CAPTURE(sweep_micro_batches, mistral_7b_pure_flash, mistral_7b, make_plan(pure<>{}));
BENCHMARK_CAPTURE(sweep_micro_batches, mistral_7b_pure_flash_checkpointed, mistral_7b,
                  make_plan(pure<>{}, checkpoint_every<1>{}));
BENCHMARK_CAPTURE(sweep_micro_batches, mistral_7b_pure_flash_checkpointed_by_4, mistral_7b,
                  make_plan(pure<>{}, checkpoint_every<4>{}));
BENCHMARK_CAPTURE(sweep_micro_batches, llama_405b_pure_flash_checkpointed, llama_405b,
                  make_plan(pure<>{}, checkpoint_every<1>{}));
