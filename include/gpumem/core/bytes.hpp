// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/error.hpp>

#include <compare>
#include <cstdint>

namespace gpumem {

/// a * b; refuses a product that does not fit in 64 bits.
constexpr std::uint64_t checked_multiply(std::uint64_t a, std::uint64_t b) {
  // The division test, because nvcc 13 has no constexpr __builtin_mul_overflow.
  if (b != 0 && a > UINT64_MAX / b) detail::byte_count_overflows_64_bits(a, b);
  return a * b;
}
/// a + b; refuses a sum that does not fit in 64 bits.
constexpr std::uint64_t checked_add(std::uint64_t a, std::uint64_t b) {
  if (a > UINT64_MAX - b) detail::byte_count_overflows_64_bits(a, b);
  return a + b;
}
/// a / b, rounded up.
constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// A number of bytes with checked arithmetic. An aggregate, so that it can be part of a template argument: nvcc
/// respells those in braces, which a constructor would refuse.
struct bytes {
  std::uint64_t value = 0;

  friend constexpr bytes operator+(bytes a, bytes b) { return {checked_add(a.value, b.value)}; }
  friend constexpr bytes operator-(bytes a, bytes b) {
    if (b.value > a.value) detail::bytes_cannot_be_negative(a.value, b.value);
    return {a.value - b.value};
  }
  friend constexpr bytes operator*(bytes a, std::uint64_t n) { return {checked_multiply(a.value, n)}; }
  friend constexpr bytes operator*(std::uint64_t n, bytes a) { return a * n; }
  constexpr bytes& operator+=(bytes b) { return *this = *this + b; }
  friend constexpr auto operator<=>(bytes const&, bytes const&) = default;
  friend constexpr bool operator==(bytes const&, bytes const&) = default;  // nvcc 13 needs it beside <=>
};

/// `size` rounded up to a multiple of `granule`.
constexpr bytes align_up(bytes size, std::uint64_t granule) {
  return {checked_multiply(divide_up(size.value, granule), granule)};
}

/// Whole MiB, rounded up (what is needed) or down (what there is), so that the two never look equal when they are not.
constexpr std::uint64_t mebibytes_up(bytes b) { return divide_up(b.value, std::uint64_t{1} << 20); }
constexpr std::uint64_t mebibytes_down(bytes b) { return b.value >> 20; }

namespace literals {
consteval bytes operator""_B(unsigned long long n) { return {n}; }
consteval bytes operator""_KiB(unsigned long long n) { return {checked_multiply(n, std::uint64_t{1} << 10)}; }
consteval bytes operator""_MiB(unsigned long long n) { return {checked_multiply(n, std::uint64_t{1} << 20)}; }
consteval bytes operator""_GiB(unsigned long long n) { return {checked_multiply(n, std::uint64_t{1} << 30)}; }
}  // namespace literals

}  // namespace gpumem
