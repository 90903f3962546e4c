// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/walk_forward.hpp>

#include <cstdint>

namespace gpumem::detail {

[[noreturn]] inline void too_many_gradients_alive(std::int64_t capacity) {
  raise(error{"gradients alive at once", capacity, "is all that a walk has room for"});
}

/// The gradients of a walk: how they come into being, are shared, meet at a tensor and end in .grad.
class walk_gradients : public walk_forward {
 protected:
  using walk_forward::walk_forward;

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

  static constexpr int cells = 96;  // cell 0 is none
  gradient_cell cell_[cells] = {};

 private:
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
};

}  // namespace gpumem::detail
