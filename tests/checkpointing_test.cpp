// SPDX-License-Identifier: MIT
// Gradient checkpointing in all its forms: a repeat against the same blocks recorded one by one, in every phase.
#include <gpumem/budget.hpp>

#include <cstdint>
#include <memory>

#include "catch.hpp"
#include "random_models.hpp"

using namespace gpumem;
using namespace gpumem::literals;

namespace {

template <class Tape, class M>
constexpr breakdown recorded(Tape& recording, M const& m, workload const& load, plan const& p, bool unrolled) {
  operations ops{recording, p};
  ops.unrolled = unrolled;
  check(m, load);
  const ref loss = record(ops, m, load);
  ops.finish(loss);
  return step_memory(recording, loss, load, p);
}

template <class M>
breakdown recorded(M const& m, workload const& load, plan const& p, bool unrolled) {
  const auto recording = std::make_unique<tape_with_room<1200, 1800>>();
  return recorded(*recording, m, load, p, unrolled);
}

template <class M>
void check_equal(M const& m, workload const& load, plan const& p) {
  breakdown repeated = recorded(m, load, p, false);
  const breakdown unrolled = recorded(m, load, p, true);
  INFO("every " << p.checkpointing.every << ", first " << p.checkpointing.first << ", selective "
                << p.checkpointing.selective << ", layers " << m.layers << ", flash "
                << (p.attention == attention_kind::flash));
  for (int i = 0; i < phases; ++i) {
    INFO(name(static_cast<phase>(i)) << ": " << repeated.timeline[i].total.value << " repeated, "
                                     << unrolled.timeline[i].total.value << " unrolled");
    CHECK(repeated.timeline[i] == unrolled.timeline[i]);
  }
  // Unrolled, a checkpointed group of several blocks is one block to the recording.
  if (p.checkpointing.every > 1) repeated.saved_per_layer = unrolled.saved_per_layer;
  REQUIRE(repeated == unrolled);
}

checkpointing any_checkpointing(random_models::source& any) {
  switch (any.pick(0, 4)) {
    case 0: return {};
    case 1: return {.every = any.pick(1, 4)};
    case 2: return {.every = 1, .first = any.pick(1, 6)};
    case 3: return {.every = any.pick(1, 3), .first = any.pick(1, 6)};
    default: return {.selective = true};
  }
}

}  // namespace

TEST_CASE("1,500 random decoders of every family, repeated and unrolled", "[checkpointing]") {
  random_models::source any{11};
  for (int i = 0; i < 1500; ++i) {
    const transformer m = any.decoder();
    plan p = any.how();
    p.checkpointing = any_checkpointing(any);
    check_equal(m, any.load(), p);
  }
}

TEST_CASE("1,000 random encoders, repeated and unrolled", "[checkpointing]") {
  random_models::source any{12};
  for (int i = 0; i < 1000; ++i) {
    const encoder_classifier m = any.encoder();
    plan p = any.how();
    p.checkpointing = any_checkpointing(any);
    check_equal(m, any.load(), p);
  }
}

namespace {

constexpr workload load{.micro_batch = 2, .sequence = 512};
constexpr transformer gpt2(std::int64_t layers) {
  return {.layers = layers,
          .hidden = 768,
          .heads = 12,
          .vocabulary = 1000,
          .positions = 512,
          .activation = activation::gelu};
}
constexpr std::uint64_t tokens = 2 * 512, hidden = 768, scores = 12 * 2 * 512 * 512;

template <class... Policies>
constexpr std::uint64_t kept_by_a_layer(Policies... policies) {
  const plan p = make_plan(policies..., pytorch_1_13_cpu{});  // no rounding
  const auto kept = [&](std::int64_t layers) {
    return estimate(gpt2(layers), load, p).forward_end.categories.activations;
  };
  return (kept(7) - kept(6)).value;
}

}  // namespace

TEST_CASE("a GPT block keeps 34 n h + 5 a s^2 b, selectively 34 n h, checkpointed 2 n h (Korthikanti et al., 2022)",
          "[checkpointing]") {
  constexpr std::uint64_t statistics = 16 * tokens;  // of two LayerNorms, which the paper leaves out
  STATIC_REQUIRE(kept_by_a_layer(pure<>{}, eager_attention{}) == 34 * tokens * hidden + 5 * scores + statistics);
  STATIC_REQUIRE(kept_by_a_layer(pure<>{}, eager_attention{}, selective_checkpointing{}) ==
                 34 * tokens * hidden + statistics);
  STATIC_REQUIRE(kept_by_a_layer(pure<>{}, eager_attention{}, checkpoint_every<1>{}) == 2 * tokens * hidden);
  CHECK(kept_by_a_layer(pure<>{}, eager_attention{}) == 34 * tokens * hidden + 5 * scores + statistics);
  CHECK(kept_by_a_layer(pure<>{}, eager_attention{}, selective_checkpointing{}) == 34 * tokens * hidden + statistics);
}

