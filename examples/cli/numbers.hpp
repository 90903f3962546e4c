// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/bytes.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpumem::cli {

inline constexpr std::string_view count_rule = "must be an integer from 1 to 2^40";
inline constexpr std::string_view count_or_none_rule = "must be an integer from 0 to 2^40";

/// The one way from digits to a count, for configs and options: decimal digits without sign, leading zero, point or
/// exponent, from 0 to 2^40. Nothing else is a number.
std::optional<std::int64_t> whole_number(std::string_view digits);

/// A count from 1 to 2^40, or a refusal that names `field`.
std::int64_t positive_number(std::string_view field, std::string_view digits);

/// A size such as 24GiB, 24GB, 512MiB or 1073741824 (bytes), or a refusal that names `field`. 0 only where it can be
/// meant.
bytes size_in_bytes(std::string_view field, std::string_view text, bool or_none = false);

}  // namespace gpumem::cli
