// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/breakdown.hpp>
#include <gpumem/models/model.hpp>
#include <gpumem/recording/timeline.hpp>

#include <cstdint>

namespace gpumem {
namespace detail {

/// A parameter as its optimizer sees it: in the master's dtype.
constexpr parameter as_updated(tensor const& x, plan const& p) {
  return {.rows = x.rows, .columns = x.elements / x.rows, .type = p.precision.master, .role = x.role};
}
/// One cuBLAS workspace for each thread that has run a matmul: the main one, and autograd's where there is a backward.
constexpr int matmul_threads(plan const& p) { return p.optimizer.trains ? 2 : 1; }

/// The bytes that go with the parameters of a tape and do not depend on the walk.
struct parameter_sums {
  std::uint64_t elements = 0;
  bytes masters{}, states{}, paged{}, list{}, largest{};  // list: a tensor for each trained parameter, as the master
};

constexpr parameter_sums sum_parameters(tape const& t, plan const& p) {
  const auto rounded = [&](dtype type, std::uint64_t n) {
    const bytes b = storage(type, n);
    return b.value < p.runtime.unseen_below ? bytes{} : align_up(b, p.runtime.granule);
  };
  parameter_sums sums;
  for (int i = 1; i <= t.tensors(); ++i) {
    tensor const& x = t.tensor_at(i);
    if (!x.parameter) continue;
    const auto n = static_cast<std::uint64_t>(x.elements), times = static_cast<std::uint64_t>(t.times(i));
    sums.elements = checked_add(sums.elements, checked_multiply(n, times));
    const bytes updated = rounded(p.precision.master, n);
    if (p.precision.separate_master) sums.masters += updated * times;
    if (!x.needs_gradient) continue;
    sums.list += updated * times;
    if (updated > sums.largest) sums.largest = updated;
    for (state const& s : p.optimizer.states(as_updated(x, p)))
      (s.paged ? sums.paged : sums.states) += rounded(s.type, s.elements) * times;
  }
  if (p.optimizer.trains) sums.states += p.optimizer.shared;
  return sums;
}

/// What one run of a repeated block saves: every storage once, in bytes before rounding; the block's input where the
/// block saves it. Not parameters, their casts, tensors from outside the block.
constexpr bytes saved_by(tape const& t, segment const& s) {
  const auto counted = [&](int id) {
    tensor const& x = t.tensor_at(id);
    return x.resident || x.cast_of != 0 ? bytes{} : storage(x.type, static_cast<std::uint64_t>(x.elements));
  };
  bytes sum;
  for (int id = s.first_tensor; id < s.end_tensor; ++id)
    if (t.tensor_at(id).storage == id && t.tensor_at(id).saved_in_segment) sum += counted(id);
  const int input = t.at(s.in).storage;
  for (int i = s.first; i < s.end; ++i)
    for (ref r : t.operation_at(i).saved)
      if (r && t.operation_at(i).recompute != recompute::keeps_input && t.at(r).storage == input)
        return sum + counted(input);
  return sum;
}

constexpr bytes largest_block(tape const& t) {
  bytes most;
  for (int i = 0; i < t.segments(); ++i) {
    if (!t.segment_at(i).out) continue;
    const bytes saved = saved_by(t, t.segment_at(i));
    if (saved > most) most = saved;
  }
  return most;
}

/// How many tensors of the size of the parameter at hand, in the master's dtype, its update allocates.
constexpr std::uint64_t update_tensors(plan const& p) {
  switch (p.optimizer.step) {
    case step_temporaries::none: return 0;
    case step_temporaries::foreach_list: return p.runtime.foreach_lists;
    case step_temporaries::two_tensors: return 2;
    case step_temporaries::adafactor: return is_half(p.precision.master) ? 2 * 5 : 3;
  }
  return 0;
}

constexpr bytes step_bytes(plan const& p, parameter_sums const& sums) {
  if (p.optimizer.in_backward) return {};
  return (p.optimizer.step == step_temporaries::foreach_list ? sums.list : sums.largest) * update_tensors(p);
}

constexpr thumb_sum thumb(plan const& p, std::uint64_t parameters, bytes activations) {
  const parameter_bytes each = rule_of_thumb(p);
  thumb_sum sum{.bytes_per_parameter = each.total(),
                .weights = bytes{each.weights} * parameters,
                .gradients = bytes{each.gradients} * parameters,
                .optimizer_states = bytes{each.optimizer_states} * parameters,
                .activations = activations};
  sum.total = sum.weights + sum.gradients + sum.optimizer_states + sum.activations;
  return sum;
}

}  // namespace detail

/// The memory of one training step over a recording whose value is `loss`: the walk, and the optimizer's step after it.
constexpr breakdown step_memory(tape const& recording, ref loss, workload const& load, plan const& p) {
  const detail::parameter_sums sums = detail::sum_parameters(recording, p);
  const bytes workspaces = p.runtime.cublas_workspace * static_cast<std::uint64_t>(detail::matmul_threads(p));
  require_rule(!p.optimizer.in_backward || load.accumulation == 1, "accumulation", load.accumulation,
               "must be 1 where the optimizer runs in backward");
  const walk_options options{
      .resident = {.weights = sums.masters, .optimizer_states = sums.states, .overhead = workspaces},
      .gradients = p.precision.gradients,
      .backward = p.optimizer.trains,
      .accumulate = load.accumulation > 1 || (p.runtime.gradients_kept && !p.optimizer.in_backward),
      .update_in_backward = p.optimizer.in_backward,
      .update_tensors = static_cast<std::int64_t>(detail::update_tensors(p))};
  const timeline walked = walk(recording, loss, p.runtime, options);

  moment step = walked.backward_end;
  step.phase = phase::optimizer_step;
  step.categories.temporaries += detail::step_bytes(p, sums);
  step.total = step.categories.total();

  breakdown b{.parameters = sums.elements,
              .saved_per_layer = detail::largest_block(recording),
              .rule_of_thumb = detail::thumb(p, sums.elements, walked.forward_end.categories.activations),
              .timeline = {walked.forward, walked.loss, walked.backward, walked.backward_end, step},
              .forward_end = walked.forward_end,
              .peak = walked.forward,
              .reserve = p.reserve,
              .paged_states = sums.paged};
  for (moment const& m : b.timeline)
    if (m.total > b.peak.total) b.peak = m;
  return b;
}

/// The memory of one training step of a model: records it, walks it, adds what the plan keeps beside it. Refuses wrong
/// numbers with the field's name: as a compile error, or at run time by throwing gpumem::error.
template <model M>
constexpr breakdown estimate(M const& m, workload const& load, plan const& p = {}) {
  check(m, load);
  tape_with_room<> recording;
  operations ops{recording, p};
  const ref loss = record(ops, m, load);
  ops.finish(loss);
  return step_memory(recording, loss, load, p);
}

}  // namespace gpumem
