// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/bytes.hpp>

#include <cstdint>

namespace gpumem {

/// The type of a tensor's elements.
enum class dtype : std::uint8_t { fp64, fp32, bf16, fp16, fp8, int64, int32, u8, u4 };

/// The width of one element in bits.
constexpr std::uint64_t bits(dtype t) {
  switch (t) {
    case dtype::fp64:
    case dtype::int64: return 64;
    case dtype::fp32:
    case dtype::int32: return 32;
    case dtype::bf16:
    case dtype::fp16: return 16;
    case dtype::fp8:
    case dtype::u8: return 8;
    case dtype::u4: return 4;
  }
  return 0;
}

constexpr char const* name(dtype t) {
  switch (t) {
    case dtype::fp64: return "fp64";
    case dtype::fp32: return "fp32";
    case dtype::bf16: return "bf16";
    case dtype::fp16: return "fp16";
    case dtype::fp8: return "fp8";
    case dtype::int64: return "int64";
    case dtype::int32: return "int32";
    case dtype::u8: return "u8";
    case dtype::u4: return "u4";
  }
  return "";
}

constexpr bool is_half(dtype t) { return t == dtype::bf16 || t == dtype::fp16; }

/// The bytes of `count` packed elements, rounded up once for types narrower than a byte.
constexpr bytes storage(dtype t, std::uint64_t count) { return {divide_up(checked_multiply(count, bits(t)), 8)}; }

/// The dtype that an element-wise operation on both promotes to (of two halves that differ: fp32).
constexpr dtype promote(dtype a, dtype b) {
  if (a == b) return a;
  if (bits(a) == bits(b)) return dtype::fp32;
  return bits(a) > bits(b) ? a : b;
}

}  // namespace gpumem
