// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/policies/runtime.hpp>
#include <gpumem/recording/tape.hpp>

#include <cstddef>  // std::size_t
#include <cstdint>

namespace gpumem {

/// The moments of a step that a walk sees. forward, loss and backward are worst points; forward_end is what lives when
/// the loss is known, backward_end what lives when backward has returned.
struct timeline {
  moment forward{}, forward_end{}, loss{}, backward{}, backward_end{};
};

/// What a walk needs besides the tape.
struct walk_options {
  memory resident{};              // alive all the time, beside what the tape holds as resident
  dtype gradients = dtype::fp32;  // of .grad; a gradient of another dtype is cast into it
  bool backward = true;
  bool accumulate = false;  // report a micro-batch that finds gradients of an earlier one
};

namespace detail {

/// Live bytes by category while a walk is under way.
struct live_bytes {
  std::int64_t of[categories] = {};
  std::int64_t total = 0;

  constexpr void add(category c, std::int64_t n) { of[static_cast<int>(c)] += n, total += n; }
  constexpr void add(live_bytes const& b, std::int64_t times) {
    for (int c = 0; c < categories; ++c) of[c] += b.of[c] * times;
    total += b.total * times;
  }
  constexpr memory as_memory() const {
    auto get = [&](category c) { return bytes{static_cast<std::uint64_t>(of[static_cast<int>(c)])}; };
    return {get(category::weights),     get(category::gradients),   get(category::optimizer_states),
            get(category::activations), get(category::temporaries), get(category::overhead)};
  }
};

/// A gradient while backward carries it about; several tensors may share it.
struct gradient_cell {
  std::int64_t size = 0;
  int references = 0;
  bool viewed = false;
  category of = category::temporaries;
};

/// A tensor's state during a walk: of the storage (size to category), of the tensor (pending to has_gradient).
struct tensor_state {
  std::int64_t size = 0;
  int saves = 0;  // operations and checkpoints that keep the storage for backward
  int last_reader = 0;
  int next_to_die = 0;  // chain of storages with the same last reader
  bool alive = false;
  category of = category::temporaries;
  int pending = 0;            // gradients that are still to come
  int gradient = 0;           // its cell; 0 for none
  bool has_gradient = false;  // .grad exists
};

[[noreturn]] inline void too_many_gradients_alive(std::int64_t capacity) {
  raise(error{"gradients alive at once", capacity, "is all that a walk has room for"});
}

/// Walks a tape forward and backward as PyTorch's autograd engine does. The rules are those that meet measured peaks:
/// an operation's input gradients are made while its output's gradient and everything saved still live; then the
/// output's gradient goes, then what was saved; then gradients are delivered, activations before parameters.
template <int Operations, int Tensors>
class walker {
 public:
  constexpr walker(tape_with_room<Operations, Tensors> const& recording, runtime const& r, walk_options const& o)
      : tape_(recording), runtime_(r), options_(o) {
    for (int c = 0; c < categories; ++c)
      live_.add(static_cast<category>(c), signed_size(o.resident[static_cast<category>(c)]));
    std::uint64_t everything = 0;
    for (int i = 1; i <= tape_.tensors(); ++i) {
      tensor const& t = tape_.tensor_at(i);
      tensor_state& s = state_[i];
      s.size = rounded(gpumem::storage(t.type, elements(t)));
      auto const times = static_cast<std::uint64_t>(tape_.times(i));
      everything = checked_add(everything, checked_multiply(static_cast<std::uint64_t>(s.size), times));
      if (t.storage != i) continue;
      s.last_reader = t.held ? nobody_ : t.last_reader;
      if (t.resident) {
        live_.add(t.parameter ? category::weights : category::activations, s.size * tape_.times(i));
      } else if (!t.held) {
        s.next_to_die = first_to_die_[t.last_reader], first_to_die_[t.last_reader] = i;
      }
    }
    // Everything below adds and subtracts a few times this sum, so no later sum can wrap.
    require_rule(everything < std::uint64_t{1} << 56, "bytes of the recording",
                 static_cast<std::int64_t>(everything >> 8), "x 256 must be less than 2^56");
  }

  constexpr timeline step(ref loss) {
    if (options_.accumulate) static_cast<void>(micro_batch(loss));
    return micro_batch(loss);
  }

 private:
  static constexpr int nobody_ = Operations + 1;  // reads after every operation: the program itself
  static constexpr int cells_ = 96;

