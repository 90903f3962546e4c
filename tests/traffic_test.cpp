// SPDX-License-Identifier: MIT
// Traffic from the tape: closed forms of FLOPs and bytes, the classes' shares, published timings, sizes that do not
// fit.
#include <gpumem/models/encoder_classifier.hpp>
#include <gpumem/models/families.hpp>
#include <gpumem/recording/misfits.hpp>
#include <gpumem/traffic.hpp>

#include "catch.hpp"

using namespace gpumem;
namespace rk = gpumem::row_kernels;

namespace {

constexpr roofline v100{.bytes_per_second = 900e9, .flops_per_second = 125e12};
constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
constexpr workload eight{.micro_batch = 8, .sequence = 1024};
constexpr plan half = make_plan(pure<dtype::bf16>{}), half_eager = make_plan(pure<dtype::bf16>{}, eager_attention{});

constexpr std::uint64_t n = 8 * 1024, h = 768, L = 12, V = 50257, s = 1024;
constexpr std::uint64_t products = L * 2 * n * 12 * h * h, attention = L * 4 * n * s * h, head = 2 * n * h * V;

/// A recording of one operation or a few, forward and backward.
template <class Body>
constexpr step_traffic recorded(plan const& p, Body const& body) {
  tape_with_room<32, 64> t;
  operations ops{t, p};
  ops.finish(body(ops));
  return traffic_of(t, p, v100);
}
/// An input whose gradient is wanted, as a layer below would want it.
constexpr ref input(operations& ops, std::int64_t elements) { return ops.parameter(1, elements, role::weight); }

constexpr bool within(double measured, double predicted, double part) {
  return predicted >= measured * (1 - part) && predicted <= measured * (1 + part);
}
constexpr row_shape rows_of(std::uint64_t rows, std::uint64_t columns, std::uint64_t bytes) {
  return {.rows = rows, .columns = columns, .element_bytes = bytes, .parameter_bytes = bytes};
}

}  // namespace

TEST_CASE("a linear layer is 2 m n k forward and twice that backward", "[traffic]") {
  constexpr std::int64_t m = 64, k = 32, o = 16;
  constexpr step_traffic t = recorded(half, [](operations& ops) {
    const ref x = input(ops, m * k);
    return ops.linear(x, k, o);
  });
  STATIC_REQUIRE(t.contraction.forward == traffic{2 * (m * k + k * o + o), 2 * m * o, 2 * m * k * o});
  // dx = dy W, dW = dy x; the bias gradient is an element-wise sum of dy.
  STATIC_REQUIRE(t.contraction.backward ==
                 traffic{2 * (2 * m * o + k * o + m * k), 2 * (m * k + k * o), 2 * 2 * m * k * o});
  STATIC_REQUIRE(t.elementwise.backward.reads >= 2 * m * o);
  STATIC_REQUIRE(t.contraction.kernels == 3);
}

TEST_CASE("an element-wise operation moves its distinct inputs and outputs", "[traffic]") {
  constexpr std::int64_t e = 4096;
  constexpr auto elementwise = [](auto const& body) {
    return recorded(make_plan(fp32{}), [&](operations& ops) {
      const ref a = input(ops, e), b = input(ops, e);
      return body(ops, a, b);
    });
  };
  constexpr step_traffic add = elementwise([](operations& ops, ref a, ref b) { return ops.add(a, b); });
  STATIC_REQUIRE(add.elementwise.forward == traffic{2 * 4 * e, 4 * e, e});
  STATIC_REQUIRE(add.elementwise.backward == traffic{});  // both gradients are the output's
  // The two gradients of a product are two kernels of three accesses: SwiGLU's backward has them both.
  constexpr step_traffic mul = elementwise([](operations& ops, ref a, ref b) { return ops.mul(a, b); });
  STATIC_REQUIRE(mul.elementwise.forward == traffic{2 * 4 * e, 4 * e, e});
  STATIC_REQUIRE(mul.elementwise.backward.total() == 6 * 4 * e);
  constexpr step_traffic square = elementwise([](operations& ops, ref a, ref) { return ops.mul(a, a); });
  STATIC_REQUIRE(square.elementwise.forward.reads == 4 * e);
  // An activation reads once and writes once forward, reads twice and writes once backward.
  constexpr step_traffic gelu = elementwise([](operations& ops, ref a, ref) { return ops.gelu(a); });
  STATIC_REQUIRE(gelu.elementwise.forward.total() == 2 * 4 * e);
  STATIC_REQUIRE(gelu.elementwise.backward == traffic{2 * 4 * e, 4 * e, 15 * e});
  constexpr step_traffic dropped = elementwise([](operations& ops, ref a, ref) { return ops.dropout(a, true); });
  STATIC_REQUIRE(dropped.elementwise.forward == traffic{4 * e, 4 * e + e, 2 * e});  // a mask of a byte
  STATIC_REQUIRE(dropped.elementwise.backward.total() == 2 * 4 * e + e);
}

