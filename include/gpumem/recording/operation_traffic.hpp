// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/tape.hpp>
#include <gpumem/recording/traffic_count.hpp>

#include <cstddef>  // std::size_t
#include <cstdint>

namespace gpumem {

/// Derives the kernels of one operation from its recording: which class, forward or backward, and the bytes and FLOPs
/// of each. An element-wise operation reads its distinct inputs and writes its outputs; a contraction's backward is one
/// product for each gradient; FlashAttention moves q, k, v, out and its statistics.
class operation_traffic {
 public:
  constexpr operation_traffic(tape const& t, operation const& o) : tape_(t), o_(o) {}

  /// Calls f(class, traffic) for the forward kernel, if there is one.
  template <class F>
  constexpr void forward(F const& f) const {
    if (o_.cost.kind == operation_class::view) return;
    traffic t;
    for (int k = 0; k < 4; ++k)
      if (o_.in[k] && !seen_before(o_.in, k)) t.reads += k == 0 && o_.cost.gathers ? gathered() : size(o_.in[k]);
    t.writes = written();
    t.flops = o_.cost.kind == operation_class::contraction ? flops_of(o_.cost.flops)
                                                           : checked_multiply(o_.cost.flops, widest());
    if (t.total() != 0) f(o_.cost.kind, t);
  }
  /// Calls f(class, traffic) for each backward kernel.
  template <class F>
  constexpr void backward(F const& f) const {
    if (o_.cost.kind == operation_class::contraction && o_.cost.flops_backward == 0) return products(f);
    int fresh = 0;
    for (int k = 0; k < 4; ++k) fresh += o_.how[k] == gradient::fresh || o_.how[k] == gradient::fresh_view ? 1 : 0;
    if (fresh > 1 && o_.cost.kind == operation_class::elementwise) return one_kernel_each(f);
    traffic t{.reads = gradients_of_outputs()};
    std::uint64_t made = 0;
    for (int k = 0; k < 4; ++k)
      if (writes_gradient(k)) t.writes += size(o_.in[k]), made += elements(o_.in[k]);
    if (t.writes == 0) return;
    for (int k = 0; k < 7; ++k)
      if (o_.saved[k] && !seen_before(o_.saved, k) && !(o_.cost.gathers && o_.saved[k] == o_.in[0]))
        t.reads += size(o_.saved[k]);
    if (o_.cost.kind == operation_class::contraction) {
      if (o_.cost.flops_backward != cost_of::scales_forward_gradients) t.flops = flops_of(o_.cost.flops_backward);
    } else {  // what an eager chain of reductions stages between its kernels is written and read
      t.reads += o_.workspace_backward.value, t.writes += o_.workspace_backward.value;
      if (o_.cost.kind == operation_class::normalization && reads_parameter_again()) t.reads += size(o_.in[1]);
      const std::uint64_t of = o_.cost.kind == operation_class::normalization ? widest() : made;
      t.flops = checked_multiply(o_.cost.flops_backward, of);
    }
    f(o_.cost.kind == operation_class::view ? operation_class::elementwise : o_.cost.kind, t);
  }

  /// Whether a kernel writes the gradient of input k. One that comes as a view is written where the operation saves
  /// something to compute it from.
  [[nodiscard]] constexpr bool writes_gradient(int k) const {
    switch (o_.how[k]) {
      case gradient::none:
      case gradient::pass: return false;
      case gradient::view: return o_.saved[0] || o_.saved[1];
      case gradient::fresh:
      case gradient::fresh_view:
      case gradient::saved: return true;
    }
    return false;
  }
  [[nodiscard]] constexpr std::uint64_t size(ref r) const {
    return storage(tape_.type(r), unsigned_(tape_.elements(r))).value;
  }

 private:
  // dx = dy W and dW = dy x: each reads dy and the other operand. A bias gradient is a sum of its own.
  template <class F>
  constexpr void products(F const& f) const {
    const std::uint64_t dy = size(o_.out[0]), n = elements(o_.out[0]);
    for (int k = 0; k < 2; ++k)
      if (writes_gradient(k))
        f(operation_class::contraction,
          traffic{.reads = checked_add(dy, size(o_.in[1 - k])), .writes = size(o_.in[k]), .flops = flops_of(1)});
    if (writes_gradient(2)) f(operation_class::elementwise, traffic{.reads = dy, .writes = size(o_.in[2]), .flops = n});
  }
  // The gradients of a * b are two kernels, each reading dy and the other factor.
  template <class F>
  constexpr void one_kernel_each(F const& f) const {
    for (int k = 0; k < 2; ++k) {
      if (!writes_gradient(k)) continue;
      const ref other = o_.in[1 - k];
      const bool needs_other = other && (o_.saved[0] == other || o_.saved[1] == other);
      f(operation_class::elementwise,
        traffic{.reads = checked_add(gradients_of_outputs(), needs_other ? size(other) : 0),
                .writes = size(o_.in[k]),
                .flops = checked_multiply(o_.cost.flops_backward, elements(o_.in[k]))});
    }
  }

  static constexpr std::uint64_t unsigned_(std::int64_t n) { return static_cast<std::uint64_t>(n); }
  [[nodiscard]] constexpr std::uint64_t elements(ref r) const { return r ? unsigned_(tape_.elements(r)) : 0; }
  [[nodiscard]] constexpr std::uint64_t flops_of(std::uint64_t count) const {
    const ref counted = o_.cost.flops_backward == cost_of::scales_forward_gradients ? o_.in[0] : o_.out[0];
    return checked_multiply(2 * count, checked_multiply(elements(counted), unsigned_(o_.cost.inner)));
  }
  [[nodiscard]] constexpr std::uint64_t widest() const {
    const std::uint64_t in = elements(o_.in[0]), out = elements(o_.out[0]);
    return o_.cost.kind == operation_class::normalization && in > out ? in : out;
  }
  [[nodiscard]] constexpr std::uint64_t gathered() const {
    const std::uint64_t in = size(o_.in[0]), out = size(o_.out[0]);
    return in < out ? in : out;
  }
  // A norm's weight, which no tape saves because it is resident.
  [[nodiscard]] constexpr bool reads_parameter_again() const {
    return o_.in[1] && tape_.at(o_.in[1]).parameter && o_.saved[0] != o_.in[1] && o_.saved[1] != o_.in[1];
  }
  // What it allocates, and outputs that lie in another's storage.
  [[nodiscard]] constexpr std::uint64_t written() const {
    std::uint64_t sum = 0;
    for (int id = o_.first_tensor; id < o_.end_tensor; ++id) {
      tensor const& x = tape_.tensor_at(id);
      if (x.storage == id && !x.resident) sum += size(ref{id});
    }
    for (ref r : o_.out)
      if (r && tape_.at(r).storage < o_.first_tensor) sum += size(r);
    return sum;
  }
  [[nodiscard]] constexpr std::uint64_t gradients_of_outputs() const {
    std::uint64_t sum = 0;
    for (ref r : o_.out)
      if (r && tape_.at(r).needs_gradient) sum += size(r);
    return sum;
  }
  template <std::size_t N>
  static constexpr bool seen_before(ref const (&refs)[N], int k) {
    for (int i = 0; i < k; ++i)
      if (refs[i] == refs[k]) return true;
    return false;
  }

  tape const& tape_;
  operation const& o_;
};

}  // namespace gpumem
