// SPDX-License-Identifier: MIT
// The executor itself: kernels that are right, and kernels with one mistake each that it has to find.
#include "catch.hpp"
#include "simt/cuda_names.hpp"
#include "simt/executor.hpp"

#define SHARED_FLOATS(name, count)      \
  static char name##_declaration;       \
  simt::shared_array<float> const name( \
      simt::static_shared_memory(&name##_declaration, sizeof(float) * (count), simt::place::here()))

namespace {

/// What the executor said of the mistake; empty if it found none.
template <class Launch>
std::string diagnosis(Launch launch) {
  try {
    launch();
  } catch (simt::kernel_error const& error) {
    return error.what();
  }
  return "";
}
bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
std::string at_line(unsigned line) { return "simt_test.cpp:" + std::to_string(line); }

struct settings_guard {
  ~settings_guard() { simt::settings() = {}; }
};

void reverse_through_shared(float const* x, float* y) {
  SHARED_FLOATS(values, 64);
  values[threadIdx.x] = simt::load_value(x + threadIdx.x);
  __syncthreads();
  simt::store_value(y + threadIdx.x, values[63 - threadIdx.x]);
}

void reverse_without_barrier(float const* x, float* y) {
  SHARED_FLOATS(values, 64);
  values[threadIdx.x] = simt::load_value(x + threadIdx.x);
  simt::store_value(y + threadIdx.x, values[63 - threadIdx.x]);
}

void sum_of_warp(float const* x, float* y) {
  float sum = simt::load_value(x + threadIdx.x);
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(simt::whole_warp, sum, lanes);
  simt::store_value(y + threadIdx.x, sum);
}

constexpr unsigned divergent_line = __LINE__ + 3;
void barrier_in_a_branch() {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

void barrier_that_half_the_threads_miss() {
  if (threadIdx.x < 32) __syncthreads();
}

constexpr unsigned exchange_line = __LINE__ + 3;
void exchange_with_a_lane_that_left() {
  if (threadIdx.x == 7) return;
  __shfl_sync(simt::whole_warp, 1.0f, 0);
}

void exchange_in_a_partial_warp() { __shfl_sync(simt::whole_warp, 1.0f, 0); }
void exchange_with_a_partial_mask() { __shfl_sync(0x0000ffffu, 1.0f, 0); }

constexpr unsigned out_of_bounds_line = __LINE__ + 1;
void store_one_too_many(float* y) { simt::store_value(y + threadIdx.x, 1.0f); }

void load_beyond_the_end(float const* x) { simt::load_vector<uint4>(x + 4 * threadIdx.x); }
void load_misaligned(float const* x) { simt::load_vector<uint4>(x + 1); }

constexpr unsigned shared_out_of_bounds_line = __LINE__ + 3;
void shared_index_one_too_high() {
  SHARED_FLOATS(values, 31);
  values[threadIdx.x] = 1.0f;
}

void too_much_shared_memory() {
  SHARED_FLOATS(values, 64 * 1024);
  values[0] = 1.0f;
}

void uninitialised_shared(float* y) {
  SHARED_FLOATS(values, 32);
  if (blockIdx.x == 0) values[threadIdx.x] = 1.0f;  // the second block would see it, were the memory not poisoned
  simt::store_value(y + blockIdx.x * 32 + threadIdx.x, values[threadIdx.x]);
}

void copy_columns(float const* x, float* y, unsigned columns) {
  for (unsigned c = 0; c < columns; ++c) {
    float const value = simt::load_value(x + threadIdx.x * columns + c);
    simt::store_value(y + threadIdx.x * columns + c, value);
  }
}
void copy_rows(float const* x, float* y, unsigned columns) {
  for (unsigned c = threadIdx.x; c < columns * 32; c += 32) {
    float const value = simt::load_value(x + c);
    simt::store_value(y + c, value);
  }
}

void every_block_writes_the_first(float* y) {
  if (threadIdx.x == 0) simt::store_value(y, 1.0f);
}
void every_block_adds_to_the_first(float* y) { atomicAdd(y, 1.0f); }
void every_block_reads_what_the_first_wrote(float* y) {
  if (blockIdx.x == 0) simt::store_value(y + threadIdx.x, 1.0f);
  if (blockIdx.x == 1) simt::load_value(y + threadIdx.x);
}

template <class T>
void read_three_times(T const* x) {
  for (int i = 0; i < 3; ++i) simt::load_value(x + threadIdx.x);
}

void record_order(int* order, int* next) {
  simt::store_value(order + (*next)++, static_cast<int>(blockIdx.x * 32 + threadIdx.x));
}

}  // namespace

TEST_CASE("simt: barriers and shuffles under every schedule") {
  settings_guard const restore;
  simt::buffer<float> const x("x", 64), y("y", 64);
  for (std::size_t i = 0; i < 64; ++i) x[i] = static_cast<float>(i);
  for (auto const schedule : {simt::schedule::forward, simt::schedule::reverse, simt::schedule::random}) {
    simt::settings().schedule = schedule;
    y.poison();
    simt::launch("reverse_through_shared", reverse_through_shared, 1, 64, 0, x.data(), y.data());
    for (std::size_t i = 0; i < 64; ++i) REQUIRE(y[i] == static_cast<float>(63 - i));
    y.poison();
    simt::launch("sum_of_warp", sum_of_warp, 1, 64, 0, x.data(), y.data());
    for (std::size_t i = 0; i < 64; ++i) REQUIRE(y[i] == (i < 32 ? 496.0f : 1520.0f));
  }
}

TEST_CASE("simt: schedules differ in the order of blocks and threads") {
  settings_guard const restore;
  simt::buffer<int> const order("order", 64);
  auto const run = [&](simt::schedule schedule, std::uint64_t seed) {
    int next = 0;
    simt::settings().schedule = schedule;
    simt::settings().seed = seed;
    simt::launch("record_order", record_order, 2, 32, 0, order.data(), &next);
    return std::vector<int>(order.begin(), order.end());
  };
  auto const forward = run(simt::schedule::forward, 1);
  auto const backward = run(simt::schedule::reverse, 1);
  CHECK(forward.front() == 0);
  CHECK(backward.front() == 63);
  CHECK(run(simt::schedule::random, 1) == run(simt::schedule::random, 1));
  CHECK(run(simt::schedule::random, 1) != run(simt::schedule::random, 2));
}

TEST_CASE("simt: a missing barrier shows in the output") {
  simt::buffer<float> const x("x", 64), y("y", 64);
  for (float& value : x) value = 1.0f;
  simt::launch("reverse_without_barrier", reverse_without_barrier, 1, 64, 0, x.data(), y.data());
  CHECK(y[0] != 1.0f);  // the poison of a value not yet written
}

TEST_CASE("simt: a barrier is skipped on demand") {
  settings_guard const restore;
  simt::buffer<float> const x("x", 64), y("y", 64);
  for (float& value : x) value = 1.0f;
  simt::begin_recording();
  simt::launch("reverse_through_shared", reverse_through_shared, 1, 64, 0, x.data(), y.data());
  REQUIRE(simt::recorded_launches().size() == 1);
  CHECK(simt::recorded_launches()[0].kernel == "reverse_through_shared");
  CHECK(simt::recorded_launches()[0].barriers.size() == 1);
  CHECK(y[0] == 1.0f);
  simt::settings().skipped_barrier = simt::barrier_id{0, 0};
  simt::begin_recording();
  simt::launch("reverse_through_shared", reverse_through_shared, 1, 64, 0, x.data(), y.data());
  CHECK(y[0] != 1.0f);
}

TEST_CASE("simt: divergence and deadlock are diagnosed") {
  auto text = diagnosis([] { simt::launch("barrier_in_a_branch", barrier_in_a_branch, 1, 32, 0); });
  CHECK(contains(text, "barrier_in_a_branch"));
  CHECK(contains(text, "divergence"));
  CHECK(contains(text, at_line(divergent_line)));
  CHECK(contains(text, at_line(divergent_line + 2)));

  text = diagnosis([] { simt::launch("barrier_that_half_miss", barrier_that_half_the_threads_miss, 1, 64, 0); });
  CHECK(contains(text, "deadlock"));
  CHECK(contains(text, "waits in a barrier at simt_test.cpp:"));

  text = diagnosis([] { simt::launch("exchange", exchange_with_a_lane_that_left, 1, 32, 0); });
  CHECK(contains(text, "thread (7,0,0), which has returned"));
  CHECK(contains(text, at_line(exchange_line)));

  CHECK(contains(diagnosis([] { simt::launch("partial", exchange_in_a_partial_warp, 1, 48, 0); }), "fewer than 32"));
  CHECK(contains(diagnosis([] { simt::launch("mask", exchange_with_a_partial_mask, 1, 32, 0); }), "leaves lanes out"));
}

TEST_CASE("simt: accesses out of bounds are diagnosed with file and line") {
  simt::buffer<float> const x("x", 60), y("y", 31);
  auto text = diagnosis([&] { simt::launch("store_one_too_many", store_one_too_many, 1, 32, 0, y.data()); });
  CHECK(contains(text, "out of bounds"));
  CHECK(contains(text, at_line(out_of_bounds_line)));
  CHECK(contains(text, "thread (31,0,0)"));

  CHECK(contains(diagnosis([&] { simt::launch("beyond", load_beyond_the_end, 1, 32, 0, x.data()); }), "out of bounds"));
  CHECK(contains(diagnosis([&] { simt::launch("misaligned", load_misaligned, 1, 1, 0, x.data()); }), "misaligned"));

  text = diagnosis([] { simt::launch("shared_index", shared_index_one_too_high, 1, 32, 0); });
  CHECK(contains(text, "index 31 of an array of 31 is out of bounds"));
  CHECK(contains(text, at_line(shared_out_of_bounds_line)));
  CHECK(contains(diagnosis([] { simt::launch("shared", too_much_shared_memory, 1, 32, 0); }), "are allowed"));
}

TEST_CASE("simt: the executor works on after an error") {
  simt::buffer<float> const x("x", 64), y("y", 64);
  for (float& value : x) value = 1.0f;
  CHECK_FALSE(diagnosis([] { simt::launch("barrier_in_a_branch", barrier_in_a_branch, 1, 32, 0); }).empty());
  simt::launch("sum_of_warp", sum_of_warp, 1, 64, 0, x.data(), y.data());
  CHECK(y[63] == 32.0f);
}

TEST_CASE("simt: shared memory is poisoned in every block") {
  simt::buffer<float> const y("y", 64);
  simt::launch("uninitialised_shared", uninitialised_shared, 2, 32, 0, y.data());
  CHECK(y[0] == 1.0f);
  CHECK(std::isnan(y[32]));
}

TEST_CASE("simt: coalescing is counted in sectors") {
  settings_guard const restore;
  simt::settings().lint_coalescing = true;
  simt::buffer<float> const x("x", 32 * 64), y("y", 32 * 64);
  simt::reset_traffic();
  simt::launch("copy_rows", copy_rows, 1, 32, 0, x.data(), y.data(), 64u);
  CHECK(simt::counted_traffic().coalescing() == 1.0);
  simt::reset_traffic();
  simt::launch("copy_columns", copy_columns, 1, 32, 0, x.data(), y.data(), 64u);
  CHECK(simt::counted_traffic().coalescing() == 0.125);
}

TEST_CASE("simt: requested and distinct bytes") {
  simt::buffer<float> const x("x", 32);
  simt::reset_traffic();
  simt::launch("read_three_times", read_three_times<float>, 1, 32, 0, x.data());
  CHECK(simt::counted_traffic().requested_reads == 3 * 32 * 4);
  CHECK(simt::counted_traffic().distinct_reads == 32 * 4);
  CHECK(simt::counted_traffic().requested_writes == 0);
}

TEST_CASE("simt: blocks that meet in memory need an atomic") {
  settings_guard const restore;
  simt::buffer<float> const y("y", 32);
  for (auto const schedule : {simt::schedule::forward, simt::schedule::reverse}) {
    simt::settings().schedule = schedule;
    CHECK(contains(diagnosis([&] { simt::launch("first", every_block_writes_the_first, 2, 32, 0, y.data()); }),
                   "two blocks write y at byte 0 without an atomic"));
  }
  simt::settings().schedule = simt::schedule::forward;
  CHECK(contains(diagnosis([&] { simt::launch("read", every_block_reads_what_the_first_wrote, 2, 32, 0, y.data()); }),
                 "reads y where block 0"));
  y[0] = 0.0f;
  simt::launch("add", every_block_adds_to_the_first, 2, 32, 0, y.data());
  CHECK(y[0] == 64.0f);
}
