// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/policies/plan.hpp>
#include <gpumem/recording/map_kernels.hpp>
#include <gpumem/recording/roofline.hpp>
#include <gpumem/recording/tape.hpp>

#include <cstdint>

namespace gpumem {

/// A fused kernel that a recording has a place for: its shape there and how often a step runs it.
struct fusable {
  row_kernel const* kernel = nullptr;
  row_shape shape{};
  std::uint64_t times = 0;

  [[nodiscard]] constexpr traffic fused() const { return kernel->fused(shape) * times; }
  [[nodiscard]] constexpr traffic chain() const { return kernel->chain(shape) * times; }
  /// Whether the chain's tensors may stay in a cache of that size from one kernel to the next.
  [[nodiscard]] constexpr bool l2_resident(bytes l2_cache) const {
    return is_l2_resident(checked_multiply(shape.elements(), shape.element_bytes), l2_cache.value);
  }
};

struct fusable_list {
  static constexpr int most = 24;
  fusable items[most] = {};
  int count = 0;

  constexpr void add(row_kernel const& kernel, row_shape const& shape, std::uint64_t times) {
    for (int i = 0; i < count; ++i)
      if (items[i].kernel == &kernel && items[i].shape.rows == shape.rows && items[i].shape.columns == shape.columns &&
          items[i].shape.element_bytes == shape.element_bytes) {
        items[i].times += times;
        return;
      }
    if (count < most) items[count++] = {&kernel, shape, times};
  }
};

namespace detail {

class fusable_search {
 public:
  constexpr fusable_search(tape const& t, plan const& p, std::uint64_t micro_batches)
      : tape_(t), plan_(p), micro_batches_(micro_batches) {}

  constexpr fusable_list find() {
    for (int s = 0; s < tape_.segments(); ++s) {
      segment const& part = tape_.segment_at(s);
      times_ = checked_multiply(static_cast<std::uint64_t>(part.runs()), micro_batches_);
      for (int i = part.first; i < part.end; ++i)
        if (tape_.operation_at(i).cost.fused != fused_kernel::none) look(part, i);
    }
    return list_;
  }

 private:
  constexpr void look(segment const& part, int index) {
    operation const& o = tape_.operation_at(index);
    row_shape shape{.element_bytes = bits(tape_.type(o.in[0])) / 8,
                    .parameter_bytes = bits(plan_.precision.weights) / 8};
    const auto elements = static_cast<std::uint64_t>(tape_.elements(o.in[0]));
    shape.columns = static_cast<std::uint64_t>(o.cost.inner != 0 ? o.cost.inner : width_before(part, index));
    if (shape.columns == 0 || elements % shape.columns != 0) return;
    shape.rows = elements / shape.columns, shape.blocks = static_cast<std::uint64_t>(plan_.runtime.multiprocessors);
    switch (o.cost.fused) {
      case fused_kernel::none: return;
      case fused_kernel::layer_norm:
        return both(row_kernels::layer_norm_forward, row_kernels::layer_norm_backward, shape);
      case fused_kernel::rms_norm:
        return both(shape.element_bytes == 2 ? row_kernels::rms_norm_forward_upcast : row_kernels::rms_norm_forward,
                    row_kernels::rms_norm_backward, shape);
      case fused_kernel::softmax: return both(row_kernels::softmax_forward, row_kernels::softmax_backward, shape);
      case fused_kernel::gelu: return both(row_kernels::bias_gelu_forward, row_kernels::bias_gelu_backward, shape);
      case fused_kernel::gelu_written_out:
        return both(row_kernels::bias_gelu_forward_primitives, row_kernels::bias_gelu_backward, shape);
      case fused_kernel::swiglu: return both(row_kernels::swiglu_forward, row_kernels::swiglu_backward, shape);
      case fused_kernel::cross_entropy:
        if (!plan_.optimizer.trains) return;
        if (is_half(plan_.precision.autocast ? plan_.precision.autocast_type : plan_.precision.weights)) {
          shape.element_bytes = 2;
          return list_.add(row_kernels::cross_entropy_upcast, shape, times_);
        }
        return list_.add(row_kernels::cross_entropy, shape, times_);
      case fused_kernel::dropout:
        for (int i = index + 1; i < part.end && i < index + 3; ++i)
          for (ref r : tape_.operation_at(i).in)
            if (r == o.out[0] && tape_.operation_at(i).cost.kind == operation_class::elementwise)
              return list_.add(row_kernels::bias_dropout_add, shape, times_);
        return;
    }
  }
  constexpr void both(row_kernel const& forward, row_kernel const& backward, row_shape const& shape) {
    list_.add(forward, shape, times_);
    if (plan_.optimizer.trains) list_.add(backward, shape, times_);
  }
  // The outputs of the last linear layer, whose rows an element-wise operation works on.
  constexpr std::int64_t width_before(segment const& part, int index) const {
    for (int i = index - 1; i >= part.first; --i) {
      operation const& o = tape_.operation_at(i);
      if (o.cost.kind == operation_class::contraction && o.cost.flops_backward == 0)
        return tape_.elements(o.in[1]) / o.cost.inner;
    }
    return 0;
  }

  tape const& tape_;
  plan const& plan_;
  fusable_list list_{};
  std::uint64_t micro_batches_, times_ = 1;
};

}  // namespace detail

/// The fused kernels of the table that a recording has a place for, each fused and as a chain at the model's shapes.
/// Whether the plan's own kernels are fused already makes no difference here.
constexpr fusable_list fusables_of(tape const& recording, plan const& p, std::uint64_t micro_batches = 1) {
  return detail::fusable_search{recording, p, micro_batches}.find();
}

}  // namespace gpumem
