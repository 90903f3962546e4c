// SPDX-License-Identifier: MIT
#include <gpumem/core/bytes.hpp>
#include <gpumem/core/dtype.hpp>
#include <string>

#include "catch.hpp"

using namespace gpumem;
using namespace gpumem::literals;

namespace {
template <class B>
concept mixes_with_numbers = requires(B b) {
  b + 1;
};
template <class B>
concept multiplies_itself = requires(B b) {
  b* b;
};
template <class B>
concept comes_from_a_number = requires(B b) {
  b = 3;
};
}  // namespace

TEST_CASE("bytes add, subtract and scale exactly", "[bytes]") {
  STATIC_REQUIRE(80_GiB == bytes{85'899'345'920});
  STATIC_REQUIRE(1_MiB + 1_KiB == bytes{1'049'600});
  STATIC_REQUIRE(3 * 512_B == 1536_B);
  STATIC_REQUIRE(1_KiB - 24_B == 1000_B);
  STATIC_REQUIRE(1_KiB < 1_MiB);
}

TEST_CASE("bytes mix with nothing else", "[bytes]") {
  STATIC_REQUIRE_FALSE(mixes_with_numbers<bytes>);
  STATIC_REQUIRE_FALSE(multiplies_itself<bytes>);
  STATIC_REQUIRE_FALSE(comes_from_a_number<bytes>);
}

TEST_CASE("rounding goes up to the granule, to MiB up for needs and down for capacities", "[bytes]") {
  STATIC_REQUIRE(align_up(0_B, 512) == 0_B);
  STATIC_REQUIRE(align_up(1_B, 512) == 512_B);
  STATIC_REQUIRE(align_up(512_B, 512) == 512_B);
  STATIC_REQUIRE(align_up(513_B, 512) == 1024_B);
  STATIC_REQUIRE(mebibytes_up(1_MiB + 1_B) == 2);
  STATIC_REQUIRE(mebibytes_down(2_MiB - 1_B) == 1);
}

TEST_CASE("arithmetic that leaves 64 bits throws at run time", "[bytes]") {
  const std::uint64_t huge = std::uint64_t{1} << 62;
  CHECK_THROWS_AS(bytes{huge} * 4, error);
  CHECK_THROWS_AS(bytes{UINT64_MAX} + 1_B, error);
  CHECK_THROWS_AS(1_B - 2_B, error);
  CHECK_THROWS_AS(align_up(bytes{UINT64_MAX}, 512), error);
  CHECK(bytes{huge} * 3 == bytes{3 * huge});
}

TEST_CASE("an error names the field, the value and the rule", "[error]") {
  CHECK(std::string{error{"layers", -1, "must be at least 1"}.what()} == "layers = -1: must be at least 1");
  CHECK(std::string{error{"x", INT64_MIN, "r"}.what()} == "x = -9223372036854775808: r");
  CHECK(std::string{error{"x", 0, "r"}.what()} == "x = 0: r");
  const std::string endless(1000, 'a');
  CHECK(std::string{error{endless.c_str()}.what()}.size() == 231);
}

TEST_CASE("storage rounds types narrower than a byte up once", "[dtype]") {
  STATIC_REQUIRE(storage(dtype::u4, 1) == 1_B);
  STATIC_REQUIRE(storage(dtype::u4, 7) == 4_B);
  STATIC_REQUIRE(storage(dtype::bf16, 3) == 6_B);
  STATIC_REQUIRE(storage(dtype::int64, 2) == 16_B);
  STATIC_REQUIRE(storage(dtype::fp64, 2) == 16_B);
  CHECK_THROWS_AS(storage(dtype::fp64, UINT64_MAX / 8), error);
}

TEST_CASE("element-wise operations promote as PyTorch does", "[dtype]") {
  STATIC_REQUIRE(promote(dtype::bf16, dtype::fp32) == dtype::fp32);
  STATIC_REQUIRE(promote(dtype::fp32, dtype::fp16) == dtype::fp32);
  STATIC_REQUIRE(promote(dtype::bf16, dtype::bf16) == dtype::bf16);
  STATIC_REQUIRE(promote(dtype::bf16, dtype::fp16) == dtype::fp32);
}
