// SPDX-License-Identifier: MIT
// What one block saves for backward, against measured rows and against the closed forms derived from them.
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "measured_blocks.hpp"
#include "measured_rows.hpp"

using namespace measured_blocks;

TEST_CASE("208 measured rows of GPT-2, Llama and BERT blocks, to the byte", "[saved bytes]") {
  const std::vector<row> rows = measured_rows();
  REQUIRE(rows.size() == 208);
  std::map<std::string, int> kinds;
  for (row const& r : rows) {
    INFO(r.kind_name << ", " << r.dims.batch << " x " << r.dims.sequence << " x " << r.dims.hidden);
    CHECK(saved(r.what, r.dims) == r.measured);
    ++kinds[r.kind_name];
  }
  CHECK(kinds.size() == 44);
}

namespace {

// One measured row of each of the 44 kinds, as constants.
struct constant_row {
  kind what;
  shape dims;
  std::uint64_t measured;
};
constexpr auto gpt2 = architecture::gpt2, llama = architecture::llama, bert = architecture::bert;
constexpr constant_row constants[] = {
    {{gpt2, false, true, precision::fp32, false}, {1, 32, 64, 2, 2, 256}, 139776},
    {{gpt2, false, false, precision::fp32, false}, {2, 48, 96, 3, 3, 384}, 1089024},
    {{gpt2, true, true, precision::fp32, false}, {3, 40, 128, 8, 8, 320}, 804480},
    {{gpt2, true, false, precision::fp32, false}, {1, 100, 64, 4, 4, 160}, 528000},
    {{gpt2, false, true, precision::bf16, false}, {1, 32, 64, 2, 2, 256}, 70144},
    {{gpt2, false, false, precision::bf16, false}, {2, 48, 96, 3, 3, 384}, 545280},
    {{gpt2, true, true, precision::bf16, false}, {3, 40, 128, 8, 8, 320}, 405120},
    {{gpt2, true, false, precision::bf16, false}, {1, 100, 64, 4, 4, 160}, 265600},
    {{gpt2, false, true, precision::autocast, false}, {1, 32, 64, 2, 2, 256}, 86528},
    {{gpt2, false, false, precision::autocast, false}, {2, 48, 96, 3, 3, 384}, 858624},
    {{gpt2, true, true, precision::autocast, false}, {3, 40, 128, 8, 8, 320}, 466560},
    {{gpt2, true, false, precision::autocast, false}, {1, 100, 64, 4, 4, 160}, 387200},
    {{gpt2, false, true, precision::fp32, true}, {1, 32, 64, 2, 2, 256}, 154112},
    {{gpt2, false, false, precision::fp32, true}, {2, 48, 96, 3, 3, 384}, 1176576},
    {{gpt2, true, true, precision::fp32, true}, {3, 40, 128, 8, 8, 320}, 835200},
    {{gpt2, true, false, precision::fp32, true}, {1, 100, 64, 4, 4, 160}, 540800},
    {{gpt2, false, true, precision::bf16, true}, {1, 32, 64, 2, 2, 256}, 80384},
    {{gpt2, false, false, precision::bf16, true}, {2, 48, 96, 3, 3, 384}, 605184},
    {{gpt2, true, true, precision::bf16, true}, {3, 40, 128, 8, 8, 320}, 435840},
    {{gpt2, true, false, precision::bf16, true}, {1, 100, 64, 4, 4, 160}, 278400},
    {{gpt2, false, true, precision::autocast, true}, {1, 32, 64, 2, 2, 256}, 92672},
    {{gpt2, false, false, precision::autocast, true}, {2, 48, 96, 3, 3, 384}, 890880},
    {{gpt2, true, true, precision::autocast, true}, {3, 40, 128, 8, 8, 320}, 497280},
    {{gpt2, true, false, precision::autocast, true}, {1, 100, 64, 4, 4, 160}, 400000},
    {{llama, false, false, precision::fp32, false}, {1, 32, 64, 2, 1, 256}, 213248},
    {{llama, false, true, precision::fp32, false}, {1, 32, 64, 2, 2, 256}, 172288},
    {{llama, true, false, precision::fp32, false}, {2, 48, 96, 3, 1, 384}, 911232},
    {{llama, true, true, precision::fp32, false}, {2, 48, 96, 3, 3, 384}, 739200},
    {{llama, false, false, precision::bf16, false}, {3, 40, 128, 8, 1, 320}, 907200},
    {{llama, false, true, precision::bf16, false}, {3, 40, 128, 8, 8, 320}, 707520},
    {{llama, true, false, precision::bf16, false}, {1, 100, 64, 4, 1, 160}, 264800},
    {{llama, true, true, precision::bf16, false}, {1, 100, 64, 4, 4, 160}, 200800},
    {{bert, false, true, precision::fp32, false}, {1, 32, 64, 2, 2, 256}, 139776},
    {{bert, true, true, precision::fp32, false}, {2, 48, 96, 3, 3, 384}, 592512},
    {{bert, false, true, precision::bf16, false}, {3, 40, 128, 8, 8, 320}, 478080},
    {{bert, true, true, precision::bf16, false}, {1, 100, 64, 4, 4, 160}, 169600},
    {{bert, false, true, precision::autocast, false}, {1, 32, 64, 2, 2, 256}, 94720},
    {{bert, true, true, precision::autocast, false}, {2, 48, 96, 3, 3, 384}, 371328},
    {{bert, false, true, precision::fp32, true}, {3, 40, 128, 8, 8, 320}, 1176960},
    {{bert, true, true, precision::fp32, true}, {1, 100, 64, 4, 4, 160}, 348800},
    {{bert, false, true, precision::bf16, true}, {1, 32, 64, 2, 2, 256}, 80384},
    {{bert, true, true, precision::bf16, true}, {2, 48, 96, 3, 3, 384}, 316032},
    {{bert, false, true, precision::autocast, true}, {3, 40, 128, 8, 8, 320}, 823680},
    {{bert, true, true, precision::autocast, true}, {1, 100, 64, 4, 4, 160}, 233600},
};
static_assert(std::size(constants) == 44);

template <std::size_t From, std::size_t... I>
constexpr bool all_constants_hold(std::index_sequence<I...>) {
  return ((saved(constants[From + I].what, constants[From + I].dims) == constants[From + I].measured) && ...);
}

}  // namespace

