// SPDX-License-Identifier: MIT
// 8-bit codes of an optimizer's moments. Each block of 256 values has one fp32 scale, its greatest magnitude, and a
// code a value. The codes are a dynamic format: leading zeros count how often 16 divides the range, a 1 ends them, and
// the bits that are left divide a factor of 16 into equal steps. So small values keep their order of magnitude, and
// great ones more digits.
//
//   mean    sign, 7 bits     1/16 to 1 in 64 steps, 1/256 to 1/16 in 32, ... down to 16^-6 in one, and 0
//   square  8 bits           1/16 to 1 in 128 steps, ... down to 16^-7 in one, and 0
//
// bitsandbytes divides its range by 10. By 16 a code is bits of the float's exponent and one multiplication and
// addition: both directions have no branch, table or loop, so that a step stays bound by its bytes.
#pragma once
#include "bf16.hpp"

namespace gpumem::kernels {

inline constexpr int elements_of_scale = 256;

GPUMEM_HOST_DEVICE constexpr std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
GPUMEM_HOST_DEVICE constexpr float from_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
GPUMEM_HOST_DEVICE constexpr float power_of_two(int n) { return from_bits(static_cast<std::uint32_t>(127 + n) << 23); }
GPUMEM_HOST_DEVICE constexpr float magnitude(float x) { return from_bits(bits_of(x) & 0x7fffffffu); }

/// What encode multiplies by. A little less than 1 / scale, so that the greatest value stays below 1; 0 for a block
/// whose values are 0 or nearly so (below fp32's least normal number), which becomes 0.
GPUMEM_HOST_DEVICE constexpr float reciprocal_of_scale(float scale) {
  return scale >= power_of_two(-126) ? 0.999999f / scale : 0.0f;
}

/// Codes of `Bits` bits, without the sign. `code + 1` is 2^digits and a number of steps, of which 2^digits lead from
/// 16^(digits - Bits) to 16 times that. Of all magnitudes what that makes of code 0 is taken off.
template <int Bits>
struct dynamic_code {
  static constexpr float of_code_0 = power_of_two(-4 * Bits);

  GPUMEM_HOST_DEVICE static constexpr float decode(unsigned code) {
    constexpr std::uint32_t exponent = 0xffu << 23, one = bits_of(1.0f);
    std::uint32_t const bits = bits_of(static_cast<float>(static_cast<int>(code + 1)));
    float const steps = 15.0f * from_bits((bits & ~exponent) | one) - 14.0f;  // from 1 to 16
    std::uint32_t const digits = (bits & exponent) - one;
    return steps * from_bits(4 * digits + bits_of(of_code_0)) - of_code_0;
  }
  /// The nearest code of `value * reciprocal`, which is from 0 to less than 1.
  GPUMEM_HOST_DEVICE static constexpr unsigned encode(float value, float reciprocal) {
    // Doubled, so that what lies between two powers of 16 differs in the lower 25 bits only.
    std::uint32_t const bits = bits_of(value * (2.0f * reciprocal) + 2.0f * of_code_0);
    constexpr std::uint32_t lower = 0x01ffffffu;
    float const within = from_bits((bits & lower) | (bits_of(1.0f) & ~lower));  // from 1/8 to 2
    float const power = from_bits((bits & ~lower) >> 2);                        // 2^digits, but for the factor
    constexpr float factor = power_of_two(95 + Bits);
    // To a number of this size a float is added with its fraction rounded, and stands in the lowest bits.
    constexpr float rounding = 0x1.8p23f;
    float const rounded = (within * (8.0f / 15.0f * factor) + 14.0f / 15.0f * factor) * power + (rounding - 1.0f);
    return bits_of(rounded) & ((1u << Bits) - 1);
  }
};

/// The highest bit is the float's sign.
struct signed_code {
  GPUMEM_HOST_DEVICE static constexpr float decode(unsigned code) {
    return from_bits(bits_of(dynamic_code<7>::decode(code & 0x7fu)) | (code & 0x80u) << 24);
  }
  GPUMEM_HOST_DEVICE static constexpr unsigned encode(float value, float reciprocal) {
    return dynamic_code<7>::encode(magnitude(value), reciprocal) | (bits_of(value) >> 24 & 0x80u);
  }
};
using unsigned_code = dynamic_code<8>;

}  // namespace gpumem::kernels
