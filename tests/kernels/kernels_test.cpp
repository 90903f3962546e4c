// SPDX-License-Identifier: MIT
// Every kernel and chain, run without a GPU: right against float64, and the bytes it moves equal to the formula.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include "catch.hpp"

#include "adamw_8bit.cuh"
#include "bias_gelu.cuh"
#include "dropout.cuh"
#include "problems.hpp"
#include "rows.cuh"

using namespace gpumem::kernels;
using namespace gpumem::kernels::test;

namespace {

/// Fresh inputs in every run; a failure prints the seed, and GPUMEM_TEST_SEED repeats it.
std::uint64_t seed_of_this_run() {
  static std::uint64_t const seed = [] {
    char const* const given = std::getenv("GPUMEM_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::uint64_t{std::random_device{}()};
  }();
  return seed;
}

struct settings_guard {
  ~settings_guard() { simt::settings() = {}; }
};

std::vector<shape> all_shapes() {
#if defined(__SANITIZE_ADDRESS__)
  // five times as slow: a few shapes reach every access, and accuracy is for the other builds
  return {{33, 7}, {33, 64}, {33, 1000}, {3, 4096}, {1, 50257}};
#else
  std::vector<shape> shapes;
  for (std::int64_t const rows : {1, 2, 31, 32, 33, 67}) {
    for (int const columns : {1, 7, 32, 64, 768, 1000}) shapes.push_back({rows, columns});
  }
  for (std::int64_t const rows : {1, 3}) {
    for (int const columns : {4096, 50257}) shapes.push_back({rows, columns});
  }
  return shapes;
#endif
}

/// Errors of several runs taken as one. A bf16 rounding alone may be off by 0.4 %: what a chain of them does shows in
/// many values, not in one.
class pooled_errors {
 public:
  void add(std::vector<output_error> const& errors) {
    if (pool_.empty()) {
      pool_ = errors;
      return;
    }
    for (std::size_t i = 0; i < errors.size(); ++i) {
      pool_[i].difference += errors[i].difference;
      pool_[i].norm += errors[i].norm;
    }
  }
  void check() const {
    for (auto const& error : pool_) {
      INFO("output " << error.output << ", relative error " << error.relative());
      REQUIRE(error.relative() < error.limit);
    }
  }
  double worst() const {
    double worst = 0;
    for (auto const& error : pool_) worst = std::max(worst, error.relative());
    return worst;
  }

 private:
  std::vector<output_error> pool_;
};

void check_bytes(problem const& p, variant v) {
  auto const& counted = simt::counted_traffic();
  std::uint64_t const reads = p.predicted(v).reads, writes = p.predicted(v).writes;
  REQUIRE(counted.requested_reads == reads + static_cast<std::uint64_t>(p.repeated_parameter_bytes(v)));
  REQUIRE(counted.requested_writes == writes);
  REQUIRE(counted.distinct_writes == writes);
  if (p.reads_once(v)) {
    REQUIRE(counted.distinct_reads == reads);
  } else {
    REQUIRE(counted.distinct_reads < reads);
  }
}

/// Returns the largest relative error.
double check_shape(operation const& op, dtype type, shape s, device_context const& device) {
  constexpr std::int64_t values_wanted = 4096, repeats_in_every_schedule = 8;
  std::int64_t const repeats = std::max<std::int64_t>(1, values_wanted / (s.rows * s.columns));
  double worst = 0;
  for (auto const v : op.variants) {
    INFO(op.name << " " << to_string(v) << " " << to_string(type) << " " << s.rows << "x" << s.columns << ", seed "
                 << seed_of_this_run());
    pooled_errors errors;
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
      auto const p = op.make(device, type, s, seed_of_this_run() + static_cast<std::uint64_t>(repeat));
      std::vector<unsigned char> forward;
      for (auto const schedule : {simt::schedule::forward, simt::schedule::reverse, simt::schedule::random}) {
        if (schedule != simt::schedule::forward && repeat >= repeats_in_every_schedule) break;
        simt::settings().schedule = schedule;
        simt::settings().seed = seed_of_this_run();
        simt::reset_traffic();
        p->run(v);
        check_bytes(*p, v);
        if (schedule == simt::schedule::forward) forward = p->output_bits();
        REQUIRE(p->output_bits() == forward);  // so one schedule's errors are those of all
      }
      errors.add(p->errors());
    }
    errors.check();
    worst = std::max(worst, errors.worst());
  }
  return worst;
}

void check_operation(std::string const& name, dtype type) {
  settings_guard const restore;
  double worst = 0;
  operation const& op = find_operation(name);
  for (auto const s : all_shapes()) {
    if (op.is_possible(small_device(), type, s)) worst = std::max(worst, check_shape(op, type, s, small_device()));
  }
  std::printf("%-16s %s  largest relative error %.1e\n", name.c_str(), to_string(type), worst);
}

}  // namespace