TEST_CASE("one measured row of each kind as a compile-time constant", "[saved bytes]") {
  STATIC_REQUIRE(all_constants_hold<0>(std::make_index_sequence<15>{}));
  STATIC_REQUIRE(all_constants_hold<15>(std::make_index_sequence<15>{}));
  STATIC_REQUIRE(all_constants_hold<30>(std::make_index_sequence<14>{}));
  for (constant_row const& r : constants) CHECK(saved(r.what, r.dims) == r.measured);
}
namespace {

// The closed forms of the measurements' write-up (one layer, e bytes an element, n tokens, a heads, kv shared heads).
std::uint64_t closed_form(kind const& k, shape const& s) {
  const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const std::uint64_t n = u(s.batch * s.sequence), h = u(s.hidden), f = u(s.feed_forward), a = u(s.heads);
  const std::uint64_t scores = a * u(s.sequence) * n, e = k.prec == precision::fp32 ? 4 : 2, d = k.dropout ? 1 : 0;
  if (k.arch == architecture::llama) {
    const std::uint64_t shared = u(s.kv_heads) * h / a;
    const bool copied = !k.flash && !(s.batch == 1 && s.kv_heads == 1);
    const std::uint64_t norm = k.fused ? 2 * e * n * h : 2 * (4 + e) * n * h;
    const std::uint64_t key_value = copied ? 2 * e * n * h : 2 * e * n * shared;
    const std::uint64_t attention = k.flash ? 4 * a * n : (e == 2 ? 6 : 4) * scores;
    return norm + 4 * e * n * h + key_value + (k.fused ? 3 : 4) * e * n * f + attention + 8 * n;
  }
  if (k.prec == precision::autocast) {
    const std::uint64_t attention = k.flash ? 4 * a * n : (6 + d) * scores;
    const std::uint64_t casts = k.arch == architecture::bert ? 4 * n * h : 0;  // one for each of q, k and v
    return (20 + 2 * d) * n * h + casts + 4 * n * f + 16 * n + attention + (k.fused ? 0 : 12 * n * f);
  }
  const std::uint64_t attention = k.flash ? 4 * a * n : (d != 0 ? 2 * e + 1 : e) * scores;
  return (8 * e + 2 * d) * n * h + 2 * e * n * f + 16 * n + attention + (k.fused ? 0 : 3 * e * n * f);
}

}  // namespace

