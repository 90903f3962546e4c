// SPDX-License-Identifier: MIT
#include <gpumem/budget.hpp>

#include "catch.hpp"

using namespace gpumem;
using namespace gpumem::literals;

namespace {

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
constexpr workload load{.micro_batch = 8, .sequence = 1024};
using run = budget<gpt2, load, mixed<dtype::bf16>, adamw, checkpoint_every<1>>;

// The model after a round through memory, so that nothing is a constant any more.
template <class T>
T not_a_constant(T value) {
  volatile bool yes = true;
  return yes ? value : T{};
}

template <class Budget>
void check_same_at_run_time() {
  CHECK(estimate(not_a_constant(Budget::shape), not_a_constant(Budget::load), not_a_constant(Budget::how)) ==
        Budget::memory);
}

}  // namespace

TEST_CASE("angle brackets and parentheses give the same breakdown", "[budget]") {
  check_same_at_run_time<run>();
  check_same_at_run_time<budget<gpt2, load>>();
  check_same_at_run_time<budget<gpt2, load, fp32, adamw_loop, eager_attention>>();
  check_same_at_run_time<budget<gpt2, load, autocast<dtype::fp16>, adamw_8bit, fused_kernels>>();
  check_same_at_run_time<budget<gpt2, load, pure<>, sgd_momentum, checkpoint_every<5>>>();
  check_same_at_run_time<budget<gpt2, load, master_weights<>, sgd>>();
  check_same_at_run_time<budget<gpt2, load, megatron<>, adamw_fused, reserve<3_GiB>>>();
  check_same_at_run_time<budget<gpt2, load, inference>>();
}

TEST_CASE("policies come in any order", "[budget]") {
  STATIC_REQUIRE(budget<gpt2, load, adamw, checkpoint_every<1>, mixed<dtype::bf16>>::memory == run::memory);
}

TEST_CASE("the peak is the worst phase and no category is lost", "[budget]") {
  for (const moment& m : run::memory.timeline) {
    CHECK(m.total == m.categories.total());
    CHECK(m.total <= run::memory.peak.total);
  }
  STATIC_REQUIRE(run::memory.at(run::memory.peak.phase) == run::memory.peak);
  STATIC_REQUIRE(run::memory.required() == run::memory.peak.total + 1_GiB);
  STATIC_REQUIRE(run::memory.rule_of_thumb.weights == 6 * bytes{124'439'808});
  STATIC_REQUIRE(run::memory.rule_of_thumb.bytes_per_parameter == 18);
}

TEST_CASE("fits asks, on the device's own numbers", "[budget]") {
  STATIC_REQUIRE(fits<run, devices::a100_40gb>);
  STATIC_REQUIRE(require_fits<run, devices::a100_40gb>);
  using larger = budget<gpt2, workload{.micro_batch = 64, .sequence = 1024}>;
  STATIC_REQUIRE_FALSE(fits<larger, devices::rtx_3060_12gb>);
  // Two cuBLAS workspaces, of 32 MiB on Hopper and 8,519,680 B on Ampere.
  STATIC_REQUIRE(memory_on<run, devices::h100_80gb>.peak.categories.overhead == 64_MiB);
  STATIC_REQUIRE(memory_on<run, devices::a100_40gb>.peak.categories.overhead == 17'039'360_B);
}

TEST_CASE("a budget exactly as large as the device fits, one byte more does not", "[budget]") {
  constexpr device exact{.capacity = run::memory.required()}, short_of_it{.capacity = run::memory.required() - 1_B};
  STATIC_REQUIRE(fits<run, exact>);
  STATIC_REQUIRE_FALSE(fits<run, short_of_it>);
}

TEST_CASE("inference keeps weights only", "[budget]") {
  using serve = budget<gpt2, load, inference>;
  STATIC_REQUIRE(serve::memory.peak.categories.gradients == 0_B);
  STATIC_REQUIRE(serve::memory.peak.categories.optimizer_states == 0_B);
  // The batch (ids, labels, mask) and the logits, which are what the program wants.
  STATIC_REQUIRE(serve::memory.peak.categories.activations.value ==
                 8 * 1024 * 8 * 3 + std::uint64_t{8} * 1024 * 50257 * 2);
  STATIC_REQUIRE(serve::memory.rule_of_thumb.bytes_per_parameter == 6);
}
