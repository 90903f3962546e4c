// SPDX-License-Identifier: MIT
// What must hold for every model, plan and workload, on 5,000 random ones.
#include <gpumem/budget.hpp>

#include <cstdint>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "random_models.hpp"

using namespace gpumem;

namespace {

bytes kept(breakdown const& b) { return b.forward_end.categories.activations; }

std::string described(transformer const& m, workload const& load, plan const& p) {
  std::ostringstream text;
  text << "layers " << m.layers << " hidden " << m.hidden << " heads " << m.heads << " kv " << m.kv_heads
       << " vocabulary " << m.vocabulary << " norm " << static_cast<int>(m.norm) << " block "
       << static_cast<int>(m.block) << " gated " << m.gated << " activation " << static_cast<int>(m.activation)
       << " fused_qkv " << m.fused_qkv << " rotary " << static_cast<int>(m.position) << "; b " << load.micro_batch
       << " s " << load.sequence << "; flash " << (p.attention == attention_kind::flash) << " autocast "
       << p.precision.autocast << " weights " << name(p.precision.weights) << " granule " << p.runtime.granule;
  return text.str();
}

template <class Check>
void for_5000(unsigned seed, Check const& holds) {
  random_models::source any{seed};
  for (int i = 0; i < 5000; ++i) {
    const transformer m = any.decoder();
    const plan p = any.how();
    const workload load = any.load();
    INFO(described(m, load, p));
    holds(m, load, p, any);
  }
}

}  // namespace

TEST_CASE("the peak is never under any phase, and no byte is without a category", "[properties]") {
  for_5000(21, [](transformer const& m, workload const& load, plan p, random_models::source& any) {
    p.checkpointing.every = any.pick(0, 3);
    const breakdown b = estimate(m, load, p);
    for (const moment& each : b.timeline) {
      REQUIRE(each.total <= b.peak.total);
      REQUIRE(each.total == each.categories.total());
    }
    REQUIRE(b.forward_end.total <= b.peak.total);
  });
}

TEST_CASE("checkpointing never raises what forward keeps", "[properties]") {
  for_5000(22, [](transformer const& m, workload const& load, plan p, random_models::source& any) {
    const breakdown all = estimate(m, load, p);
    const std::int64_t every = any.pick(1, 4), first = any.pick(1, 6);
    p.checkpointing = {.every = every};
    const bytes with_every = kept(estimate(m, load, p));
    REQUIRE(with_every <= kept(all));
    p.checkpointing = {.every = 1, .first = first};
    const bytes with_first = kept(estimate(m, load, p));
    REQUIRE(with_first <= kept(all));
  });
}

TEST_CASE("a larger batch or a longer sequence never needs less", "[properties]") {
  for_5000(23, [](transformer const& m, workload const& load, plan p, random_models::source& any) {
    p.checkpointing.every = any.pick(0, 3);
    const breakdown b = estimate(m, load, p);
    workload larger = load, longer = load;
    larger.micro_batch += any.pick(1, 4), longer.sequence += any.pick(1, 300);
    const breakdown with_larger = estimate(m, larger, p), with_longer = estimate(m, longer, p);
    REQUIRE(b.peak.total <= with_larger.peak.total);
    REQUIRE(b.peak.total <= with_longer.peak.total);
    REQUIRE(kept(b) <= kept(with_larger));
    REQUIRE(kept(b) <= kept(with_longer));
  });
}

TEST_CASE("fused kernels never save more, nor need more", "[properties]") {
  for_5000(24, [](transformer const& m, workload const& load, plan p, random_models::source& any) {
    p.checkpointing.every = any.pick(0, 3);
    p.kernels = kernel_kind::eager;
    const breakdown eager = estimate(m, load, p);
    p.kernels = kernel_kind::fused;
    const breakdown fused = estimate(m, load, p);
    REQUIRE(fused.saved_per_layer <= eager.saved_per_layer);
    REQUIRE(kept(fused) <= kept(eager));
    REQUIRE(fused.peak.total <= eager.peak.total);
  });
}

TEST_CASE("selective checkpointing keeps less wherever scores outweigh q, k and v", "[properties]") {
  for_5000(25, [](transformer const& m, workload const& load, plan p, random_models::source&) {
    if (m.fused_qkv || load.sequence < 4 * m.head_width()) return;  // a view of v keeps the fused projection
    const breakdown all = estimate(m, load, p);
    p.checkpointing = selective_checkpointing::numbers;
    const breakdown selective = estimate(m, load, p);
    REQUIRE(selective.saved_per_layer == all.saved_per_layer);  // of a block without checkpointing
    REQUIRE(kept(selective) <= kept(all));
    // The mask stays with the checkpoint: with one head it is as large as the scores.
    if (p.attention == attention_kind::eager && m.heads > 1) REQUIRE(kept(selective) < kept(all));
  });
}

TEST_CASE("an encoder's peak is over its phases, grows with its input and shrinks with checkpoints", "[properties]") {
  random_models::source any{26};
  for (int i = 0; i < 5000; ++i) {
    const encoder_classifier m = any.encoder();
    plan p = any.how();
    const workload load = any.load();
    workload larger = load, longer = load;
    larger.micro_batch += any.pick(1, 4), longer.sequence += any.pick(1, 300);
    const breakdown b = estimate(m, load, p);
    for (const moment& each : b.timeline) REQUIRE(each.total <= b.peak.total);
    const breakdown with_larger = estimate(m, larger, p), with_longer = estimate(m, longer, p);
    REQUIRE(b.peak.total <= with_larger.peak.total);
    REQUIRE(b.peak.total <= with_longer.peak.total);
    p.checkpointing = {.every = any.pick(1, 4)};
    const breakdown checkpointed = estimate(m, load, p);
    REQUIRE(kept(checkpointed) <= kept(b));
  }
}