  static constexpr std::uint64_t elements(tensor const& t) { return static_cast<std::uint64_t>(t.elements); }
  static constexpr std::int64_t signed_size(bytes b) {
    require_rule(b.value < std::uint64_t{1} << 56, "bytes", static_cast<std::int64_t>(b.value >> 8),
                 "x 256 must be less than 2^56");
    return static_cast<std::int64_t>(b.value);
  }
  constexpr std::int64_t rounded(bytes b) const {
    return b.value < runtime_.unseen_below ? 0 : signed_size(align_up(b, runtime_.granule));
  }
  constexpr int storage(ref r) const { return tape_.at(r).storage; }

  // ---- what lives ----

  constexpr void see(std::int64_t workspace, char const* name) {
    if (live_.total + workspace <= top_.total) return;
    top_ = live_, top_.add(category::temporaries, workspace), top_name_ = name;
  }
  constexpr void allocate(int s, bool saving) {
    tensor const& t = tape_.tensor_at(s);
    tensor_state& x = state_[s];
    bool const boundary = here_ != nullptr && here_->out && s == storage(here_->out);
    x.of = t.cast_of != 0      ? category::weights
           : boundary          ? state_[storage(here_->in)].of  // so that each run frees what the run before it made
           : t.saved && saving ? category::activations
                               : category::temporaries;
    x.alive = true, live_.add(x.of, x.size);
  }
  constexpr void free(int s) {
    std::int64_t times = 1;  // from outside its own segment all its runs' tensors go, but of the chain only the last
    for (int i = 0; i < tape_.segments(); ++i) {
      segment const& g = tape_.segment_at(i);
      if (&g != here_ && s >= g.first_tensor && s < g.end_tensor && !(g.out && s == storage(g.out))) times = g.runs();
    }
    state_[s].alive = false, live_.add(state_[s].of, -state_[s].size * times);
  }
  constexpr void drop_unless_needed(int s, int now) {
    if (state_[s].alive && state_[s].saves == 0 && state_[s].last_reader <= now) free(s);
  }
  /// Runs `pass` once for `times` runs that all do the same: what it leaves is multiplied, its worst point is that of
  /// the first run or of the last.
  template <class Pass>
  constexpr void scaled(std::int64_t times, Pass const& pass) {
    const live_bytes before = live_, top_before = top_;
    char const* const name_before = top_name_;
    top_ = live_;
    pass();
    live_bytes left = live_;
    left.add(before, -1);
    if (left.total > 0) top_.add(left, times - 1);
    live_.add(left, times - 1);
    if (top_before.total >= top_.total) top_ = top_before, top_name_ = name_before;
  }

  // ---- forward ----

  constexpr void forward(segment const& s, bool saving) {
    for (int i = s.first; i < s.end; ++i) {
      operation const& o = tape_.operation_at(i);
      for (int k = o.first_tensor; k < o.end_tensor; ++k)
        if (tape_.tensor_at(k).storage == k && !tape_.tensor_at(k).resident) allocate(k, saving);
      see(signed_size(o.workspace_forward), o.name);
      if (saving)
        for (ref r : o.saved)
          if (r) ++state_[storage(r)].saves;
      for (int k = first_to_die_[i]; k != 0; k = state_[k].next_to_die) drop_unless_needed(k, i);
      if (chain_reader_ == i) drop_unless_needed(storage(s.in), nobody_);
    }
  }
  // The first run reads a tensor that others may hold; the later ones read the output of the run before them, which
  // nobody else holds. Where the first one's input dies inside the body too, all runs are alike.
  constexpr bool all_runs_alike(segment const& s) const {
    if (!s.in) return true;
    tensor_state const& in = state_[storage(s.in)];
    return in.saves == 0 && in.last_reader >= s.first && in.last_reader < s.end;
  }
  constexpr void forward_runs(segment const& s, int index, std::int64_t runs, bool saving) {
    alike_[index] = runs == 1 || all_runs_alike(s);
    if (alike_[index]) return scaled(runs, [&] { forward(s, saving); });
    forward(s, saving);
    tensor_state& in = state_[storage(s.in)];
    tensor_state const real = in;
    in = as_chain(s, in, state_[storage(s.out)].of), state_[storage(s.out)].alive = false;
    chain_reader_ = last_reader_in(s);
    scaled(runs - 1, [&] { forward(s, saving); });
    chain_reader_ = 0;
    chains_[index] = in, in = real;
  }
  constexpr tensor_state as_chain(segment const&, tensor_state in, category of) const {
    in.alive = true, in.saves = 0, in.last_reader = nobody_, in.of = of;
    return in;
  }
  constexpr int last_reader_in(segment const& s) const {
    int last = 0;
    for (int i = s.first; i < s.end; ++i)
      for (ref r : tape_.operation_at(i).in)
        if (r && storage(r) == storage(s.in)) last = i;
    return last;
  }

