// SPDX-License-Identifier: MIT
#include "executor.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <utility>

#include "fiber.hpp"
#include "running.hpp"

#if defined(SIMT_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace simt {
namespace {

constexpr unsigned most_threads = 1024;
constexpr std::size_t arena_bytes = 512 * 1024;
constexpr std::size_t shared_alignment = 16;
constexpr std::size_t red_zone_bytes = 16;

struct unwind {};  // thrown through a kernel that is to end early

enum class status { ready, at_barrier, in_exchange, finished };

struct thread {
  std::unique_ptr<simt::fiber> fiber;
  dim3 index;
  unsigned number = 0;
  simt::status status = status::finished;
  place at;  // of the barrier or the exchange it waits in
  std::size_t barriers_passed = 0;
  warp_message* message = nullptr;
  warp_message received;
  unsigned source = 0;
  std::vector<line_count> lines;
};

struct shared_declaration {
  void const* declaration;
  shared_block block;
};

struct execution {
  // the launch
  char const* kernel = "";
  dim3 grid, block;
  void (*body)(void const*) = nullptr;
  void const* arguments = nullptr;
  std::size_t dynamic_shared_bytes = 0;
  // the running block
  dim3 block_at;
  std::vector<thread> threads{most_threads};
  unsigned thread_count = 0, unfinished = 0, at_barrier = 0;
  thread* current = nullptr;
  std::vector<shared_declaration> shared;
  std::size_t shared_bytes = 0;
  shared_block dynamic{nullptr, 0};
  // errors
  std::string error;
  bool unwinding = false;
  // what ThreadSanitizer orders by
  char block_begin = 0;
  std::array<char, 2> block_end{};  // alternate, so that the end of one block is not the end of the next
  std::array<char, most_threads / warp_size> warp_sync{};
  char barrier_sync = 0;
  // records
  bool recording = false;
  std::vector<launch_record> launches;

  unsigned parity() const { return running.block_number & 1u; }
};

execution run;
options current_settings;
alignas(256) std::array<unsigned char, arena_bytes> arena;

std::string name_of(thread const& t) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "block (%u,%u,%u) thread (%u,%u,%u)", run.block_at.x, run.block_at.y,
                run.block_at.z, t.index.x, t.index.y, t.index.z);
  return text.data();
}

void set_error(std::string const& what) {
  if (run.error.empty()) run.error = std::string(run.kernel) + ": " + what;
}

void suspend() {
  run.current->fiber->suspend();
  if (run.unwinding) throw unwind{};
}

void thread_body() {
  acquire(&run.block_begin);
  acquire(&run.block_end[run.parity() ^ 1u]);  // blocks share one arena, so they are ordered
  try {
    if (!run.unwinding) run.body(run.arguments);
  } catch (unwind const&) {
  }
  release(&run.block_end[run.parity()]);
  unobserved const bookkeeping;
  run.current->status = status::finished;
  --run.unfinished;
}

shared_block take_shared(std::size_t bytes) {
  std::size_t const begin = (run.shared_bytes + shared_alignment - 1) / shared_alignment * shared_alignment;
  run.shared_bytes = begin + bytes;
  if (run.shared_bytes > current_settings.shared_bytes_per_block) return {nullptr, run.shared_bytes};
  unsigned char* const memory = arena.data() + begin + red_zone_bytes * run.shared.size();
#if defined(SIMT_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(memory, bytes);
#endif
  std::memset(memory, 0xFF, bytes);
  return {memory, bytes};
}

std::string too_much_shared() {
  return "shared memory: " + std::to_string(run.shared_bytes) + " bytes in a block, " +
         std::to_string(current_settings.shared_bytes_per_block) + " are allowed";
}

