// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/policies/plan.hpp>
#include <gpumem/recording/map_kernels.hpp>
#include <gpumem/recording/operation_traffic.hpp>
#include <gpumem/recording/optimizer_kernels.hpp>
#include <gpumem/recording/roofline.hpp>
#include <gpumem/recording/row_kernels.hpp>

#include <cstdint>

namespace gpumem {
namespace detail {

/// Walks a recording's operations and adds up their kernels, each as often as its segment runs.
class traffic_walk {
 public:
  constexpr traffic_walk(tape const& t, plan const& p, roofline const& r) : tape_(t), plan_(p), roofline_(r) {}

  constexpr step_traffic step(std::uint64_t micro_batches) {
    for (int i = 0; i < tape_.segments(); ++i) {
      segment const& s = tape_.segment_at(i);
      times_ = checked_multiply(static_cast<std::uint64_t>(s.runs()), micro_batches);
      for (int k = s.first; k < s.end; ++k) operation_of(s, k);
      runs_of(s);
    }
    parameter_gradients(micro_batches);
    return sum_;
  }

 private:
  constexpr void operation_of(segment const& s, int index) {
    operation const& o = tape_.operation_at(index);
    const operation_traffic kernels{tape_, o};
    kernels.forward([&](operation_class c, traffic const& t) { add(share(c), t, false); });
    if (!plan_.optimizer.trains) return;
    if (s.checkpointed || o.recompute == recompute::again)
      kernels.forward([&](operation_class c, traffic const& t) { add(share(c), t, true); });
    kernels.backward([&](operation_class c, traffic const& t) { add(share(c), t, true); });
    for (int k = 0; k < 4; ++k)  // a second gradient of the same tensor is added to the first
      if (o.how[k] != gradient::none) {
        const int before = earlier_reader(s, index, k);
        if (before == 0 || tape_.at(o.in[k]).parameter) continue;
        const std::uint64_t n = kernels.size(o.in[k]);
        const traffic sum{2 * n, n, static_cast<std::uint64_t>(tape_.elements(o.in[k]))};
        add(sum_.elementwise, sum, true);
        if (is_contraction(index) && is_contraction(before)) add(sum_.runs_fused, sum, true);
      }
  }
  /// Each stretch between two contractions as one kernel forward and one backward.
  constexpr void runs_of(segment const& s) {
    for (int first = s.first; first < s.end;) {
      int end = first;
      while (end < s.end && !is_contraction(end)) ++end;
      if (end > first) fused_run(s, first, end);
      first = end + 1;
    }
    if (!plan_.optimizer.trains) return;
    for (int k = s.first; k < s.end; ++k)  // bias gradients, which a contraction's backward leaves to a sum
      if (is_contraction(k))
        operation_traffic{tape_, tape_.operation_at(k)}.backward([&](operation_class c, traffic const& t) {
          if (c == operation_class::elementwise) add(sum_.runs_fused, t, true);
        });
  }
  constexpr void fused_run(segment const& s, int first, int end) {
    const int made = tape_.operation_at(first).first_tensor, last = tape_.operation_at(end - 1).end_tensor;
    traffic forward, backward;
    const auto bytes_of = [&](int id) {
      tensor const& x = tape_.tensor_at(id);
      return storage(x.type, static_cast<std::uint64_t>(x.elements)).value;
    };
    for (int i = first; i < end; ++i) {
      operation const& o = tape_.operation_at(i);
      for (int k = 0; k < 4; ++k) {
        const ref in = o.in[k];
        if (!in || tape_.at(in).storage >= made || read_before(first, i, k, in)) continue;
        const std::uint64_t all = bytes_of(in.id), few = o.out[0] ? bytes_of(o.out[0].id) : all;
        if (o.cost.kind != operation_class::view) forward.reads += o.cost.gathers && few < all ? few : all;
        if (o.how[k] != gradient::none) backward.writes += all;
      }
      for (ref r : o.saved)
        if (r && !saved_before(first, i, r)) backward.reads += bytes_of(r.id);
    }
    for (int id = made; id < last; ++id) {
      tensor const& x = tape_.tensor_at(id);
      if (x.storage != id || x.resident) continue;
      const bool leaves = x.last_reader >= end || id == tape_.at(s.out).storage;
      if (leaves || x.saved_in_segment) forward.writes += bytes_of(id);
      if (leaves && x.consumers > 0) backward.reads += bytes_of(id);
    }
    if (forward.total() != 0) add(sum_.runs_fused, forward, false);
    if (!plan_.optimizer.trains) return;
    if (s.checkpointed && forward.total() != 0) add(sum_.runs_fused, forward, true);
    if (backward.writes != 0) add(sum_.runs_fused, backward, true);
  }
  /// A weight's gradient arrives in the weight's dtype: cast into its .grad, and added there from the second
  /// micro-batch on.
  constexpr void parameter_gradients(std::uint64_t micro_batches) {
    for (int id = 1; id <= tape_.tensors(); ++id) {
      tensor const& x = tape_.tensor_at(id);
      if (!x.parameter || !x.needs_gradient) continue;
      const auto n = static_cast<std::uint64_t>(x.elements);
      const std::uint64_t comes = storage(x.type, n).value, kept = storage(plan_.precision.gradients, n).value;
      times_ = static_cast<std::uint64_t>(tape_.times(id));
      for (int both = 0; both < 2; ++both) {
        class_share& to = both == 0 ? sum_.elementwise : sum_.runs_fused;
        if (comes != kept) add(to, {comes, kept, 0}, true);
        for (std::uint64_t i = 1; i < micro_batches; ++i) add(to, {checked_add(comes, kept), kept, n}, true);
      }
    }
  }

