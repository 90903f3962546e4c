// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/bytes.hpp>

#include <cstdint>

namespace gpumem {

/// The moments of a training step, in order: the worst point of the forward pass before the head; of the head and the
/// loss; of the backward pass; what is left when it has ended; and the optimizer's step.
enum class phase : std::uint8_t { forward, loss, backward, backward_end, optimizer_step };
inline constexpr int phases = 5;

constexpr char const* name(phase p) {
  constexpr char const* names[] = {"forward", "loss", "backward", "backward_end", "optimizer_step"};
  return names[static_cast<int>(p)];
}

/// What a byte is for. weights: with their masters and half copies. activations: what forward keeps for backward.
/// temporaries: all that lives shortly, gradients of activations among it. overhead: constants of the runtime.
enum class category : std::uint8_t { weights, gradients, optimizer_states, activations, temporaries, overhead };
inline constexpr int categories = 6;

constexpr char const* name(category c) {
  constexpr char const* names[] = {"weights",     "gradients",   "optimizer_states",
                                   "activations", "temporaries", "overhead"};
  return names[static_cast<int>(c)];
}

/// Bytes by category.
struct memory {
  bytes weights{}, gradients{}, optimizer_states{}, activations{}, temporaries{}, overhead{};

  [[nodiscard]] constexpr bytes total() const {
    return weights + gradients + optimizer_states + activations + temporaries + overhead;
  }
  [[nodiscard]] constexpr bytes operator[](category c) const {
    switch (c) {
      case category::weights: return weights;
      case category::gradients: return gradients;
      case category::optimizer_states: return optimizer_states;
      case category::activations: return activations;
      case category::temporaries: return temporaries;
      case category::overhead: return overhead;
    }
    return {};
  }
  friend constexpr bool operator==(memory const&, memory const&) = default;
};

/// Live bytes at one moment of the step and, where the moment is a worst point, the operation that ran.
struct moment {
  gpumem::phase phase = gpumem::phase::forward;
  memory categories{};
  bytes total{};
  char const* operation = "";

  /// Equal bytes in the same phase; the operation's name is not compared.
  friend constexpr bool operator==(moment const& a, moment const& b) {
    return a.phase == b.phase && a.categories == b.categories && a.total == b.total;
  }
};

}  // namespace gpumem
