// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/operation.hpp>

#include <cstdint>

namespace gpumem {

namespace detail {
[[noreturn]] inline void tape_is_full(char const* of_what, std::int64_t capacity) {
  raise(error{of_what, capacity,
              "is all that this tape has room for: use tape_with_room<Operations, Tensors, Segments>"});
}
}  // namespace detail

/// A recording of one training step's forward pass: tensors, operations in program order, repeated segments. It knows
/// no policy and no framework. Its room is in tape_room.hpp.
class tape {
 public:
  tape(tape const&) = delete;
  tape& operator=(tape const&) = delete;

  [[nodiscard]] constexpr int tensors() const { return tensor_count_; }        // numbers 1 to tensors() are in use
  [[nodiscard]] constexpr int operations() const { return operation_count_; }  // numbers 1 to operations()
  [[nodiscard]] constexpr int segments() const { return segment_count_; }
  [[nodiscard]] constexpr tensor const& at(ref r) const { return tensors_[r.id]; }
  [[nodiscard]] constexpr tensor const& tensor_at(int id) const { return tensors_[id]; }
  [[nodiscard]] constexpr operation const& operation_at(int i) const { return operations_[i]; }
  [[nodiscard]] constexpr segment const& segment_at(int i) const { return segments_[i]; }
  [[nodiscard]] constexpr std::int64_t elements(ref r) const { return at(r).elements; }
  [[nodiscard]] constexpr dtype type(ref r) const { return at(r).type; }

  /// A new storage; it is allocated by the operation that is recorded next.
  constexpr ref make(std::int64_t elements, dtype type) {
    require_positive("elements of a tensor", elements);
    if (tensor_count_ + 1 >= tensor_capacity_) detail::tape_is_full("tensors", tensor_capacity_ - 1);
    tensor& t = tensors_[++tensor_count_];
    t = {.elements = elements, .type = type};
    t.storage = tensor_count_;
    return {tensor_count_};
  }
  /// A tensor without bytes that keeps the storage of `of` alive.
  constexpr ref view(ref of, std::int64_t elements) {
    const ref r = make(elements, type(of));
    tensors_[r.id].storage = at(of).storage;
    return r;
  }
  /// A parameter of the model, resident; frozen where it is not trained.
  constexpr ref parameter(gpumem::parameter const& p, bool trained) {
    require_positive("rows of a parameter", p.rows);
    require_positive("columns of a parameter", p.columns);
    const ref r = make(static_cast<std::int64_t>(p.elements()), p.type);
    tensor& t = tensors_[r.id];
    t.parameter = t.resident = true, t.needs_gradient = trained, t.role = p.role, t.rows = p.rows;
    return r;
  }
  /// A tensor that is there before the step and after it, and needs no gradient (the batch).
  constexpr ref constant(std::int64_t elements, dtype type) {
    const ref r = make(elements, type);
    tensors_[r.id].resident = true;
    return r;
  }
  /// autocast's cache: marks a cast of a parameter; finds the one made earlier; lets all go with the last operation.
  constexpr void mark_cast(ref cast, ref of) { tensors_[cast.id].cast_of = of.id; }
  [[nodiscard]] constexpr ref find_cast(ref of) const {
    for (int i = tensor_count_; i > 0; --i)
      if (tensors_[i].cast_of == of.id) return {i};
    return {};
  }
  constexpr void casts_until_here() {
    for (int i = 1; i <= tensor_count_; ++i)
      if (tensors_[i].cast_of != 0) until_here({i});
  }

  /// The program refers to a tensor until here: after the last recorded operation it may go.
  constexpr void until_here(ref r) {
    if (operation_count_ < open_operation_) record({.name = "reference dropped", .in = {r}, .cost = cost_of::view});
    tensors_[at(r).storage].last_reader = operation_count_;
  }
  /// The program refers to a tensor until backward is over.
  constexpr void until_step_ends(ref r) { tensors_[at(r).storage].held = true; }

  /// Records an operation. It saves nothing and hands nothing back where no input needs a gradient.
  constexpr void record(operation o) {
    if (operation_count_ + 1 >= operation_capacity_) detail::tape_is_full("operations", operation_capacity_ - 1);
    ++operation_count_;
    bool flows = false;
    for (int k = 0; k < 4; ++k) {
      if (!o.in[k]) continue;
      tensors_[at(o.in[k]).storage].last_reader = operation_count_;
      if (!at(o.in[k]).needs_gradient) o.how[k] = gradient::none;
      if (o.how[k] != gradient::none) flows = true, ++tensors_[o.in[k].id].consumers;
    }
    for (ref& s : o.saved) {
      if (!flows) s = {};
      const bool by_operation = o.recompute != recompute::keeps_input;
      if (s && by_operation && at(s).storage >= open_tensor_) tensors_[at(s).storage].saved_in_segment = true;
    }
    if (recomputing_) o.recompute = recompute::again;
    for (ref r : o.out)
      if (r) tensors_[r.id].needs_gradient = flows;
    o.first_tensor = claimed_ + 1, o.end_tensor = tensor_count_ + 1, claimed_ = tensor_count_;
    for (int t = o.first_tensor; t < o.end_tensor; ++t)  // what nobody reads goes with the operation that made it
      if (tensors_[t].storage == t) tensors_[t].last_reader = operation_count_;
    operations_[operation_count_] = o;
  }

