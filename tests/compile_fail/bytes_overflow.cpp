// SPDX-License-Identifier: MIT
#include <gpumem/core/bytes.hpp>
using namespace gpumem::literals;

#if GPUMEM_ACCEPT
constexpr auto size = 80_GiB * 1'000;
#else
constexpr auto size = 80_GiB * 1'000'000'000;  // expected-error {{byte_count_overflows_64_bits}}
#endif