  constexpr void add(class_share& to, traffic const& t, bool backward) {
    (backward ? to.backward : to.forward) += t * times_;
    to.kernels += times_;
    to.seconds += roofline_.seconds(t, &to == &sum_.contraction) * static_cast<double>(times_);
  }
  constexpr class_share& share(operation_class c) {
    return c == operation_class::contraction     ? sum_.contraction
           : c == operation_class::normalization ? sum_.normalization
                                                 : sum_.elementwise;
  }
  constexpr bool is_contraction(int i) const { return tape_.operation_at(i).cost.kind == operation_class::contraction; }
  constexpr int earlier_reader(segment const& s, int index, int k) const {
    const ref in = tape_.operation_at(index).in[k];
    for (int i = index; i >= s.first; --i)
      for (int j = 0; j < (i == index ? k : 4); ++j)
        if (tape_.operation_at(i).in[j] == in && tape_.operation_at(i).how[j] != gradient::none) return i;
    return 0;
  }
  constexpr bool read_before(int first, int index, int k, ref in) const {
    for (int i = first; i <= index; ++i)
      for (int j = 0; j < (i == index ? k : 4); ++j)
        if (tape_.operation_at(i).in[j] == in && tape_.operation_at(i).cost.kind != operation_class::view) return true;
    return false;
  }
  constexpr bool saved_before(int first, int index, ref r) const {
    for (int i = first; i < index; ++i)
      for (ref s : tape_.operation_at(i).saved)
        if (s == r) return true;
    return false;
  }

  tape const& tape_;
  plan const& plan_;
  roofline roofline_;
  step_traffic sum_{};
  std::uint64_t times_ = 1;
};

}  // namespace detail

/// The bytes, FLOPs and predicted time of a recording's step by class, forward and backward, for `micro_batches`.
constexpr step_traffic traffic_of(tape const& recording, plan const& p, roofline const& r,
                                  std::uint64_t micro_batches = 1) {
  return detail::traffic_walk{recording, p, r}.step(micro_batches);
}

}  // namespace gpumem
