// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/error.hpp>

#include <cstdint>

namespace gpumem {

/// One optimizer step's input on one device: `accumulation` micro-batches of `micro_batch` sequences of `sequence`
/// tokens.
struct workload {
  std::int64_t micro_batch = 1, sequence = 0, accumulation = 1;

  [[nodiscard]] constexpr std::int64_t tokens() const { return micro_batch * sequence; }
  friend constexpr bool operator==(workload const&, workload const&) = default;
};

/// Refuses a workload whose numbers are not positive or whose micro-batch has more than 2^40 tokens.
constexpr void check(workload const& load) {
  require_positive("micro_batch", load.micro_batch);
  require_positive("sequence", load.sequence);
  require_positive("accumulation", load.accumulation);
  require_rule(load.micro_batch <= largest_number / load.sequence, "micro_batch", load.micro_batch,
               "micro_batch x sequence must be at most 2^40 tokens");
}

}  // namespace gpumem
