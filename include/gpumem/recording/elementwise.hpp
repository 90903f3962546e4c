// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/policies/plan.hpp>
#include <gpumem/recording/tape.hpp>

#include <cstdint>

namespace gpumem {

/// Operations that work element by element, and those that only look at a tensor in another way. Each records what one
/// ATen operation allocates, saves and hands back (formulas.md 2.1, measured). Call them in statements, never nested in
/// an argument list: C++ does not order arguments, and the order of recording is the order of the program.
class elementwise_operations {
 public:
  constexpr elementwise_operations(tape& t, plan const& p) : recording(t), how(p) {}

  tape& recording;
  plan const& how;

  /// A parameter in the plan's weight dtype; a vector has one row. A frozen one is never trained.
  constexpr ref parameter(std::int64_t rows, std::int64_t columns, role r, bool frozen = false) {
    return recording.parameter({.rows = rows, .columns = columns, .type = how.precision.weights, .role = r},
                               how.optimizer.trains && !frozen);
  }
  constexpr std::int64_t elements(ref x) const { return recording.elements(x); }
  constexpr dtype type(ref x) const { return recording.type(x); }
  /// The dtype in which the model's residual stream runs.
  constexpr dtype stream() const { return how.precision.weights; }

  /// An operation with one input that allocates a tensor of the same number of elements.
  constexpr ref unary(char const* name, ref x, dtype out, gradient comes, ref saved = {},
                      bytes workspace_backward = {}) {
    const ref y = recording.make(elements(x), out);
    recording.record({.name = name,
                      .in = {x},
                      .how = {comes},
                      .out = {y},
                      .saved = {saved},
                      .workspace_backward = workspace_backward});
    return y;
  }
  /// As unary, saving its own result (softmax, tanh, rsqrt).
  constexpr ref saving_result(char const* name, ref x, dtype out) {
    const ref y = recording.make(elements(x), out);
    recording.record({.name = name, .in = {x}, .how = {gradient::fresh}, .out = {y}, .saved = {y}});
    return y;
  }
  constexpr ref cast(ref x, dtype to) { return type(x) == to ? x : unary("cast", x, to, gradient::fresh); }
  /// Under autocast: to the half that contractions run in, and to the fp32 that norms, softmax and losses run in.
  constexpr ref to_half(ref x) { return how.precision.autocast ? cast(x, how.precision.autocast_type) : x; }
  constexpr ref to_fp32(ref x) { return how.precision.autocast ? cast(x, dtype::fp32) : x; }

