// SPDX-License-Identifier: MIT
// Meaning: a number of bytes or elements does not fit into 64 bits. Nothing wraps: arithmetic on `bytes` is checked.
// Fix: look for a factor that is bytes already, or a shape with too many zeros.
#include <gpumem/core/bytes.hpp>
using namespace gpumem::literals;

#if GPUMEM_ACCEPT
constexpr auto size = 80_GiB * 1'000;
#else
constexpr auto size = 80_GiB * 1'000'000'000;  // expected-error {{byte_count_overflows_64_bits}}
#endif
