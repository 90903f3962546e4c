// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/walk_state.hpp>

#include <cstdint>

namespace gpumem::detail {

/// The forward pass of a walk: for each operation, allocate what it makes, look, count what it saves, and free what
/// nobody needs any more.
class walk_forward : public walk_state {
 protected:
  constexpr walk_forward(tape const& recording, runtime const& r, walk_options const& o)
      : walk_state(recording, r, o), alike_(recording.segments()), later_input_(recording.segments()) {}

  constexpr void forward(segment const& s, bool saving) {
    for (int i = s.first; i < s.end; ++i) {
      forward(i, saving && tape_.operation_at(i).recompute != recompute::again);
      if (i == chain_reader_) drop_unless_needed(storage(s.in), i);
    }
  }
  constexpr void forward(int i, bool saving) {
    operation const& o = tape_.operation_at(i);
    for (int k = o.first_tensor; k < o.end_tensor; ++k)
      if (tape_.tensor_at(k).storage == k && !tape_.tensor_at(k).resident) allocate(k);
    if (saving)
      for (ref r : o.saved)
        if (r) save(storage(r));
    see(rounded(o.workspace_forward), o.name);
    for (int k = first_to_die_[i]; k != 0; k = state_[k].next_to_die) drop_unless_needed(k, i);
  }
  /// `runs` runs of a segment. The first one reads a tensor that others may hold; each later one reads the output of
  /// the run before it, which nobody else holds. Where that makes no difference one pass stands for all.
  constexpr void forward_runs(segment const& s, int index, std::int64_t runs, bool saving) {
    alike_[index] = runs == 1 || (input_dies_inside(s) && !saves_its_output(s));
    if (alike_[index]) return scaled(runs, [&] { forward(s, saving); });
    forward(s, saving);
    storage_use &in = state_[storage(s.in)].use, &out = state_[storage(s.out)].use;
    const storage_use first_input = in;
    in.alive = true, in.saves = out.saves, in.last_reader = last_reader_of_input(s),
    in.of = out.of;  // the output of the run before
    for (int k = s.first_tensor; k < s.end_tensor;
         ++k)  // the later runs' tensors are others; the first one's stay counted
      state_[k].use.alive = false, state_[k].use.saves = 0;
    chain_reader_ = in.last_reader;
    scaled(runs - 1, [&] { forward(s, saving); });
    chain_reader_ = 0;
    later_input_[index] = in, in = first_input;
  }

  owned_array<bool> alike_;               // by segment: one pass stands for all runs
  owned_array<storage_use> later_input_;  // where not: the state of the later runs' input, for backward

 private:
  [[nodiscard]] constexpr bool input_dies_inside(segment const& s) const {
    storage_use const& in = state_[storage(s.in)].use;
    return in.saves == 0 && in.last_reader >= s.first && in.last_reader < s.end;
  }
  [[nodiscard]] constexpr int last_reader_of_input(segment const& s) const {
    int last = 0;
    for (int i = s.first; i < s.end; ++i)
      for (ref r : tape_.operation_at(i).in)
        if (r && storage(r) == storage(s.in)) last = i;
    return last;
  }

  [[nodiscard]] constexpr bool saves_its_output(segment const& s) const {
    for (int i = s.first; i < s.end; ++i)
      for (ref r : tape_.operation_at(i).saved)
        if (r && storage(r) == storage(s.out)) return true;
    return false;
  }

  int chain_reader_ = 0;  // while later runs are walked: the operation after which their input may go
};

}  // namespace gpumem::detail
