// SPDX-License-Identifier: MIT
// An optimizer, a precision, a checkpointing policy, a device and a model of one's own, with the same guarantees as
// those of the library: asserted while this file compiles, the same numbers at run time, wrong ones refused by name.
#include <gpumem/budget.hpp>
#include <iostream>

namespace mine {

using namespace gpumem;
using namespace gpumem::literals;

// [optimizer] Two moments and a running average of the weights, which is fp32 whatever the weights are.
struct adamw_with_average {
  using family = optimizer_family;
  static constexpr step_temporaries step = step_temporaries::foreach_list;
  static constexpr state_list states(parameter const& p) {
    return {{{p.elements(), p.type}, {p.elements(), p.type}, {p.elements(), dtype::fp32}}};
  }
};
// [optimizer]

// [precision] Half weights that the optimizer updates directly, with fp32 gradients.
struct half_weights_full_gradients {
  using family = precision_family;
  static constexpr precision numbers{.weights = dtype::bf16, .master = dtype::bf16, .separate_master = false};
};
// [precision]

// [checkpointing] Pairs of blocks among the first eight.
struct pairs_of_the_first_eight {
  using family = checkpointing_family;
  static constexpr checkpointing numbers{.every = 2, .first = 8};
};
// [checkpointing]

// [device] A card as cudaMemGetInfo and cudaGetDeviceProperties describe it.
constexpr device lab_card{.capacity = 9_GiB, .multiprocessors = 68, .compute_capability = 75};
// [device]

// [model] A residual MLP over feature vectors: `sequence` of them in each of `micro_batch` samples.
struct perceptron {
  std::int64_t blocks = 0, inputs = 0, hidden = 0, classes = 0;
};
constexpr void check(perceptron const& m, workload const& load) {
  check(load);
  require_positive("blocks", m.blocks), require_positive("inputs", m.inputs);
  require_positive("hidden", m.hidden), require_positive("classes", m.classes);
}
constexpr ref record(operations& ops, perceptron const& m, workload const& load) {
  tape& t = ops.recording;
  const ref labels = t.constant(load.tokens(), dtype::int64), rows = t.constant(load.tokens() * m.inputs, ops.stream());
  ref x = ops.linear(rows, m.inputs, m.hidden);
  x = ops.blocks(m.blocks, x, [&](ref in) {
    const ref normed = ops.layer_norm(in, m.hidden), wide = ops.linear(normed, m.hidden, 4 * m.hidden);
    const ref bent = ops.gelu(wide), narrow = ops.linear(bent, 4 * m.hidden, m.hidden);
    return ops.add(in, narrow);
  });
  t.enter_loss();
  const ref logits = ops.linear(x, m.hidden, m.classes);
  if (!ops.how.optimizer.trains) return logits;
  return ops.cross_entropy(logits, labels);
}
// [model]

constexpr perceptron network{.blocks = 12, .inputs = 512, .hidden = 2048, .classes = 1000};
constexpr workload load{.micro_batch = 512, .sequence = 16};
using run = budget<network, load, half_weights_full_gradients, adamw_with_average, pairs_of_the_first_eight>;

static_assert(bytes_per_parameter<half_weights_full_gradients, adamw_with_average> == 2 + 4 + 2 + 2 + 4);
static_assert(run::memory.parameters ==
              512 * 2048 + 2048 + 2048 * 1000 + 1000 + 12 * (2 * 2048 + 2 * 4 * 2048 * 2048 + 5 * 2048));
static_assert(require_fits<run, lab_card>);

}  // namespace mine

int main() {
  using namespace mine;
  const breakdown at_run_time = estimate(
      network, load, make_plan(adamw_with_average{}, pairs_of_the_first_eight{}, half_weights_full_gradients{}));
  std::cout << run::memory.parameters << " parameters, peak " << mebibytes_up(run::memory.peak.total) << " MiB in "
            << name(run::memory.peak.phase) << '\n';
  try {
    static_cast<void>(estimate(perceptron{.blocks = 12, .inputs = -512, .hidden = 2048, .classes = 1000}, load));
  } catch (error const& e) {
    std::cout << "refused: " << e.what() << '\n';
    return at_run_time == run::memory ? 0 : 1;
  }
  return 1;
}
