// SPDX-License-Identifier: MIT
// Every kernel and chain, run without a GPU: right against float64, and the bytes it moves equal to the formula.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include "catch.hpp"

#include "bias_gelu.cuh"
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
  std::vector<shape> shapes;
  for (std::int64_t const rows : {1, 2, 31, 32, 33, 67}) {
    for (int const columns : {1, 7, 32, 64, 768, 1000}) shapes.push_back({rows, columns});
  }
  for (std::int64_t const rows : {1, 3}) {
    for (int const columns : {4096, 50257}) shapes.push_back({rows, columns});
  }
  return shapes;
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
  auto const predicted = p.predicted(v);
  auto const reads = static_cast<std::uint64_t>(predicted.reads);
  auto const writes = static_cast<std::uint64_t>(predicted.writes);
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
  constexpr std::int64_t values_wanted = 256;
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
  for (auto const s : all_shapes()) worst = std::max(worst, check_shape(find_operation(name), type, s, small_device()));
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

TEST_CASE("kernels: rows that do not fit on the chip are read once more") {
  settings_guard const restore;
  auto const device = small_device(4 * 1024);
  for (auto const* const name : {"softmax_forward", "softmax_backward", "add_rms_norm"}) {
    for (auto const type : {dtype::fp32, dtype::bf16}) {
      for (shape const s : {shape{3, 4096}, shape{3, 4099}}) {
        REQUIRE_FALSE(row_stays_on_chip<bf16>(device, s.columns));
        check_shape(find_operation(name), type, s, device);
      }
    }
  }
}

TEST_CASE("kernels: every row strategy at its limits") {
  settings_guard const restore;
  for (auto const* const name : {"softmax_forward", "softmax_backward", "add_rms_norm"}) {
    for (int const packets : {16, 32, 64, 256}) {
      for (int const beside : {-1, 0, 1}) {
        check_shape(find_operation(name), dtype::fp32, {5, packets * 4 + beside}, small_device());
        check_shape(find_operation(name), dtype::bf16, {5, packets * 8 + beside}, small_device());
      }
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
          // What is left are the statistics, 4 bytes a row: none of the maps has any.
          auto const other = simt::counted_traffic().requested() - simt::counted_traffic().packet_bytes;
          auto const tensor = static_cast<std::uint64_t>(s.rows * s.columns) * (type == dtype::fp32 ? 4 : 2);
          CHECK(other % static_cast<std::uint64_t>(s.rows * 4) == 0);
          CHECK(other <= std::min<std::uint64_t>(4 * 4 * 32, tensor));
        }
      }
    }
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
