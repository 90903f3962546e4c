// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/workload.hpp>
#include <gpumem/recording/operations.hpp>

#include <concepts>

namespace gpumem {

/// A model is a type for which two functions are found beside it: `check(model, load)` refuses wrong numbers, and
/// `record(operations, model, load)` records one micro-batch's forward pass and returns the loss.
template <class M>
concept model = requires(M const& m, operations& ops, workload const& load) {
  check(m, load);
  { record(ops, m, load) } -> std::same_as<ref>;
};

}  // namespace gpumem
