// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/model.hpp>

#include <cstdint>

namespace gpumem {

/// A GPT-2 as llm.c trains it: one static arena of activations (train_gpt2.cu, fill_in_activation_sizes).
struct llm_c {
  std::int64_t layers = 0, hidden = 0, heads = 0, vocabulary = 0, positions = 0;
  std::int64_t recompute = 1;   // 1: GELU is recomputed in backward, 2: layer norms as well
  bool cudnn_attention = true;  // else the probabilities are kept

  /// The rows of the table: a multiple of 128.
  [[nodiscard]] constexpr std::int64_t padded_vocabulary() const { return (vocabulary + 127) / 128 * 128; }
  friend constexpr bool operator==(llm_c const&, llm_c const&) = default;
};

/// Refuses numbers that no such model can have.
constexpr void check(llm_c const& m, workload const& load) {
  check(load);
  require_positive("layers", m.layers);
  require_positive("hidden", m.hidden);
  require_positive("heads", m.heads);
  require_positive("vocabulary", m.vocabulary);
  require_positive("positions", m.positions);
  require_rule(m.hidden % m.heads == 0, "heads", m.heads, "must divide hidden");
  require_rule(m.recompute >= 0 && m.recompute <= 2, "recompute", m.recompute, "must be 0, 1 or 2");
  require_rule(load.sequence <= m.positions, "sequence", load.sequence, "must not exceed the learned position table");
}

namespace detail {

/// The program's buffers, each under its name in the source. They are recorded for their sizes: nothing is freed, and
/// gradients are written over them.
struct llm_c_buffers {
  operations& ops;

  constexpr ref buffer(char const* name, ref of, std::int64_t elements, dtype type) const {
    const ref b = ops.recording.make(elements, type);
    ops.recording.record({.name = name, .in = {of}, .out = {b}});
    return b;
  }
};

constexpr ref record_layer(operations& ops, llm_c const& m, workload const& load, ref x) {
  const llm_c_buffers make{ops};
  const std::int64_t n = load.tokens(), c = m.hidden;
  const dtype type = ops.stream();
  const auto norm_parameters = [&] { ops.parameter(1, c, role::norm), ops.parameter(1, c, role::norm); };
  const auto norm = [&](char const* name, ref of) {
    norm_parameters();
    if (m.recompute < 2) make.buffer(name, of, n * c, type);
    return make.buffer("mean and rstd", of, 2 * n, dtype::fp32);
  };
  norm("ln1", x);
  ops.declare_linear(c, 3 * c, true);
  const ref qkv = make.buffer("qkvr", x, 3 * n * c, type);
  if (m.cudnn_attention)
    make.buffer("att", qkv, load.micro_batch * m.heads * load.sequence, dtype::fp32);
  else
    make.buffer("att", qkv, n * m.heads * load.sequence, type);
  const ref attended = make.buffer("atty", qkv, n * c, type);
  ops.declare_linear(c, c, true);
  const ref middle = make.buffer("residual2", attended, n * c, type);
  norm("ln2", middle);
  ops.declare_linear(c, 4 * c, true);
  const ref wide = make.buffer("fch", middle, 4 * n * c, type);
  if (m.recompute < 1) make.buffer("fch_gelu", wide, 4 * n * c, type);
  ops.declare_linear(4 * c, c, true);
  return make.buffer("residual3", wide, n * c, type);
}

}  // namespace detail

/// Records the arena of one micro-batch.
constexpr ref record(operations& ops, llm_c const& m, workload const& load) {
  const detail::llm_c_buffers make{ops};
  const std::int64_t n = load.tokens(), c = m.hidden, logits = m.padded_vocabulary();
  const dtype type = ops.stream();
  const ref tokens = ops.recording.constant(n, dtype::int32);
  ops.recording.constant(n, dtype::int32);  // targets
  ops.parameter(logits, c, role::embedding), ops.parameter(m.positions, c, role::embedding);
  ref x = make.buffer("encoded", tokens, n * c, type);
  x = ops.blocks(m.layers, x, [&](ref in) { return detail::record_layer(ops, m, load, in); });
  ops.parameter(1, c, role::norm), ops.parameter(1, c, role::norm);
  const ref last = make.buffer("lnf", x, n * c, type);
  make.buffer("mean and rstd", x, 2 * n, dtype::fp32);
  if (m.recompute >= 1) make.buffer("fch_gelu", x, 4 * n * c, type);
  ops.recording.enter_loss();
  // Logits and their gradient share it with the gradients of queries, keys and values, and of the scores.
  const std::int64_t scores = m.heads * load.sequence, widest = 3 * c > scores ? 3 * c : scores;
  const ref output = make.buffer("output", last, n * (widest > logits ? widest : logits), type);
  make.buffer("scratch", output, 4 * n * c, type), make.buffer("scratch", output, n * c, type);
  return make.buffer("losses", output, n, dtype::fp32);
}

static_assert(model<llm_c>);

}  // namespace gpumem
