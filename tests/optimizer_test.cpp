// SPDX-License-Identifier: MIT
// What optimizers keep for each tensor, and what their step allocates.
#include <gpumem/budget.hpp>

#include <cmath>
#include <cstdint>

#include "catch.hpp"

using namespace gpumem;

namespace {

constexpr transformer llama2_7b =
    llama({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 32000, .feed_forward = 11008});
constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
constexpr workload load{.micro_batch = 1, .sequence = 128};

template <class O>
constexpr breakdown memory_of(transformer const& m) {
  plan p = make_plan(mixed<>{}, O{}, checkpoint_every<1>{});
  p.runtime.granule = 1;
  return estimate(m, load, p);
}
template <class O>
constexpr std::uint64_t states(transformer const& m) {
  return memory_of<O>(m).at(phase::optimizer_step).categories.optimizer_states.value;
}
template <class O>
double gibibytes(transformer const& m) {
  return static_cast<double>(states<O>(m)) / (1024.0 * 1024 * 1024);
}
/// An optimizer of a user's own: bitsandbytes with one table overridden by its name.
struct word_table_in_32bit : adamw_8bit {
  static constexpr state_list states(parameter const& p) {
    return p.rows == 50257 ? adamw::states(p) : adamw_8bit::states(p);
  }
};
bool shown_as(double value, double printed, double unit) { return std::abs(value - printed) <= unit / 2; }

constexpr parameter matrix{.rows = 4096, .columns = 4096}, vector{.columns = 1024},
    table{.rows = 32000, .columns = 4096, .role = role::embedding};

constexpr std::uint64_t bytes_for(optimizer const& o, parameter const& p, bool on_device = true) {
  std::uint64_t sum = 0;
  for (state const& s : o.states(p))
    if (s.paged != on_device) sum += storage(s.type, s.elements).value;
  return sum;
}
template <class O>
constexpr std::uint64_t bytes_for(parameter const& p, bool on_device = true) {
  return bytes_for(detail::optimizer_of<O>(), p, on_device);
}

}  // namespace

TEST_CASE("bitsandbytes' states of Llama-2-7B and GPT-2", "[optimizer]") {
  constexpr std::uint64_t p = 6'738'415'616, maps = 2 * 256 * 4, tables = 2 * 32000ull * 4096;
  STATIC_REQUIRE(memory_of<adamw_8bit>(llama2_7b).parameters == p);
  STATIC_REQUIRE(states<adamw_8bit>(llama2_7b) == 2 * p + 8 * (p / 256) + maps);
  STATIC_REQUIRE(states<adamw_8bit_2048>(llama2_7b) == 2 * p + 8 * (p / 2048) + maps);
  // The head is no embedding: only the table of 32,000 rows is kept in 32 bits.
  STATIC_REQUIRE(states<embeddings_in_32bit<adamw_8bit>>(llama2_7b) ==
                 states<adamw_8bit>(llama2_7b) + tables / 2 * (8 - 2) - tables / 2 / 256 * 8);
  CHECK(shown_as(gibibytes<adamw_8bit>(llama2_7b), 12.75, 0.01));
  CHECK(shown_as(gibibytes<adamw_8bit_2048>(llama2_7b), 12.58, 0.01));
  CHECK(shown_as(gibibytes<embeddings_in_32bit<adamw_8bit>>(llama2_7b), 13.48, 0.01));
  CHECK(shown_as(gibibytes<adamw>(llama2_7b), 50.2, 0.1));
  CHECK(shown_as(static_cast<double>(states<embeddings_in_32bit<adamw_8bit>>(llama2_7b)) / p, 2.147, 0.001));
  constexpr double gpt2_parameters = 124'439'808;
  CHECK(shown_as(static_cast<double>(states<adamw_8bit>(gpt2)) / gpt2_parameters, 2.037, 0.001));
  // 3.888 with the word table in 32 bits; the Trainer registers the position table as well.
  CHECK(shown_as(static_cast<double>(states<word_table_in_32bit>(gpt2)) / gpt2_parameters, 3.888, 0.001));
  CHECK(shown_as(static_cast<double>(states<embeddings_in_32bit<adamw_8bit>>(gpt2)) / gpt2_parameters, 3.926, 0.001));
}

TEST_CASE("8-bit states are exactly two or one bytes and the absmax of each block", "[optimizer]") {
  constexpr std::uint64_t n = 4096 * 4096;
  STATIC_REQUIRE(bytes_for<adamw_8bit>(matrix) == 2 * n + 8 * n / 256);
  STATIC_REQUIRE(bytes_for<adamw_8bit_2048>(matrix) == 2 * n + 8 * n / 2048);
  STATIC_REQUIRE(bytes_for<lion_8bit>(matrix) == n + 4 * n / 256);
  STATIC_REQUIRE(bytes_for<lion>(matrix) == 4 * n);
  STATIC_REQUIRE(bytes_for<ademamix_8bit>(matrix) == 3 * n + 12 * n / 256);
  // The test is n < 4096: a norm of 4096 is quantized, one of 1024 is not.
  STATIC_REQUIRE(bytes_for<adamw_8bit>({.columns = 4096}) == 2 * 4096 + 8 * 16);
  STATIC_REQUIRE(bytes_for<adamw_8bit>({.columns = 4095}) == 8 * 4095);
  STATIC_REQUIRE(bytes_for<lion_8bit>(vector) == 4 * 1024);
  STATIC_REQUIRE(bytes_for<embeddings_in_32bit<lion_8bit>>(table) == 4 * table.elements());
}

