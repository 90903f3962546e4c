// SPDX-License-Identifier: MIT
#include <gpumem/core/device.hpp>
#include <string>

#include "catch.hpp"

using namespace gpumem;
using namespace gpumem::literals;

TEST_CASE("a device's capacity is what CUDA sees, less than what nvidia-smi prints", "[device]") {
  STATIC_REQUIRE(devices::a100_40gb.capacity == 40'192_MiB);
  STATIC_REQUIRE(devices::a100_80gb.board_total == 81'920_MiB);
  for (named_device const& d : device_catalogue) {
    INFO(d.id);
    CHECK(d.numbers.capacity > bytes{});
    CHECK((d.numbers.board_total == bytes{} || d.numbers.capacity < d.numbers.board_total));
  }
}

TEST_CASE("threads and workspaces follow the compute capability", "[device]") {
  STATIC_REQUIRE(devices::t4_16gb.threads_per_multiprocessor() == 1024);
  STATIC_REQUIRE(devices::v100_16gb.threads_per_multiprocessor() == 2048);
  STATIC_REQUIRE(devices::rtx_3090.threads_per_multiprocessor() == 1536);
  STATIC_REQUIRE(devices::rtx_4090.threads_per_multiprocessor() == 1536);
  STATIC_REQUIRE(devices::rtx_5090.threads_per_multiprocessor() == 1536);
  STATIC_REQUIRE(devices::h100_80gb.threads_per_multiprocessor() == 2048);
  STATIC_REQUIRE(devices::a100_80gb.cublas_workspace() == 8'519'680_B);
  STATIC_REQUIRE(devices::rtx_4090.cublas_workspace() == 8'519'680_B);
  STATIC_REQUIRE(devices::h100_80gb.cublas_workspace() == 32_MiB);
  STATIC_REQUIRE(devices::b200_180gb.cublas_workspace() == 32_MiB);
  STATIC_REQUIRE(devices::rtx_5090.cublas_workspace() == 32_MiB);
}

TEST_CASE("every device of the catalogue is found under its own identifier once", "[device]") {
  for (named_device const& a : device_catalogue) {
    int same = 0;
    for (named_device const& b : device_catalogue) same += std::string{a.id} == b.id ? 1 : 0;
    CHECK(same == 1);
  }
}

TEST_CASE("bandwidth and half rate are known together or not at all", "[device]") {
  int known = 0;
  for (named_device const& d : device_catalogue) {
    INFO(d.id);
    CHECK((d.numbers.bandwidth == 0) == (d.numbers.half_rate == 0));
    known += d.numbers.bandwidth != 0 ? 1 : 0;
  }
  CHECK(known == 9);
  STATIC_REQUIRE(devices::v100_32gb.bandwidth == 900);
  STATIC_REQUIRE(devices::h200_141gb.bandwidth == 4800);
  STATIC_REQUIRE(devices::h200_141gb.half_rate == devices::h100_80gb.half_rate);  // the same chip
  STATIC_REQUIRE(devices::b200_180gb.bandwidth == 0);
}
