// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/row_kernels.hpp>

namespace gpumem::row_kernels {

/// Loss and gradient in one kernel that writes the gradient over the logits; columns are the vocabulary. Targets are
/// int32, one loss a row.
inline constexpr row_kernel cross_entropy{
    "cross-entropy",
    7,
    {.name = "cross-entropy", .reads = 1, .writes = 1, .row_reads = 1, .row_writes = 1},
    {row_passes::map("log-softmax"),
     row_passes::pick_targets("nll"),
     {.name = "nll backward", .writes = 1, .row_reads = 1},
     row_passes::map("log-softmax backward", 2)}};
/// The same reading the logits twice (llm.c, Liger).
inline constexpr row_kernel cross_entropy_rereading{
    "cross-entropy, logits read twice",
    7,
    {.name = "cross-entropy", .reads = 2, .writes = 1, .rereads = 1, .row_reads = 1, .row_writes = 1},
    {row_passes::map("log-softmax"),
     row_passes::pick_targets("nll"),
     {.name = "nll backward", .writes = 1, .row_reads = 1},
     row_passes::map("log-softmax backward", 2)}};
/// Half logits that a model casts to fp32 first, as Hugging Face does.
inline constexpr row_kernel cross_entropy_upcast{
    "cross-entropy through fp32",
    7,
    {.name = "cross-entropy", .reads = 1, .writes = 1, .row_reads = 1, .row_writes = 1},
    {{.name = "cast", .reads = 1, .wide_writes = 1},
     {.name = "log-softmax", .wide_reads = 1, .wide_writes = 1},
     row_passes::pick_targets("nll"),
     {.name = "nll backward", .wide_writes = 1, .row_reads = 1},
     {.name = "log-softmax backward", .wide_reads = 2, .wide_writes = 1},
     {.name = "cast", .writes = 1, .wide_reads = 1}}};

/// The tanh form.
inline constexpr row_kernel bias_gelu_forward{"bias and gelu",
                                              10,
                                              row_passes::map_columns("bias, gelu"),
                                              {row_passes::map_columns("plus bias"), row_passes::map("gelu")}};
/// Against gelu written out, operation by operation.
inline constexpr row_kernel bias_gelu_forward_primitives{
    "bias and gelu written out",
    10,
    row_passes::map_columns("bias, gelu"),
    {row_passes::map_columns("plus bias"), row_passes::map("pow"), row_passes::map("mul"), row_passes::map("add", 2),
     row_passes::map("mul"), row_passes::map("tanh"), row_passes::map("add"), row_passes::map("mul", 2),
     row_passes::map("mul")}};
inline constexpr row_kernel bias_gelu_backward{
    "bias and gelu backward",
    16,
    {.name = "bias, gelu backward", .reads = 2, .writes = 1, .column_reads = 1, .column_writes = 1, .partials = 1},
    {row_passes::map("gelu backward", 2), row_passes::reduce_columns("dbias")}};

inline constexpr row_kernel bias_dropout_add{
    "bias, dropout and add",
    4,
    {.name = "bias, dropout, add", .reads = 2, .writes = 1, .column_reads = 1, .masks = true},
    {row_passes::map_columns("plus bias"), row_passes::dropout("dropout"), row_passes::map("add", 2)}};
/// The norm is one kernel in the chain as well.
inline constexpr row_kernel bias_dropout_add_layer_norm{
    "bias, dropout, add and layer norm",
    11,
    {.name = "bias, dropout, add, layer norm",
     .reads = 2,
     .writes = 2,
     .row_writes = 2,
     .column_reads = 3,
     .masks = true},
    {row_passes::map_columns("plus bias"), row_passes::dropout("dropout"), row_passes::map("add", 2),
     row_passes::layer_norm}};

/// From dy, the norm's input and the mask: the residual's gradient, the input's, and those of gamma, beta and bias. As in
/// forward, the norm is one kernel in the chain as well.
inline constexpr row_kernel bias_dropout_add_layer_norm_backward{
    "bias, dropout, add and layer norm backward",
    16,
    {.name = "bias, dropout, add, layer norm backward",
     .reads = 2,
     .writes = 2,
     .row_reads = 2,
     .column_reads = 1,
     .column_writes = 3,
     .partials = 3,
     .reads_mask = true},
    {row_passes::layer_norm_backward, row_passes::dropout_backward("dropout backward"),
     row_passes::reduce_columns("dbias")}};

/// silu(gate) up.
inline constexpr row_kernel swiglu_forward{
    "swiglu", 5, row_passes::map("swiglu", 2), {row_passes::map("silu"), row_passes::map("mul", 2)}};
/// Against sigmoid, times, times.
inline constexpr row_kernel swiglu_forward_primitives{
    "swiglu written out",
    5,
    row_passes::map("swiglu", 2),
    {row_passes::map("sigmoid"), row_passes::map("mul", 2), row_passes::map("mul", 2)}};
/// Reads dy, gate and up; writes both gradients. silu(gate) is computed again in both forms.
inline constexpr row_kernel swiglu_backward{"swiglu backward",
                                            11,
                                            {.name = "swiglu backward", .reads = 3, .writes = 2},
                                            {row_passes::map("silu"), row_passes::map("mul", 2),
                                             row_passes::map("mul", 2), row_passes::map("silu backward", 2)}};

}  // namespace gpumem::row_kernels