  constexpr ref scale(ref x) { return unary("scale", x, type(x), gradient::fresh); }
  constexpr ref gelu(ref x) { return unary("gelu", x, type(x), gradient::fresh, x); }
  constexpr ref silu(ref x) { return unary("silu", x, type(x), gradient::fresh, x); }
  /// cap * tanh(x / cap), one operation at a time.
  constexpr ref softcap(ref x) {
    const ref inner = scale(x), bounded = saving_result("tanh", inner, type(inner));
    return scale(bounded);
  }
  constexpr ref relu(ref x) { return saving_result("relu", x, type(x)); }
  /// Dropout keeps a mask of one byte an element. Without dropout, or without training, it is not there.
  constexpr ref dropout(ref x, bool on) {
    if (!on || !how.optimizer.trains) return x;
    const ref mask = recording.make(elements(x), dtype::u8), y = recording.make(elements(x), type(x));
    recording.record({.name = "dropout", .in = {x}, .how = {gradient::fresh}, .out = {y}, .saved = {mask}});
    return y;
  }
  constexpr ref add(ref a, ref b) {
    const ref y = recording.make(elements(a), promote(type(a), type(b)));
    recording.record({.name = "add", .in = {a, b}, .how = {passed(a, y), passed(b, y)}, .out = {y}});
    return y;
  }
  /// a + b where b has fewer elements and is broadcast; its gradient is a sum.
  constexpr ref add_broadcast(ref a, ref b) {
    const ref y = recording.make(elements(a), promote(type(a), type(b)));
    recording.record({.name = "add", .in = {a, b}, .how = {passed(a, y), gradient::fresh}, .out = {y}});
    return y;
  }
  /// a += b: in the storage of a. b may be broadcast; its gradient is a sum then.
  constexpr ref add_in_place(ref a, ref b) {
    const ref y = recording.view(a, elements(a));
    gradient const to_b = elements(a) == elements(b) ? gradient::pass : gradient::fresh;
    recording.record({.name = "add in place", .in = {a, b}, .how = {gradient::pass, to_b}, .out = {y}});
    return y;
  }
  /// a + b where b is broadcast and needs no gradient.
  constexpr ref add_constant(ref a, ref b) {
    const ref y = recording.make(elements(a), promote(type(a), type(b)));
    recording.record({.name = "add", .in = {a, b}, .how = {passed(a, y)}, .out = {y}});
    return y;
  }
  /// a * b; each factor is saved for the other's gradient. A constant factor may be smaller and broadcast.
  constexpr ref mul(ref a, ref b) {
    const ref y = recording.make(elements(a), promote(type(a), type(b)));
    const bool a_flows = recording.at(a).needs_gradient, b_flows = recording.at(b).needs_gradient;
    recording.record({.name = "mul",
                      .in = {a, b},
                      .how = {gradient::fresh, gradient::fresh},
                      .out = {y},
                      .saved = {b_flows ? a : ref{}, a_flows ? b : ref{}}});
    return y;
  }
  /// Hugging Face's `gelu_new`, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), one operation at a time; autocast
  /// runs pow in fp32.
  constexpr ref gelu_new(ref x) {
    if (numbers_of(how.kernels).fused_activation) return gelu(x);
    const ref half = scale(x), base = to_fp32(x);
    const ref cube = unary("pow", base, type(base), gradient::fresh, base);
    const ref scaled_cube = scale(cube), inner = add(x, scaled_cube), argument = scale(inner);
    const ref tanh = saving_result("tanh", argument, type(argument));
    const ref one_more = unary("add constant", tanh, type(tanh), gradient::pass);
    const ref y = mul(half, one_more);
    recording.until_here(x);
    return y;
  }
  /// Hugging Face's `gelu_fast`, 0.5 x (1 + tanh(0.79788 x (1 + 0.044715 x x))), one operation at a time.
  constexpr ref gelu_fast(ref x) {
    if (how.kernels == kernel_kind::fused) return gelu(x);
    const ref half = scale(x), stretched = scale(x), factor = scale(x), square = mul(factor, x);
    const ref one_more = unary("add constant", square, type(square), gradient::pass);
    const ref argument = mul(stretched, one_more), tanh = saving_result("tanh", argument, type(argument));
    const ref gate = unary("add constant", tanh, type(tanh), gradient::pass);
    const ref y = mul(half, gate);
    recording.until_here(x);
    return y;
  }
  /// Hugging Face's `quick_gelu`, x sigmoid(1.702 x), one operation at a time.
  constexpr ref quick_gelu(ref x) {
    if (how.kernels == kernel_kind::fused) return gelu(x);
    const ref stretched = scale(x), gate = saving_result("sigmoid", stretched, type(stretched));
    const ref y = mul(x, gate);
    recording.until_here(x);
    return y;
  }

  /// A tensor that shares the storage of x.
  constexpr ref alias(char const* name, ref x, std::int64_t count, gradient comes) {
    const ref y = recording.view(x, count);
    recording.record({.name = name, .in = {x}, .how = {comes}, .out = {y}});
    return y;
  }
  constexpr ref reshape(ref x) { return alias("view", x, elements(x), gradient::view); }
  /// A part of x; backward makes zeros of the size of the whole.
  constexpr ref slice(ref x, std::int64_t count) { return alias("slice", x, count, gradient::fresh); }
  /// contiguous() of a transposed view: a copy whose gradient passes as a view.
  constexpr ref copy(ref x) { return unary("copy", x, type(x), gradient::view); }
  /// Copies of x along a new dimension (repeated key and value heads); backward sums over the copies.
  constexpr ref repeat_elements(ref x, std::int64_t count) {
    const ref y = recording.make(count, type(x));
    recording.record({.name = "repeat heads", .in = {x}, .how = {gradient::fresh}, .out = {y}});
    return y;
  }

 private:
  constexpr gradient passed(ref x, ref sum) const { return type(x) == type(sum) ? gradient::pass : gradient::fresh; }
};

}  // namespace gpumem