TEST_CASE("a paged optimizer keeps only absmax and small tensors on the device", "[optimizer]") {
  constexpr std::uint64_t n = 4096 * 4096;
  STATIC_REQUIRE(bytes_for<paged<adamw_8bit>>(matrix) == 8 * n / 256);
  STATIC_REQUIRE(bytes_for<paged<adamw_8bit>>(matrix, false) == 2 * n);
  STATIC_REQUIRE(bytes_for<paged<adamw_8bit>>(vector) == 8 * 1024);
  constexpr breakdown b = memory_of<paged<adamw_8bit>>(gpt2), whole = memory_of<adamw_8bit>(gpt2);
  STATIC_REQUIRE(b.paged_states.value > 0);
  STATIC_REQUIRE(b.peak.categories.optimizer_states + b.paged_states == whole.peak.categories.optimizer_states);
}

TEST_CASE("Adafactor, amsgrad and 4-bit states", "[optimizer]") {
  STATIC_REQUIRE(bytes_for<adafactor>(matrix) == 4 * (4096 + 4096) + 4);
  STATIC_REQUIRE(bytes_for<adafactor>(vector) == 4 * 1024 + 4);
  STATIC_REQUIRE(bytes_for<adamw_amsgrad>(matrix) == 3 * 4 * 4096 * 4096);
  STATIC_REQUIRE(bytes_for<adamw_4bit>(matrix) == 4096 * 4096 + 8 * 4096 * 4096 / 128 + 2 * 16 * 4);
  STATIC_REQUIRE(bytes_for<adamw_torchao_8bit>(matrix) == 2 * 4096 * 4096 + 8 * 4096 * 4096 / 256 + 2 * 256 * 4);
  STATIC_REQUIRE(bytes_for<adamw_4bit>({.columns = 1000}) == 8 * 1000);
  STATIC_REQUIRE(bytes_per_parameter<mixed<>, adamw_4bit> == 6 + 4 + 1);
  STATIC_REQUIRE(bytes_per_parameter<mixed<>, lion_8bit> == 6 + 4 + 1);
}

TEST_CASE("states follow the parameter's dtype in pure half loops", "[optimizer]") {
  STATIC_REQUIRE(bytes_per_parameter<pure<>, adamw> == 8);
  STATIC_REQUIRE(bytes_per_parameter<pure<>, adamw_8bit> == 6);
  // 7B in bf16: 53.91 GB, 67.38 with the foreach list, 40.43 in 8 bits (meta-pytorch/torchtune#389).
  constexpr std::uint64_t p = 6'738'415'616;
  constexpr breakdown foreach_step = estimate(llama2_7b, load, make_plan(pure<>{}, adamw{}));
  constexpr breakdown loop_step = estimate(llama2_7b, load, make_plan(pure<>{}, adamw_fused{}));
  const auto gigabytes = [](moment const& m) {
    memory c = m.categories;
    return static_cast<double>((c.weights + c.gradients + c.optimizer_states + c.temporaries).value) / 1e9;
  };
  CHECK(shown_as(gigabytes(loop_step.at(phase::optimizer_step)), 8e-9 * p, 0.01));
  CHECK(shown_as(gigabytes(foreach_step.at(phase::optimizer_step)), 10e-9 * p, 0.01));
  CHECK(shown_as(8e-9 * p, 53.91, 0.01));
  CHECK(shown_as(10e-9 * p, 67.38, 0.01));
}

TEST_CASE("an optimizer in backward never has all gradients", "[optimizer]") {
  constexpr breakdown together = estimate(gpt2, load, make_plan(pure<>{}, sgd{}));
  constexpr breakdown fused = estimate(gpt2, load, make_plan(pure<>{}, in_backward<sgd>{}));
  STATIC_REQUIRE(fused.at(phase::backward_end).categories.gradients.value == 0);
  STATIC_REQUIRE(fused.at(phase::optimizer_step).total == fused.at(phase::backward_end).total);
  STATIC_REQUIRE(together.at(phase::backward_end).categories.gradients.value > 2ull * 124'000'000);
  STATIC_REQUIRE(fused.at(phase::backward).total < together.at(phase::backward).total);
  const plan p = make_plan(pure<>{}, in_backward<sgd>{});
  CHECK_THROWS_AS(estimate(gpt2, {.micro_batch = 1, .sequence = 128, .accumulation = 2}, p), error);
}

TEST_CASE("an optimizer in backward is the same unrolled", "[optimizer]") {
  const plan p = make_plan(pure<>{}, in_backward<adamw_loop>{}, no_checkpointing{});
  constexpr transformer small{.layers = 5, .hidden = 64, .heads = 4, .vocabulary = 500, .positions = 64};
  const workload w{.micro_batch = 2, .sequence = 64};
  tape_with_room<600, 900> recording;
  operations ops{recording, p};
  ops.unrolled = true;
  const ref loss = record(ops, small, w);
  ops.finish(loss);
  const breakdown unrolled = step_memory(recording, loss, w, p), repeated = estimate(small, w, p);
  for (int i = 0; i < phases; ++i) CHECK(unrolled.timeline[i] == repeated.timeline[i]);
}
