// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/walk_forward.hpp>

#include <cstdint>

namespace gpumem::detail {

[[noreturn]] inline void too_many_gradients_alive(std::int64_t capacity) {
  raise(error{"gradients alive at once", capacity, "is all that a walk has room for"});
}

/// The backward pass of a walk, in the reverse order of recording as PyTorch's engine runs it. For each operation: all
/// gradients of its inputs are made while its output's gradient and everything saved still live; then the output's
/// gradient goes, then what it saved; then the gradients are delivered, those of activations before those of
/// parameters.
class walk_backward : public walk_forward {
 protected:
  using walk_forward::walk_forward;

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
  /// The gradient that backward() starts from, which its caller holds as well.
  constexpr int seed(ref loss) {
    const int c = new_cell(options_.gradient_given ? 0 : state_[loss.id].size, false, category::temporaries);
    state_[loss.id].gradient = c, ++cell_[c].references;
    return c;
  }
  constexpr void release(int c) {
    if (c == 0 || --cell_[c].references != 0) return;
    live_.add(cell_[c].of, -cell_[c].size);
    observe_free(cell_[c].block);
  }

  /// Of a parameter's .grad.
  [[nodiscard]] constexpr std::int64_t gradient_size(ref of) const {
    const dtype type = options_.cast_gradients ? options_.gradients : tape_.type(of);
    return rounded(gpumem::storage(type, elements(tape_.at(of))));
  }

  bool accumulating_ = false;  // gradients of an earlier micro-batch exist

 private:
  static constexpr int cells = 96;  // cell 0 is none

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

  constexpr int new_cell(std::int64_t size, bool viewed, category of) {
    int c = 1;
    while (c < cells && cell_[c].references != 0) ++c;
    if (c == cells) too_many_gradients_alive(cells - 1);
    cell_[c] = {size, 1, viewed, of, observe(size)};
    live_.add(of, size);
    return c;
  }
  [[nodiscard]] constexpr category category_of_gradient(ref to) const {
    return tape_.at(to).parameter && !state_[to.id].has_gradient ? category::gradients : category::temporaries;
  }
  constexpr int make_gradient(operation const& o, int k, int of_output) {
    const ref to = o.in[k];
    switch (o.how[k]) {
      case gradient::fresh: return new_cell(state_[to.id].size, false, category_of_gradient(to));
      case gradient::fresh_view: return new_cell(state_[to.id].size, true, category_of_gradient(to));
      case gradient::view: cell_[of_output].viewed = true; [[fallthrough]];
      case gradient::pass: ++cell_[of_output].references; return of_output;
      default: return 0;
    }
  }
  /// A gradient that a kernel wrote over what it had saved: its bytes count already where the storage lives on.
  constexpr int take_over_saved(operation const& o, int k) {
    const int s = storage(o.saved[k]);
    const bool counted = state_[s].use.alive || tape_.tensor_at(s).resident;
    return new_cell(counted ? 0 : state_[s].size, true, category_of_gradient(o.in[k]));
  }
  /// One more gradient for a tensor. A second one is added into the first where nobody else refers to that and it is no
  /// view (torch/csrc/autograd/input_buffer.cpp); else the sum is a third tensor.
  constexpr void deliver(ref to, int c) {
    tensor_state& x = state_[to.id];
    if (x.gradient == 0) {
      x.gradient = c;
    } else if (runtime_.sums_in_place && cell_[x.gradient].references == 1 && !cell_[x.gradient].viewed) {
      release(c);
    } else {
      const int sum = new_cell(x.size, false, category_of_gradient(to));
      see(0, "sum of gradients");
      release(x.gradient), release(c);
      x.gradient = sum;
    }
    if (tape_.at(to).parameter && --x.pending == 0) accumulate(to, x);
  }
  /// Into .grad: taken over where it fits, else cast or copied; a .grad that exists is added to in place
  /// (torch/csrc/autograd/functions/accumulate_grad.h).
  constexpr void accumulate(ref to, tensor_state& x) {
    gradient_cell& arrived = cell_[x.gradient];
    if (options_.cast_gradients && options_.gradients != tape_.type(to)) {
      const category of = x.has_gradient ? category::temporaries : category::gradients;
      const int full = new_cell(rounded(gpumem::storage(options_.gradients, elements(tape_.at(to)))), false, of);
      see(0, "cast of a gradient");
      release(x.gradient);
      if (x.has_gradient)
        release(full);
      else
        cell_[full].references = 0, x.gradient_block = cell_[full].block;  // its bytes stay, as .grad
    } else if (x.has_gradient) {
      release(x.gradient);
    } else if (arrived.references > 1 && !arrived.viewed) {
      live_.add(category::gradients, x.size), x.gradient_block = observe(x.size);
      see(0, "copy of a gradient");
      release(x.gradient);
    } else {
      live_.add(arrived.of, -arrived.size), live_.add(category::gradients, arrived.size);
      arrived.references = 0, x.gradient_block = arrived.block;
    }
    x.has_gradient = true, x.gradient = 0;
    if (options_.update_in_backward) update(to, x);
  }

  /// The optimizer's step for one parameter, whose gradient goes after it.
  constexpr void update(ref of, tensor_state& x) {
    const std::int64_t size = gradient_size(of);
    see(options_.update_tensors * size, "optimizer step in backward");
    live_.add(category::gradients, -size);
    observe_free(x.gradient_block);
    x.has_gradient = false;
  }

  gradient_cell cell_[cells] = {};
};

}  // namespace gpumem::detail