TEST_CASE("selective checkpointing under flash attention saves only the statistics", "[checkpointing]") {
  constexpr std::uint64_t statistics = 4 * 12 * tokens;
  STATIC_REQUIRE(kept_by_a_layer(pure<>{}) - kept_by_a_layer(pure<>{}, selective_checkpointing{}) == statistics);
}

TEST_CASE("selective checkpointing makes one block's scores again in backward", "[checkpointing]") {
  const plan all = make_plan(pure<>{}, eager_attention{}, pytorch_1_13_cpu{});
  const plan selective = make_plan(pure<>{}, eager_attention{}, selective_checkpointing{}, pytorch_1_13_cpu{});
  const auto backward = [](plan const& p) { return estimate(gpt2(12), load, p).at(phase::backward).total.value; };
  // Eleven blocks' scores are gone at the worst point; the twelfth's are back, beside the output that the outer node
  // recomputed.
  CHECK(backward(all) - backward(selective) > 10 * 5 * scores);
  CHECK(backward(all) - backward(selective) < 12 * 5 * scores);
}

TEST_CASE("checkpoint_first<N> keeps N inputs and the other blocks' saved bytes", "[checkpointing]") {
  constexpr auto kept = [](auto policy) {
    return estimate(gpt2(12), load, make_plan(pure<>{}, policy, pytorch_1_13_cpu{})).forward_end.categories.activations;
  };
  constexpr std::uint64_t block = kept_by_a_layer(pure<>{}), input = 2 * tokens * hidden;
  STATIC_REQUIRE((kept(no_checkpointing{}) - kept(checkpoint_first<4>{})).value == 4 * (block - input));
  STATIC_REQUIRE(kept(checkpoint_first<12>{}) == kept(checkpoint_every<1>{}));
  STATIC_REQUIRE(kept(checkpoint_first<100>{}) == kept(checkpoint_every<1>{}));
}

TEST_CASE("segments of K blocks keep every K-th input and recompute K blocks at once", "[checkpointing]") {
  constexpr auto memory = [](auto policy) {
    return estimate(gpt2(12), load, make_plan(pure<>{}, policy, pytorch_1_13_cpu{}));
  };
  constexpr std::uint64_t input = 2 * tokens * hidden;
  constexpr auto kept = [](breakdown const& b) { return b.forward_end.categories.activations; };
  STATIC_REQUIRE((kept(memory(checkpoint_every<1>{})) - kept(memory(checkpoint_every<3>{}))).value == 8 * input);
  STATIC_REQUIRE((kept(memory(checkpoint_every<3>{})) - kept(memory(checkpoint_every<5>{}))).value ==
                 input);  // 4 and 3
  STATIC_REQUIRE(memory(checkpoint_every<6>{}).at(phase::backward).total >
                 memory(checkpoint_every<2>{}).at(phase::backward).total);
}

TEST_CASE("every family fits the default tape whatever the checkpointing", "[checkpointing]") {
  constexpr transformer numbers{.layers = 5, .hidden = 64, .heads = 4, .vocabulary = 100, .positions = 64};
  transformer longest = gemma3(numbers);  // every option that records something
  longest.activation = activation::gelu_fast, longest.softcap = longest.fused_qkv = longest.interleaved_qkv = true;
  longest.qkv_bias = longest.output_bias = longest.feed_forward_bias = true, longest.tied_head = false;
  longest.embedding_dropout = longest.attention_dropout = longest.hidden_dropout = true;
  for (const transformer& m : {numbers, llama(numbers), qwen3(numbers), phi3(numbers), internlm2(numbers),
                               gemma(numbers), gemma2(numbers), gemma3(numbers), falcon(numbers), longest})
    for (const checkpointing& each : {checkpoint_every<2>::numbers, checkpoint_first<2>::numbers,
                                      selective_checkpointing::numbers, no_checkpointing::numbers}) {
      plan p = make_plan(autocast<>{}, eager_attention{});
      p.checkpointing = each;
      CHECK_NOTHROW(estimate(m, {.sequence = 64}, p));
    }
}
