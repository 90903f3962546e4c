// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/transformer_shape.hpp>
#include <gpumem/recording/operations.hpp>

namespace gpumem::detail {

/// The activation function of an MLP, at the granularity that its name stands for.
constexpr ref activate(operations& ops, activation how, ref x) {
  switch (how) {
    case activation::gelu_new: return ops.gelu_new(x);
    case activation::gelu: return ops.gelu(x);
    case activation::silu: return ops.silu(x);
    case activation::relu: return ops.relu(x);
    case activation::gelu_fast: return ops.gelu_fast(x);
    case activation::quick_gelu: return ops.quick_gelu(x);
  }
  return x;
}

}  // namespace gpumem::detail