TEST_CASE("2,000 random shapes equal the closed forms", "[saved bytes]") {
  std::mt19937 random{20'240'607};
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution{from, to}(random); };
  for (int i = 0; i < 2000; ++i) {
    kind k{.arch = static_cast<architecture>(pick(0, 2)), .flash = pick(0, 1) != 0, .fused = pick(0, 1) != 0};
    const bool is_llama = k.arch == architecture::llama;
    k.prec = static_cast<precision>(pick(0, is_llama ? 1 : 2));
    k.dropout = !is_llama && pick(0, 1) != 0;
    if (k.arch == architecture::bert) k.fused = true;
    const int heads = pick(1, 16), head_dim = 2 * pick(1, 64);
    std::vector<int> divisors;
    for (int d = 1; d <= heads; ++d)
      if (heads % d == 0) divisors.push_back(d);
    const int shared = divisors[static_cast<std::size_t>(pick(0, static_cast<int>(divisors.size()) - 1))];
    const shape s{.batch = pick(1, 9),
                  .sequence = pick(1, 700),
                  .hidden = heads * head_dim,
                  .heads = heads,
                  .kv_heads = is_llama ? shared : heads,
                  .feed_forward = pick(1, 4000)};
    INFO("kind " << static_cast<int>(k.arch) << k.flash << k.fused << static_cast<int>(k.prec) << k.dropout << ": b "
                 << s.batch << " s " << s.sequence << " h " << s.hidden << " a " << s.heads << " kv " << s.kv_heads
                 << " f " << s.feed_forward);
    REQUIRE(saved(k, s) == closed_form(k, s));
  }
}

TEST_CASE("worked values for whole models", "[saved bytes]") {
  // formulas of the measurements' write-up: GPT-2 124M at 8 x 1024, Llama-2-7B and Llama-3-8B at 1 x 4096, one layer.
  constexpr shape gpt2_small{8, 1024, 768, 12, 12, 3072};
  STATIC_REQUIRE(saved({.fused = true, .dropout = true}, gpt2_small) == 1'321'336'832);
  CHECK(saved({.fused = true, .prec = precision::bf16, .dropout = true}, gpt2_small) == 717'357'056);
  CHECK(saved({.fused = true, .prec = precision::autocast, .dropout = true}, gpt2_small) == 943'849'472);
  CHECK(saved({.flash = true, .fused = true, .prec = precision::autocast, .dropout = true}, gpt2_small) == 239'599'616);
  CHECK(saved({.flash = true, .prec = precision::autocast, .dropout = true}, gpt2_small) == 541'589'504);
  constexpr shape llama2{1, 4096, 4096, 32, 32, 11008}, llama3{1, 4096, 4096, 32, 8, 14336};
  CHECK(saved({.arch = llama, .flash = true, .prec = precision::bf16}, llama2) == 763'920'384);
  CHECK(saved({.arch = llama, .flash = true, .fused = true, .prec = precision::bf16}, llama2) == 539'525'120);
  CHECK(saved({.arch = llama, .flash = true, .prec = precision::bf16}, llama3) == 822'640'640);
  STATIC_REQUIRE(saved({.arch = llama, .flash = true, .fused = true, .prec = precision::bf16}, llama3) == 570'982'400);
}
