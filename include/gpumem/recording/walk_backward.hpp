// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/walk_gradients.hpp>

#include <cstdint>

namespace gpumem::detail {

/// The backward pass of a walk, in the reverse order of recording as PyTorch's engine runs it. For each operation: all
/// gradients of its inputs are made while its output's gradient and everything saved still live; then the output's
/// gradient goes, then what it saved; then the gradients are delivered, those of activations before those of
/// parameters.
class walk_backward : public walk_gradients {
 protected:
  using walk_gradients::walk_gradients;

  /// The runs of a segment from the last to the first. Somebody may hold the gradient that the last one starts from,
  /// and the tensor that the first one read: where that makes a difference these two are walked by themselves.
  constexpr void backward_runs(segment const& s, int index, std::int64_t runs) {
    if (alike_[index]) return scaled(runs, [&] { backward(s); });
    storage_use &in = state_[storage(s.in)].use, &out = state_[storage(s.out)].use;
    const storage_use first_input = in;
    const auto step_back = [&](storage_use const& input) {
      make_ready_again(s);
      out.alive = in.alive, out.saves = in.saves, out.of = in.of;  // what one run read is what the run before it made
      in = input;
      state_[s.out.id].gradient = state_[s.in.id].gradient, state_[s.in.id].gradient = 0;
    };
    in = later_input_[index];
    backward(s);
    const storage_use last_output = out;
    if (runs > 2) {
      step_back(later_input_[index]);
      save_shared_again(s);
      scaled(runs - 2, [&] { backward(s); });
    }
    step_back(first_input);
    backward(s);
    out.alive = last_output.alive, out.of = last_output.of;
  }
  /// A reentrant checkpoint: the outer node holds its output's gradient, and the recomputed output lives, until the
  /// inner backward is over (torch/utils/checkpoint.py, CheckpointFunction).
  constexpr void backward_of_checkpoint(segment const& s, int index) {
    const int outer = state_[s.out.id].gradient;
    if (outer != 0) ++cell_[outer].references;
    forward_runs(s, index, s.group, true);
    drop_unsaved_casts(s);
    backward_runs(s, index, s.group);
    for (int k = s.first_tensor; k < s.end_tensor; ++k)
      if (state_[k].use.alive && state_[k].use.saves == 0) free(k);
    release(outer);
    unsave(storage(s.in));
  }
  bool accumulating_ = false;  // gradients of an earlier micro-batch exist

 private:
  constexpr void backward(segment const& s) {
    for (int i = s.end - 1; i >= s.first; --i) {
      if (tape_.operation_at(i).recompute == recompute::again) i = backward_again(i);
      backward(tape_.operation_at(i));
    }
  }
  /// A checkpoint inside a block, whose last operation is `last`: the operations run again, now saving, and then
  /// backward; the outer node holds its output's gradient meanwhile. What stands before them keeps their inputs.
  constexpr int backward_again(int last) {
    int before = last;
    while (tape_.operation_at(before).recompute == recompute::again) --before;
    int const outer = state_[tape_.operation_at(last).out[0].id].gradient;
    if (outer != 0) ++cell_[outer].references;
    for (int i = before + 1; i <= last; ++i) forward(i, true);
    for (int i = last; i > before; --i) backward(tape_.operation_at(i));
    for (int k = tape_.operation_at(before).end_tensor; k < tape_.operation_at(last).end_tensor; ++k)
      if (state_[k].use.alive && state_[k].use.saves == 0) free(k);
    release(outer);
    return before;
  }
  /// Recomputing ends with autocast's cache (torch/amp, an inner context): of all runs, the casts that nothing saved
  /// go.
  constexpr void drop_unsaved_casts(segment const& s) {
    for (int k = s.first_tensor; k < s.end_tensor; ++k) {
      if (tape_.tensor_at(k).cast_of == 0 || !state_[k].use.alive || state_[k].use.saves != 0) continue;
      state_[k].use.alive = false, live_.add(state_[k].use.of, -state_[k].size * s.group);
      observe_free(state_[k].block);
    }
  }
  /// The first run's tensors, after backward has gone over those of the later runs.
  constexpr void make_ready_again(segment const& s) {
    for (int k = s.first_tensor; k < s.end_tensor; ++k)
      state_[k].use.saves = 0, state_[k].pending = tape_.tensor_at(k).consumers, state_[k].has_gradient = accumulating_;
    for (int i = s.first; i < s.end; ++i)
      for (ref r : tape_.operation_at(i).saved)
        if (r && saved_in_forward(i) && storage(r) >= s.first_tensor) ++state_[storage(r)].use.saves;
    for (int k = s.first_tensor; k < s.end_tensor; ++k)
      state_[k].use.alive = state_[k].use.saves != 0 && !tape_.tensor_at(k).resident;
  }
  /// One more pass goes over what the block shares with others than went forward over it.
  constexpr void save_shared_again(segment const& s) {
    for (int i = s.first; i < s.end; ++i)
      for (ref r : tape_.operation_at(i).saved)
        if (r && saved_in_forward(i) && storage(r) < s.first_tensor && storage(r) != storage(s.in))
          ++state_[storage(r)].use.saves;
  }
  [[nodiscard]] constexpr bool saved_in_forward(int i) const {
    return tape_.operation_at(i).recompute != recompute::again;
  }
  constexpr void backward(operation const& o) {
    int from[3] = {}, made[4] = {}, of_output = 0;
    for (int k = 0; k < 3; ++k) {
      if (!o.out[k]) continue;
      from[k] = state_[o.out[k].id].gradient, state_[o.out[k].id].gradient = 0;
      if (of_output == 0) of_output = from[k];
    }
    if (of_output != 0) {
      for (int k = 0; k < 4; ++k) made[k] = make_gradient(o, k, of_output);
      see(rounded(o.workspace_backward), o.name);
    }
    for (int c : from) release(c);
    if (!options_.retain_graph)
      for (ref r : o.saved)
        if (r) unsave(storage(r));
    if (of_output == 0) return;
    for (int k = 0; k < 4; ++k)
      if (o.how[k] == gradient::saved) made[k] = take_over_saved(o, k);
    for (int parameters = 0; parameters < 2; ++parameters)
      for (int k = 0; k < 4; ++k)
        if (made[k] != 0 && tape_.at(o.in[k]).parameter == (parameters != 0)) deliver(o.in[k], made[k]);
  }
};

}  // namespace gpumem::detail
