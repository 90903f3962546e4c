// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/cuda_context.hpp>
#include <gpumem/estimate.hpp>
#include <gpumem/recording/caching_allocator.hpp>

#include <cstdint>

namespace gpumem {
namespace detail {

/// Two training steps, allocation by allocation: a program's first one, in which the optimizer makes its states, and
/// one like all others. Needs a recording without repeats.
class training_replay : walker {
 public:
  constexpr training_replay(tape const& recording, plan const& p, walk_options const& o)
      : walker(recording, p.runtime, o), plan_(p) {}

  constexpr void run(ref loss, std::int64_t micro_batches) {
    start();
    for (int i = 1; i <= tape_.tensors(); ++i)
      if (tape_.tensor_at(i).parameter && plan_.precision.separate_master) observe(updated_size(i));
    for (int thread = 0; thread < matmul_threads(plan_); ++thread) observe(signed_size(plan_.runtime.cublas_workspace));
    if (plan_.optimizer.in_backward) make_states();
    for (int step = 0; step < 2; ++step) {
      for (std::int64_t i = 0; i < micro_batches; ++i) {
        static_cast<void>(micro_batch(loss));
        accumulating_ = true;
      }
      if (!plan_.optimizer.trains) continue;
      if (step == 0 && !plan_.optimizer.in_backward) make_states();
      if (!plan_.optimizer.in_backward) update();
      if (!plan_.runtime.gradients_kept) let_gradients_go();
    }
  }

 private:
  [[nodiscard]] constexpr bool is_trained(int i) const {
    return tape_.tensor_at(i).parameter && tape_.tensor_at(i).needs_gradient;
  }
  [[nodiscard]] constexpr std::int64_t updated_size(int i) const {
    return rounded(gpumem::storage(plan_.precision.master, elements(tape_.tensor_at(i))));
  }
  constexpr void make_states() {
    for (int i = 1; i <= tape_.tensors(); ++i) {
      if (!is_trained(i)) continue;
      for (state const& s : plan_.optimizer.states(as_updated(tape_.tensor_at(i), plan_)))
        if (!s.paged) observe(rounded(gpumem::storage(s.type, s.elements)));
    }
    observe(signed_size(plan_.optimizer.shared));
  }
  /// The temporaries of the optimizer's step: of all parameters together, or of one after the other.
  constexpr void update() {
    const bool together = plan_.optimizer.step == step_temporaries::foreach_list;
    const int before = blocks_;
    for (int i = 1; i <= tape_.tensors(); ++i) {
      if (!is_trained(i)) continue;
      const int mine = blocks_;
      for (std::uint64_t k = 0; k < update_tensors(plan_); ++k) observe(updated_size(i));
      if (!together) forget_since(mine);
    }
    if (together) forget_since(before);
  }
  constexpr void forget_since(int block) {
    for (int b = block + 1; b <= blocks_; ++b) observe_free(b);
  }
  constexpr void let_gradients_go() {
    for (int i = 1; i <= tape_.tensors(); ++i) {
      tensor_state& x = state_[i];
      if (!x.has_gradient) continue;
      live_.add(category::gradients, -gradient_size(ref{i}));
      observe_free(x.gradient_block);
      x.has_gradient = false;
    }
    accumulating_ = false;
  }

  plan const& plan_;
};

}  // namespace detail

/// Tells `observer` of every allocation of a model's first two training steps, every block recorded by itself. Refuses
/// models of more than 2^15 operations.
template <model M>
constexpr void replay(M const& m, workload const& load, plan const& p, walk_observer& observer) {
  check(m, load);
  tape_with_room<> repeated;
  operations once{repeated, p};
  static_cast<void>(record(once, m, load));
  once.recording.close_segment();
  std::int64_t recorded = 0, made = 0, parts = 2 * repeated.segments();
  constexpr std::int64_t most = std::int64_t{1} << 15;
  for (int i = 0; i < repeated.segments(); ++i) {
    segment const& s = repeated.segment_at(i);
    require_rule(s.count <= most && s.group <= most, "blocks of a replay", s.runs(), "must be at most 2^15");
    recorded += s.runs() * (s.end - s.first), made += s.runs() * (s.end_tensor - s.first_tensor), parts += s.count;
    require_rule(recorded <= most, "operations of a replay", recorded, "must be at most 2^15");
  }

  // A segment may begin with an operation that only declares what stands before it.
  sized_tape recording{static_cast<int>(recorded + parts), static_cast<int>(made), static_cast<int>(parts)};
  operations ops{recording, p};
  ops.unrolled = true;
  const ref loss = record(ops, m, load);
  ops.finish(loss);
  const walk_options options{.gradients = p.precision.gradients,
                             .backward = p.optimizer.trains,
                             .update_in_backward = p.optimizer.in_backward,
                             .update_tensors = static_cast<std::int64_t>(detail::update_tensors(p)),
                             .observer = &observer};
  detail::training_replay{recording, p, options}.run(loss, load.accumulation > 1 ? 2 : 1);
}

/// Replays a model's training through PyTorch's caching allocator. `context` is what the CUDA context takes; in what it
/// leaves of `capacity` the allocator gives unused segments back before it takes more.
template <model M>
constexpr machine_memory on_machine(M const& m, workload const& load, plan const& p, bytes context = {},
                                    bytes capacity = caching_allocator::unlimited) {
  caching_allocator allocator{capacity > context ? capacity - context : bytes{}};
  replay(m, load, p, allocator);
  return {allocator.peak_allocated(), allocator.peak_reserved(), context};
}

}  // namespace gpumem
