// SPDX-License-Identifier: MIT
#include <gpumem/budget.hpp>

#include <cstdint>
#include <string>

#include "catch.hpp"

using namespace gpumem;
using namespace gpumem::literals;

namespace {

constexpr std::uint64_t parameters(transformer const& m) { return estimate(m, {.sequence = 1}).parameters; }

// The numbers of the published configs; the counts are those of the published checkpoints (tests/data/README.md).
constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
constexpr transformer gpt2_xl{.layers = 48, .hidden = 1600, .heads = 25, .vocabulary = 50257, .positions = 1024};
constexpr transformer llama2_7b =
    llama({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 32000, .feed_forward = 11008});
constexpr transformer llama3_8b =
    llama({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 128256, .kv_heads = 8, .feed_forward = 14336});
constexpr transformer llama32_1b = llama({.layers = 16,
                                          .hidden = 2048,
                                          .heads = 32,
                                          .vocabulary = 128256,
                                          .kv_heads = 8,
                                          .head_dim = 64,
                                          .feed_forward = 8192},
                                         true);
constexpr transformer galore_350m =
    llama({.layers = 24, .hidden = 1024, .heads = 16, .vocabulary = 32000, .feed_forward = 2736});
constexpr transformer mistral_nemo = llama({.layers = 40,
                                            .hidden = 5120,
                                            .heads = 32,
                                            .vocabulary = 131072,
                                            .kv_heads = 8,
                                            .head_dim = 128,
                                            .feed_forward = 14336});

std::string refusal(transformer const& m, workload const& load) {
  try {
    static_cast<void>(estimate(m, load));
  } catch (error const& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("parameter counts of published models are exact", "[transformer]") {
  STATIC_REQUIRE(parameters(gpt2) == 124'439'808);
  STATIC_REQUIRE(parameters(llama2_7b) == 6'738'415'616);
  STATIC_REQUIRE(parameters(llama3_8b) == 8'030'261'248);
  STATIC_REQUIRE(parameters(llama32_1b) == 1'235'814'400);
  STATIC_REQUIRE(parameters(galore_350m) == 367'969'280);
  STATIC_REQUIRE(parameters(mistral_nemo) == 12'247'782'400);
  CHECK(parameters(gpt2_xl) == 1'557'611'200);
}

TEST_CASE("a tied table counts once and an untied head costs a table", "[transformer]") {
  transformer untied = llama32_1b;
  untied.tied_head = false;
  CHECK(parameters(untied) - parameters(llama32_1b) == 262'668'288);
}

TEST_CASE("wrong numbers are refused by name", "[transformer]") {
  const workload load{.micro_batch = 1, .sequence = 128};
  const auto changed = [](auto change) {
    transformer m = gpt2;
    change(m);
    return m;
  };
  CHECK(refusal(gpt2, load) == "accepted");
  CHECK(refusal(changed([](transformer& m) { m.layers = 0; }), load) == "layers = 0: must be at least 1");
  CHECK(refusal(changed([](transformer& m) { m.hidden = -768; }), load) == "hidden = -768: must be at least 1");
  CHECK(refusal(changed([](transformer& m) { m.vocabulary = largest_number + 1; }), load) ==
        "vocabulary = 1099511627777: must be at most 2^40");
  CHECK(refusal(changed([](transformer& m) { m.heads = 7; }), load) ==
        "heads = 7: must divide hidden where head_dim is not given");
  CHECK(refusal(changed([](transformer& m) { m.kv_heads = 5; }), load) == "kv_heads = 5: must divide heads");
  CHECK(refusal(changed([](transformer& m) { m.head_dim = -1; }), load) == "head_dim = -1: must not be negative");
  CHECK(refusal(changed([](transformer& m) { m.positions = 0; }), load) == "positions = 0: must be at least 1");
  CHECK(refusal(gpt2, {.micro_batch = 1, .sequence = 1025}) ==
        "sequence = 1025: must not exceed the learned position table");
  CHECK(refusal(gpt2, {.micro_batch = 0, .sequence = 1}) == "micro_batch = 0: must be at least 1");
  CHECK(refusal(gpt2, {.micro_batch = 1}) == "sequence = 0: must be at least 1");
  CHECK(refusal(gpt2, {.micro_batch = 1, .sequence = 1, .accumulation = -2}) ==
        "accumulation = -2: must be at least 1");
  CHECK(refusal(gpt2, {.micro_batch = largest_number, .sequence = 1024}) ==
        "micro_batch = 1099511627776: micro_batch x sequence must be at most 2^40 tokens");
}

TEST_CASE("numbers at their limits are refused, never wrapped", "[transformer]") {
  const std::int64_t large = largest_number;
  for (const std::int64_t n : {std::int64_t{1} << 20, std::int64_t{1} << 30, large}) {
    const transformer m{.layers = n, .hidden = n, .heads = 1, .vocabulary = n, .positions = n};
    CHECK(refusal(m, {.micro_batch = 1, .sequence = n}) != "accepted");
    CHECK(refusal(llama(m), {.micro_batch = n, .sequence = 1}) != "accepted");
    CHECK(refusal({.layers = n, .hidden = 64, .heads = 1, .vocabulary = 64, .positions = 64}, {.sequence = 64}) !=
          (n > std::int64_t{1} << 36 ? "accepted" : ""));
  }
}

TEST_CASE("a head_dim that is given wins over hidden / heads", "[transformer]") {
  transformer m = llama({.layers = 1, .hidden = 1792, .heads = 24, .vocabulary = 10, .head_dim = 128});
  CHECK(refusal(m, {.sequence = 8}) == "accepted");
  m.head_dim = 0;
  CHECK(refusal(m, {.sequence = 8}) == "heads = 24: must divide hidden where head_dim is not given");
}
