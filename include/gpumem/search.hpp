// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/estimate.hpp>

#include <cstdint>

namespace gpumem {

/// The most sequences a micro-batch can have for peak and reserve to fit into `capacity` (at most 512 GiB): one more
/// does not fit. 0 where not even one does. `load.micro_batch` is not read; on a device, pass `on_device(how, d)`.
template <model M>
constexpr std::int64_t largest_micro_batch(M const& m, workload load, plan const& how, bytes capacity) {
  require_rule(capacity.value <= std::uint64_t{1} << 39, "GiB of capacity",
               static_cast<std::int64_t>(capacity.value >> 30), "must be at most 512");
  const auto fits = [&](std::int64_t n) {
    load.micro_batch = n;
    return estimate(m, load, how).required() <= capacity;
  };
  std::int64_t most = 0, too_many = 1;
  while (too_many <= largest_number / load.sequence && fits(too_many)) most = too_many, too_many *= 2;
  while (too_many - most > 1) {
    const std::int64_t middle = most + (too_many - most) / 2;
    (fits(middle) ? most : too_many) = middle;
  }
  return most;
}

/// What can be changed about a run to make it smaller, from the cheapest to the dearest: a fused optimizer step costs
/// nothing, better kernels are faster, smaller micro-batches with more accumulation and checkpoints cost time; 8-bit
/// states and half weights change what is computed.
enum class remedy : std::uint8_t {
  fused_step,
  flash_attention,
  fused_kernels,
  smaller_micro_batch,
  checkpoint_blocks,
  states_in_8bit,
  half_weights
};
inline constexpr int remedies = 7;

constexpr char const* name(remedy r) {
  constexpr char const* names[] = {"fused optimizer step", "flash attention", "fused kernels", "smaller micro-batch",
                                   "checkpointed blocks",  "8-bit states",    "half weights"};
  return names[static_cast<int>(r)];
}

/// Whether it changes the numbers that are computed with, and not only when and where.
constexpr bool changes_arithmetic(remedy r) { return r == remedy::states_in_8bit || r == remedy::half_weights; }

/// Whether a remedy is open to a run.
constexpr bool applies(remedy r, plan const& p, workload const& load) {
  switch (r) {
    case remedy::fused_step: return p.optimizer == detail::optimizer_of<adamw>();
    case remedy::flash_attention: return p.attention == attention_kind::eager;
    case remedy::fused_kernels: return p.kernels == kernel_kind::eager;
    case remedy::smaller_micro_batch: return load.micro_batch > 1 && !p.optimizer.in_backward;
    case remedy::checkpoint_blocks: return p.optimizer.trains && p.checkpointing.every == 0;
    case remedy::states_in_8bit:
      return p.optimizer == detail::optimizer_of<adamw>() || p.optimizer == detail::optimizer_of<adamw_fused>();
    case remedy::half_weights: return p.optimizer.trains && !(p.precision == pure<>::numbers);
  }
  return false;
}

/// Applies a remedy to a plan; a smaller micro-batch is no matter of the plan.
constexpr void apply(remedy r, plan& p) {
  switch (r) {
    case remedy::fused_step: p.optimizer = detail::optimizer_of<adamw_fused>(); break;
    case remedy::flash_attention: p.attention = flash_attention::kind; break;
    case remedy::fused_kernels: p.kernels = fused_kernels::kind; break;
    case remedy::smaller_micro_batch: break;
    case remedy::checkpoint_blocks: p.checkpointing = checkpoint_every<1>::numbers; break;
    case remedy::states_in_8bit: p.optimizer = detail::optimizer_of<adamw_8bit>(); break;
    case remedy::half_weights: p.precision = pure<>::numbers; break;
  }
}

/// A changed run that fits: which remedies, and what it then is and needs.
struct fix {
  unsigned parts = 0;  // a bit for each remedy
  workload load{};
  plan how{};
  bytes peak{};

  [[nodiscard]] constexpr bool has(remedy r) const { return (parts >> static_cast<int>(r) & 1u) != 0; }
};
/// Up to two that fit; where there is none, all remedies together.
struct fixes {
  fix items[2] = {};
  int count = 0;
  fix everything{};
};

namespace detail {

/// Splits a micro-batch into the fewest equal parts that fit, up to 4096, else into single sequences.
template <model M>
constexpr void split_micro_batch(M const& m, workload& load, plan const& how, bytes capacity) {
  constexpr std::int64_t most_parts = 4096;
  const std::int64_t whole = load.micro_batch, times = load.accumulation;
  if (times > largest_number / whole) return;
  for (std::int64_t parts = 2; parts <= whole; parts = parts < most_parts ? parts + 1 : whole) {
    if (whole % parts == 0) load.micro_batch = whole / parts, load.accumulation = times * parts;
    if (parts == whole || (whole % parts == 0 && estimate(m, load, how).required() <= capacity)) return;
  }
}

/// A run with a set of remedies: a bit for each.
template <model M>
constexpr fix with_remedies(M const& m, workload const& load, plan const& how, bytes capacity, unsigned parts) {
  fix f{.parts = parts, .load = load, .how = how};
  for (int i = 0; i < remedies; ++i)
    if (f.has(static_cast<remedy>(i))) apply(static_cast<remedy>(i), f.how);
  if (f.has(remedy::smaller_micro_batch)) split_micro_batch(m, f.load, f.how, capacity);
  f.peak = estimate(m, f.load, f.how).peak.total;
  return f;
}

}  // namespace detail

/// The two cheapest ways to make a run fit into `capacity`, which it does not as it is: the dearest remedy in a set
/// says what the set costs, and no set holds more than it needs. Fewer where there are not two. A remedy is taken to
/// help or to do nothing, never to harm.
template <model M>
constexpr fixes cheapest_fixes(M const& m, workload const& load, plan const& how, bytes capacity) {
  fixes found;
  unsigned open = 0;
  for (int i = 0; i < remedies; ++i)
    if (applies(static_cast<remedy>(i), how, load)) open |= 1u << i;
  constexpr unsigned fused_step = 1u, states_in_8bit = 1u << static_cast<int>(remedy::states_in_8bit);
  const auto fits = [&](fix const& f) { return f.peak + how.reserve <= capacity; };
  for (int dearest = 0; dearest < remedies; ++dearest) {
    const unsigned bit = 1u << dearest;
    if ((open & bit) == 0) continue;
    unsigned all = open & (2 * bit - 1);
    if ((all & states_in_8bit) != 0) all &= ~fused_step;  // the optimizer is one or the other
    found.everything = detail::with_remedies(m, load, how, capacity, all);
    if (!fits(found.everything)) continue;
    for (unsigned parts = bit; parts < 2 * bit; ++parts) {
      const bool both_steps = (parts & fused_step) != 0 && (parts & states_in_8bit) != 0;
      const bool holds_first = found.count == 1 && (parts & found.items[0].parts) == found.items[0].parts;
      if ((parts & ~open) != 0 || both_steps || holds_first) continue;
      const fix f = detail::with_remedies(m, load, how, capacity, parts);
      if (fits(f)) found.items[found.count++] = f;
      if (found.count == 2) return found;
    }
  }
  return found;
}

}  // namespace gpumem