TEST_CASE("kernels: copy fp32") { check_operation("copy", dtype::fp32); }
TEST_CASE("kernels: copy bf16") { check_operation("copy", dtype::bf16); }
TEST_CASE("kernels: softmax forward fp32") { check_operation("softmax_forward", dtype::fp32); }
TEST_CASE("kernels: softmax forward bf16") { check_operation("softmax_forward", dtype::bf16); }
TEST_CASE("kernels: softmax backward fp32") { check_operation("softmax_backward", dtype::fp32); }
TEST_CASE("kernels: softmax backward bf16") { check_operation("softmax_backward", dtype::bf16); }
TEST_CASE("kernels: add rms norm fp32") { check_operation("add_rms_norm", dtype::fp32); }
TEST_CASE("kernels: add rms norm bf16") { check_operation("add_rms_norm", dtype::bf16); }
TEST_CASE("kernels: bias gelu fp32") { check_operation("bias_gelu", dtype::fp32); }
TEST_CASE("kernels: bias gelu bf16") { check_operation("bias_gelu", dtype::bf16); }
TEST_CASE("kernels: adamw fp32") { check_operation("adamw", dtype::fp32); }
TEST_CASE("kernels: adamw bf16 with fp32 master") { check_operation("adamw", dtype::bf16); }

TEST_CASE("kernels: layer norm forward fp32") { check_operation("layer_norm_forward", dtype::fp32); }
TEST_CASE("kernels: layer norm forward bf16") { check_operation("layer_norm_forward", dtype::bf16); }
TEST_CASE("kernels: layer norm backward fp32") { check_operation("layer_norm_backward", dtype::fp32); }
TEST_CASE("kernels: layer norm backward bf16") { check_operation("layer_norm_backward", dtype::bf16); }
TEST_CASE("kernels: rms norm forward fp32") { check_operation("rms_norm_forward", dtype::fp32); }
TEST_CASE("kernels: rms norm forward bf16") { check_operation("rms_norm_forward", dtype::bf16); }
TEST_CASE("kernels: rms norm backward fp32") { check_operation("rms_norm_backward", dtype::fp32); }
TEST_CASE("kernels: rms norm backward bf16") { check_operation("rms_norm_backward", dtype::bf16); }

TEST_CASE("kernels: bias dropout add layer norm fp32") {
  check_operation("bias_dropout_add_layer_norm", dtype::fp32);
}
TEST_CASE("kernels: bias dropout add layer norm bf16") {
  check_operation("bias_dropout_add_layer_norm", dtype::bf16);
}
TEST_CASE("kernels: bias dropout add layer norm backward fp32") {
  check_operation("bias_dropout_add_layer_norm_backward", dtype::fp32);
}
TEST_CASE("kernels: bias dropout add layer norm backward bf16") {
  check_operation("bias_dropout_add_layer_norm_backward", dtype::bf16);
}

