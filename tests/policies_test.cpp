// SPDX-License-Identifier: MIT
#include <gpumem/policies/plan.hpp>

#include "catch.hpp"

using namespace gpumem;
using namespace gpumem::literals;

TEST_CASE("the documents' rule of thumb", "[policies]") {
  // Hugging Face, "Model training anatomy": 6 + 4 + 8 mixed with AdamW, 2 for 8-bit AdamW, 4 for SGD with momentum.
  STATIC_REQUIRE(bytes_per_parameter<mixed<dtype::bf16>, adamw> == 18);
  STATIC_REQUIRE(bytes_per_parameter<mixed<dtype::fp16>, adamw> == 18);
  STATIC_REQUIRE(bytes_per_parameter<fp32, adamw> == 16);
  STATIC_REQUIRE(bytes_per_parameter<mixed<>, sgd_momentum> == 14);
  STATIC_REQUIRE(bytes_per_parameter<mixed<>, adamw_8bit> == 12);
  STATIC_REQUIRE(bytes_per_parameter<mixed<>, inference> == 6);
  STATIC_REQUIRE(bytes_per_parameter<fp32, inference> == 4);
}

TEST_CASE("what \"mixed precision with Adam\" means to others", "[policies]") {
  STATIC_REQUIRE(bytes_per_parameter<autocast<>, adamw> == 16);
  STATIC_REQUIRE(bytes_per_parameter<master_weights<>, adamw> == 16);
  STATIC_REQUIRE(bytes_per_parameter<megatron<>, adamw> == 18);
  STATIC_REQUIRE(bytes_per_parameter<pure<>, adamw> == 8);
  STATIC_REQUIRE(bytes_per_parameter<mixed<>, sgd> == 10);
  STATIC_REQUIRE(bytes_per_parameter<fp32, adamw_fused> == 16);
}

TEST_CASE("policies come in any order and leave the others at their defaults", "[policies]") {
  STATIC_REQUIRE(make_plan() == plan{});
  STATIC_REQUIRE(make_plan(mixed<>{}, adamw{}, no_checkpointing{}, flash_attention{}, eager_kernels{}, eager_loss{},
                           pytorch_cuda{}, reserve<1_GiB>{}) == plan{});
  STATIC_REQUIRE(make_plan(adamw_8bit{}, fp32{}) == make_plan(fp32{}, adamw_8bit{}));
  STATIC_REQUIRE(make_plan(reserve<2_GiB>{}).reserve == 2_GiB);
  STATIC_REQUIRE(make_plan(checkpoint_every<3>{}).checkpointing.every == 3);
  STATIC_REQUIRE_FALSE(make_plan(fp32{}) == plan{});
}

TEST_CASE("a device changes the runtime's numbers, but not those of a CPU", "[policies]") {
  constexpr plan on_h100 = on_device(plan{}, devices::h100_80gb);
  STATIC_REQUIRE(on_h100.runtime.multiprocessors == 132);
  STATIC_REQUIRE(on_h100.runtime.cublas_workspace == 32_MiB);
  STATIC_REQUIRE(on_device(make_plan(pytorch_1_13_cpu{}), devices::h100_80gb) == make_plan(pytorch_1_13_cpu{}));
}

namespace {
constexpr bytes kept(state_list const& list) {
  bytes sum;
  for (state const& s : list) sum += storage(s.type, s.elements);
  return sum;
}
constexpr parameter vector_of(std::int64_t n) { return {.columns = n}; }
}  // namespace

TEST_CASE("8-bit AdamW's exact layout", "[policies]") {
  // bitsandbytes 95f9af3: fewer than 4096 elements stay fp32, the test is strict, absmax one fp32 for 256 elements.
  STATIC_REQUIRE(kept(adamw_8bit::states(vector_of(4095))) == bytes{8 * 4095});
  STATIC_REQUIRE(kept(adamw_8bit::states(vector_of(4096))) == bytes{2 * 4096 + 8 * 16});
  STATIC_REQUIRE(kept(adamw_8bit::states(vector_of(4097))) == bytes{2 * 4097 + 8 * 17});
  STATIC_REQUIRE(make_plan(adamw_8bit{}).optimizer.shared == 2048_B);
}

TEST_CASE("states have the dtype of the tensors that the optimizer updates", "[policies]") {
  STATIC_REQUIRE(kept(adamw::states({.columns = 10, .type = dtype::bf16})) == 40_B);
  STATIC_REQUIRE(kept(adamw::states({.columns = 10, .type = dtype::fp32})) == 80_B);
  STATIC_REQUIRE(kept(adamw_fused::states({.columns = 10})) == 84_B);
  STATIC_REQUIRE(kept(sgd::states(vector_of(10))) == 0_B);
  STATIC_REQUIRE(kept(sgd_momentum::states(vector_of(10))) == 40_B);
}
