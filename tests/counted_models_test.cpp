// SPDX-License-Identifier: MIT
#include <gpumem/models/encoder.hpp>
#include <gpumem/models/encoder_decoder.hpp>
#include <gpumem/models/latent_decoder.hpp>
#include <gpumem/models/parameter_count.hpp>
#include <gpumem/models/transformer.hpp>

#include "catch.hpp"

#include <string>

using namespace gpumem;

namespace {

constexpr encoder bert_base{.layers = 12,
                            .hidden = 768,
                            .heads = 12,
                            .feed_forward = 3072,
                            .vocabulary = 30522,
                            .positions = 512,
                            .token_types = 2};
constexpr encoder_decoder t5_small{.encoder_layers = 6,
                                   .decoder_layers = 6,
                                   .hidden = 512,
                                   .heads = 8,
                                   .head_dim = 64,
                                   .feed_forward = 2048,
                                   .vocabulary = 32128};
constexpr expert_decoder mixtral{.layers = 32,
                                 .hidden = 4096,
                                 .vocabulary = 32000,
                                 .attention = {.heads = 32, .kv_heads = 8},
                                 .mlp = {.experts = 8, .expert_width = 14336}};
constexpr latent_decoder deepseek_v3{.layers = 61,
                                     .hidden = 7168,
                                     .vocabulary = 129280,
                                     .attention = {.heads = 128,
                                                   .query_rank = 1536,
                                                   .key_value_rank = 512,
                                                   .plain_width = 128,
                                                   .rotary_width = 64,
                                                   .value_width = 128},
                                     .mlp = {.dense_layers = 3,
                                             .dense_width = 18432,
                                             .experts = 256,
                                             .expert_width = 2048,
                                             .shared_width = 2048,
                                             .router_bias = true}};
constexpr decoder qwen3_0_6b{
    .layers = 28,
    .hidden = 1024,
    .vocabulary = 151936,
    .feed_forward = 3072,
    .attention = {.heads = 16, .kv_heads = 8, .head_dim = 128, .norms = query_key_norm::shared_by_heads}};

}  // namespace

TEST_CASE("counted models give the published numbers of parameters while the test compiles") {
  STATIC_REQUIRE(count_parameters(bert_base).total() == 109482240);
  STATIC_REQUIRE(count_parameters(t5_small).total() == 60506624);
  STATIC_REQUIRE(count_parameters(mixtral).total() == 46702792704);
  STATIC_REQUIRE(count_parameters(deepseek_v3).total() == 671026419200);
  STATIC_REQUIRE(count_parameters(qwen3_0_6b).total() == 596049920);
}

TEST_CASE("recorded models are counted from their recording") {
  constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
  STATIC_REQUIRE(count_parameters(gpt2).total() == 124439808);
  STATIC_REQUIRE(count_parameters(gpt2).embeddings == (50257 + 1024) * 768);
}

TEST_CASE("a head of its own adds exactly one table") {
  constexpr auto untied = [] {
    decoder m = qwen3_0_6b;
    m.tied_head = false;
    return m;
  }();
  STATIC_REQUIRE(count_parameters(untied).total() - count_parameters(qwen3_0_6b).total() == 151936 * 1024);
}

TEST_CASE("all experts count, not only those that a token visits") {
  constexpr auto one_expert = [] {
    expert_decoder m = mixtral;
    m.mlp.experts = 1;
    return m;
  }();
  // One expert is Mistral-7B's MLP and a router of one row.
  STATIC_REQUIRE(count_parameters(one_expert).total() == 7241732096 + 32 * 4096);
}

TEST_CASE("parameters are told apart by role and sum to the total") {
  constexpr parameter_count n = count_parameters(bert_base);
  STATIC_REQUIRE(n.embeddings == (30522 + 512 + 2) * 768);
  STATIC_REQUIRE(n.norms == (1 + 2 * 12) * 2 * 768);
  STATIC_REQUIRE(n.biases == 12 * (4 * 768 + 3072 + 768) + 768);
  STATIC_REQUIRE(n.total() == n.embeddings + n.norms + n.biases + n.weights);
}

TEST_CASE("numbers that no model can have are refused with the field, the value and the rule") {
  auto text_of = [](auto const& model) -> std::string {
    try {
      static_cast<void>(count_parameters(model));
    } catch (error const& e) {
      return e.what();
    }
    return "accepted";
  };
  encoder heads = bert_base;
  heads.heads = 11;
  CHECK(text_of(heads) == "heads = 11: must divide hidden");
  expert_decoder dense = mixtral;
  dense.mlp.dense_layers = 33;
  CHECK(text_of(dense) == "dense_layers = 33: must not exceed layers");
  decoder huge = qwen3_0_6b;
  huge.attention.head_dim = largest_number;
  CHECK(text_of(huge) == "heads = 16: times the number it goes with must be at most 2^40");
  decoder kv = qwen3_0_6b;
  kv.attention.kv_heads = 3;
  CHECK(text_of(kv) == "kv_heads = 3: must divide heads");
}