TEST_CASE("kernels: swiglu forward fp32") { check_operation("swiglu_forward", dtype::fp32); }
TEST_CASE("kernels: swiglu forward bf16") { check_operation("swiglu_forward", dtype::bf16); }
TEST_CASE("kernels: swiglu backward fp32") { check_operation("swiglu_backward", dtype::fp32); }
TEST_CASE("kernels: swiglu backward bf16") { check_operation("swiglu_backward", dtype::bf16); }
TEST_CASE("kernels: bias gelu backward fp32") { check_operation("bias_gelu_backward", dtype::fp32); }
TEST_CASE("kernels: bias gelu backward bf16") { check_operation("bias_gelu_backward", dtype::bf16); }
TEST_CASE("kernels: cross entropy fp32") { check_operation("cross_entropy", dtype::fp32); }
TEST_CASE("kernels: cross entropy bf16") { check_operation("cross_entropy", dtype::bf16); }
TEST_CASE("kernels: gradient clipping fp32") { check_operation("gradient_clipping", dtype::fp32); }
TEST_CASE("kernels: gradient clipping bf16") { check_operation("gradient_clipping", dtype::bf16); }
TEST_CASE("kernels: adamw 8bit fp32") { check_operation("adamw_8bit", dtype::fp32); }
TEST_CASE("kernels: adamw 8bit bf16") { check_operation("adamw_8bit", dtype::bf16); }

TEST_CASE("kernels: rows that do not fit on the chip are read once more") {
  settings_guard const restore;
  auto const device = small_device(4 * 1024);
  for (auto const* const name : {"softmax_forward", "softmax_backward", "add_rms_norm", "layer_norm_forward",
                                 "rms_norm_forward", "cross_entropy", "bias_dropout_add_layer_norm"}) {
    for (auto const type : {dtype::fp32, dtype::bf16}) {
      for (shape const s : {shape{3, 4096}, shape{3, 4099}}) {
        REQUIRE_FALSE(row_stays_on_chip<bf16>(device, s.columns));
        check_shape(find_operation(name), type, s, device);
      }
    }
  }
}

TEST_CASE("kernels: backward norms whose sums fill the shared memory read rows once more") {
  settings_guard const restore;
  for (auto const type : {dtype::fp32, dtype::bf16}) {
    for (shape const s : {shape{3, 4096}, shape{19, 4099}}) {
      check_shape(find_operation("layer_norm_backward"), type, s, small_device(36 * 1024));
      check_shape(find_operation("rms_norm_backward"), type, s, small_device(20 * 1024));
      check_shape(find_operation("bias_dropout_add_layer_norm_backward"), type, s, small_device(52 * 1024));
    }
  }
}

TEST_CASE("kernels: a backward norm too wide for the shared memory says so") {
  settings_guard const restore;
  auto const p = find_operation("layer_norm_backward").make(small_device(), dtype::fp32, {1, 50257}, 1);
  CHECK_THROWS_AS(p->run(variant::fused), std::invalid_argument);
}

TEST_CASE("kernels: every row strategy at its limits") {
  settings_guard const restore;
  for (auto const* const name : {"softmax_forward", "softmax_backward", "add_rms_norm", "layer_norm_forward",
                                 "layer_norm_backward", "rms_norm_forward", "rms_norm_backward", "cross_entropy",
                                 "bias_dropout_add_layer_norm", "bias_dropout_add_layer_norm_backward"}) {
    for (int const packets : {16, 32, 64, 256}) {
      for (int const beside : {-1, 0, 1}) {
        check_shape(find_operation(name), dtype::fp32, {5, packets * 4 + beside}, small_device());
        check_shape(find_operation(name), dtype::bf16, {5, packets * 8 + beside}, small_device());
      }
    }
  }
}

TEST_CASE("kernels: sums over many columns of many rows") {
  settings_guard const restore;
  for (auto const* const name : {"layer_norm_backward", "rms_norm_backward", "bias_gelu_backward"}) {
    for (auto const type : {dtype::fp32, dtype::bf16}) {
      shape const s{600, 35};
      REQUIRE(threads_of_column_sums(s.rows) > threads_of_column_sums(67));
      check_shape(find_operation(name), type, s, small_device());
    }
  }
}