  /// Records `body`, which reads a, b and c: of what it makes only the output stays, and backward runs it again from
  /// a, b and c, which are kept (a checkpoint inside a block).
  template <class Body>
  constexpr ref recomputed(ref a, ref b, ref c, Body const& body) {
    record({.name = "checkpoint",
            .in = {a, b, c},
            .how = {gradient::fresh, gradient::fresh, gradient::fresh},
            .saved = {a, b, c},
            .recompute = recompute::keeps_input});
    recomputing_ = true;
    const ref out = body();
    recomputing_ = false;
    return out;
  }
  /// Records `body` once and lets it run `count` times, each run's output being the next one's input.
  template <class Body>
  constexpr ref repeat(std::int64_t count, bool checkpointed, ref in, Body const& body) {
    return repeat_groups(count, 1, checkpointed, in, body);
  }
  /// As repeat, `count` groups of `group` runs; a checkpoint keeps the input of each group.
  template <class Body>
  constexpr ref repeat_groups(std::int64_t count, std::int64_t group, bool checkpointed, ref in, Body const& body) {
    if (operation_count_ < open_operation_ && tensor_count_ >= open_tensor_)
      record({.name = "declarations", .cost = cost_of::view});
    close_segment();
    const ref out = body(in);
    require_rule(operation_count_ >= open_operation_, "operations of a repeated block", 0, "must be at least 1");
    require_rule(count * group == 1 || (elements(in) == elements(out) && type(in) == type(out) &&
                                        at(in).needs_gradient == at(out).needs_gradient),
                 "elements of a repeated block's input", elements(in),
                 "size, dtype and need of a gradient must be those of the block's output");
    close_segment();
    segment& s = segments_[segment_count_ - 1];
    s.count = count, s.group = group, s.checkpointed = checkpointed, s.in = in, s.out = out;
    hold_what_the_body_shares(s);
    return out;
  }
  /// From here on operations belong to the loss: the head's projection comes next.
  constexpr void enter_loss() {
    close_segment();
    phase_ = phase::loss;
  }
  /// Ends the recording; the walk needs it closed.
  constexpr void close_segment() {
    if (operation_count_ < open_operation_) return;
    if (segment_count_ == segment_capacity_) detail::tape_is_full("segments", segment_capacity_);
    segments_[segment_count_++] = {.first = open_operation_,
                                   .end = operation_count_ + 1,
                                   .first_tensor = open_tensor_,
                                   .end_tensor = tensor_count_ + 1,
                                   .phase = phase_};
    open_operation_ = operation_count_ + 1, open_tensor_ = tensor_count_ + 1;
  }

  /// How often a tensor of the recording exists in the model.
  [[nodiscard]] constexpr std::int64_t times(int tensor_id) const {
    for (int i = 0; i < segment_count_; ++i)
      if (tensor_id >= segments_[i].first_tensor && tensor_id < segments_[i].end_tensor) return segments_[i].runs();
    return 1;
  }

 protected:
  constexpr tape(tensor* tensors, int tensor_capacity, operation* operations, int operation_capacity, segment* segments,
                 int segment_capacity)
      : tensors_(tensors),
        operations_(operations),
        segments_(segments),
        tensor_capacity_(tensor_capacity),
        operation_capacity_(operation_capacity),
        segment_capacity_(segment_capacity) {}

 private:
  // What a repeated body reads from outside (rotary tables, masks) is freed by no single run: it stays for backward
  // where backward needs it, else until the repeat is over.
  constexpr void hold_what_the_body_shares(segment const& s) {
    for (int i = s.first; i < s.end; ++i) {
      for (ref r : operations_[i].in) {
        const bool own = !r || r.id >= s.first_tensor || !at(r).parameter || !at(r).needs_gradient;
        require_rule(own || s.runs() == 1, "tensor", r.id,
                     "is a parameter from outside a repeated block, which cannot be trained in it");
        const bool again = s.checkpointed || operations_[i].recompute == recompute::again;
        if (is_shared(s, r)) share(at(r).storage, again);
      }
      for (ref r : operations_[i].saved)
        if (is_shared(s, r)) share(at(r).storage, true);
    }
  }
  constexpr bool is_shared(segment const& s, ref r) const {
    const int of = at(r).storage;
    return r && of < s.first_tensor && of != at(s.in).storage && !tensors_[of].resident;
  }
  constexpr void share(int storage, bool needed_in_backward) {
    tensors_[storage].last_reader = operation_count_ + 1;
    tensors_[storage].held = tensors_[storage].held || needed_in_backward;
  }

  tensor* tensors_;
  operation* operations_;
  segment* segments_;
  int tensor_capacity_, operation_capacity_, segment_capacity_;
  int tensor_count_ = 0, operation_count_ = 0, segment_count_ = 0, claimed_ = 0, open_operation_ = 1, open_tensor_ = 1;
  gpumem::phase phase_ = gpumem::phase::forward;
  bool recomputing_ = false;
};

}  // namespace gpumem
