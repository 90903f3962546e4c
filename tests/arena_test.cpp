// SPDX-License-Identifier: MIT
// llm.c's arenas: the figures that the program logs, and those of its issues.
#include <gpumem/arena.hpp>
#include <gpumem/models/llm_c.hpp>

#include <cstdint>

#include "catch.hpp"

using namespace gpumem;

namespace {

constexpr llm_c gpt2_124m{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
constexpr llm_c gpt2_1558m{.layers = 48, .hidden = 1600, .heads = 25, .vocabulary = 50257, .positions = 1024};
constexpr plan llm_c_plan = make_plan(master_weights<>{}, adamw{}, bare{});

constexpr arena arena_of_batch(llm_c m, std::int64_t batch, std::int64_t recompute, bool cudnn = true) {
  m.recompute = recompute, m.cudnn_attention = cudnn;
  return arena_of(m, {.micro_batch = batch, .sequence = 1024}, llm_c_plan);
}
constexpr std::uint64_t MiB = 1 << 20;
/// MiB times `parts`, to the nearest.
constexpr std::uint64_t nearest(bytes b, std::uint64_t parts) { return (b.value * parts + MiB / 2) / MiB; }
/// The source's own sizes, written down once more: elements a layer and those that all layers share.
constexpr std::uint64_t by_hand(llm_c const& m, std::uint64_t b, std::uint64_t t) {
  const auto l = static_cast<std::uint64_t>(m.layers), c = static_cast<std::uint64_t>(m.hidden),
             nh = static_cast<std::uint64_t>(m.heads), v = static_cast<std::uint64_t>(m.padded_vocabulary());
  const std::uint64_t n = b * t, per_layer = m.recompute == 0 ? 16 : m.recompute == 1 ? 12 : 10;
  std::uint64_t half = l * per_layer * n * c, full = l * 4 * n;
  if (m.cudnn_attention)
    full += l * nh * n;
  else
    half += l * nh * t * n;
  half += 2 * n * c + 5 * n * c + (m.recompute >= 1 ? 4 * n * c : 0);
  full += 3 * n;
  const std::uint64_t widest = 3 * c > nh * t ? 3 * c : nh * t;
  half += n * (widest > v ? widest : v);
  return 2 * half + 4 * full;
}

}  // namespace

TEST_CASE("llm.c's GPT-2 124M at batch 56: 18,564.66 MiB of activations", "[arena]") {
  constexpr arena a = arena_of_batch(gpt2_124m, 56, 1);
  STATIC_REQUIRE(a.parameters == 124'475'904);
  STATIC_REQUIRE(a.activations.value / MiB == 18'564);  // logged
  STATIC_REQUIRE(nearest(a.activations, 100) == 1'856'466);
  STATIC_REQUIRE(a.activations.value / 56 / MiB == 331);  // logged, a sequence
  STATIC_REQUIRE(a.weights.value / MiB == 237);
  STATIC_REQUIRE(a.gradients.value / MiB == 237);
  STATIC_REQUIRE(a.masters.value / MiB == 474);
  STATIC_REQUIRE(a.optimizer_states.value / 2 / MiB == 474);
  CHECK(arena_of_batch(gpt2_124m, 56, 1) == a);
}

TEST_CASE("every way to recompute, plain and cuDNN attention, to the byte", "[arena]") {
  for (const llm_c& shape : {gpt2_124m, gpt2_1558m})
    for (std::int64_t recompute = 0; recompute <= 2; ++recompute)
      for (const bool cudnn : {false, true})
        for (const std::int64_t batch : {1, 4, 12}) {
          llm_c m = shape;
          m.recompute = recompute, m.cudnn_attention = cudnn;
          INFO("L " << m.layers << " recompute " << recompute << " cudnn " << cudnn << " batch " << batch);
          CHECK(arena_of_batch(m, batch, recompute, cudnn).activations.value ==
                by_hand(m, static_cast<std::uint64_t>(batch), 1024));
        }
}

TEST_CASE("recomputing GELU saves eleven of twelve buffers of 4C", "[arena]") {
  constexpr bytes kept = arena_of_batch(gpt2_124m, 8, 0).activations,
                  freed = arena_of_batch(gpt2_124m, 8, 1).activations;
  STATIC_REQUIRE((kept - freed).value == 528 * MiB);  // 5706 to 5178 MiB (karpathy/llm.c#420)
}

TEST_CASE("1558M fits batch 12 with GELU recomputed where batch 10 fits without", "[arena]") {
  constexpr bytes ten = arena_of_batch(gpt2_1558m, 10, 0).activations,
                  twelve = arena_of_batch(gpt2_1558m, 12, 1).activations;
  STATIC_REQUIRE(twelve < ten);  // karpathy/llm.c#422
  STATIC_REQUIRE(nearest(ten, 100) == 2'525'574);
  STATIC_REQUIRE(nearest(twelve, 100) == 2'325'689);
}

TEST_CASE("layer norms of 1558M at batch 32 are 9,600 MiB", "[arena]") {
  constexpr bytes kept = arena_of_batch(gpt2_1558m, 32, 1).activations,
                  recomputed = arena_of_batch(gpt2_1558m, 32, 2).activations;
  STATIC_REQUIRE((kept - recomputed).value == 9'600 * MiB);  // karpathy/llm.c#478
}

TEST_CASE("plain attention outgrows a 32-bit index at batch 16", "[arena]") {
  STATIC_REQUIRE(arena_of_batch(gpt2_124m, 12, 1, false).largest_tensor == 1'811'939'328);
  STATIC_REQUIRE(arena_of_batch(gpt2_124m, 16, 1, false).largest_tensor == 2'415'919'104);  // karpathy/llm.c#212
}

TEST_CASE("the vocabulary is padded to a multiple of 128", "[arena]") {
  STATIC_REQUIRE(gpt2_124m.padded_vocabulary() == 50'304);
  STATIC_REQUIRE(llm_c{.vocabulary = 128}.padded_vocabulary() == 128);
  const workload w{.micro_batch = 1, .sequence = 16};
  llm_c wrong = gpt2_124m;
  wrong.recompute = 3;
  CHECK_THROWS_AS(arena_of(wrong, w, llm_c_plan), error);
}