TEST_CASE("kernels: at aligned widths all tensor accesses are coalesced and have 16 bytes") {
  settings_guard const restore;
  simt::settings().lint_coalescing = true;
  for (auto const& op : operations()) {
    for (auto const type : {dtype::fp32, dtype::bf16}) {
      for (int const columns : {32, 64, 768, 4096}) {
        shape const s{32, columns};
        auto const p = op.make(small_device(), type, s, seed_of_this_run());
        for (auto const v : op.variants) {
          INFO(op.name << " " << to_string(v) << " " << to_string(type) << " " << columns);
          simt::reset_traffic();
          p->run(v);
          CHECK(simt::counted_traffic().packet_coalescing() == 1.0);
          auto const other = simt::counted_traffic().requested() - simt::counted_traffic().packet_bytes;
          if (p->scalar_bytes(v) >= 0) {
            CHECK(other == static_cast<std::uint64_t>(p->scalar_bytes(v)));
            continue;
          }
          // What is left are the statistics, 4 bytes a row: none of the maps has any.
          auto const tensor = static_cast<std::uint64_t>(s.rows * s.columns) * (type == dtype::fp32 ? 4 : 2);
          CHECK(other % static_cast<std::uint64_t>(s.rows * 4) == 0);
          CHECK(other <= std::min<std::uint64_t>(7 * 4 * 32, tensor));
        }
      }
    }
  }
}

TEST_CASE("kernels: adamw scales the gradients that it reads as clipping asks") {
  settings_guard const restore;
  constexpr std::size_t n = 1000;
  simt::buffer<float> const gradient("gradient", n), scale("scale", 1), clipped("clipped", n);
  simt::buffer<bf16> const narrow("narrow", n), narrow_clipped("narrow clipped", n), parameter("parameter", n);
  std::mt19937_64 random(seed_of_this_run());
  std::normal_distribution<float> normal;
  scale[0] = 0.25f;  // exact, so the results have to be the same to the bit
  for (std::size_t i = 0; i < n; ++i) {
    gradient[i] = to_float(narrow[i] = round_to_bf16(normal(random)));
    clipped[i] = to_float(narrow_clipped[i] = round_to_bf16(0.25f * gradient[i]));
  }
  auto const weights_after = [&](bool master, bool folded) {
    simt::buffer<float> const weight("weight", n), mean("mean", n), square("square", n);
    for (std::size_t i = 0; i < n; ++i) weight[i] = mean[i] = square[i] = 0.5f;
    adamw_step step({}, 2);
    if (folded) step.gradient_scale = scale.data();
    adamw_state const state{weight.data(), mean.data(), square.data()};
    simt::reset_traffic();
    if (master) {
      adamw_master_fused(small_device(), state, parameter.data(), (folded ? narrow : narrow_clipped).data(), step, n);
    } else {
      adamw_fused(small_device(), state, (folded ? gradient : clipped).data(), step, n);
    }
    auto const predicted = (master ? predicted::adamw_master : predicted::adamw).fused(n);
    CHECK(simt::counted_traffic().distinct_reads == predicted.reads + (folded ? 4 : 0));
    return std::vector<float>(weight.begin(), weight.end());
  };
  CHECK(weights_after(false, true) == weights_after(false, false));
  CHECK(weights_after(true, true) == weights_after(true, false));
}

TEST_CASE("kernels: each code of eight bits is the nearest to its own value") {
  float const one = reciprocal_of_scale(1.0f);
  for (unsigned code = 0; code < 256; ++code) {
    float const square = unsigned_code::decode(code);
    CHECK(unsigned_code::encode(square, one) == code);
    if (code > 0) CHECK(square > unsigned_code::decode(code - 1));
    float const mean = signed_code::decode(code);
    if (code != 0x80) CHECK(signed_code::encode(mean, one) == code);
    CHECK(std::signbit(mean) == (code >= 0x80));
  }
  CHECK(unsigned_code::decode(0) == 0.0f);
  CHECK(unsigned_code::decode(255) == 1.0f);
  CHECK(signed_code::decode(127) == 1.0f);
  // In a block of zeros, and in one of such small values that 1 / scale is no number, all become 0.
  for (float const scale : {0.0f, 1e-42f, 1e-39f}) {
    CHECK(signed_code::encode(scale, reciprocal_of_scale(scale)) == 0);
    CHECK(unsigned_code::encode(scale, reciprocal_of_scale(scale)) == 0);
  }
  CHECK(unsigned_code::encode(1.2e-38f, reciprocal_of_scale(1.2e-38f)) == 255);
  CHECK(signed_code::encode(-3e38f, reciprocal_of_scale(3e38f)) == 255);
}