  // ---- backward ----

  constexpr int new_cell(std::int64_t size, bool viewed, category of) {
    int c = 1;
    while (c < cells_ && cell_[c].references != 0) ++c;
    if (c == cells_) too_many_gradients_alive(cells_ - 1);
    cell_[c] = {size, 1, viewed, of};
    live_.add(of, size);
    return c;
  }
  constexpr void release(int c) {
    if (c != 0 && --cell_[c].references == 0) live_.add(cell_[c].of, -cell_[c].size);
  }
  constexpr category gradient_category(ref to) const {
    return tape_.at(to).parameter && !state_[to.id].has_gradient ? category::gradients : category::temporaries;
  }
  constexpr int make_gradient(operation const& o, int k, int of_output) {
    const ref to = o.in[k];
    switch (o.how[k]) {
      case gradient::fresh: return new_cell(state_[to.id].size, false, gradient_category(to));
      case gradient::fresh_view: return new_cell(state_[to.id].size, true, gradient_category(to));
      case gradient::view: cell_[of_output].viewed = true; [[fallthrough]];
      case gradient::pass: ++cell_[of_output].references; return of_output;
      default: return 0;
    }
  }
  constexpr void deliver(ref to, int c) {
    tensor_state& x = state_[to.id];
    if (x.gradient == 0) {
      x.gradient = c;
    } else if (runtime_.sums_in_place && cell_[x.gradient].references == 1 && !cell_[x.gradient].viewed) {
      release(c);
    } else {
      int const sum = new_cell(x.size, false, gradient_category(to));
      see(0, "sum of gradients");
      release(x.gradient), release(c);
      x.gradient = sum;
    }
    if (tape_.at(to).parameter && --x.pending == 0) accumulate(to, x);
  }
  /// Into .grad: taken over where it fits, else cast or copied; a .grad that exists is added to in place.
  constexpr void accumulate(ref to, tensor_state& x) {
    gradient_cell& arrived = cell_[x.gradient];
    bool const cast = options_.gradients != tape_.type(to);
    if (cast) {
      const category of = x.has_gradient ? category::temporaries : category::gradients;
      int const full = new_cell(rounded(gpumem::storage(options_.gradients, elements(tape_.at(to)))), false, of);
      see(0, "cast of a gradient");
      release(x.gradient);
      if (x.has_gradient)
        release(full);
      else
        cell_[full].references = 0;  // its bytes stay, as .grad
    } else if (x.has_gradient) {
      release(x.gradient);
    } else if (arrived.references > 1 && !arrived.viewed) {
      live_.add(category::gradients, x.size), see(0, "copy of a gradient"), release(x.gradient);
    } else {
      live_.add(arrived.of, -arrived.size), live_.add(category::gradients, arrived.size);
      arrived.references = 0;
    }
    x.has_gradient = true, x.gradient = 0;
  }
  constexpr void backward(operation const& o) {
    int from[3] = {}, made[4] = {}, of_output = 0;
    for (int k = 0; k < 3; ++k) {
      if (!o.out[k]) continue;
      int& g = state_[o.out[k].id].gradient;
      from[k] = g, g = 0;
      if (of_output == 0) of_output = from[k];
    }
    if (of_output != 0) {
      for (int k = 0; k < 4; ++k) made[k] = make_gradient(o, k, of_output);
      see(signed_size(o.workspace_backward), o.name);
    }
    for (int c : from) release(c);
    for (ref r : o.saved)
      if (r) --state_[storage(r)].saves, drop_unless_needed(storage(r), nobody_ - 1);
    if (of_output == 0) return;
    for (int k = 0; k < 4; ++k) {
      if (o.how[k] != gradient::saved) continue;
      int const s = storage(o.saved[k]);  // its bytes are counted already where the storage lives on
      bool const counted = state_[s].alive || tape_.tensor_at(s).resident;
      made[k] = new_cell(counted ? 0 : state_[s].size, true, gradient_category(o.in[k]));
    }
    for (int parameters = 0; parameters < 2; ++parameters)  // activations first
      for (int k = 0; k < 4; ++k)
        if (made[k] != 0 && tape_.at(o.in[k]).parameter == (parameters != 0)) deliver(o.in[k], made[k]);
  }
  constexpr void backward(segment const& s) {
    for (int i = s.end - 1; i >= s.first; --i) backward(tape_.operation_at(i));
  }
  constexpr void backward_runs(segment const& s, int index, std::int64_t runs) {
    if (alike_[index]) return scaled(runs, [&] { backward(s); });
    tensor_state& in = state_[storage(s.in)];
    tensor_state const real = in;
    in = chains_[index];
    scaled(runs - 1, [&] { backward(s); });
    in = real;
    state_[s.out.id].gradient = state_[s.in.id].gradient, state_[s.in.id].gradient = 0;
    backward(s);
  }
  /// Reentrant: the outer node holds its output's gradient, and the recomputed output lives, until the inner backward
  /// is over.
  constexpr void backward_of_checkpoint(segment const& s, int index) {
    int const outer = state_[s.out.id].gradient;
    if (outer != 0) ++cell_[outer].references;
    forward_runs(s, index, s.group, true);
    backward_runs(s, index, s.group);
    for (int k = s.first_tensor; k < s.end_tensor; ++k)
      if (state_[k].alive && state_[k].saves == 0) free(k);
    release(outer);
    --state_[storage(s.in)].saves, drop_unless_needed(storage(s.in), nobody_ - 1);
  }

