// SPDX-License-Identifier: MIT
// The walk on recordings that are small enough to follow by hand.
#include <gpumem/estimate.hpp>
#include <gpumem/recording/column_sum.hpp>
#include <string>

#include "catch.hpp"

using namespace gpumem;
using namespace gpumem::literals;

namespace {

constexpr runtime plain = pytorch_1_13_cpu::numbers;  // no rounding, no workspaces
constexpr runtime in_place = [] {
  runtime r = plain;
  r.sums_in_place = true;
  return r;
}();

// weights [100], x = relu(w), y = 2 x, loss: everything fp32.
constexpr timeline small_step(bool frozen) {
  const plan p = make_plan(fp32{}, pytorch_1_13_cpu{});
  tape_with_room<16, 16> t;
  operations ops{t, p};
  const ref w = t.parameter({.columns = 100}, !frozen);
  const ref x = ops.relu(w), y = ops.scale(x);
  ops.finish(y);
  return walk(t, y, plain);
}

}  // namespace

TEST_CASE("a step of two operations, byte by byte", "[tape]") {
  constexpr timeline t = small_step(false);
  STATIC_REQUIRE(t.forward.total == 1200_B);  // w, x, y
  STATIC_REQUIRE(t.forward.categories.weights == 400_B);
  STATIC_REQUIRE(t.forward_end.total == 1200_B);  // relu saved its result
  STATIC_REQUIRE(t.backward.total == 2400_B);     // these and three gradients: y's is held by backward()'s caller
  STATIC_REQUIRE(t.backward_end.total == 800_B);  // w and w.grad
  STATIC_REQUIRE(t.backward_end.categories.gradients == 400_B);
}

TEST_CASE("nothing is saved for what is not trained", "[tape]") {
  constexpr timeline t = small_step(true);
  STATIC_REQUIRE(t.forward_end.total == 800_B);  // w and the value; x went with its reader
  STATIC_REQUIRE(t.backward_end.total == 400_B);
}

namespace {

// x feeds two readers: their gradients meet in x. `viewed` hands one over as a view, as a Linear on a 3-D input does.
constexpr bytes sum_of_two(runtime const& r, bool viewed) {
  tape_with_room<16, 16> t;
  const ref w = t.parameter({.columns = 100}, true), x = t.make(100, dtype::fp32);
  t.record({.name = "copy", .in = {w}, .how = {gradient::fresh}, .out = {x}});
  const gradient how = viewed ? gradient::fresh_view : gradient::fresh;
  const ref a = t.make(1, dtype::fp32);
  t.record({.name = "a", .in = {x}, .how = {how}, .out = {a}});
  const ref b = t.make(1, dtype::fp32);
  t.record({.name = "b", .in = {x}, .how = {how}, .out = {b}});
  const ref loss = t.make(1, dtype::fp32);
  t.record({.name = "loss", .in = {a, b}, .how = {gradient::fresh, gradient::fresh}, .out = {loss}});
  t.until_step_ends(loss);
  t.close_segment();
  return walk(t, loss, r).backward.total - 408_B;  // the weights, the loss and its gradient
}

}  // namespace

TEST_CASE("two gradients of one tensor are summed in place only where nobody else can see it", "[tape]") {
  STATIC_REQUIRE(sum_of_two(in_place, false) == 804_B);  // both, and the gradient of a
  STATIC_REQUIRE(sum_of_two(in_place, true) == 1200_B);
  STATIC_REQUIRE(sum_of_two(plain, false) == 1200_B);
}

TEST_CASE("a tied table costs two more of its size at the end of backward", "[tape]") {
  // The head's gradient waits, the embedding's comes, their sum is a third tensor.
  constexpr auto backward = [](bool tied) {
    const plan p = make_plan(fp32{}, pytorch_1_13_cpu{});
    tape_with_room<> t;
    operations ops{t, p};
    const ref ids = t.constant(1, dtype::int64), table = ops.parameter(5000, 8, role::embedding);
    const ref x = ops.embedding(table, ids, 8);
    const ref y = tied ? ops.linear(x, {.matrix = table, .in = 8, .out = 5000}) : ops.linear(x, 8, 5000, false);
    const ref loss = ops.cross_entropy(y, ids);
    ops.finish(loss);
    return walk(t, loss, p.runtime).backward;
  };
  constexpr std::uint64_t table = 5000 * 8 * 4;
  const std::uint64_t tied = backward(true).total.value, untied = backward(false).total.value;
  CHECK(tied / table == 4);    // the table and three gradients
  CHECK(untied / table == 4);  // two tables and two gradients
  CHECK(std::string{backward(true).operation} == "sum of gradients");
}

