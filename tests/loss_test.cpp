// SPDX-License-Identifier: MIT
// Bytes per logit of the loss paths, measured with PyTorch 1.13.1 on a CPU (malloc interposed, blocks under 64 KiB not
// seen): one head, 1,024 rows of 4 sequences, 16,384 logits a row.
#include <gpumem/estimate.hpp>

#include <cmath>
#include <cstdint>

#include "catch.hpp"

using namespace gpumem;

namespace {

/// The end of a language model: its head and its loss.
struct language_model_head {
  std::int64_t hidden = 8, vocabulary = 16384;
};

constexpr void check(language_model_head const&, workload const& load) { check(load); }

constexpr ref record(operations& ops, language_model_head const& m, workload const& load) {
  const ref x = ops.parameter(load.tokens(), m.hidden, role::embedding);
  const ref labels = ops.recording.constant(load.tokens(), dtype::int64);
  ops.recording.enter_loss();
  const linear_weights head = ops.declare_linear(m.hidden, m.vocabulary, false);
  return ops.language_model_loss(x, head, labels, load.micro_batch, [](ref logits) { return logits; });
}

constexpr workload load{.micro_batch = 4, .sequence = 256};

constexpr double bytes_per_logit(plan p, language_model_head const& m = {}, bool probed = true) {
  p.runtime = pytorch_1_13_cpu::numbers;
  if (probed) p.runtime.unseen_below = 65'536;
  p.optimizer = detail::optimizer_of<sgd>();
  const breakdown b = estimate(m, load, p);
  const bytes loss = b.at(phase::loss).total, backward = b.at(phase::backward).total;
  const bytes worst = loss > backward ? loss : backward;
  const bytes before = b.at(phase::loss).categories.weights;
  return static_cast<double>((worst - before).value) / static_cast<double>(load.tokens() * m.vocabulary);
}

template <class Loss>
constexpr plan in_fp32 = make_plan(fp32{}, Loss{});
template <class Loss>
constexpr plan in_half = make_plan(pure<>{}, Loss{});

/// The probe's fifth and sixth rows: the half logits are upcast in the model, and the program holds the copy.
struct upcast_held {
  using family = loss_family;
  static constexpr loss_path numbers{.model_upcasts = true, .outputs_held = true};
};
struct upcast_and_shifted_held {
  using family = loss_family;
  static constexpr loss_path numbers{
      .model_upcasts = true, .logits_shifted = true, .outputs_held = true, .variables_held = true};
};

// The head and its gradient are 0.03 bytes a logit.
bool near(double a, double b) { return std::abs(a - b) < 0.04; }

}  // namespace

TEST_CASE("the six measured loss paths, in bytes per logit", "[loss]") {
  CHECK(near(bytes_per_logit(in_fp32<eager_loss>), 12.00));
  CHECK(near(bytes_per_logit(in_fp32<outputs_held<eager_loss>>), 16.00));
  CHECK(near(bytes_per_logit(in_half<eager_loss>), 12.00));
  CHECK(near(bytes_per_logit(in_half<outputs_held<eager_loss>>), 14.00));
  CHECK(near(bytes_per_logit(in_half<upcast_held>), 16.00));
  CHECK(near(bytes_per_logit(in_half<upcast_and_shifted_held>), 19.94));
}

TEST_CASE("Hugging Face's copies of the logits cost 12 until 4.45 and 14 until 4.48", "[loss]") {
  CHECK(near(bytes_per_logit(in_half<eager_loss_4_45>), 12.00));
  CHECK(near(bytes_per_logit(in_half<eager_loss_4_46>), 14.00));
  CHECK(near(bytes_per_logit(in_half<outputs_held<eager_loss_4_45>>), 4 + 12 * 255.0 / 256));
}

TEST_CASE("a kernel over the logits needs them and nothing more", "[loss]") {
  CHECK(near(bytes_per_logit(in_half<in_place_loss>), 2.00));
  CHECK(near(bytes_per_logit(in_fp32<in_place_loss>), 4.00));
  CHECK(near(bytes_per_logit(in_half<triton_loss>), 8.00));  // the fp32 copy and its shifted copy
}

TEST_CASE("a fused linear loss needs a chunk and both gradients", "[loss]") {
  // 1,020 rows in ceil(32768 / 64) = 512 chunks of 2: a chunk in half, in fp32, the chunk before in half; the gradients
  // of the 1,020 rows and of the head, and the shifted copy of the rows; a loss and a target for each row.
  constexpr language_model_head m{.hidden = 64, .vocabulary = 32768};
  constexpr std::uint64_t chunk = 2 * 32768 * (2 + 4 + 2), gradients = 1020 * 64 * 2 + 32768 * 64 * 2;
  constexpr std::uint64_t shifted = 1020 * 64 * 2, rows = 1020 * (4 + 8) + 1024 * 8;
  constexpr double per_logit = bytes_per_logit(in_half<fused_linear_loss>, m, false);
  constexpr double expected =
      static_cast<double>(chunk + gradients + shifted + rows) / static_cast<double>(load.tokens() * m.vocabulary);
  STATIC_REQUIRE(per_logit > expected - 0.001);
  STATIC_REQUIRE(per_logit < expected + 0.001);
}

TEST_CASE("shifting the logits needs two tokens a sequence", "[loss]") {
  plan p = in_half<eager_loss_4_45>;
  CHECK_THROWS_AS(estimate(language_model_head{}, {.micro_batch = 4, .sequence = 1}, p), error);
}
