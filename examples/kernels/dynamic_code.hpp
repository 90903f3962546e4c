// SPDX-License-Identifier: MIT
// 8-bit codes of an optimizer's moments. Each block of 256 values has one fp32 scale, its greatest magnitude, and a code
// a value. The codes are a dynamic format: leading zeros count decades down from 1, a 1 ends them, and the bits that are
// left divide the decade into equal steps. So small values keep their order of magnitude, and great ones more digits.
//
//   mean    sign, 7 bits     0.1 to 1 in 64 steps, 0.01 to 0.1 in 32, ... 1e-6 in one, and 0
//   square  8 bits           0.1 to 1 in 128 steps, ... 1e-7 in one, and 0
//
// Without branches and tables, so that loops over them vectorise on a CPU.
#pragma once
#include "bf16.hpp"

namespace gpumem::kernels {

inline constexpr int elements_of_scale = 256;

/// Codes of `Bits` bits, without the sign.
template <int Bits>
struct dynamic_code {
  static constexpr int decades = Bits - 1;  // below the first

  GPUMEM_HOST_DEVICE static constexpr float power_of_ten(int n) {
    return (n & 1 ? 1e1f : 1.0f) * (n & 2 ? 1e2f : 1.0f) * (n & 4 ? 1e4f : 1.0f);
  }
  GPUMEM_HOST_DEVICE static constexpr float power_of_tenth(int n) {
    return (n & 1 ? 1e-1f : 1.0f) * (n & 2 ? 1e-2f : 1.0f) * (n & 4 ? 1e-4f : 1.0f);
  }
  GPUMEM_HOST_DEVICE static constexpr float power_of_two(int n) { return __builtin_bit_cast(float, (127 + n) << 23); }

  GPUMEM_HOST_DEVICE static constexpr float decode(unsigned code) {
    // The exponent of a float counts the bits below the leading 1.
    float const value = static_cast<float>(static_cast<int>(code));
    int const digits = static_cast<int>(__builtin_bit_cast(std::uint32_t, value) >> 23) - 127;
    float const step = value - power_of_two(digits) + 1.0f;
    float const decoded = (0.1f + 0.9f * power_of_two(-digits) * step) * power_of_tenth(decades - digits);
    return code == 0 ? 0.0f : decoded;
  }
  /// The nearest code of a magnitude from 0 to 1. Step 0 of a decade is the last one of the decade below, whose code is
  /// the one before.
  GPUMEM_HOST_DEVICE static constexpr unsigned encode(float magnitude) {
    int decade = 0;
    float bound = 1.0f;
    for (int d = 0; d < decades; ++d) {
      bound *= 0.1f;
      decade += magnitude <= bound ? 1 : 0;
    }
    int const digits = decades - decade;
    float const within = magnitude * power_of_ten(decade);
    float const steps = (within - 0.1f) * (power_of_two(digits) * (1.0f / 0.9f));
    // Where there is one step, the choice is between 0 and that value, not the decade's begin.
    int const nearest = static_cast<int>(steps + 0.5f), only = within > 0.5f ? 1 : 0;
    int const last = static_cast<int>(power_of_two(digits));  // no shift by a variable: SSE2 has none
    int const step = digits == 0 ? only : nearest;
    int const in_decade = step < 0 ? 0 : step > last ? last : step;
    return static_cast<unsigned>(last + in_decade - 1);
  }
};

struct signed_code {
  GPUMEM_HOST_DEVICE static constexpr float decode(unsigned code) {
    float const magnitude = dynamic_code<7>::decode(code & 0x7fu);
    return code & 0x80u ? -magnitude : magnitude;
  }
  GPUMEM_HOST_DEVICE static constexpr unsigned encode(float value) {
    return dynamic_code<7>::encode(value < 0.0f ? -value : value) | (value < 0.0f ? 0x80u : 0u);
  }
};
using unsigned_code = dynamic_code<8>;

GPUMEM_HOST_DEVICE constexpr float magnitude(float x) { return x < 0.0f ? -x : x; }
GPUMEM_HOST_DEVICE constexpr float reciprocal_of_scale(float scale) { return scale > 0.0f ? 1.0f / scale : 0.0f; }

}  // namespace gpumem::kernels
