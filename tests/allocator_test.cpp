// SPDX-License-Identifier: MIT
// The timeline replayed: through a ledger, which never needs more than the peak, and through PyTorch's caching
// allocator.
#include <gpumem/budget.hpp>
#include <gpumem/recording/caching_allocator.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <random>

#include "catch.hpp"
#include "fine_tunes.hpp"
#include "measured_runs.hpp"
#include "operation_records.hpp"

using namespace gpumem;

namespace {

constexpr std::uint64_t KiB = 1024, MiB = KiB * KiB;

/// The simplest allocator: it counts, and insists that what is freed was allocated.
class ledger final : public walk_observer {
 public:
  void allocate(int block, std::uint64_t size) override {
    CHECK(size % 512 == 0);
    CHECK(blocks_.emplace(block, size).second);
    live_ += size;
    if (live_ > peak_) peak_ = live_;
  }
  void free(int block) override {
    const auto at = blocks_.find(block);
    REQUIRE(at != blocks_.end());
    live_ -= at->second;
    blocks_.erase(at);
  }
  [[nodiscard]] std::uint64_t peak() const { return peak_; }
  [[nodiscard]] std::uint64_t live() const { return live_; }

 private:
  std::map<int, std::uint64_t> blocks_;
  std::uint64_t live_ = 0, peak_ = 0;
};

struct replayed {
  timeline walked;
  bytes peak{};
};

template <class Observer>
replayed replay(transformer const& m, workload const& w, plan const& p, Observer& observer) {
  auto recording = std::make_unique<tape_with_room<2000, 3000>>();
  operations ops{*recording, p};
  ops.unrolled = true;
  const ref loss = record(ops, m, w);
  ops.finish(loss);
  const walk_options o{.gradients = p.precision.gradients,
                       .backward = p.optimizer.trains,
                       .accumulate = w.accumulation > 1,
                       .update_in_backward = p.optimizer.in_backward,
                       .observer = &observer};
  const timeline t = walk(*recording, loss, p.runtime, o);
  bytes peak = t.forward.total;
  for (moment const& each : {t.loss, t.backward, t.backward_end})
    if (each.total > peak) peak = each.total;
  return {t, peak};
}

plan random_plan(std::mt19937& random) {
  const auto coin = [&] { return random() % 2 == 0; };
  plan p = make_plan();
  p.precision = coin() ? fp32::numbers : coin() ? pure<>::numbers : coin() ? autocast<>::numbers : mixed<>::numbers;
  p.attention = coin() ? attention_kind::eager : coin() ? attention_kind::flash : attention_kind::flash_repeated;
  p.kernels = static_cast<kernel_kind>(random() % 5);
  p.loss = coin()   ? eager_loss::numbers
           : coin() ? eager_loss_4_45::numbers
           : coin() ? triton_loss::numbers
                    : fused_linear_loss::numbers;
  if (coin()) p.checkpointing = checkpoint_every<2>::numbers;
  if (coin()) p.optimizer = detail::optimizer_of<in_backward<sgd>>();
  p.runtime.sums_in_place = coin();
  return p;
}

}  // namespace

TEST_CASE("a ledger of the timeline balances and never needs more than the peak", "[allocator]") {
  std::mt19937 random(6);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t heads = 1 << random() % 3;
    transformer m{.layers = 1 + static_cast<std::int64_t>(random() % 5),
                  .hidden = heads * 32,
                  .heads = heads,
                  .vocabulary = 50 + static_cast<std::int64_t>(random() % 500),
                  .positions = 64};
    if (random() % 2 == 0) m = llama(m, random() % 2 == 0);
    const plan p = random_plan(random);
    const workload w{.micro_batch = 1 + static_cast<std::int64_t>(random() % 3),
                     .sequence = 64,
                     .accumulation = p.optimizer.in_backward ? 1 : 1 + static_cast<std::int64_t>(random() % 2)};
    ledger seen;
    const replayed r = replay(m, w, p, seen);
    INFO("run " << i);
    CHECK(seen.live() == r.walked.backward_end.total.value);
    // An accumulating walk reports the second micro-batch, which needs no less than the first.
    CHECK(seen.peak() == r.peak.value);
  }
}

TEST_CASE("small requests share segments of 2 MiB, middling ones of 20 MiB", "[allocator]") {
  caching_allocator<16> small;
  small.allocate(1, 1), small.allocate(2, MiB);
  CHECK(small.allocated().value == 512 + MiB);
  CHECK(small.reserved().value == 2 * MiB);
  small.allocate(3, MiB);
  CHECK(small.reserved().value == 4 * MiB);

  caching_allocator<16> large;
  large.allocate(1, MiB + 1);
  CHECK(large.allocated().value == MiB + 512);
  CHECK(large.reserved().value == 20 * MiB);
  large.allocate(2, 9 * MiB), large.allocate(3, 9 * MiB);
  CHECK(large.reserved().value == 20 * MiB);  // 20 - 1 - 9 - 9 leaves less than 1 MiB unsplit
  CHECK(large.allocated().value == 20 * MiB);
  large.allocate(4, 10 * MiB);
  CHECK(large.reserved().value == 30 * MiB);
  large.allocate(5, 11 * MiB - 1);
  CHECK(large.reserved().value == 42 * MiB);
}

TEST_CASE("a large block is split where more than 1 MiB is left, and joins its neighbours again", "[allocator]") {
  caching_allocator<16> a;
  a.allocate(1, 100 * MiB), a.free(1);
  a.allocate(2, 99 * MiB);
  CHECK(a.allocated().value == 100 * MiB);  // 1 MiB is not more than 1 MiB
  a.free(2), a.allocate(3, 98 * MiB);
  CHECK(a.allocated().value == 98 * MiB);
  a.allocate(4, 2 * MiB), a.free(3), a.free(4);
  a.allocate(5, 100 * MiB);
  CHECK(a.reserved().value == 100 * MiB);
  CHECK(a.peak_allocated().value == 100 * MiB);
}

TEST_CASE("the allocator at compile time", "[allocator]") {
  constexpr auto reserved = [] {
    caching_allocator<8> a;
    a.allocate(1, 3 * MiB), a.allocate(2, 512), a.free(1), a.allocate(3, 5 * MiB);
    return a.reserved().value;
  };
  STATIC_REQUIRE(reserved() == 22 * MiB);
}

TEST_CASE("a full allocator says so", "[allocator]") {
  caching_allocator<2> a;
  a.allocate(1, 512);
  CHECK_THROWS_AS(a.allocate(2, 512), error);
}

TEST_CASE("what is allocated is at least the walk and at most 1 MiB a tensor more", "[allocator]") {
  caching_allocator<> a;
  constexpr transformer m{.layers = 4, .hidden = 512, .heads = 8, .vocabulary = 8000, .positions = 512};
  const replayed r = replay(m, {.micro_batch = 4, .sequence = 512}, make_plan(pure<>{}), a);
  CHECK(a.peak_allocated() >= r.peak);
  CHECK(a.reserved() >= a.peak_allocated());
  CHECK(a.peak_allocated().value <= r.peak.value + 200 * MiB);
}
