// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/owned_array.hpp>
#include <gpumem/policies/runtime.hpp>
#include <gpumem/recording/tape.hpp>
#include <gpumem/recording/walk_options.hpp>

#include <cstdint>

namespace gpumem {

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
  [[nodiscard]] constexpr memory as_memory() const {
    const auto get = [&](category c) { return bytes{static_cast<std::uint64_t>(of[static_cast<int>(c)])}; };
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
  int block = 0;
};

/// Who needs a storage, and what it is for.
struct storage_use {
  int saves = 0;  // operations and checkpoints that keep it for backward
  int last_reader = 0;
  bool alive = false;
  category of = category::temporaries;
};

/// A tensor's state during a walk: of its storage (size to next_to_die) and of the tensor itself.
struct tensor_state {
  std::int64_t size = 0;
  std::int64_t runs = 1;  // how many of it there are for somebody outside its own segment
  storage_use use{};
  int next_to_die = 0;        // the chain of storages with the same last reader
  bool has_gradient = false;  // .grad exists
  int pending = 0;            // gradients that are still to come
  int gradient = 0;           // its cell; 0 for none
  int block = 0;              // of its storage, as an observer knows it
  int gradient_block = 0;     // of .grad
};

/// The bookkeeping of a walk: which storages live, how many bytes that is, and the worst point seen.
class walk_state {
 public:
  walk_state(walk_state const&) = delete;
  walk_state& operator=(walk_state const&) = delete;

 protected:
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 56;

  constexpr walk_state(tape const& recording, runtime const& r, walk_options const& o)
      : tape_(recording),
        runtime_(r),
        options_(o),
        states_(recording.tensors() + 1),
        deaths_(recording.operations() + 2),
        state_(states_.data()),
        first_to_die_(deaths_.data()),
        nobody_(recording.operations() + 1) {}

  constexpr void start() {
    for (int c = 0; c < categories; ++c) {
      const std::int64_t size = signed_size(options_.resident[static_cast<category>(c)]);
      live_.add(static_cast<category>(c), size);
      if (size != 0) observe(size);
    }
    for (int i = 0; i < tape_.segments(); ++i) {
      segment const& s = tape_.segment_at(i);
      for (int t = s.first_tensor; t < s.end_tensor; ++t) state_[t].runs = s.runs();
    }
    std::uint64_t everything = 0;
    for (int i = 1; i <= tape_.tensors(); ++i) everything = checked_add(everything, enter(i));
    // Whatever follows adds and subtracts a few times this sum, so that nothing later can wrap.
    require_rule(everything < most_bytes, "MiB of the recording", static_cast<std::int64_t>(everything >> 20),
                 "must be less than 2^36");
    // Of a chain of runs, each one's output is the next one's input: only the last output is left for others.
    for (int i = 0; i < tape_.segments(); ++i)
      if (tape_.segment_at(i).out) state_[storage(tape_.segment_at(i).out)].runs = 1;
  }

  [[nodiscard]] static constexpr std::uint64_t elements(tensor const& t) {
    return static_cast<std::uint64_t>(t.elements);
  }
  [[nodiscard]] static constexpr std::int64_t signed_size(bytes b) {
    require_rule(b.value < most_bytes, "MiB", static_cast<std::int64_t>(b.value >> 20), "must be less than 2^36");
    return static_cast<std::int64_t>(b.value);
  }
  [[nodiscard]] constexpr std::int64_t rounded(bytes b) const {
    return b.value < runtime_.unseen_below ? 0 : signed_size(align_up(b, runtime_.granule));
  }
  [[nodiscard]] constexpr int storage(ref r) const { return tape_.at(r).storage; }

