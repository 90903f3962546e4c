// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/policies/optimizer.hpp>

#include <cstdint>

namespace gpumem {
namespace detail {

/// bitsandbytes' blockwise layout (95f9af3, optimizer.py): `moments` tensors of u8, each with one fp32 absmax a block;
/// fp32 moments for tensors of fewer than 4096 elements.
constexpr state_list blockwise_8bit(parameter const& p, int moments, std::uint64_t block) {
  constexpr std::uint64_t smallest_quantized = 4096;
  const std::uint64_t n = p.elements();
  const bool quantized = n >= smallest_quantized;
  state_list list;
  for (int i = 0; i < moments; ++i) {
    list.items[i] = {n, quantized ? dtype::u8 : dtype::fp32};
    if (quantized) list.items[moments + i] = {divide_up(n, block), dtype::fp32};
  }
  return list;
}

/// torchao's block-quantized moments (optim/adam.py): codes, one fp32 scale a block and a table of the codes' values
/// for each moment; the parameter's dtype where it has fewer than 4096 elements or no whole number of blocks.
constexpr state_list torchao(parameter const& p, dtype code, std::uint64_t block) {
  const std::uint64_t n = p.elements(), values = std::uint64_t{1} << bits(code);
  if (n < 4096 || n % block != 0) return {{{n, p.type}, {n, p.type}}};
  const state codes{n, code}, scales{n / block, dtype::fp32}, table{values, dtype::fp32};
  return {{codes, codes, scales, scales, table, table}};
}

}  // namespace detail

/// bitsandbytes' 8-bit AdamW with blocks of 256 (since 0.44) or 2048: two moments, and two quantile maps of 256 fp32
/// for the device. 2.03 bytes a parameter.
template <std::uint64_t Block>
struct adamw_8bit_blocks {
  using family = optimizer_family;
  static constexpr int moments = 2;
  static constexpr bytes shared{2 * 256 * 4};
  static constexpr state_list states(parameter const& p) { return detail::blockwise_8bit(p, moments, Block); }
};
struct adamw_8bit : adamw_8bit_blocks<256> {};
struct adamw_8bit_2048 : adamw_8bit_blocks<2048> {};

/// bitsandbytes' Lion: one moment, fp32 or in 8 bits.
struct lion {
  using family = optimizer_family;
  static constexpr state_list states(parameter const& p) { return {{{p.elements(), dtype::fp32}}}; }
};
struct lion_8bit {
  using family = optimizer_family;
  static constexpr int moments = 1;
  static constexpr bytes shared{2 * 256 * 4};
  static constexpr state_list states(parameter const& p) { return detail::blockwise_8bit(p, moments, 256); }
};

/// bitsandbytes' AdEMAMix in 8 bits: two first moments and a second one.
struct ademamix_8bit {
  using family = optimizer_family;
  static constexpr int moments = 3;
  static constexpr bytes shared{2 * 256 * 4};
  static constexpr state_list states(parameter const& p) { return detail::blockwise_8bit(p, moments, 256); }
};

/// An 8-bit optimizer whose embeddings keep fp32 moments, as Hugging Face's Trainer registers them.
template <optimizer_policy O>
struct embeddings_in_32bit : O {
  static constexpr state_list states(parameter const& p) {
    if (p.role != role::embedding) return O::states(p);
    state_list list;
    for (int i = 0; i < O::moments; ++i) list.items[i] = {p.elements(), dtype::fp32};
    return list;
  }
};

/// A paged bitsandbytes optimizer: moments of 100,000 elements or more live in managed memory; absmax stays.
template <optimizer_policy O>
struct paged : O {
  static constexpr state_list states(parameter const& p) {
    state_list list = O::states(p);
    for (state& s : list.items) s.paged = s.elements == p.elements() && s.elements >= 100'000;
    return list;
  }
};

/// torchao's AdamW in 8 bits (blocks of 256) and in 4 bits (blocks of 128); the step is compiled to one kernel a
/// tensor.
struct adamw_torchao_8bit {
  using family = optimizer_family;
  static constexpr state_list states(parameter const& p) { return detail::torchao(p, dtype::u8, 256); }
};
struct adamw_4bit {
  using family = optimizer_family;
  static constexpr state_list states(parameter const& p) { return detail::torchao(p, dtype::u4, 128); }
};

static_assert(optimizer_policy<adamw_8bit> && optimizer_policy<adamw_8bit_2048> && optimizer_policy<lion> &&
              optimizer_policy<lion_8bit> && optimizer_policy<ademamix_8bit> &&
              optimizer_policy<embeddings_in_32bit<adamw_8bit>> && optimizer_policy<paged<adamw_8bit>> &&
              optimizer_policy<adamw_torchao_8bit> && optimizer_policy<adamw_4bit>);

}  // namespace gpumem