void begin_block(std::uint64_t number) {
  run.block_at =
      dim3(static_cast<unsigned>(number % run.grid.x), static_cast<unsigned>(number / run.grid.x % run.grid.y),
           static_cast<unsigned>(number / (std::uint64_t{run.grid.x} * run.grid.y)));
  running.block_number = static_cast<std::uint32_t>(number);
  run.unfinished = run.thread_count;
  run.at_barrier = 0;
  for (unsigned i = 0; i < run.thread_count; ++i) {
    thread& t = run.threads[i];
    t.number = i;
    t.index = dim3(i % run.block.x, i / run.block.x % run.block.y, i / (run.block.x * run.block.y));
    t.status = status::ready;
    t.barriers_passed = 0;
    t.lines.clear();
  }
#if defined(SIMT_ADDRESS_SANITIZER)
  __asan_poison_memory_region(arena.data(), arena.size());
#endif
  run.shared.clear();
  run.shared_bytes = 0;
  run.dynamic = {nullptr, 0};
  if (run.dynamic_shared_bytes > 0) {
    run.dynamic = take_shared(run.dynamic_shared_bytes);
    if (run.dynamic.memory == nullptr) set_error(too_much_shared());
    run.shared.push_back({nullptr, run.dynamic});
  }
}

void resume(thread& t) {
  run.current = &t;
  running.thread_number = t.number;
  running.lines = &t.lines;
  running.active = true;
  t.fiber->resume();
  running.active = false;
}

void report_deadlock() {
  std::string what = "deadlock:";
  auto const waiting = [&what](status s, char const* where) {
    for (unsigned i = 0; i < run.thread_count; ++i) {
      thread const& t = run.threads[i];
      if (t.status != s) continue;
      what.append(" ")
          .append(name_of(t))
          .append(" waits ")
          .append(where)
          .append(" at ")
          .append(to_string(t.at))
          .append(";");
      return;
    }
  };
  waiting(status::at_barrier, "in a barrier");
  waiting(status::in_exchange, "in a warp exchange");
  set_error(what);
}

void run_block(std::vector<unsigned>& order, std::mt19937_64& random) {
  while (run.unfinished > 0 && run.error.empty()) {
    if (current_settings.schedule == schedule::random) std::shuffle(order.begin(), order.end(), random);
    bool progress = false;
    for (unsigned const i : order) {
      if (run.threads[i].status != status::ready) continue;
      progress = true;
      resume(run.threads[i]);
      if (!run.error.empty()) break;
    }
    if (!progress) report_deadlock();
  }
  run.unwinding = !run.error.empty();
  for (unsigned i = 0; run.unwinding && i < run.thread_count; ++i) {
    if (run.threads[i].status != status::finished) resume(run.threads[i]);
  }
  run.unwinding = false;
  forget_requests();
}

void stop_if_asked(place at) {
  if (current_settings.stop != nullptr && current_settings.stop()) fail("stopped", at);
}

}  // namespace

void execute(char const* kernel, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes, void (*body)(void const*),
             void const* arguments) {
  release(&run.block_begin);
  unobserved const bookkeeping;
  if (block.count() == 0 || block.count() > most_threads) throw kernel_error(std::string(kernel) + ": block size");
  if (grid.count() == 0 || grid.y > 65535 || grid.z > 65535) throw kernel_error(std::string(kernel) + ": grid size");
  run.kernel = kernel;
  run.grid = grid;
  run.block = block;
  run.body = body;
  run.arguments = arguments;
  run.dynamic_shared_bytes = dynamic_shared_bytes;
  run.thread_count = static_cast<unsigned>(block.count());
  run.error.clear();
  ++running.launch_number;
  if (run.recording) run.launches.push_back({kernel, {}});

  std::vector<unsigned> order(run.thread_count);
  for (unsigned i = 0; i < run.thread_count; ++i) {
    order[i] = i;
    if (!run.threads[i].fiber) run.threads[i].fiber = std::make_unique<fiber>(&thread_body);
  }
  std::mt19937_64 random(current_settings.seed);
  bool const reverse = current_settings.schedule == schedule::reverse;
  if (reverse) std::reverse(order.begin(), order.end());
  for (std::uint64_t i = 0; i < grid.count() && run.error.empty(); ++i) {
    begin_block(reverse ? grid.count() - 1 - i : i);
    run_block(order, random);
  }
  acquire(&run.block_end[0]);
  acquire(&run.block_end[1]);
  if (!run.error.empty()) throw kernel_error(std::exchange(run.error, {}));
}

