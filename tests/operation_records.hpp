// SPDX-License-Identifier: MIT
// Isolated operations as Liger-Kernel's benchmark runs them on an A100: the modules of both providers exist, gradients
// are never cleared, the graph is retained where the script times backward alone.
#pragma once
#include <gpumem/recording/operations.hpp>
#include <gpumem/recording/timeline.hpp>

#include <cstdint>

namespace measured {

using namespace gpumem;

/// A recording under way: a tape, operations on it and how its script walks it.
class operation_script {
 public:
  constexpr explicit operation_script(plan const& p, walk_observer* seen_by = nullptr)
      : how_(p), observer(seen_by), ops{tape_, how_} {}

  constexpr ref leaf(std::int64_t rows, std::int64_t columns, dtype type) {
    return tape_.parameter({.rows = rows, .columns = columns, .type = type}, true);
  }
  constexpr linear_weights matrix(std::int64_t in, std::int64_t out) {
    return {leaf(out, in, dtype::bf16), {}, in, out};
  }
  constexpr void also(std::int64_t elements, dtype type) { tape_.constant(elements, type); }
  /// The worst moment, with the cuBLAS workspaces of `threads` threads that ran a matmul.
  constexpr moment peak(ref value, std::int64_t threads, walk_options o) {
    o.observer = observer, ops.finish(value);
    const std::uint64_t workspaces = how_.runtime.cublas_workspace.value * static_cast<std::uint64_t>(threads);
    o.resident.overhead = {workspaces}, o.cast_gradients = false;
    const timeline t = walk(tape_, value, how_.runtime, o);
    const moment before = t.forward.total >= t.loss.total ? t.forward : t.loss;
    return t.backward.total > before.total ? t.backward : before;
  }

 private:
  tape_with_room<24, 48> tape_;
  plan how_;
  walk_observer* observer;

