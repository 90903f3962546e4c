// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/norms.hpp>

#include <cstdint>

namespace gpumem {

/// The numbers of an attention layer's core, and what the eager form does between its two products.
struct attention_shape {
  std::int64_t batch = 1, sequence = 1, heads = 1, kv_heads = 1, head_dim = 1;
  bool dropout = false;
  bool softmax_in_fp32 = false;  // the module asks for it (Llama), autocast or not
  bool softcap = false;          // tanh bounds the scores (Gemma 2)
  ref mask{};                    // added to the scores where there is one; else a causal buffer replaces scores

  [[nodiscard]] constexpr std::int64_t query_elements() const { return batch * sequence * heads * head_dim; }
};

/// Rotary embedding, attention and the gated MLP's activation.
class attention_operations : public norm_operations {
 public:
  using norm_operations::norm_operations;

  /// x * cos + rotate_half(x) * sin, as Hugging Face writes it: six operations; or one kernel that writes over x, and
  /// over its gradient.
  constexpr ref rotary(ref x, ref cosine, ref sine) {
    if (numbers_of(how.kernels).rotary_in_place) {
      const ref turned = recording.view(x, elements(x));
      recording.record({.name = "rotary in place",
                        .in = {x, cosine, sine},
                        .how = {gradient::view},
                        .out = {turned},
                        .saved = {cosine, sine},
                        .cost = {.flops = 3, .flops_backward = 3}});
      return turned;
    }
    const ref straight = mul(x, cosine);
    const ref first = slice(x, elements(x) / 2), second = slice(x, elements(x) / 2);
    const ref negated = unary("neg", second, type(x), gradient::fresh), turned = recording.make(elements(x), type(x));
    recording.record({.name = "cat",
                      .in = {negated, first},
                      .how = {gradient::view, gradient::view},
                      .out = {turned},
                      .cost = cost_of::moves});
    const ref crosswise = mul(turned, sine);
    return add(straight, crosswise);
  }
  /// Views of one fused projection; backward concatenates their gradients.
  constexpr void split(ref x, ref& a, ref& b, ref& c, std::int64_t a_elements, std::int64_t bc_elements) {
    a = recording.view(x, a_elements), b = recording.view(x, bc_elements), c = recording.view(x, bc_elements);
    recording.record({.name = "split", .in = {x}, .how = {gradient::fresh}, .out = {a, b, c}, .cost = cost_of::view});
  }
  constexpr void split(ref x, ref& a, ref& b) {
    a = recording.view(x, elements(x) / 2), b = recording.view(x, elements(x) / 2);
    recording.record({.name = "split", .in = {x}, .how = {gradient::fresh}, .out = {a, b}, .cost = cost_of::view});
  }
  /// Parts of one fused projection that are taken by slicing (InternLM2): queries are gathered, keys and values are
  /// views; backward makes zeros of the size of the whole for each.
  constexpr void slice_heads(ref x, ref& q, ref& k, ref& v, std::int64_t q_elements, std::int64_t kv_elements) {
    const ref strided = slice(x, q_elements);
    q = copy(strided), k = slice(x, kv_elements), v = slice(x, kv_elements);
  }
  /// softmax(q k^T) v with the plan's attention; the result is laid out as the output projection reads it. Selective
  /// checkpointing keeps q, k and v as the products read them and makes the rest again in backward.
  constexpr ref attention(ref q, ref k, ref v, attention_shape const& a) {
    if (!how.checkpointing.selective || !how.optimizer.trains) return attention_core(q, k, v, a);
    const ref query = to_half(q), key = to_half(k), value = to_half(v);
    return recording.recomputed(query, key, value, [&] { return attention_core(query, key, value, a); });
  }
  /// Keys or values as the plan's attention takes them: some classes copy them to every query head first.
  constexpr ref heads_for_attention(ref x, attention_shape const& a) {
    const bool repeats = how.attention == attention_kind::flash_repeated || how.attention == attention_kind::efficient;
    return repeats && a.kv_heads != a.heads ? repeat_elements(x, a.query_elements()) : x;
  }
  /// silu(gate) * up or gelu(gate) * up in one kernel that writes both gradients over what it saved (Liger's SwiGLU and
  /// GEGLU).
  constexpr ref fused_gate(ref gate, ref up) {
    const ref y = recording.make(elements(gate), type(gate));
    recording.record({.name = "fused gate",
                      .in = {gate, up},
                      .how = {gradient::saved, gradient::saved},
                      .out = {y},
                      .saved = {gate, up},
                      .cost = cost_of::gate});
    return y;
  }

