// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/dtype.hpp>

#include <cstdint>

namespace gpumem {

/// What a parameter is for. Optimizers and precisions may treat the roles differently.
enum class role : std::uint8_t { weight, bias, norm, embedding };

/// One parameter tensor: its shape (a vector has one row), dtype and role. `type` is the dtype that the optimizer
/// updates: the master's where there is one.
struct parameter {
  std::int64_t rows = 1, columns = 0;
  dtype type = dtype::fp32;
  gpumem::role role = gpumem::role::weight;

  [[nodiscard]] constexpr std::uint64_t elements() const {
    return checked_multiply(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns));
  }
};

}  // namespace gpumem