TEST_CASE("a half gradient is cast into an fp32 one and a later micro-batch adds in place", "[tape]") {
  constexpr auto walked = [](bool accumulate) {
    const plan p = make_plan(mixed<>{}, pytorch_1_13_cpu{});
    tape_with_room<> t;
    operations ops{t, p};
    const ref x = t.constant(8, dtype::bf16);
    const ref y = ops.linear(x, 8, 1000, false);
    ops.finish(y);
    return walk(t, y, p.runtime, {.gradients = dtype::fp32, .accumulate = accumulate});
  };
  constexpr timeline first = walked(false), later = walked(true);
  STATIC_REQUIRE(first.backward_end.categories.gradients == 32'000_B);
  STATIC_REQUIRE(later.backward_end.categories.gradients == 32'000_B);
  STATIC_REQUIRE(first.backward.categories.gradients == 48'000_B);  // the half one and the fp32 one
  STATIC_REQUIRE(later.backward.categories.gradients == 32'000_B);
  STATIC_REQUIRE(later.backward.total == first.backward.total + 32'000_B);
}

TEST_CASE("the column-sum workspace as the caching allocator counts it on an A100", "[tape]") {
  // Measured: 64 MiB + 512 B for 2048 x 4096 (an A100 record of Hugging Face's RMSNorm has exactly these two blocks).
  constexpr runtime a100 = pytorch_cuda::numbers;
  STATIC_REQUIRE(column_sum_workspace(2048, 4096, a100) == 64_MiB + 512_B);
  // MiB for widths 1024, 4096, 16384, from the same derivation written down independently.
  const auto mib = [](std::uint64_t rows, std::uint64_t width) {
    return mebibytes_down(column_sum_workspace(rows, width, pytorch_cuda::numbers));
  };
  CHECK((mib(2048, 1024) == 16 && mib(2048, 4096) == 64 && mib(2048, 16384) == 112));
  CHECK((mib(8192, 1024) == 64 && mib(8192, 4096) == 108 && mib(8192, 16384) == 112));
  CHECK((mib(32768, 1024) == 108 && mib(32768, 4096) == 108 && mib(32768, 16384) == 256));
  CHECK((mib(131072, 1024) == 108 && mib(131072, 4096) == 256 && mib(131072, 16384) == 1024));
  CHECK(column_sum_workspace(131072, 4096, plain) == bytes{});
}

TEST_CASE("a full tape says so", "[tape]") {
  tape_with_room<4, 3> t;
  const ref a = t.make(1, dtype::fp32);
  static_cast<void>(t.make(1, dtype::fp32)), static_cast<void>(t.make(1, dtype::fp32));
  CHECK_THROWS_AS(t.make(1, dtype::fp32), error);
  for (int i = 0; i < 4; ++i) t.record({.name = "read", .in = {a}});
  CHECK_THROWS_AS(t.record({.name = "read", .in = {a}}), error);
}

TEST_CASE("a repeated block must hand on what it was given", "[tape]") {
  const plan p = make_plan(fp32{});
  const auto repeat = [&](bool trained_input, std::int64_t width_out) {
    tape_with_room<> t;
    operations ops{t, p};
    const ref in = trained_input ? ops.scale(ops.parameter(1, 8, role::weight)) : t.constant(8, dtype::fp32);
    return ops.blocks(3, in, [&](ref x) { return ops.linear(x, 8, width_out, false); });
  };
  CHECK_NOTHROW(repeat(true, 8));
  CHECK_THROWS_AS(repeat(true, 9), error);
  CHECK_THROWS_AS(repeat(false, 8), error);
}