 private:
  constexpr ref attention_core(ref q, ref k, ref v, attention_shape const& a) {
    return how.attention == attention_kind::eager ? eager_attention(q, k, v, a) : fused_attention(q, k, v, a);
  }
  /// Saves q, k, v, out and one fp32 statistic a row and head; the memory-efficient kernel pads those to 32 rows.
  constexpr ref fused_attention(ref query, ref key, ref value, attention_shape const& a) {
    const bool flash = how.attention != attention_kind::efficient;
    const ref q = to_half(query), k = to_half(key), v = to_half(value);
    const ref y = recording.make(elements(q), type(q));
    const std::int64_t padded = flash ? a.sequence : static_cast<std::int64_t>(round_up(a.sequence, 32));
    const ref statistics = recording.make(a.batch * a.heads * padded, dtype::fp32);
    recording.record({.name = flash ? "flash attention" : "efficient attention",
                      .in = {q, k, v},
                      .how = {gradient::fresh, gradient::fresh, gradient::fresh},
                      .out = {y},
                      .saved = {q, k, v, y, statistics},
                      .workspace_backward = flash ? flash_workspace(q, k, a) : efficient_workspace(q, a),
                      .cost = cost_of::contraction(a.sequence, 2, 5)});
    return y;
  }
  /// FlashAttention 2's backward holds an fp32 copy of dq and a row sum, both rounded, and dk and dv for every query
  /// head where heads are shared (flash_api.cpp, mha_bwd).
  constexpr bytes flash_workspace(ref q, ref k, attention_shape const& a) const {
    const std::uint64_t rows = static_cast<std::uint64_t>(a.batch * a.heads) * round_up(a.sequence, 128);
    bytes workspace =
        storage(dtype::fp32, rows) + storage(dtype::fp32, checked_multiply(rows, round_up(a.head_dim, 32)));
    if (elements(k) != elements(q)) workspace += storage(type(q), static_cast<std::uint64_t>(elements(q))) * 2;
    return workspace;
  }
  /// The memory-efficient kernel's backward holds a row sum and dq in fp32 tiles, each with 16 bytes of locks; above a
  /// head_dim of 128 halves also sum dk and dv in fp32, split by keys. In fp32 the row sum is made from a whole product
  /// (attention_backward.cu, mem_eff_attention/kernel_backward.h; tiles as for compute capability 8.0 and 9.0).
  constexpr bytes efficient_workspace(ref q, attention_shape const& a) const {
    const auto heads = static_cast<std::uint64_t>(a.batch * a.heads), length = static_cast<std::uint64_t>(a.sequence),
               width = static_cast<std::uint64_t>(a.head_dim);
    const bool half = is_half(type(q));
    const std::uint64_t tile_rows = half && width > 64 ? 128 : 64, tile_columns = width > 128 ? 64 : tile_rows;
    const std::uint64_t tiles = divide_up(length, tile_rows) * divide_up(width, tile_columns);
    const bytes row_sum = storage(dtype::fp32, checked_multiply(heads, length));
    bytes sums = bytes{checked_multiply(heads * tiles, 4 * tile_rows * tile_columns + 16)};
    if (half && width > 128) {
      const std::uint64_t most = heads < 200 ? 200 / heads : 1, by_length = divide_up(length, 64);
      const std::uint64_t splits = most < by_length ? most : by_length;
      sums += storage(dtype::fp32, checked_multiply(heads * splits * 64, round_up(a.head_dim, 128))) * 2;
    }
    const bytes held = row_sum + sums;
    const bytes product = half ? bytes{} : storage(dtype::fp32, checked_multiply(heads * length, width)) + row_sum * 2;
    return product > held ? product : held;
  }
  /// Hugging Face's eager attention: two batched products with the scores between them.
  constexpr ref eager_attention(ref query, ref key, ref value, attention_shape const& a) {
    const ref q = copy_to_half(query), k = all_heads(key, a), v = all_heads(value, a);
    const std::int64_t scores = checked(checked(a.batch * a.heads, a.sequence), a.sequence);
    ref p = matmul(q, k, scores, a.head_dim);
    p = scale(p);
    if (a.softcap) p = softcap(p);
    p = a.mask ? add_constant(p, a.mask) : scale(p);
    const ref input = to_fp32(p),
              probabilities = softmax(input, a.softmax_in_fp32 ? dtype::fp32 : type(input), a.sequence);
    recording.until_here(p);
    p = cast(probabilities, type(v));
    p = dropout(p, a.dropout);
    const ref mixed = matmul(p, v, a.query_elements(), a.sequence);
    // The gradient comes transposed, so that reshaping it is a copy.
    return copy(alias("heads", mixed, elements(mixed), gradient::fresh));
  }
  constexpr ref softmax(ref x, dtype out, std::int64_t length) {
    const ref y = recording.make(elements(x), out);
    recording.record({.name = "softmax",
                      .in = {x},
                      .how = {gradient::fresh},
                      .out = {y},
                      .saved = {y, how.runtime.softmax_saves_input ? x : ref{}},
                      .cost = cost_of::softmax(length)});
    return y;
  }
  constexpr ref copy_to_half(ref x) {
    const ref half = to_half(x);
    return copy(half);
  }
  /// Keys or values as the product wants them: a copy, which repeating heads is already; one shared head of one
  /// sequence stays a view.
  constexpr ref all_heads(ref x, attention_shape const& a) {
    if (a.kv_heads == a.heads) return copy_to_half(x);
    const ref half = to_half(x);
    if (a.kv_heads == 1 && a.batch == 1) return alias("expand", half, a.query_elements(), gradient::fresh);
    return repeat_elements(half, a.query_elements());
  }
  static constexpr std::uint64_t round_up(std::int64_t n, std::uint64_t to) {
    return divide_up(static_cast<std::uint64_t>(n), to) * to;
  }
};

}  // namespace gpumem
