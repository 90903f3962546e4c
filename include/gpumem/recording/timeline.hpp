// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/walk_backward.hpp>

namespace gpumem {

/// The moments of a step that a walk sees. forward, loss and backward are worst points; forward_end is what lives when
/// the loss is known, backward_end what lives when backward has returned.
struct timeline {
  moment forward{}, forward_end{}, loss{}, backward{}, backward_end{};
};

namespace detail {

class walker : protected walk_backward {
 public:
  constexpr walker(tape const& recording, runtime const& r, walk_options const& o) : walk_backward(recording, r, o) {}

  constexpr timeline step(ref loss) {
    start();
    if (options_.accumulate) {
      static_cast<void>(micro_batch(loss));
      accumulating_ = true;
    }
    return micro_batch(loss);
  }

 protected:
  constexpr timeline micro_batch(ref loss) {
    for (int i = 1; i <= tape_.tensors(); ++i) state_[i].pending = tape_.tensor_at(i).consumers;
    timeline r{};
    bool in_loss = false;
    start_watching();
    for (int i = 0; i < tape_.segments(); ++i) {
      segment const& s = tape_.segment_at(i);
      if (s.phase == phase::loss && !in_loss) {
        r.forward = worst(phase::forward), in_loss = true;
        start_watching();
      }
      walk_forward_through(s, i);
    }
    r.forward_end = now(in_loss ? phase::loss : phase::forward);
    if (!in_loss) r.forward = worst(phase::forward), start_watching();
    r.loss = worst(phase::loss);
    start_watching();
    if (options_.backward && tape_.at(loss).needs_gradient) walk_backward_from(loss);
    for (int i = 1; i <= tape_.tensors(); ++i)  // what the program held until now
      if (state_[i].use.alive) free(i), state_[i].use.saves = 0;
    r.backward = worst(phase::backward), r.backward_end = now(phase::backward_end);
    return r;
  }

 private:
  constexpr void walk_forward_through(segment const& s, int index) {
    here_ = &s;
    if (s.checkpointed) {
      scaled(s.count, [&] {
        save(storage(s.in));
        forward_runs(s, index, s.group, false);
      });
    } else {
      forward_runs(s, index, s.runs(), true);
    }
    here_ = nullptr;
  }
  constexpr void walk_backward_from(ref loss) {
    const int root = seed(loss);
    for (int i = tape_.segments() - 1; i >= 0; --i) {
      segment const& s = tape_.segment_at(i);
      here_ = &s;
      if (s.checkpointed)
        scaled(s.count, [&] { backward_of_checkpoint(s, i); });
      else
        backward_runs(s, i, s.runs());
      here_ = nullptr;
    }
    release(root);
  }
};

}  // namespace detail

/// Walks one training step over a recording whose value is `loss`; with options.accumulate the second micro-batch. The
/// runtime says how storages are rounded and where gradients are added in place.
constexpr timeline walk(tape const& recording, ref loss, runtime const& r, walk_options const& o = {}) {
  return detail::walker{recording, r, o}.step(loss);
}

}  // namespace gpumem
