// SPDX-License-Identifier: MIT
// Is every barrier needed, and would its loss be found? Each barrier of each kernel is skipped in turn. Built with
// ThreadSanitizer, which sees the race itself; schedules see only those that change a result.
#include <fcntl.h>
#include <unistd.h>
#include "catch.hpp"

#include <cstdio>
#include <map>

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
      for (int const columns : {70, 301, 2200}) {
        for (std::size_t const shared : {std::size_t{4 * 1024}, std::size_t{227 * 1024}}) {
          tested_case const c{&op, type, {9, columns}, small_device(shared)};
          if (columns != 2200 && shared == 4 * 1024) continue;
          if (op.is_possible(c.device, c.type, c.shape)) all.push_back(c);
        }
      }
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

/// The schedule whose result shows that something is missing, or null.
char const* caught_by_schedule(problem& p, variant v, std::vector<unsigned char> const& right) {
  for (auto const& s : schedules) {
    simt::settings().schedule = s.order;
    simt::settings().seed = s.seed;
    simt::begin_recording();
    try {
      p.run(v);
    } catch (simt::kernel_error const&) {
      return s.name;
    }
    if (is_wrong(p, right)) return s.name;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("kernels: no race under ThreadSanitizer") {
  settings_guard const restore;
  for (auto const& c : cases()) {
    auto const p = c.op->make(c.device, c.type, c.shape, 1);
    for (auto const v : c.op->variants) {
      INFO(c.op->name << " " << to_string(v) << " " << to_string(c.type) << " " << c.shape.columns);
      for (auto const& s : schedules) {
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
  std::map<std::string, std::string> finders;
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
          without_standard_error const quiet;
          simt::settings() = {};
          simt::settings().skipped_barrier = simt::barrier_id{l, b};
          reports = 0;
          char const* const schedule = caught_by_schedule(*p, v, right);
          std::string finder = reports > 0 ? "ThreadSanitizer" : "";
          if (schedule != nullptr) finder += (finder.empty() ? "" : ", ") + std::string(schedule) + " schedule";
          std::string const barrier = c.op->name + " " + to_string(v) + " " + to_string(c.type) + ": " +
                                      launches[l].kernel + ", barrier " + std::to_string(b) + " at " +
                                      simt::to_string(launches[l].barriers[b]);
          finders[barrier] = finder;
          INFO(barrier << ", width " << c.shape.columns);
          CHECK_FALSE(finder.empty());
        }
      }
    }
  }
  reports = 0;
  for (auto const& [barrier, finder] : finders) std::printf("%-110s %s\n", barrier.c_str(), finder.c_str());
  CHECK(finders.size() >= 20);
}
