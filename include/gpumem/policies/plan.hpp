// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/policies/checkpointing.hpp>
#include <gpumem/policies/kernels.hpp>
#include <gpumem/policies/loss.hpp>
#include <gpumem/policies/optimizer.hpp>
#include <gpumem/policies/precision.hpp>
#include <gpumem/policies/quantized_optimizer.hpp>
#include <gpumem/policies/runtime.hpp>

#include <concepts>
#include <cstdint>

namespace gpumem {

/// A type that names the optimizers' family; whether it says which tensors it keeps is asked where it is used, with a
/// sentence.
template <class P>
concept names_an_optimizer = std::same_as<typename P::family, optimizer_family>;

template <class P>
concept policy = precision_policy<P> || names_an_optimizer<P> || checkpointing_policy<P> || attention_policy<P> ||
    kernels_policy<P> || loss_policy<P> || runtime_policy<P> || reserve_policy<P>;

namespace detail {

template <names_an_optimizer O>
constexpr optimizer optimizer_of() {
  static_assert(optimizer_policy<O>,
                "gpumem: an optimizer says which tensors it keeps for one parameter: "
                "static constexpr state_list states(parameter const&)");
  optimizer o;
  if constexpr (optimizer_policy<O>) o.states = &O::states;
  if constexpr (requires { O::step; }) o.step = O::step;
  if constexpr (requires { O::shared; }) o.shared = O::shared;
  if constexpr (requires { O::trains; }) o.trains = O::trains;
  if constexpr (requires { O::in_backward_pass; }) o.in_backward = O::in_backward_pass;
  return o;
}

template <class Family, class... Policies>
inline constexpr int members_of = (0 + ... + static_cast<int>(std::same_as<typename Policies::family, Family>));

}  // namespace detail

/// How a model is trained, as one value: what a list of policies stands for. A default plan is the default policies.
struct plan {
  gpumem::precision precision = mixed<>::numbers;
  gpumem::optimizer optimizer = detail::optimizer_of<adamw>();
  gpumem::checkpointing checkpointing = no_checkpointing::numbers;
  attention_kind attention = flash_attention::kind;
  kernel_kind kernels = eager_kernels::kind;
  loss_path loss = eager_loss::numbers;
  gpumem::runtime runtime = pytorch_cuda::numbers;
  bytes reserve{std::uint64_t{1} << 30};

  friend constexpr bool operator==(plan const&, plan const&) = default;
};

namespace detail {

template <policy P>
constexpr void put(plan& to) {
  if constexpr (precision_policy<P>)
    to.precision = P::numbers;
  else if constexpr (names_an_optimizer<P>)
    to.optimizer = optimizer_of<P>();
  else if constexpr (checkpointing_policy<P>)
    to.checkpointing = P::numbers;
  else if constexpr (attention_policy<P>)
    to.attention = P::kind;
  else if constexpr (kernels_policy<P>)
    to.kernels = P::kind;
  else if constexpr (loss_policy<P>)
    to.loss = P::numbers;
  else if constexpr (runtime_policy<P>)
    to.runtime = P::numbers;
  else
    to.reserve = P::amount;
}

}  // namespace detail

/// The plan of a list of policies, in any order; families that are not named keep their defaults. Refuses two policies
/// of one family and types that are no policy.
template <policy... Policies>
constexpr plan make_plan(Policies...) {
  static_assert(((detail::members_of<typename Policies::family, Policies...> == 1) && ...),
                "gpumem: two policies of one family: name each family at most once");
  plan p;
  (detail::put<Policies>(p), ...);
  return p;
}

/// The same plan on a device: its multiprocessors and its cuBLAS workspace. A runtime without CUDA stays as it is.
constexpr plan on_device(plan p, device const& d) {
  if (p.runtime.multiprocessors == 0) return p;
  p.runtime.multiprocessors = d.multiprocessors;
  p.runtime.threads_per_multiprocessor = d.threads_per_multiprocessor();
  p.runtime.cublas_workspace = d.cublas_workspace();
  return p;
}

/// The documents' rule of thumb: bytes a parameter for weights (with master and copy), gradients and those optimizer
/// states that are as large as the parameter. 18 for mixed and AdamW; no budget uses it.
struct parameter_bytes {
  std::uint64_t weights = 0, gradients = 0, optimizer_states = 0;
  [[nodiscard]] constexpr std::uint64_t total() const { return weights + gradients + optimizer_states; }
};
constexpr parameter_bytes rule_of_thumb(plan const& p) {
  constexpr std::int64_t side = 1024;  // any parameter that is large enough to be treated as large
  const parameter large{.rows = side, .columns = side, .type = p.precision.master};
  std::uint64_t state_bits = 0;
  for (state const& s : p.optimizer.states(large))
    if (s.elements == large.elements()) state_bits += bits(s.type);
  return {.weights = (bits(p.precision.weights) + (p.precision.separate_master ? bits(p.precision.master) : 0)) / 8,
          .gradients = p.optimizer.trains ? bits(p.precision.gradients) / 8 : 0,
          .optimizer_states = divide_up(state_bits, 8)};
}

/// rule_of_thumb of a list of policies, as a plain integer.
template <policy... Policies>
inline constexpr std::uint64_t bytes_per_parameter = rule_of_thumb(make_plan(Policies{}...)).total();

static_assert(bytes_per_parameter<mixed<>, adamw> == 18 && bytes_per_parameter<autocast<>, adamw> == 16);

}  // namespace gpumem
