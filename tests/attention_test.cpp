// SPDX-License-Identifier: MIT
// What fused attention holds in backward beside q, k, v and out, against sizes worked out by hand from the sources of
// PyTorch 2.4 (aten/src/ATen/native/transformers/cuda).
#include <gpumem/recording/operations.hpp>

#include <cstdint>

#include "catch.hpp"

using namespace gpumem;

namespace {

struct seen {
  std::uint64_t workspace = 0;
  std::int64_t statistics = 0;  // elements
};

constexpr seen attend(attention_kind kind, dtype type, attention_shape const& a) {
  plan p = make_plan(pure<>{});
  p.attention = kind;
  tape_with_room<16, 32> t;
  operations ops{t, p};
  const auto leaf = [&](std::int64_t heads) {
    return t.parameter({.rows = a.batch * a.sequence, .columns = heads * a.head_dim, .type = type}, true);
  };
  const ref q = leaf(a.heads), k = leaf(a.kv_heads), v = leaf(a.kv_heads);
  static_cast<void>(ops.attention(q, k, v, a));
  operation const& o = t.operation_at(t.operations());
  return {o.workspace_backward.value, t.elements(o.saved[4])};
}

}  // namespace

TEST_CASE("memory-efficient attention: row sums, tiles of dq with locks, statistics of 32 rows", "[attention]") {
  constexpr auto efficient = attention_kind::efficient;
  constexpr attention_shape narrow{.batch = 2, .sequence = 200, .heads = 4, .kv_heads = 4, .head_dim = 64};
  constexpr seen half = attend(efficient, dtype::bf16, narrow);
  STATIC_REQUIRE(half.statistics == 8 * 224);                                // 200 rows in blocks of 32
  STATIC_REQUIRE(half.workspace == 8 * (200 * 4 + 4 * (64 * 64 * 4 + 16)));  // four tiles of 64 rows
  constexpr seen full = attend(efficient, dtype::fp32, narrow);
  STATIC_REQUIRE(full.workspace == 8 * (200 * 4 + 4 * (64 * 64 * 4 + 16)));  // more than the product, 8 x 200 x 66 x 4

  constexpr attention_shape wide{.batch = 1, .sequence = 4096, .heads = 32, .kv_heads = 32, .head_dim = 128};
  STATIC_REQUIRE(attend(efficient, dtype::bf16, wide).workspace == 32 * (4096 * 4 + 32 * (128 * 128 * 4 + 16)));
  // In fp32 the product and two sums of its rows are more than 128 tiles and one sum.
  STATIC_REQUIRE(attend(efficient, dtype::fp32, wide).workspace == 32 * 4096 * (128 + 2) * 4);

  // Above 128: tiles of 128 x 64, and dk and dv in fp32 for 200 / 8 = 25 splits, more than the 16 blocks of 64 keys.
  constexpr attention_shape wider{.batch = 1, .sequence = 1024, .heads = 8, .kv_heads = 8, .head_dim = 256};
  STATIC_REQUIRE(attend(efficient, dtype::bf16, wider).workspace ==
                 8 * (1024 * 4 + 8 * 4 * (128 * 64 * 4 + 16) + 2 * 16 * 64 * 256 * 4));
}

TEST_CASE("flash attention: a row sum and dq in fp32, both rounded; dk and dv where heads are shared", "[attention]") {
  constexpr auto flash = attention_kind::flash;
  constexpr attention_shape shape{.batch = 2, .sequence = 200, .heads = 4, .kv_heads = 4, .head_dim = 80};
  constexpr seen half = attend(flash, dtype::bf16, shape);
  STATIC_REQUIRE(half.statistics == 8 * 200);
  STATIC_REQUIRE(half.workspace == 8 * 256 * (1 + 96) * 4);  // 200 rows in 128s, 80 columns in 32s
  constexpr attention_shape shared{.batch = 2, .sequence = 200, .heads = 4, .kv_heads = 2, .head_dim = 80};
  STATIC_REQUIRE(attend(flash, dtype::bf16, shared).workspace == 8 * 256 * (1 + 96) * 4 + 2 * (8 * 200 * 80) * 2);
}