  constexpr void see(std::int64_t workspace, char const* name) {
    if (workspace != 0) observe_free(observe(workspace));
    if (live_.total + workspace <= top_.total) return;
    top_ = live_, top_.add(category::temporaries, workspace), top_name_ = name;
  }
  constexpr void start_watching() { top_ = live_, top_name_ = ""; }
  constexpr void allocate(int s) {
    storage_use& x = state_[s].use;
    tensor const& t = tape_.tensor_at(s);
    x.of = t.cast_of != 0 ? category::weights : t.held ? category::activations : category::temporaries;
    x.alive = true, live_.add(x.of, state_[s].size);
    state_[s].block = observe(state_[s].size);
  }
  constexpr void free(int s) {
    state_[s].use.alive = false, live_.add(state_[s].use.of, -counted_size(s));
    observe_free(state_[s].block);
  }
  /// Tells the observer of a new block, and that it is gone.
  constexpr int observe(std::int64_t size) {
    if (options_.observer == nullptr) return 0;
    options_.observer->allocate(++blocks_, static_cast<std::uint64_t>(size));
    return blocks_;
  }
  constexpr void observe_free(int block) {
    if (options_.observer != nullptr) options_.observer->free(block);
  }
  /// One more operation or checkpoint keeps a storage for backward: an activation from now on. One fewer.
  constexpr void save(int s) {
    if (++state_[s].use.saves == 1) move(s, category::temporaries, category::activations);
  }
  constexpr void unsave(int s) {
    if (--state_[s].use.saves != 0) return;
    drop_unless_needed(s, nobody_ - 1);
    move(s, category::activations, category::temporaries);
  }
  constexpr void drop_unless_needed(int s, int now) {
    if (state_[s].use.alive && state_[s].use.saves == 0 && state_[s].use.last_reader <= now) free(s);
  }
  /// Runs `pass` once for `times` runs that all do the same: what it leaves is multiplied, and its worst point is that
  /// of the first run or of the last.
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

  [[nodiscard]] constexpr moment now(phase p) const { return {p, live_.as_memory(), total_of(live_), ""}; }
  [[nodiscard]] constexpr moment worst(phase p) const { return {p, top_.as_memory(), total_of(top_), top_name_}; }
  [[nodiscard]] static constexpr bytes total_of(live_bytes const& b) { return {static_cast<std::uint64_t>(b.total)}; }

  tape const& tape_;
  runtime const& runtime_;
  walk_options const& options_;

 private:  // read through pointers, which costs a compiler fewer steps
  owned_array<tensor_state> states_;
  owned_array<int> deaths_;

 protected:
  tensor_state* state_;
  int* first_to_die_;              // by the operation that reads last
  int nobody_;                     // an operation after every other: the program itself reads
  segment const* here_ = nullptr;  // the segment that is being walked

 private:
  [[nodiscard]] constexpr std::int64_t counted_size(int s) const {
    const bool own = here_ != nullptr && s >= here_->first_tensor && s < here_->end_tensor;
    return state_[s].size * (own ? 1 : state_[s].runs);
  }
  constexpr void move(int s, category from, category to) {
    storage_use& x = state_[s].use;
    if (!x.alive || x.of != from || tape_.tensor_at(s).held) return;
    live_.add(from, -counted_size(s)), live_.add(to, counted_size(s)), x.of = to;
  }
  constexpr std::uint64_t enter(int i) {
    tensor const& t = tape_.tensor_at(i);
    tensor_state& s = state_[i];
    s.size = rounded(gpumem::storage(t.type, elements(t)));
    if (t.storage == i) {
      s.use.last_reader = t.held ? nobody_ : t.last_reader;
      if (t.resident)
        live_.add(t.parameter ? category::weights : category::activations, s.size * s.runs), observe(s.size);
      else if (!t.held)
        s.next_to_die = first_to_die_[t.last_reader], first_to_die_[t.last_reader] = i;
    }
    return checked_multiply(static_cast<std::uint64_t>(s.size), static_cast<std::uint64_t>(s.runs));
  }

 protected:
  live_bytes live_{}, top_{};
  char const* top_name_ = "";
  int blocks_ = 0;  // told to the observer so far
};

}  // namespace detail
}  // namespace gpumem