  // ---- the step ----

  constexpr moment now(gpumem::phase p) const { return {p, live_.as_memory(), bytes_of(live_.total), ""}; }
  constexpr moment worst(gpumem::phase p) const { return {p, top_.as_memory(), bytes_of(top_.total), top_name_}; }
  static constexpr bytes bytes_of(std::int64_t n) { return {static_cast<std::uint64_t>(n)}; }
  constexpr void start_watching() { top_ = live_, top_name_ = ""; }

  constexpr timeline micro_batch(ref loss) {
    for (int i = 1; i <= tape_.tensors(); ++i) state_[i].pending = tape_.tensor_at(i).consumers;
    timeline r;
    start_watching();
    bool in_loss = false;
    for (int i = 0; i < tape_.segments(); ++i) {
      segment const& s = tape_.segment_at(i);
      if (s.phase == phase::loss && !in_loss) r.forward = worst(phase::forward), start_watching(), in_loss = true;
      here_ = &s;
      if (s.checkpointed)
        scaled(s.count, [&] { ++state_[storage(s.in)].saves, forward_runs(s, i, s.group, false); });
      else
        forward_runs(s, i, s.runs(), true);
      here_ = nullptr;
    }
    (in_loss ? r.loss : r.forward) = worst(in_loss ? phase::loss : phase::forward);
    if (!in_loss) r.loss = now(phase::loss);
    r.forward_end = now(in_loss ? phase::loss : phase::forward);
    start_watching();
    if (options_.backward && tape_.at(loss).needs_gradient) {
      int const seed = new_cell(state_[loss.id].size, false, category::temporaries);
      state_[loss.id].gradient = seed, ++cell_[seed].references;  // the caller of backward() holds it too
      for (int i = tape_.segments() - 1; i >= 0; --i) {
        segment const& s = tape_.segment_at(i);
        here_ = &s;
        if (s.checkpointed)
          scaled(s.count, [&] { backward_of_checkpoint(s, i); });
        else
          backward_runs(s, i, s.runs());
        here_ = nullptr;
      }
      release(seed);
    }
    for (int i = 1; i <= tape_.tensors(); ++i)  // what the program held until now
      if (state_[i].alive) free(i);
    r.backward = worst(phase::backward), r.backward_end = now(phase::backward_end);
    return r;
  }

  tape const& tape_;
  runtime const& runtime_;
  walk_options const& options_;
  live_bytes live_{}, top_{};
  char const* top_name_ = "";
  segment const* here_ = nullptr;  // the segment that is being walked
  int chain_reader_ = 0;           // while runs read each other's output: where it dies
  bool alike_[16] = {};
  tensor_state chains_[16] = {}, state_[std::size_t{Tensors} + 1] = {};
  int first_to_die_[std::size_t{Operations} + 2] = {};
  gradient_cell cell_[cells_] = {};
};

}  // namespace detail

/// Walks one training step over a recording whose value is `loss`. With options.accumulate the second micro-batch.
template <int Operations, int Tensors>
constexpr timeline walk(tape_with_room<Operations, Tensors> const& recording, ref loss, runtime const& r,
                        walk_options const& o = {}) {
  return detail::walker<Operations, Tensors>{recording, r, o}.step(loss);
}

}  // namespace gpumem