void fail(std::string const& what, place at) {
  {
    unobserved const bookkeeping;
    if (!running.active) throw kernel_error(what + " at " + to_string(at));
    set_error(name_of(*run.current) + " " + what + " at " + to_string(at));
  }
  throw unwind{};
}

void block_barrier(place at) {
  release(&run.barrier_sync);
  {
    unobserved const bookkeeping;
    thread& self = *run.current;
    std::size_t const barrier = self.barriers_passed++;
    if (run.recording) {
      auto& places = run.launches.back().barriers;
      if (places.size() == barrier) places.push_back(at);
      if (current_settings.skipped_barrier == barrier_id{run.launches.size() - 1, barrier}) return;
    }
    stop_if_asked(at);
    ++counters.barriers;
    self.at = at;
    self.status = status::at_barrier;
    if (++run.at_barrier < run.thread_count) {
      suspend();
    } else {
      for (unsigned i = 0; i < run.thread_count; ++i) {
        thread const& other = run.threads[i];
        if (other.at.line != at.line || other.at.file != at.file) {
          fail("divergence: waits in a barrier, while " + name_of(other) + " waits in that at " + to_string(other.at),
               at);
        }
      }
      run.at_barrier = 0;
      for (unsigned i = 0; i < run.thread_count; ++i) run.threads[i].status = status::ready;
    }
  }
  acquire(&run.barrier_sync);
}

void exchange_in_warp(unsigned mask, warp_message& message, unsigned source, place at) {
  char* const sync = &run.warp_sync[run.current->number / warp_size];
  release(sync);
  {
    unobserved const bookkeeping;
    thread& self = *run.current;
    unsigned const first = self.number / warp_size * warp_size;
    if (mask != whole_warp) fail("warp exchange with a mask that leaves lanes out", at);
    stop_if_asked(at);
    if (first + warp_size > run.thread_count) fail("warp exchange in a warp of fewer than 32 threads", at);
    self.message = &message;
    self.source = source % warp_size;
    self.at = at;
    self.status = status::in_exchange;
    ++counters.shuffles;
    unsigned arrived = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      thread const& other = run.threads[first + lane];
      if (other.status == status::finished) fail("warp exchange with " + name_of(other) + ", which has returned", at);
      if (other.status == status::in_exchange) ++arrived;
    }
    if (arrived < warp_size) {
      suspend();
    } else {  // the last to come moves the data and lets the others go on
      for (unsigned lane = 0; lane < warp_size; ++lane) {
        thread& other = run.threads[first + lane];
        if (other.at.line != at.line || other.at.file != at.file) {
          fail("divergence: in a warp exchange, while " + name_of(other) + " is in that at " + to_string(other.at), at);
        }
        other.received = *run.threads[first + other.source].message;
      }
      for (unsigned lane = 0; lane < warp_size; ++lane) run.threads[first + lane].status = status::ready;
    }
    message = self.received;
  }
  acquire(sync);
}

shared_block static_shared_memory(void const* declaration, std::size_t bytes, place at) {
  unobserved const bookkeeping;
  for (auto const& known : run.shared) {
    if (known.declaration == declaration) return known.block;
  }
  shared_block const block = take_shared(bytes);
  if (block.memory == nullptr) fail(too_much_shared(), at);
  run.shared.push_back({declaration, block});
  return block;
}

shared_block dynamic_shared_memory(place) { return run.dynamic; }

options& settings() { return current_settings; }
void begin_recording() {
  run.recording = true;
  run.launches.clear();
}
std::vector<launch_record> const& recorded_launches() { return run.launches; }

dim3 const& thread_index() { return run.current->index; }
dim3 const& block_index() { return run.block_at; }
dim3 const& block_dimensions() { return run.block; }
dim3 const& grid_dimensions() { return run.grid; }
unsigned lane_index() { return run.current->number % warp_size; }

}  // namespace simt
