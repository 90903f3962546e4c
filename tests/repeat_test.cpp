// SPDX-License-Identifier: MIT
// A repeated block, recorded once and multiplied, against the same blocks recorded one by one: equal in every phase,
// category by category.
#include <gpumem/estimate.hpp>
#include <gpumem/models/transformer.hpp>

#include <cstdint>
#include <memory>
#include <random>

#include "catch.hpp"

using namespace gpumem;

namespace {

template <class Tape>
constexpr breakdown memory_of(Tape& recording, transformer const& m, workload const& load, plan const& p,
                              bool unrolled) {
  operations ops{recording, p};
  ops.unrolled = unrolled;
  check(m, load);
  const ref loss = record(ops, m, load);
  ops.finish(loss);
  return step_memory(recording, loss, load, p);
}

breakdown at_run_time(transformer const& m, workload const& load, plan const& p, bool unrolled) {
  const auto recording = std::make_unique<tape_with_room<900, 1300>>();
  return memory_of(*recording, m, load, p, unrolled);
}

constexpr precision precisions[] = {fp32::numbers,   mixed<>::numbers,          autocast<>::numbers,
                                    pure<>::numbers, master_weights<>::numbers, megatron<>::numbers};

void check_equal(transformer const& m, workload const& load, plan const& p) {
  breakdown repeated = at_run_time(m, load, p, false);
  const breakdown unrolled = at_run_time(m, load, p, true);
  for (int i = 0; i < phases; ++i) {
    INFO(name(static_cast<phase>(i)) << ": " << repeated.timeline[i].total.value << " repeated, "
                                     << unrolled.timeline[i].total.value << " unrolled");
    CHECK(repeated.timeline[i] == unrolled.timeline[i]);
  }
  // Unrolled, a checkpointed group of several blocks is one block to the recording.
  if (p.checkpointing.every > 1) repeated.saved_per_layer = unrolled.saved_per_layer;
  CHECK(repeated == unrolled);
}

}  // namespace

TEST_CASE("every precision, with and without checkpoints and accumulation", "[repeat]") {
  constexpr transformer gpt2{.layers = 5, .hidden = 128, .heads = 4, .vocabulary = 1000, .positions = 256};
  constexpr transformer llama_like =
      llama({.layers = 5, .hidden = 128, .heads = 4, .vocabulary = 1000, .kv_heads = 2, .feed_forward = 344});
  for (const precision& each : precisions)
    for (const std::int64_t every : {0, 1, 2, 3, 5, 9})
      for (const std::int64_t accumulation : {1, 2})
        for (const std::int64_t sequence : {8, 64, 256})
          for (const attention_kind attention : {attention_kind::flash, attention_kind::eager}) {
            plan p;
            p.precision = each, p.checkpointing.every = every, p.attention = attention;
            const workload load{.micro_batch = 2, .sequence = sequence, .accumulation = accumulation};
            INFO("every " << every << ", accumulation " << accumulation << ", sequence " << sequence);
            check_equal(gpt2, load, p);
            check_equal(llama_like, load, p);
          }
}

TEST_CASE("2,000 random models and plans", "[repeat]") {
  std::mt19937 random{7};
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution{from, to}(random); };
  const optimizer optimizers[] = {detail::optimizer_of<adamw>(), detail::optimizer_of<adamw_loop>(),
                                  detail::optimizer_of<adamw_8bit>(), detail::optimizer_of<sgd_momentum>(),
                                  detail::optimizer_of<inference>()};
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t heads = pick(1, 4);
    transformer m{.layers = pick(1, 6),
                  .hidden = 8 * pick(1, 8) * heads,
                  .heads = heads,
                  .vocabulary = pick(10, 3000),
                  .positions = 512};
    if (pick(0, 1) != 0) m.kv_heads = pick(0, 1) != 0 ? heads : 1, m = llama(m, pick(0, 1) != 0);
    if (pick(0, 1) != 0) m.embedding_dropout = m.attention_dropout = m.hidden_dropout = false;
    if (pick(0, 1) != 0 && !m.gated) m.activation = activation::gelu;
    plan p;
    p.precision = precisions[pick(0, 5)];
    p.optimizer = optimizers[pick(0, 4)];
    p.checkpointing.every = pick(0, 1) != 0 ? 0 : pick(1, 4);
    p.attention = pick(0, 1) != 0 ? attention_kind::flash : attention_kind::eager;
    p.kernels = pick(0, 1) != 0 ? kernel_kind::eager : kernel_kind::fused;
    if (pick(0, 3) == 0) p.runtime = pytorch_1_13_cpu::numbers;
    check_equal(m, {.micro_batch = pick(1, 3), .sequence = pick(1, 300), .accumulation = pick(1, 3)}, p);
  }
}

namespace {

constexpr bool equal_at_compile_time(std::int64_t every) {
  constexpr transformer m{.layers = 3, .hidden = 64, .heads = 2, .vocabulary = 100, .positions = 32};
  plan p;
  p.checkpointing.every = every;
  tape_with_room<> repeated;
  tape_with_room<240, 400> unrolled;
  const workload load{.micro_batch = 1, .sequence = 32, .accumulation = 2};
  return memory_of(repeated, m, load, p, false).timeline[2] == memory_of(unrolled, m, load, p, true).timeline[2];
}
static_assert(equal_at_compile_time(0));
static_assert(equal_at_compile_time(1));

}  // namespace