TEST_CASE("what the tape moves is what the table of kernels says", "[traffic]") {
  constexpr std::int64_t rows = 96, width = 64;
  constexpr row_shape shape{.rows = rows, .columns = width, .element_bytes = 2, .parameter_bytes = 2};
  constexpr auto norm = [](plan const& p, auto const& body) {
    return recorded(p,
                    [&](operations& ops) {
                      const ref x = input(ops, rows * width);
                      return body(ops, x);
                    })
        .normalization;
  };
  constexpr class_share ln = norm(half, [](operations& ops, ref x) { return ops.layer_norm(x, width); });
  STATIC_REQUIRE(ln.forward == rk::layer_norm_forward.fused(shape));
  STATIC_REQUIRE(ln.backward == rk::layer_norm_backward.fused(shape));

  constexpr plan fused = make_plan(pure<dtype::bf16>{}, fused_kernels{});
  constexpr class_share rms = norm(fused, [](operations& ops, ref x) { return ops.rms_norm(x, width); });
  STATIC_REQUIRE(rms.forward == rk::rms_norm_forward.fused(shape));
  // One row of partial sums for each multiprocessor.
  constexpr row_shape with_partials{
      .rows = rows, .columns = width, .element_bytes = 2, .parameter_bytes = 2, .blocks = 108};
  STATIC_REQUIRE(rms.backward == rk::rms_norm_backward.fused(with_partials));
}

TEST_CASE("a model's contractions have their closed form", "[traffic]") {
  constexpr step_traffic eager = traffic_of(gpt2, eight, half_eager, v100), flash = traffic_of(gpt2, eight, half, v100);
  STATIC_REQUIRE(eager.contraction.forward.flops == products + attention + head);
  STATIC_REQUIRE(eager.contraction.backward.flops == 2 * (products + attention + head));
  STATIC_REQUIRE(flash.contraction.forward.flops == products + attention + head);
  // FlashAttention makes the scores again: five products backward for two forward.
  STATIC_REQUIRE(2 * flash.contraction.backward.flops == 4 * (products + head) + 5 * attention);
  CHECK(traffic_of(gpt2, eight, half_eager, v100).contraction.forward.flops == products + attention + head);
  CHECK(flash.total().total() < eager.total().total());
}

TEST_CASE("a fused linear loss makes its three products forward", "[traffic]") {
  const step_traffic t = traffic_of(gpt2, eight, make_plan(pure<dtype::bf16>{}, fused_linear_loss{}), v100);
  constexpr std::uint64_t shifted = 2 * (n - 8) * h * V;  // each sequence without its last token
  CHECK(t.contraction.forward.flops == products + attention + 3 * shifted);
  CHECK(2 * t.contraction.backward.flops == 4 * products + 5 * attention);
}

TEST_CASE("checkpointing runs the blocks again, accumulation the step, inference no backward", "[traffic]") {
  const step_traffic once = traffic_of(gpt2, eight, half, v100);
  const step_traffic full = traffic_of(gpt2, eight, make_plan(pure<dtype::bf16>{}, checkpoint_every<1>{}), v100);
  CHECK(full.contraction.forward == once.contraction.forward);
  CHECK(full.contraction.backward.flops == once.contraction.backward.flops + products + attention);
  const step_traffic twice = traffic_of(gpt2, {.micro_batch = 8, .sequence = 1024, .accumulation = 2}, half, v100);
  CHECK(twice.contraction.forward == once.contraction.forward * 2);
  const step_traffic inferred = traffic_of(gpt2, eight, make_plan(pure<dtype::bf16>{}, inference{}), v100);
  CHECK(inferred.contraction.forward.flops == once.contraction.forward.flops);
  CHECK(inferred.total().flops ==
        inferred.contraction.forward.flops + inferred.normalization.forward.flops + inferred.elementwise.forward.flops);
}

TEST_CASE("runs between contractions as one kernel move less, and never less than what leaves them", "[traffic]") {
  for (plan const& p : {half, half_eager, make_plan(mixed<>{}), make_plan(autocast<>{}, eager_attention{})}) {
    const step_traffic t = traffic_of(gpt2, eight, p, v100);
    const traffic eager = t.normalization.total() + t.elementwise.total(), fused = t.runs_fused.total();
    CHECK(fused.total() < eager.total());
    CHECK(fused.total() > eager.total() / 10);
    CHECK(t.fused_seconds() < t.seconds());
  }
}

TEST_CASE("BERT-large at batch 8, length 512: the classes of Ivanov et al. 2020", "[traffic]") {
  constexpr encoder_classifier bert_large{
      .layers = 24, .hidden = 1024, .heads = 16, .vocabulary = 30522, .positions = 512};
  constexpr workload load{.micro_batch = 8, .sequence = 512};
  constexpr plan p = make_plan(pure<dtype::fp16>{}, eager_attention{});
  constexpr step_traffic t = traffic_of(bert_large, load, p, v100);
  STATIC_REQUIRE(t.flop_share(t.contraction) > 0.99);
  STATIC_REQUIRE(t.time_share(t.normalization) + t.time_share(t.elementwise) > 1.0 / 3);
  CHECK(traffic_of(bert_large, load, p, v100).flop_share(t.contraction) > 0.99);
  CAPTURE(t.flop_share(t.contraction), t.time_share(t.contraction), t.time_share(t.normalization),
          t.time_share(t.elementwise), t.seconds(), t.fused_seconds());
  CHECK(t.fused_seconds() < t.seconds());
}

