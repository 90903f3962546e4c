// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/error.hpp>

#include <concepts>
#include <cstdint>

namespace gpumem {

/// The numbers behind a gradient checkpointing policy.
struct checkpointing {
  std::int64_t every = 0;  // 0: no block is; K: of every K-th block the input is kept, and K are recomputed at once
  std::int64_t first = 0;  // only so many blocks, the first ones; 0: all
  bool selective = false;  // inside each block: the core of attention is recomputed from q, k and v

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

/// The first N blocks are checkpointed one by one; the others keep what they save. The last blocks are the ones to
/// spare: backward frees what they keep before it recomputes anything.
template <std::int64_t N>
struct checkpoint_first {
  static_assert(N >= 1, "checkpoint_first<N>: N is at least 1");
  using family = checkpointing_family;
  static constexpr checkpointing numbers{.every = 1, .first = N};
};

/// Megatron-LM's selective recomputation (Korthikanti et al., 2022): q, k and v stay; scores, softmax, its dropout and
/// the probabilities are made again in backward. For eager attention: flash attention keeps none of them, so that here
/// it saves only the output's statistics and costs the attention's forward a second time.
struct selective_checkpointing {
  using family = checkpointing_family;
  static constexpr checkpointing numbers{.selective = true};
};

static_assert(checkpointing_policy<no_checkpointing> && checkpointing_policy<checkpoint_every<1>> &&
              checkpointing_policy<checkpoint_first<1>> && checkpointing_policy<selective_checkpointing>);

}  // namespace gpumem
