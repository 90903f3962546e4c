// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/traffic_count.hpp>

namespace gpumem {

/// The kernels that a chain is made of. `inputs` whole tensors in, one out; a row's statistic in or out; a vector in.
namespace row_passes {
constexpr row_pass map(char const* name, std::uint64_t inputs = 1) {
  return {.name = name, .reads = inputs, .writes = 1};
}
constexpr row_pass map_rows(char const* name) { return {.name = name, .reads = 1, .writes = 1, .row_reads = 1}; }
constexpr row_pass map_columns(char const* name) { return {.name = name, .reads = 1, .writes = 1, .column_reads = 1}; }
constexpr row_pass reduce_rows(char const* name) { return {.name = name, .reads = 1, .row_writes = 1}; }
constexpr row_pass reduce_columns(char const* name) {
  return {.name = name, .reads = 1, .column_writes = 1, .partials = 1};
}
/// nll forward: the row's target and the value at it, one loss.
constexpr row_pass pick_targets(char const* name) { return {.name = name, .row_reads = 2, .row_writes = 1}; }
constexpr row_pass dropout(char const* name) { return {.name = name, .reads = 1, .writes = 1, .masks_a_byte = true}; }
constexpr row_pass dropout_backward(char const* name) {
  return {.name = name, .reads = 1, .writes = 1, .reads_mask_a_byte = true};
}

inline constexpr row_pass layer_norm{.name = "layer norm", .reads = 1, .writes = 1, .row_writes = 2, .column_reads = 2};
inline constexpr row_pass rms_norm{.name = "rms norm", .reads = 1, .writes = 1, .row_writes = 1, .column_reads = 1};
inline constexpr row_pass layer_norm_backward{.name = "layer norm backward",
                                              .reads = 2,
                                              .writes = 1,
                                              .row_reads = 2,
                                              .column_reads = 1,
                                              .column_writes = 2,
                                              .partials = 2};
inline constexpr row_pass rms_norm_backward{.name = "rms norm backward",
                                            .reads = 2,
                                            .writes = 1,
                                            .row_reads = 1,
                                            .column_reads = 1,
                                            .column_writes = 1,
                                            .partials = 1};
}  // namespace row_passes

/// Row and map kernels, each fused and as the chain it replaces. FLOPs count one for each arithmetic operation of an
/// element, exp, tanh and rsqrt included.
namespace row_kernels {

inline constexpr row_kernel copy{"copy", 0, row_passes::map("copy"), {}};
inline constexpr row_kernel residual_add{"residual add", 1, row_passes::map("add", 2), {}};

inline constexpr row_kernel softmax_forward{"softmax",
                                            5,
                                            row_passes::map("softmax"),
                                            {row_passes::reduce_rows("max"), row_passes::map_rows("sub, exp"),
                                             row_passes::reduce_rows("sum"), row_passes::map_rows("div")}};
/// One pass for maximum and sum together, one for the result (Milakov and Gimelshein 2018), against three passes.
inline constexpr row_kernel softmax_forward_online{
    "softmax, row read twice",
    6,
    {.name = "online softmax", .reads = 2, .writes = 1, .rereads = 1},
    {{.name = "max, sum, result", .reads = 3, .writes = 1, .rereads = 2}}};
/// dx = y (dy - sum(y dy)).
inline constexpr row_kernel softmax_backward{"softmax backward",
                                             4,
                                             row_passes::map("softmax backward", 2),
                                             {row_passes::map("y dy", 2), row_passes::reduce_rows("sum"),
                                              row_passes::map_rows("times sum"), row_passes::map("sub", 2)}};

inline constexpr row_kernel layer_norm_forward{
    "layer norm",
    7,
    row_passes::layer_norm,
    {row_passes::reduce_rows("mean"), row_passes::map_rows("sub"), row_passes::map("square"),
     row_passes::reduce_rows("mean"), row_passes::map_rows("times rstd"), row_passes::map_columns("times gamma"),
     row_passes::map_columns("plus beta")}};
/// PyTorch's native kernel reads each row a second time; from memory where the row has left the caches.
inline constexpr row_kernel layer_norm_forward_rereading{
    "layer norm, row read twice",
    7,
    row_passes::layer_norm,
    {{.name = "native layer norm", .reads = 2, .writes = 1, .rereads = 1, .row_writes = 2, .column_reads = 2}}};
inline constexpr row_kernel layer_norm_backward{
    "layer norm backward",
    13,
    row_passes::layer_norm_backward,
    {row_passes::map_rows("x - mean"), row_passes::map_rows("times rstd"), row_passes::reduce_columns("dbeta"),
     row_passes::map("dy xhat", 2), row_passes::reduce_columns("dgamma"), row_passes::map_columns("times gamma"),
     row_passes::reduce_rows("mean"), row_passes::map("times xhat", 2), row_passes::reduce_rows("mean"),
     row_passes::map_rows("xhat times mean"), row_passes::map_rows("sub mean"), row_passes::map("sub", 2),
     row_passes::map_rows("times rstd")}};
/// PyTorch: one kernel for dx, one for dgamma and dbeta.
inline constexpr row_kernel layer_norm_backward_two_kernels{
    "layer norm backward, two kernels",
    13,
    row_passes::layer_norm_backward,
    {{.name = "dx", .reads = 2, .writes = 1, .row_reads = 2, .column_reads = 1},
     {.name = "dgamma, dbeta", .reads = 2, .row_reads = 2, .column_writes = 2, .partials = 2}}};

inline constexpr row_kernel rms_norm_forward{
    "rms norm",
    4,
    row_passes::rms_norm,
    {row_passes::map("square"), row_passes::reduce_rows("mean"), row_passes::map_rows("times rstd"),
     row_passes::map_columns("times gamma")}};
/// Hugging Face's LlamaRMSNorm on half activations: the middle of the chain is fp32.
inline constexpr row_kernel rms_norm_forward_upcast{
    "rms norm, fp32 inside",
    4,
    row_passes::rms_norm,
    {{.name = "cast", .reads = 1, .wide_writes = 1},
     {.name = "pow", .wide_reads = 1, .wide_writes = 1},
     {.name = "mean", .wide_reads = 1, .row_writes = 1},
     {.name = "times rstd", .wide_reads = 1, .wide_writes = 1, .row_reads = 1},
     {.name = "cast", .writes = 1, .wide_reads = 1},
     row_passes::map_columns("times gamma")}};
inline constexpr row_kernel rms_norm_backward{
    "rms norm backward",
    10,
    row_passes::rms_norm_backward,
    {row_passes::map_rows("xhat"), row_passes::map("dy xhat", 2), row_passes::reduce_columns("dgamma"),
     row_passes::map_columns("times gamma"), row_passes::map("times xhat", 2), row_passes::reduce_rows("mean"),
     row_passes::map_rows("xhat times mean"), row_passes::map("sub", 2), row_passes::map_rows("times rstd")}};

inline constexpr row_pass add_rms_norm{
    .name = "add, rms norm", .reads = 2, .writes = 2, .row_writes = 1, .column_reads = 1};
/// Writes the new residual too.
inline constexpr row_kernel add_rms_norm_forward{
    "add and rms norm",
    5,
    add_rms_norm,
    {row_passes::map("add", 2), row_passes::map("square"), row_passes::reduce_rows("mean"),
     row_passes::map_rows("times rstd"), row_passes::map_columns("times gamma")}};
/// Against an add and a fused norm.
inline constexpr row_kernel add_then_rms_norm_forward{
    "add before a fused rms norm", 5, add_rms_norm, {row_passes::map("add", 2), row_passes::rms_norm}};
inline constexpr row_kernel add_layer_norm_forward{
    "add and layer norm",
    8,
    {.name = "add, layer norm", .reads = 2, .writes = 2, .row_writes = 2, .column_reads = 2},
    {row_passes::map("add", 2), row_passes::reduce_rows("mean"), row_passes::map_rows("sub"), row_passes::map("square"),
     row_passes::reduce_rows("mean"), row_passes::map_rows("times rstd"), row_passes::map_columns("times gamma"),
     row_passes::map_columns("plus beta")}};
/// The gradient of the residual stream is added inside.
inline constexpr row_kernel rms_norm_backward_add{"rms norm backward and add",
                                                  11,
                                                  {.name = "rms norm backward, add",
                                                   .reads = 3,
                                                   .writes = 1,
                                                   .row_reads = 1,
                                                   .column_reads = 1,
                                                   .column_writes = 1,
                                                   .partials = 1},
                                                  {row_passes::rms_norm_backward, row_passes::map("add", 2)}};
inline constexpr row_kernel layer_norm_backward_add{"layer norm backward and add",
                                                    14,
                                                    {.name = "layer norm backward, add",
                                                     .reads = 3,
                                                     .writes = 1,
                                                     .row_reads = 2,
                                                     .column_reads = 1,
                                                     .column_writes = 2,
                                                     .partials = 2},
                                                    {row_passes::layer_norm_backward, row_passes::map("add", 2)}};

}  // namespace row_kernels
}  // namespace gpumem