TEST_CASE("published timings lie where the bytes say", "[traffic][published]") {
  // Liger's CSV, bf16, A100: Hugging Face's RMSNorm against one kernel; M 2048, H 4096 to 32768.
  constexpr double rms = rk::rms_norm_forward_upcast.speedup(rows_of(2048, 4096, 2));
  for (double measured : {9.0, 10.0, 10.3, 10.5}) CHECK(within(measured, rms, 0.20));
  // Liger's CSV, fp32, H100: add and RMSNorm, H 4096 to 16384.
  constexpr double add = rk::add_rms_norm_forward.speedup(rows_of(2048, 8192, 4));
  for (double measured : {3.0, 2.9, 2.8}) CHECK(within(measured, add, 0.20));
  // Liger's CSV, fp32, H100: PyTorch's LayerNorm; its second reading of a row hits the caches or does not.
  constexpr row_shape layer = rows_of(4096, 16384, 4);
  constexpr double from = byte_ratio(rk::layer_norm_forward_rereading.chain(layer, true),
                                     rk::layer_norm_forward_rereading.fused(layer)),
                   to = rk::layer_norm_forward_rereading.speedup(layer);
  for (double measured : {1.30, 1.66}) CHECK((measured >= from * 0.85 && measured <= to * 1.15));
  // Liger's CSV, fp32, A100: cross-entropy forward and backward; logits read twice or once.
  constexpr row_shape logits = rows_of(4096, 65536, 4);
  constexpr double twice = rk::cross_entropy_rereading.speedup(logits), once = rk::cross_entropy.speedup(logits);
  for (double measured : {2.48, 2.58, 2.40}) CHECK((measured >= twice * 0.85 && measured <= once * 1.15));
  // QuACK's blog, fp32, H100, 131072 to 262144 columns: a softmax that reads a row again.
  constexpr row_shape wide = rows_of(16384, 131072, 4);
  constexpr double again = byte_ratio(rk::softmax_forward_online.fused(wide), rk::softmax_forward.fused(wide));
  for (double measured : {1.5, 1.59}) CHECK(within(measured, again, 0.20));
  // Milakov and Gimelshein 2018, V100: up to 1.3 for the online softmax against three passes.
  CHECK(within(1.3, rk::softmax_forward_online.speedup(wide), 0.20));
}

TEST_CASE("sizes that do not suit tensor cores are found once", "[traffic]") {
  const auto found = [](transformer const& m, plan const& p) {
    tape_with_room<> t;
    operations ops{t, p};
    ops.finish(record(ops, m, {.sequence = 512}));
    return misfits_of(t);
  };
  const misfit_list of_gpt2 = found(gpt2, half);
  REQUIRE(of_gpt2.count == 1);
  CHECK((of_gpt2.items[0].vocabulary && of_gpt2.items[0].size == 50257 && of_gpt2.items[0].padded == 50304));
  CHECK(found({.layers = 2, .hidden = 768, .heads = 12, .vocabulary = 50304, .positions = 1024}, half).count == 0);
  const misfit_list odd = found(
      {.layers = 2, .hidden = 600, .heads = 6, .vocabulary = 512, .positions = 1024, .feed_forward = 1001}, half_eager);
  bool feed_forward = false, hidden = false, head_dim = false;
  for (int i = 0; i < odd.count; ++i) {
    feed_forward = feed_forward || (odd.items[i].size == 1001 && odd.items[i].padded == 1008);
    hidden = hidden || (odd.items[i].size == 600 && odd.items[i].multiple == 64 && odd.items[i].padded == 640);
    head_dim = head_dim || (odd.items[i].size == 100 && odd.items[i].multiple == 8);
  }
  CHECK((feed_forward && hidden && head_dim));
}

TEST_CASE("the roofline is the slower of memory and tensor cores, and a launch", "[traffic]") {
  constexpr roofline r{.bytes_per_second = 1e12, .flops_per_second = 1e14, .launch = 2e-6};
  STATIC_REQUIRE(within(3e-6, r.seconds({500'000, 500'000, 10}, true), 1e-9));
  STATIC_REQUIRE(within(12e-6, r.seconds({500'000, 500'000, 1'000'000'000}, true), 1e-9));
  STATIC_REQUIRE(within(3e-6, r.seconds({500'000, 500'000, 1'000'000'000}, false), 1e-9));
  STATIC_REQUIRE(is_l2_resident(64u << 20, 60u << 20));
  STATIC_REQUIRE(!is_l2_resident(256u << 20, 60u << 20));
}