TEST_CASE("kernels: a code is off by half a step of its power of 16") {
  auto const check = [](double x, double decoded, int bits) {
    int const power = std::max(static_cast<int>(std::floor(std::log2(x) / 4)), -bits);  // 16^power up to 16 times that
    double const step = std::exp2(4 * power) * 15 / std::exp2(bits + power);
    CHECK(std::abs(decoded - x) <= 0.5 * step + 2e-6 * x + std::exp2(-4 * bits));
  };
  for (int i = 1; i < 20'000; ++i) {
    float const x = std::exp(-20.0f * static_cast<float>(i) / 20'000.0f), scale = 0.37f;
    check(x, unsigned_code::decode(unsigned_code::encode(x * scale, reciprocal_of_scale(scale))), 8);
    check(x, -signed_code::decode(signed_code::encode(-x * scale, reciprocal_of_scale(scale))), 7);
  }
}

TEST_CASE("kernels: random numbers are those of Philox 4x32 with 10 rounds") {
  // The known answers that its authors publish (Random123, kat_vectors).
  auto const is = [](uint4 a, uint4 b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; };
  constexpr unsigned ones = 0xffffffffu;
  CHECK(is(philox_4x32_10(uint4{0, 0, 0, 0}, 0, 0), uint4{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  CHECK(is(philox_4x32_10(uint4{ones, ones, ones, ones}, ones, ones),
           uint4{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  CHECK(is(philox_4x32_10(uint4{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0xa4093822u, 0x299f31d0u),
           uint4{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST_CASE("kernels: dropout keeps as many as it says, and other seeds keep others") {
  constexpr int packets = 20000;
  for (unsigned const dropped : {0u, 6554u, 32768u, 65535u}) {
    dropout const drop{.seed = seed_of_this_run(), .dropped = dropped}, other{.seed = drop.seed + 1, .dropped = dropped};
    double kept = 0, same = 0;
    for (std::int64_t i = 0; i < packets; ++i) {
      auto const mask = drop.draw<bf16>(i * 8), mask_of_other = other.draw<bf16>(i * 8);
      for (int j = 0; j < 8; ++j) kept += mask.keeps(j) ? 1 : 0;
      same += mask.bytes == mask_of_other.bytes ? 1 : 0;
    }
    double const p = 1 - dropped / 65536.0, n = 8.0 * packets;
    CHECK(std::abs(kept - p * n) <= 6 * std::sqrt(p * (1 - p) * n));  // six standard deviations
    if (dropped == 32768u) CHECK(same < 0.02 * packets);
  }
}

TEST_CASE("kernels: gelu over the whole range") {
  for (float x = -20.0f; x <= 20.0f; x += 0.01f) {
    double const d = static_cast<double>(x);
    double const expected =
        0.5 * d * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (d + 0.044715 * d * d * d)));
    REQUIRE(std::abs(static_cast<double>(gelu(x)) - expected) < 1e-6 * std::max(1.0, std::abs(d)));
  }
}

TEST_CASE("kernels: bf16 rounds to nearest even") {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    bf16 const value{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(value))) {
      REQUIRE(std::isnan(to_float(round_to_bf16(to_float(value)))));
    } else {
      REQUIRE(round_to_bf16(to_float(value)).bits == bits);
    }
  }
  CHECK(round_to_bf16(1.0f + 1.0f / 256).bits == 0x3f80);
  CHECK(round_to_bf16(1.0f + 3.0f / 256).bits == 0x3f82);
  CHECK(round_to_bf16(1.0f + 1.1f / 256).bits == 0x3f81);
}
