// SPDX-License-Identifier: MIT
#include "memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <new>

#include "fiber.hpp"
#include "running.hpp"

namespace simt {

running_launch running;
traffic counters;

namespace {

constexpr std::size_t sector_bytes = 32;
constexpr std::uint32_t by_atomic = 0xffffffffu;  // in place of a block's number

std::vector<allocation*> allocations;
allocation* last = nullptr;  // the one found last

allocation* find_allocation(std::byte const* address) {
  auto const holds = [address](allocation const* a) {
    return address >= a->begin() && address < a->begin() + a->bytes();
  };
  if (last != nullptr && holds(last)) return last;
  auto const found = std::find_if(allocations.begin(), allocations.end(), holds);
  return found == allocations.end() ? nullptr : last = *found;
}

/// One request of a warp: the same line, for the same time, in each of its lanes.
struct request {
  unsigned warp, line, time;
  char const* file;
  access kind;
  auto operator<=>(request const&) const = default;
};
struct touched {
  std::vector<std::uintptr_t> addresses, sectors;
};
std::map<request, touched> requests;

/// Whether `value` was not yet among `values`, to which it belongs from now on.
bool is_new(std::vector<std::uintptr_t>& values, std::uintptr_t value) {
  if (std::find(values.begin(), values.end(), value) != values.end()) return false;
  values.push_back(value);
  return true;
}

void count_sectors(access kind, std::uintptr_t address, std::size_t bytes, place at) {
  auto& lines = *running.lines;
  auto line = std::find_if(lines.begin(), lines.end(),
                           [at](line_count const& l) { return l.at.line == at.line && l.at.file == at.file; });
  if (line == lines.end()) line = lines.insert(lines.end(), line_count{at, 0});
  auto& request = requests[{running.thread_number / warp_size, at.line, line->count++, at.file, kind}];
  // Aligned accesses of at most 16 bytes each lie in one sector.
  std::uint64_t const new_bytes = is_new(request.addresses, address) ? bytes : 0;
  std::uint64_t const new_sectors = is_new(request.sectors, address / sector_bytes) ? 1 : 0;
  counters.warp_bytes += new_bytes;
  counters.sectors += new_sectors;
  if (bytes == 16) {
    counters.packet_warp_bytes += new_bytes;
    counters.packet_sectors += new_sectors;
  }
}

}  // namespace

/// Reads and writes the marks that an allocation keeps of its granules.
struct memory_access {
  access kind;
  std::size_t bytes;
  place at;

  void mark(allocation& a, std::size_t offset) const {
    for (std::size_t g = offset / a.granule_; g < (offset + bytes + a.granule_ - 1) / a.granule_; ++g) {
      if (kind != access::store) mark_read(a, g);
      if (kind != access::load) mark_written(a, g);
    }
  }

 private:
  void mark_read(allocation& a, std::size_t g) const {
    if (kind == access::load && written_by_another_block(a, g)) {
      fail("reads " + a.name() + " where block " + std::to_string(a.written_by_[g]) +
               " of the same launch wrote, without an atomic",
           at);
    }
    if (a.read_in_[g] == running.launch_number) return;
    a.read_in_[g] = running.launch_number;
    counters.distinct_reads += a.granule_;
  }
  void mark_written(allocation& a, std::size_t g) const {
    bool const first = a.written_in_[g] != running.launch_number;
    if (!first && a.written_by_[g] == by_atomic) {
      if (kind == access::store) fail("writes " + a.name() + " where the same launch made an atomic access", at);
    } else if (written_by_another_block(a, g)) {
      fail("two blocks write " + a.name() + " at byte " + std::to_string(g * a.granule_) +
               " without an atomic: this one and block " + std::to_string(a.written_by_[g]),
           at);
    }
    a.written_in_[g] = running.launch_number;
    a.written_by_[g] = kind == access::atomic ? by_atomic : running.block_number;
    if (first) counters.distinct_writes += a.granule_;
  }
  bool written_by_another_block(allocation const& a, std::size_t g) const {
    return a.written_in_[g] == running.launch_number && a.written_by_[g] != by_atomic &&
           a.written_by_[g] != running.block_number;
  }
};

allocation::allocation(std::string name, std::size_t bytes, std::size_t granule)
    : name_(std::move(name)),
      bytes_(bytes),
      granule_(granule),
      memory_(static_cast<std::byte*>(::operator new (bytes == 0 ? 1 : bytes, std::align_val_t{256}))),
      read_in_(bytes / granule),
      written_in_(read_in_.size()),
      written_by_(read_in_.size()) {
  allocations.push_back(this);
}

allocation::~allocation() {
  std::erase(allocations, this);
  if (last == this) last = nullptr;
  ::operator delete (memory_, std::align_val_t{256});
}

void account(access kind, void const* address, std::size_t bytes, place at) {
  unobserved const bookkeeping;
  auto const* const first = static_cast<std::byte const*>(address);
  allocation* const a = find_allocation(first);
  char const* const verb = kind == access::load ? "reads " : "writes ";
  if (a == nullptr) fail(std::string("out of bounds: ") + verb + std::to_string(bytes) + " bytes in no buffer", at);
  auto const offset = static_cast<std::size_t>(first - a->begin());
  if (offset + bytes > a->bytes()) {
    fail(std::string("out of bounds: ") + verb + std::to_string(bytes) + " bytes at byte " + std::to_string(offset) +
             " of " + a->name() + ", which has " + std::to_string(a->bytes()),
         at);
  }
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) {
    fail("misaligned access of " + std::to_string(bytes) + " bytes to " + a->name(), at);
  }
  if (kind != access::store) counters.requested_reads += bytes;
  if (kind != access::load) counters.requested_writes += bytes;
  if (bytes == 16) counters.packet_bytes += bytes;
  memory_access{kind, bytes, at}.mark(*a, offset);
  if (settings().lint_coalescing) count_sectors(kind, reinterpret_cast<std::uintptr_t>(address), bytes, at);
}

traffic const& counted_traffic() { return counters; }
void reset_traffic() { counters = {}; }
void forget_requests() { requests.clear(); }

std::string to_string(place at) {
  std::string const path = at.file;
  auto const slash = path.find_last_of('/');
  return (slash == std::string::npos ? path : path.substr(slash + 1)) + ":" + std::to_string(at.line);
}

}  // namespace simt
