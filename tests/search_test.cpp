// SPDX-License-Identifier: MIT
// The largest micro-batch, and the cheapest changes that make a run fit.
#include <gpumem/budget.hpp>
#include <gpumem/search.hpp>

#include <cstdint>

#include "catch.hpp"

using namespace gpumem;

namespace {

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
constexpr transformer llama2_7b =
    llama({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 32000, .feed_forward = 11008});
constexpr workload gpt2_load{.micro_batch = 8, .sequence = 1024};

bool is_held(transformer const& m, workload const& w, plan const& p, bytes capacity) {
  return estimate(m, w, p).required() <= capacity;
}

}  // namespace

TEST_CASE("the largest micro-batch fits, and one more does not", "[search]") {
  const bytes capacities[] = {devices::rtx_3060_12gb.capacity, devices::a100_40gb.capacity,
                              devices::h100_80gb.capacity};
  for (bytes capacity : capacities)
    for (const plan& p : {make_plan(), make_plan(checkpoint_every<1>{}), make_plan(eager_attention{}, autocast<>{})}) {
      const std::int64_t most = largest_micro_batch(gpt2, gpt2_load, p, capacity);
      INFO("capacity " << (capacity.value >> 20) << " MiB: " << most);
      REQUIRE(most >= 1);
      CHECK(is_held(gpt2, {.micro_batch = most, .sequence = 1024}, p, capacity));
      CHECK_FALSE(is_held(gpt2, {.micro_batch = most + 1, .sequence = 1024}, p, capacity));
    }
  constexpr std::int64_t at_compile_time =
      largest_micro_batch(gpt2, gpt2_load, make_plan(), devices::a100_40gb.capacity);
  CHECK(at_compile_time == largest_micro_batch(gpt2, gpt2_load, make_plan(), devices::a100_40gb.capacity));
}

TEST_CASE("a model that does not fit alone has no micro-batch", "[search]") {
  STATIC_REQUIRE(largest_micro_batch(llama2_7b, {.sequence = 4096}, make_plan(), devices::t4_16gb.capacity) == 0);
  const bytes too_much{std::uint64_t{1} << 40};
  CHECK_THROWS_AS(largest_micro_batch(gpt2, gpt2_load, make_plan(), too_much), error);
}

TEST_CASE("the cheapest fixes fit, and are what they say", "[search]") {
  const bytes capacity = devices::rtx_3070.capacity;
  const plan p = on_device(make_plan(eager_attention{}), devices::rtx_3070);
  REQUIRE_FALSE(is_held(gpt2, gpt2_load, p, capacity));
  const fixes f = cheapest_fixes(gpt2, gpt2_load, p, capacity);
  REQUIRE(f.count == 2);
  for (fix const& each : f.items) {
    const breakdown b = estimate(gpt2, each.load, each.how);
    CHECK(b.peak.total == each.peak);
    CHECK(b.required() <= capacity);
    CHECK(each.load.micro_batch * each.load.accumulation == 8);
    CHECK_FALSE((each.has(remedy::smaller_micro_batch) && each.load.micro_batch == 8));
  }
  CHECK(f.items[0].parts < f.items[1].parts);
  CHECK((f.items[0].parts & f.items[1].parts) != f.items[0].parts);
}

TEST_CASE("no part of the first fix is too much", "[search]") {
  for (bytes capacity : {devices::t4_16gb.capacity, devices::a100_40gb.capacity, devices::h100_80gb.capacity}) {
    const workload w{.micro_batch = 4, .sequence = 2048};
    const plan p = make_plan(eager_attention{});
    const fixes f = cheapest_fixes(llama2_7b, w, p, capacity);
    if (f.count == 0) continue;
    for (int i = 0; i < remedies; ++i) {
      const auto r = static_cast<remedy>(i);
      if (!f.items[0].has(r) || r == remedy::smaller_micro_batch) continue;
      plan less = p;
      for (int k = 0; k < remedies; ++k)
        if (k != i && f.items[0].has(static_cast<remedy>(k))) apply(static_cast<remedy>(k), less);
      INFO(name(r) << " on " << (capacity.value >> 30) << " GiB");
      CHECK_FALSE(is_held(llama2_7b, f.items[0].load, less, capacity));
    }
  }
}

TEST_CASE("fixes at compile time are those at run time", "[search]") {
  constexpr bytes capacity = devices::h100_80gb.capacity;
  constexpr workload w{.micro_batch = 1, .sequence = 4096};
  constexpr fixes f = cheapest_fixes(llama2_7b, w, make_plan(), capacity);
  STATIC_REQUIRE(f.count == 2);
  STATIC_REQUIRE(f.items[0].peak < capacity);
  const fixes again = cheapest_fixes(llama2_7b, w, make_plan(), capacity);
  CHECK(again.count == f.count);
  for (int i = 0; i < f.count; ++i) {
    CHECK(again.items[i].parts == f.items[i].parts);
    CHECK(again.items[i].peak == f.items[i].peak);
  }
}

TEST_CASE("where nothing helps there is no fix", "[search]") {
  STATIC_REQUIRE(cheapest_fixes(gpt2, gpt2_load, make_plan(), bytes{1 << 20}).count == 0);
}
