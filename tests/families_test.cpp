// SPDX-License-Identifier: MIT
// Families of models: parameter counts of published checkpoints, and what their blocks add.
#include <gpumem/budget.hpp>
#include <gpumem/models/encoder_classifier.hpp>
#include <gpumem/models/families.hpp>

#include <cstdint>
#include <string>

#include "catch.hpp"

using namespace gpumem;

namespace {

template <class M>
constexpr std::uint64_t parameters(M const& m) {
  return estimate(m, {.sequence = 1}).parameters;
}

// The numbers of the published configs.
constexpr encoder_classifier bert_base{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 30522, .positions = 512};
constexpr encoder_classifier bert_large{
    .layers = 24, .hidden = 1024, .heads = 16, .vocabulary = 30522, .positions = 512};
constexpr encoder_classifier roberta_base =
    roberta({.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50265, .positions = 514});
constexpr encoder_classifier distilbert_base =
    distilbert({.layers = 6, .hidden = 768, .heads = 12, .vocabulary = 30522, .positions = 512});
constexpr transformer qwen3_06b = qwen3({.layers = 28,
                                         .hidden = 1024,
                                         .heads = 16,
                                         .vocabulary = 151936,
                                         .kv_heads = 8,
                                         .head_dim = 128,
                                         .feed_forward = 3072},
                                        true);
constexpr transformer qwen3_8b = qwen3({.layers = 36,
                                        .hidden = 4096,
                                        .heads = 32,
                                        .vocabulary = 151936,
                                        .kv_heads = 8,
                                        .head_dim = 128,
                                        .feed_forward = 12288});
constexpr transformer qwen2_05b =
    qwen2({.layers = 24, .hidden = 896, .heads = 14, .vocabulary = 151936, .kv_heads = 2, .feed_forward = 4864}, true);
constexpr transformer gemma_2b = gemma({.layers = 18,
                                        .hidden = 2048,
                                        .heads = 8,
                                        .vocabulary = 256000,
                                        .kv_heads = 1,
                                        .head_dim = 256,
                                        .feed_forward = 16384});
constexpr transformer gemma2_2b = gemma2({.layers = 26,
                                          .hidden = 2304,
                                          .heads = 8,
                                          .vocabulary = 256000,
                                          .kv_heads = 4,
                                          .head_dim = 256,
                                          .feed_forward = 9216});
constexpr transformer gemma3_1b = gemma3({.layers = 26,
                                          .hidden = 1152,
                                          .heads = 4,
                                          .vocabulary = 262144,
                                          .kv_heads = 1,
                                          .head_dim = 256,
                                          .feed_forward = 6912});
constexpr transformer gemma3_4b = gemma3({.layers = 34,
                                          .hidden = 2560,
                                          .heads = 8,
                                          .vocabulary = 262208,
                                          .kv_heads = 4,
                                          .head_dim = 256,
                                          .feed_forward = 10240});
constexpr transformer internlm25_7b =
    internlm2({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 92544, .kv_heads = 8, .feed_forward = 14336});
constexpr transformer phi3_mini =
    phi3({.layers = 32, .hidden = 3072, .heads = 32, .vocabulary = 32064, .feed_forward = 8192});

template <class M>
std::string refusal(M const& m, workload const& load, plan const& p = {}) {
  try {
    static_cast<void>(estimate(m, load, p));
  } catch (error const& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("parameter counts of published checkpoints of each family are exact", "[families]") {
  // Of BERT's kind with two labels, as Hugging Face's ForSequenceClassification classes count them.
  STATIC_REQUIRE(parameters(bert_base) == 109'482'240 + 768 * 2 + 2);
  STATIC_REQUIRE(parameters(bert_large) == 335'143'938);
  STATIC_REQUIRE(parameters(roberta_base) == 124'647'170);
  STATIC_REQUIRE(parameters(distilbert_base) == 66'955'010);
  STATIC_REQUIRE(parameters(qwen2_05b) == 494'032'768);
  STATIC_REQUIRE(parameters(qwen3_06b) == 596'049'920);
  STATIC_REQUIRE(parameters(qwen3_8b) == 8'190'735'360);
  STATIC_REQUIRE(parameters(gemma_2b) == 2'506'172'416);
  STATIC_REQUIRE(parameters(gemma2_2b) == 2'614'341'888);
  STATIC_REQUIRE(parameters(gemma3_1b) == 999'885'952);
  STATIC_REQUIRE(parameters(gemma3_4b) == 3'880'263'168);
  STATIC_REQUIRE(parameters(internlm25_7b) == 7'737'708'544);
  STATIC_REQUIRE(parameters(phi3_mini) == 3'821'079'552);
  CHECK(parameters(bert_large) == 335'143'938);
  CHECK(parameters(gemma3_1b) == 999'885'952);
}

namespace {

constexpr workload one{.micro_batch = 1, .sequence = 1024};
constexpr std::int64_t n = 1024;

constexpr std::int64_t saved(transformer const& m, plan const& p) {
  return static_cast<std::int64_t>(estimate(m, one, p).saved_per_layer.value);
}
// Of two models whose blocks differ in one thing: what that costs, under bf16 with flash attention.
constexpr std::int64_t costs(transformer const& with, transformer const& without, plan p = make_plan(pure<>{})) {
  return saved(with, p) - saved(without, p);
}
constexpr transformer base = llama({.layers = 1, .hidden = 512, .heads = 8, .vocabulary = 100, .feed_forward = 1536});
constexpr std::int64_t h = 512, f = 1536, a = 8;
template <class Change>
constexpr transformer changed(Change change) {
  transformer m = base;
  change(m);
  return m;
}

}  // namespace

TEST_CASE("a norm on queries and keys costs a norm of each", "[families]") {
  // Each eager RMSNorm keeps fp32 and half copies of what it reads and one fp32 number a row; the projections' outputs
  // were not kept before, and the rotated queries and keys are.
  STATIC_REQUIRE(costs(qwen3({base}), base) == 2 * ((4 + 2) * n * h + 4 * n * a));
  STATIC_REQUIRE(costs(qwen3({base}), base, make_plan(pure<>{}, fused_kernels{})) == 2 * (2 * n * h + 4 * n * a));
}

TEST_CASE("Gemma's norm keeps fp32 where Llama's keeps half, and its (1 + weight)", "[families]") {
  constexpr transformer gemma_norms = changed([](transformer& m) { m.norm = norm::gemma_rms_norm; });
  STATIC_REQUIRE(costs(gemma_norms, base) == 2 * (2 * n * h + 4 * h));
}

TEST_CASE("norms before and after cost two norms more a block", "[families]") {
  constexpr transformer sandwich = changed([](transformer& m) { m.block = block_order::sandwich_norm; });
  STATIC_REQUIRE(costs(sandwich, base) == 2 * ((4 + 2) * n * h + 4 * n));
}

TEST_CASE("one norm before attention and MLP side by side costs a norm and its output less", "[families]") {
  constexpr transformer parallel = changed([](transformer& m) { m.block = block_order::parallel; });
  STATIC_REQUIRE(costs(parallel, base) == -((4 + 2) * n * h + 4 * n) - 2 * n * h);
}

TEST_CASE("bounded scores cost one tensor of scores, under eager attention only", "[families]") {
  constexpr transformer bounded = changed([](transformer& m) { m.softcap = true; });
  STATIC_REQUIRE(costs(bounded, base) == 0);
  STATIC_REQUIRE(costs(bounded, base, make_plan(pure<>{}, eager_attention{})) == 2 * a * n * n);
  // And bounded logits one of logits, kept by tanh.
  STATIC_REQUIRE(estimate(bounded, one, make_plan(pure<>{}, pytorch_1_13_cpu{})).forward_end.total.value -
                     estimate(base, one, make_plan(pure<>{}, pytorch_1_13_cpu{})).forward_end.total.value ==
                 2 * n * 100);
}

TEST_CASE("GeGLU keeps what SwiGLU keeps, in four operations' tensors or one kernel's three", "[families]") {
  constexpr transformer geglu = changed([](transformer& m) { m.activation = activation::gelu; });
  STATIC_REQUIRE(costs(geglu, base) == 0);
  STATIC_REQUIRE(costs(geglu, base, make_plan(pure<>{}, fused_kernels{})) == 0);
  STATIC_REQUIRE(saved(geglu, make_plan(pure<>{})) - saved(geglu, make_plan(pure<>{}, fused_kernels{})) ==
                 2 * n * f + 2 * 4 * n * h);  // one of the MLP's tensors, and two norms' fp32 copies
}

TEST_CASE("GELU's forms by the tensors they keep", "[families]") {
  const auto with = [](activation act) {
    transformer m{.layers = 1, .hidden = h, .heads = a, .vocabulary = 100, .positions = n, .feed_forward = f};
    m.activation = act;
    return saved(m, make_plan(pure<>{}));
  };
  // gelu: its input. gelu_new: pow's input, tanh, and mul's two. gelu_fast: two products' two and two (one of them
  // the input), tanh, and mul's two. quick_gelu: its input and sigmoid, which mul keeps as well.
  CHECK(with(activation::gelu_new) - with(activation::gelu) == 3 * 2 * n * f);
  CHECK(with(activation::gelu_fast) - with(activation::gelu) == 6 * 2 * n * f);
  CHECK(with(activation::quick_gelu) - with(activation::gelu) == 1 * 2 * n * f);
  CHECK(with(activation::relu) - with(activation::gelu) == -1 * 2 * n * f);  // its result, which the next Linear keeps
}

TEST_CASE("interleaved heads: queries are gathered, keys and values stay views of the projection", "[families]") {
  constexpr transformer fused = phi3({base}), interleaved = internlm2({base});
  transformer same = interleaved;
  same.fused_gate_up = true;
  CHECK(costs(same, fused) == 0);  // v keeps the projection alive either way, and rotary makes q and k anew
}

TEST_CASE("wrong numbers of an encoder are refused by name", "[families]") {
  const auto changed = [](auto change) {
    encoder_classifier m = bert_base;
    change(m);
    return m;
  };
  const workload load{.micro_batch = 1, .sequence = 128};
  CHECK(refusal(bert_base, load) == "accepted");
  CHECK(refusal(changed([](auto& m) { m.layers = 0; }), load) == "layers = 0: must be at least 1");
  CHECK(refusal(changed([](auto& m) { m.heads = 7; }), load) == "heads = 7: must divide hidden");
  CHECK(refusal(changed([](auto& m) { m.labels = -1; }), load) == "labels = -1: must be at least 1");
  CHECK(refusal(bert_base, {.micro_batch = 1, .sequence = 513}) ==
        "sequence = 513: must not exceed the learned position table");
  CHECK(refusal(roberta_base, {.micro_batch = 1, .sequence = 512}) == "accepted");
  CHECK(refusal(roberta_base, {.micro_batch = 1, .sequence = 513}) ==
        "sequence = 513: must not exceed the learned position table");
}

TEST_CASE("products of a decoder's numbers are refused before they can wrap", "[families]") {
  constexpr std::int64_t large = largest_number;
  const workload load{.micro_batch = 1, .sequence = 64};
  transformer m = llama({.layers = 1, .hidden = 64, .heads = large, .vocabulary = 10, .head_dim = large});
  CHECK(refusal(m, load) == "head_dim = 1099511627776: times heads must be at most 2^40");
  m.heads = 1;
  CHECK(refusal(m, load) == "sequence = 64: times head_dim must be at most 2^40");
  m = llama({.layers = 1, .hidden = 1, .heads = 1, .vocabulary = 1});
  CHECK(refusal(m, {.micro_batch = 1, .sequence = large / 2}, make_plan(eager_attention{})) ==
        "sequence = 549755813888: squared, times micro_batch, must be at most 2^40");
}