 public:
  operations ops;
};

inline constexpr walk_options steady{.accumulate = true};
inline constexpr walk_options steady_retained{.accumulate = true, .retain_graph = true};

constexpr moment cross_entropy(std::int64_t vocabulary, bool liger) {
  constexpr std::int64_t rows = 4 * 4096;
  operation_script s(make_plan(fp32{}));
  const ref logits = s.leaf(rows, vocabulary, dtype::fp32), targets = s.ops.recording.constant(rows, dtype::int64);
  const ref loss = liger ? s.ops.liger_cross_entropy(logits, targets) : s.ops.cross_entropy(logits, targets);
  return s.peak(loss, 0, steady);
}

constexpr moment fused_linear_cross_entropy(std::int64_t rows, bool liger, walk_observer* seen_by = nullptr) {
  constexpr std::int64_t hidden = 4096, vocabulary = 128256;
  operation_script s(make_plan(pure<>{}), seen_by);
  s.also(hidden * vocabulary, dtype::bf16);  // the other provider's head
  const ref x = s.leaf(rows, hidden, dtype::bf16), targets = s.ops.recording.constant(rows, dtype::int64);
  const linear_weights head = s.matrix(hidden, vocabulary);
  ref loss;
  if (liger) {
    loss = s.ops.fused_linear_cross_entropy(x, head, targets);
  } else {
    const ref logits = s.ops.linear(x, head, true);
    loss = s.ops.cross_entropy(logits, targets);
  }
  return s.peak(loss, 2, steady);
}

/// SwiGLU and GEGLU (whose kernels have the same memory), 4 or 8 sequences of `length`.
constexpr moment gated_mlp(std::int64_t rows, bool liger, bool backward) {
  constexpr std::int64_t hidden = 4096, width = 11008;
  operation_script s(liger ? make_plan(pure<>{}, liger_0_2_kernels{}) : make_plan(pure<>{}));
  const ref x = s.leaf(rows, hidden, dtype::bf16);
  const linear_weights gate = s.matrix(hidden, width), up = s.matrix(hidden, width), down = s.matrix(width, hidden);
  ref gated = s.ops.linear(x, gate), wide;
  if (liger) {
    wide = s.ops.linear(x, up);
    gated = s.ops.fused_gate(gated, wide);
  } else {
    gated = s.ops.gelu(gated);
    wide = s.ops.linear(x, up);
    gated = s.ops.mul(gated, wide);
  }
  const ref y = s.ops.linear(gated, down);
  walk_options o = steady_retained;
  o.backward = backward;
  return s.peak(y, 2, o);
}

constexpr moment norm(std::int64_t rows, std::int64_t width, bool liger) {
  operation_script s(liger ? make_plan(fp32{}, liger_0_2_kernels{}) : make_plan(fp32{}));
  const dtype type = liger ? dtype::bf16 : dtype::fp32;
  const ref x = s.leaf(rows, width, type);
  s.also(liger ? width : 2 * width, dtype::fp32);  // the other provider's module
  s.also(rows * width, type);                      // the gradient that the script passes
  const ref y = liger ? s.ops.rms_norm(x, width) : s.ops.layer_norm(x, width);
  walk_options o = steady_retained;
  o.gradient_given = true;
  return s.peak(y, 0, o);
}

constexpr moment rotary(std::int64_t sequence, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads) {
  operation_script s(make_plan(pure<>{}));
  tape& t = s.ops.recording;
  const std::int64_t width = hidden / heads, kv = sequence * kv_heads * width;
  const ref q = s.leaf(sequence, hidden, dtype::bf16), k = s.leaf(1, kv, dtype::bf16);
  const ref cosine = t.constant(sequence * width, dtype::bf16), sine = t.constant(sequence * width, dtype::bf16);
  s.also(sequence, dtype::int64), s.also(width / 2, dtype::fp32);   // position ids, frequencies
  s.also(sequence * hidden, dtype::bf16), s.also(kv, dtype::bf16);  // both gradients that it passes
  const ref turned_q = s.ops.rotary(q, cosine, sine), turned_k = s.ops.rotary(k, cosine, sine);
  const ref both = t.view(turned_q, 1);  // backward starts from the two at once
  t.record(
      {.name = "both outputs", .in = {turned_q, turned_k}, .how = {gradient::pass, gradient::pass}, .out = {both}});
  t.until_step_ends(turned_k);
  return s.peak(both, 1, {.retain_graph = true, .gradient_given = true});
}

/// A record of the benchmark: its identifier in tests/data/measured_runs.csv, and what we say.
struct operation_record {
  char const* id;
  moment peak;
};

inline constexpr operation_record operation_records[] = {
    {"liger-cross_entropy-liger-full-32768", cross_entropy(32768, true)},
    {"liger-cross_entropy-huggingface-full-32768", cross_entropy(32768, false)},
    {"liger-cross_entropy-huggingface-full-131072", cross_entropy(131072, false)},
    {"liger-fused_linear_cross_entropy-liger-full-4096", fused_linear_cross_entropy(4096, true)},
    {"liger-fused_linear_cross_entropy-liger-full-16384", fused_linear_cross_entropy(16384, true)},
    {"liger-fused_linear_cross_entropy-huggingface-full-4096", fused_linear_cross_entropy(4096, false)},
    {"liger-fused_linear_cross_entropy-huggingface-full-32768", fused_linear_cross_entropy(32768, false)},
    {"liger-geglu-liger-forward-8192", gated_mlp(8 * 8192, true, false)},
    {"liger-geglu-huggingface-forward-8192", gated_mlp(8 * 8192, false, false)},
    {"liger-layer_norm-huggingface-full-4096", norm(4096, 4096, false)},
    {"liger-rms_norm-liger-full-4096", norm(2048, 4096, true)},
    {"liger-rope-huggingface-full-8192", rotary(8192, 8192, 32, 8)},
    {"liger-swiglu-liger-full-2048", gated_mlp(4 * 2048, true, true)},
    {"liger-swiglu-liger-full-8192", gated_mlp(4 * 8192, true, true)},
};

}  // namespace measured
