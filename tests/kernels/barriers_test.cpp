// SPDX-License-Identifier: MIT
// Is every barrier needed, and would its loss be found? Each barrier of each kernel is skipped in turn. Built with
// ThreadSanitizer, which sees the race itself; schedules see only those that change a result.
#include <fcntl.h>
#include <unistd.h>
#include "catch.hpp"

#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "problems.hpp"

using namespace gpumem::kernels;
using namespace gpumem::kernels::test;

namespace {
int reports = 0;
}

extern "C" {
// Called while the runtime holds its locks: a race found in here would wait for them forever.
__attribute__((no_sanitize("thread"))) void __tsan_on_report(void*) { ++reports; }
char const* __tsan_default_options() {
  return "suppress_equal_stacks=0:suppress_equal_addresses=0:symbolize=0:exitcode=0";
}
}

namespace {

/// Reports are counted; their text would only be noise, as they are wanted.
class without_standard_error {
 public:
  without_standard_error() : saved_(dup(STDERR_FILENO)) {
    int const nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
  }
  ~without_standard_error() {
    dup2(saved_, STDERR_FILENO);
    close(saved_);
  }
  without_standard_error(without_standard_error const&) = delete;
  without_standard_error& operator=(without_standard_error const&) = delete;

 private:
  int saved_;
};

struct settings_guard {
  ~settings_guard() { simt::settings() = {}; }
};

struct tested_case {
  operation const* op;
  dtype type;
  test::shape shape;
  device_context device;
};

/// Widths that reach each row strategy; ragged ones, so that no thread finds its own packets only by luck.
std::vector<tested_case> cases() {
  std::vector<tested_case> all;
  for (auto const& op : operations()) {
    for (auto const type : {dtype::fp32, dtype::bf16}) {
      auto const add = [&](int columns, std::size_t shared_bytes, std::int64_t rows = 9) {
        tested_case const c{&op, type, {rows, columns}, small_device(shared_bytes)};
        if (op.is_possible(c.device, c.type, c.shape)) all.push_back(c);
      };
      for (int const columns : {70, 301, 2200}) add(columns, 227 * 1024);
      // Rows that do not fit on the chip; nor beside the sums of a backward norm's two, three or one vectors.
      add(2200, 4 * 1024);
      if (op.possible == nullptr) continue;
      add(301, 227 * 1024, 3);  // an odd number of blocks: their partial sums begin anywhere in a packet
      add(2201, 30 * 1024, 1);
      for (std::size_t const kibibytes : {12u, 24u, 30u}) add(2200, kibibytes * 1024);
    }
  }
  return all;
}

struct schedule_choice {
  simt::schedule order;
  std::uint64_t seed;
  char const* name;
};
constexpr schedule_choice schedules[] = {{simt::schedule::forward, 1, "forward"},
                                         {simt::schedule::reverse, 1, "reverse"},
                                         {simt::schedule::random, 1, "random"},
                                         {simt::schedule::random, 2, "random"}};

bool is_wrong(problem const& p, std::vector<unsigned char> const& right) {
  for (auto const& error : p.errors()) {
    if (!(error.relative() < error.limit)) return true;
  }
  return p.output_bits() != right;
}

/// Who finds that something is missing, or nobody. Schedules are tried until one of them shows it, or
/// ThreadSanitizer does in one of them.
std::string finder_of_skipped(problem& p, variant v, std::vector<unsigned char> const& right) {
  for (auto const& s : schedules) {
    simt::settings().schedule = s.order;
    simt::settings().seed = s.seed;
    // Thousands of threads would report the same race: the first is enough.
    simt::settings().stop = [] { return reports > 0; };
    simt::begin_recording();
    reports = 0;
    bool wrong = false;
    try {
      p.run(v);
      wrong = is_wrong(p, right);
    } catch (simt::kernel_error const&) {
      wrong = true;
    }
    if (reports > 0) return "ThreadSanitizer";
    if (wrong) return std::string(s.name) + " schedule";
  }
  return "";
}

/// What was found of one barrier: a line of one kernel, skipped at several widths and in several rounds of its loops.
struct outcome {
  int skips = 0, found = 0;
  std::string finder;
};

}  // namespace

TEST_CASE("kernels: no race under ThreadSanitizer") {
  settings_guard const restore;
  for (auto const& c : cases()) {
    auto const p = c.op->make(c.device, c.type, c.shape, 1);
    for (auto const v : c.op->variants) {
      INFO(c.op->name << " " << to_string(v) << " " << to_string(c.type) << " " << c.shape.columns);
      // ThreadSanitizer knows what happened before what: in which order threads ran changes little.
      for (auto const& s : {schedules[0], schedules[2]}) {
        simt::settings().schedule = s.order;
        simt::settings().seed = s.seed;
        p->run(v);
        REQUIRE(reports == 0);
      }
    }
  }
}

TEST_CASE("kernels: a barrier skipped is a race found") {
  settings_guard const restore;
  std::map<std::string, outcome> barriers;
  std::set<std::string> skipped;
  for (auto const& c : cases()) {
    auto const p = c.op->make(c.device, c.type, c.shape, 1);
    for (auto const v : c.op->variants) {
      simt::settings() = {};
      simt::begin_recording();
      p->run(v);
      auto const right = p->output_bits();
      auto const launches = simt::recorded_launches();
      for (std::size_t l = 0; l < launches.size(); ++l) {
        for (std::size_t b = 0; b < launches[l].barriers.size(); ++b) {
          // The primitives are those of all chains: once does.
          std::string const barrier = (v == variant::chain ? "chain" : c.op->name) + " " + to_string(c.type) + ": " +
                                      launches[l].kernel + ", " + simt::to_string(launches[l].barriers[b]);
          std::string const where = ", the " + std::to_string(b + 1) + "th, " + std::to_string(c.shape.rows) + "x" +
                                    std::to_string(c.shape.columns) + ", " +
                                    std::to_string(c.device.shared_bytes_per_block / 1024) + " KiB";
          if (!skipped.insert(barrier + where).second) continue;
          without_standard_error const quiet;
          simt::settings() = {};
          simt::settings().skipped_barrier = simt::barrier_id{l, b};
          std::string const finder = finder_of_skipped(*p, v, right);
          outcome& known = barriers[barrier];
          ++known.skips;
          if (finder.empty()) continue;
          ++known.found;
          known.finder = finder;
        }
      }
    }
  }
  reports = 0;
  for (auto const& [barrier, known] : barriers) {
    std::printf("%-105s %s, %d of %d\n", barrier.c_str(), known.finder.c_str(), known.found, known.skips);
    INFO(barrier);
    // Where a width happens to give each thread its own values back, nothing is missing. At no barrier is that always so.
    CHECK(known.found > 0);
  }
  std::printf("%zu barriers\n", barriers.size());
  CHECK(barriers.size() >= 60);
}
