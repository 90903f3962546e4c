// SPDX-License-Identifier: MIT
// bf16: the upper half of a float. Own conversions, so that tests on the CPU need no CUDA toolkit.
#pragma once
#include <cstdint>

#if defined(__CUDACC__)
#define GPUMEM_HOST_DEVICE __host__ __device__
#else
#define GPUMEM_HOST_DEVICE
#endif

namespace gpumem::kernels {

struct bf16 {
  std::uint16_t bits;
};

GPUMEM_HOST_DEVICE constexpr float to_float(float x) { return x; }
GPUMEM_HOST_DEVICE constexpr float to_float(bf16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}

GPUMEM_HOST_DEVICE constexpr bf16 round_to_bf16(float x) {
  std::uint32_t const bits = __builtin_bit_cast(std::uint32_t, x);
  bool const is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  std::uint32_t const nearest_even = bits + 0x7fffu + (bits >> 16 & 1u);
  return {static_cast<std::uint16_t>(is_nan ? bits >> 16 | 0x40u : nearest_even >> 16)};
}

template <class T>
GPUMEM_HOST_DEVICE constexpr T from_float(float x) {
  if constexpr (sizeof(T) == sizeof(bf16)) {
    return round_to_bf16(x);
  } else {
    return x;
  }
}

static_assert(round_to_bf16(1.0f).bits == 0x3f80 && to_float(bf16{0x3f80}) == 1.0f);
static_assert(round_to_bf16(1.00390625f).bits == 0x3f80);  // half way, to even
static_assert(round_to_bf16(1.01171875f).bits == 0x3f82);

}  // namespace gpumem::kernels
