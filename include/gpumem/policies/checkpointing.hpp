// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/error.hpp>

#include <concepts>
#include <cstdint>

namespace gpumem {

/// The number behind a gradient checkpointing policy.
struct checkpointing {
  std::int64_t every =
      0;  // 0: everything is kept; K: the input of every K-th block is kept, K blocks are recomputed at once

  friend constexpr bool operator==(checkpointing const&, checkpointing const&) = default;
};

struct checkpointing_family {};

/// A gradient checkpointing policy names its family and holds its `numbers`.
template <class C>
concept checkpointing_policy = std::same_as<typename C::family, checkpointing_family> && requires {
  { C::numbers } -> std::convertible_to<checkpointing>;
};

/// Everything that backward needs is kept.
struct no_checkpointing {
  using family = checkpointing_family;
  static constexpr checkpointing numbers{};
};

/// The input of every K-th block is kept; backward records K blocks again at a time (torch.utils.checkpoint,
/// reentrant).
template <std::int64_t K>
struct checkpoint_every {
  static_assert(K >= 1, "checkpoint_every<K>: K is at least 1");
  using family = checkpointing_family;
  static constexpr checkpointing numbers{.every = K};
};

static_assert(checkpointing_policy<no_checkpointing> && checkpointing_policy<checkpoint_every<1>>);

}  // namespace gpumem
