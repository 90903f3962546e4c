// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/tensor.hpp>

#include <concepts>
#include <cstdint>

namespace gpumem {

/// One tensor that an optimizer keeps for a parameter. A paged one lives in managed memory, which comes to the device
/// only while it is used.
struct state {
  std::uint64_t elements = 0;
  dtype type = dtype::fp32;
  bool paged = false;
};

/// The tensors that an optimizer keeps for one parameter, at most six.
struct state_list {
  state items[6] = {};

  [[nodiscard]] constexpr state const* begin() const { return items; }
  [[nodiscard]] constexpr state const* end() const {
    state const* last = items;
    while (last != items + 6 && last->elements != 0) ++last;
    return last;
  }
};

/// What an optimizer step allocates while it runs, in the dtype of the tensors that it updates.
enum class step_temporaries : std::uint8_t {
  none,          // one fused kernel, or everything in place
  foreach_list,  // the runtime's number of lists with one tensor for each parameter
  two_tensors,   // a loop over parameters: two tensors of the size of the one at hand
  adafactor      // a loop: three in fp32, and fp32 copies of gradient and parameter where these are half
};

/// The numbers and the one function behind an optimizer policy.
struct optimizer {
  state_list (*states)(parameter const&) = nullptr;
  step_temporaries step = step_temporaries::none;
  bytes shared{};            // kept once, whatever the number of parameters
  bool trains = true;        // false: no gradients, no backward, no step
  bool in_backward = false;  // each parameter is updated, and its gradient freed, as soon as that has arrived

  friend constexpr bool operator==(optimizer const&, optimizer const&) = default;
};

struct optimizer_family {};

/// An optimizer policy names its family and says which tensors it keeps for one parameter. It may also have constants
/// `step` (default: no temporaries), `shared`, `trains` and
/// `in_backward_pass`.
template <class O>
concept optimizer_policy = std::same_as<typename O::family, optimizer_family> && requires(parameter const& p) {
  { O::states(p) } -> std::same_as<state_list>;
};

/// AdamW as PyTorch runs it by default: two moments a parameter, foreach step (torch/optim/adamw.py).
struct adamw {
  using family = optimizer_family;
  static constexpr step_temporaries step = step_temporaries::foreach_list;
  static constexpr state_list states(parameter const& p) { return {{{p.elements(), p.type}, {p.elements(), p.type}}}; }
};

/// AdamW with foreach=False: a loop over parameters.
struct adamw_loop : adamw {
  static constexpr step_temporaries step = step_temporaries::two_tensors;
};

/// AdamW with fused=True: no temporaries; the step counter is an fp32 scalar on the device (torch/optim/adamw.py).
struct adamw_fused {
  using family = optimizer_family;
  static constexpr state_list states(parameter const& p) {
    return {{{p.elements(), p.type}, {p.elements(), p.type}, {1, dtype::fp32}}};
  }
};

/// AdamW with amsgrad=True: the largest second moment seen is kept as well.
struct adamw_amsgrad {
  using family = optimizer_family;
  static constexpr step_temporaries step = step_temporaries::foreach_list;
  static constexpr state_list states(parameter const& p) {
    return {{{p.elements(), p.type}, {p.elements(), p.type}, {p.elements(), p.type}}};
  }
};

/// Hugging Face's Adafactor without a first moment: one fp32 row and column of a matrix, one fp32 tensor of a vector,
/// one scalar (transformers/optimization.py). Its step counts the parameter before as large as the largest.
struct adafactor {
  using family = optimizer_family;
  static constexpr step_temporaries step = step_temporaries::adafactor;
  static constexpr state_list states(parameter const& p) {
    if (p.rows == 1) return {{{p.elements(), dtype::fp32}, {1, dtype::fp32}}};
    const auto rows = static_cast<std::uint64_t>(p.rows), columns = static_cast<std::uint64_t>(p.columns);
    return {{{rows, dtype::fp32}, {columns, dtype::fp32}, {1, dtype::fp32}}};
  }
};

/// Plain SGD without weight decay: no state, updates in place.
struct sgd {
  using family = optimizer_family;
  static constexpr state_list states(parameter const&) { return state_list{}; }
};

/// SGD with momentum and without weight decay: one buffer a parameter, updates in place.
struct sgd_momentum {
  using family = optimizer_family;
  static constexpr state_list states(parameter const& p) { return {{{p.elements(), p.type}}}; }
};

/// An optimizer that runs inside backward (a hook on each gradient that has arrived; LOMO with sgd): no two weights'
/// gradients of different layers live at once. Needs accumulation 1.
template <optimizer_policy O>
struct in_backward : O {
  static constexpr bool in_backward_pass = true;
};

/// No training: no gradients, no optimizer, nothing saved; one forward pass of the workload without a key-value cache.
struct inference {
  using family = optimizer_family;
  static constexpr bool trains = false;
  static constexpr state_list states(parameter const&) { return state_list{}; }
};

static_assert(optimizer_policy<adamw> && optimizer_policy<adamw_loop> && optimizer_policy<adamw_fused> &&
              optimizer_policy<adamw_amsgrad> && optimizer_policy<adafactor> && optimizer_policy<sgd> &&
              optimizer_policy<sgd_momentum> && optimizer_policy<in_backward<sgd>> && optimizer_policy<inference>);

}  // namespace gpumem
