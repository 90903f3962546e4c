// SPDX-License-Identifier: MIT
// Whole training steps against a measured probe: PyTorch 1.13.1 on a CPU, fp32, no dropout, a tied table, f = 4h,
// malloc interposed. The probe does not see blocks under 64 KiB, except that its base counts every weight.
#include <gpumem/estimate.hpp>
#include <gpumem/models/transformer.hpp>

#include <cstdint>

#include "catch.hpp"

using namespace gpumem;

namespace {

constexpr std::uint64_t probe_sees_from = 65'536;

struct probe_row {
  char const* run;
  transformer model;
  workload load;
  bool foreach_step, checkpointed;
  double forward_peak, forward_end, backward_peak, optimizer;  // MiB
};

constexpr transformer probe_model(std::int64_t hidden, std::int64_t heads, std::int64_t layers, std::int64_t vocabulary,
                                  std::int64_t sequence) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .vocabulary = vocabulary,
          .positions = sequence,
          .activation = activation::gelu,
          .embedding_dropout = false,
          .attention_dropout = false,
          .hidden_dropout = false};
}

constexpr probe_row rows[] = {
    {"b4 s128 h128 L6 V1000", probe_model(128, 4, 6, 1000, 128), {4, 128, 1}, false, false, 49.60, 47.65, 51.55, 21.22},
    {"same, foreach", probe_model(128, 4, 6, 1000, 128), {4, 128, 1}, true, false, 49.60, 47.65, 51.55, 30.34},
    {"same, checkpointed", probe_model(128, 4, 6, 1000, 128), {4, 128, 1}, false, true, 21.10, 19.14, 26.18, 21.22},
    {"b1 s32 h512 L6 foreach",
     probe_model(512, 8, 6, 512, 32),
     {1, 32, 1},
     true,
     false,
     225.73,
     225.67,
     294.55,
     438.67},
    {"same, loop", probe_model(512, 8, 6, 512, 32), {1, 32, 1}, false, false, 225.59, 225.53, 294.41, 300.41},
    {"b2 s128 V20000", probe_model(128, 4, 2, 20000, 128), {2, 128, 1}, false, false, 78.31, 58.78, 97.84, 64.86},
    {"b2 s64 h256 accumulation 2",
     probe_model(256, 4, 4, 1000, 64),
     {2, 64, 2},
     false,
     false,
     61.94,
     61.45,
     63.31,
     54.21}};

constexpr plan probe_plan(probe_row const& r) {
  plan p = r.foreach_step ? make_plan(fp32{}, eager_attention{}, pytorch_1_13_cpu{}, adamw{})
                          : make_plan(fp32{}, eager_attention{}, pytorch_1_13_cpu{}, adamw_loop{});
  p.runtime.unseen_below = probe_sees_from;
  if (r.checkpointed) p.checkpointing = checkpoint_every<1>::numbers;
  return p;
}

// The weights that the probe's walk does not see, but its base does.
constexpr std::uint64_t small_weights(breakdown const& b) {
  return 4 * b.parameters - b.at(phase::backward_end).categories.weights.value;
}

void check_within_a_thousandth(char const* what, bytes predicted, std::uint64_t base, double measured) {
  const double mib = static_cast<double>(predicted.value + base) / 1048576.0;
  INFO(what << ": predicted " << mib << " MiB, measured " << measured);
  CHECK(mib > measured * 0.999);
  CHECK(mib < measured * 1.001);
}

}  // namespace

TEST_CASE("seven measured training steps, four moments each, within 0.1 %", "[steps]") {
  for (const probe_row& r : rows) {
    INFO(r.run);
    const breakdown b = estimate(r.model, r.load, probe_plan(r));
    const std::uint64_t base = small_weights(b);
    const bytes forward = b.at(phase::forward).total, loss = b.at(phase::loss).total;
    check_within_a_thousandth("forward peak", forward > loss ? forward : loss, base, r.forward_peak);
    check_within_a_thousandth("forward end", b.forward_end.total, base, r.forward_end);
    check_within_a_thousandth("backward peak", b.at(phase::backward).total, base, r.backward_peak);
    check_within_a_thousandth("optimizer", b.at(phase::optimizer_step).total, base, r.optimizer);
  }
}

TEST_CASE("a measured step as a compile-time constant", "[steps]") {
  constexpr breakdown b = estimate(rows[2].model, rows[2].load, probe_plan(rows[2]));
  constexpr std::uint64_t predicted = b.at(phase::backward).total.value + small_weights(b);
  constexpr std::uint64_t measured = 27'451'720;  // 26.18 MiB
  STATIC_REQUIRE(predicted > measured - measured / 1000);
  STATIC_REQUIRE(predicted < measured + measured / 1000);
}

namespace {

// A head and the loss alone: 1024 rows, 16384 logits each, as the probe of the loss paths ran it.
constexpr std::uint64_t peak_for_logits(dtype d) {
  constexpr std::int64_t rows_of_logits = 1024, vocabulary = 16384, width = 8;
  plan p = d == dtype::fp32 ? make_plan(fp32{}, pytorch_1_13_cpu{}) : make_plan(pure<>{}, pytorch_1_13_cpu{});
  p.runtime.unseen_below = probe_sees_from;
  tape_with_room<> recording;
  operations ops{recording, p};
  const ref x = recording.parameter({.rows = rows_of_logits, .columns = width, .type = d}, true);
  const ref labels = recording.constant(rows_of_logits, dtype::int64);
  recording.enter_loss();
  const ref logits = ops.linear(x, width, vocabulary, false);
  const ref loss = ops.language_model_loss(logits, labels, 4);
  ops.finish(loss);
  const timeline t = walk(recording, loss, p.runtime, {.gradients = d});
  const bytes peak = t.loss.total > t.backward.total ? t.loss.total : t.backward.total;
  const bytes weights = storage(d, static_cast<std::uint64_t>(vocabulary * width));
  return (peak - weights).value * 100 / static_cast<std::uint64_t>(rows_of_logits * vocabulary);
}

}  // namespace

TEST_CASE("12.00 bytes a logit at the loss, fp32 logits or half ones upcast, as measured", "[steps]") {
  STATIC_REQUIRE(peak_for_logits(dtype::fp32) == 1200);
  CHECK(peak_for_logits(dtype::fp32) == 1200);
  CHECK(peak_for_logits(dtype::bf16) == 1200);
}
