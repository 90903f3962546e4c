// SPDX-License-Identifier: MIT
// Global memory of the executor: buffers whose every access is checked and counted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace simt {

/// A line of a kernel. <source_location> would do, but clang 14 cannot read libstdc++'s.
struct place {
  char const* file = "";
  unsigned line = 0;
  static constexpr place here(char const* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};
std::string to_string(place at);

/// What the launches since the last `reset_traffic()` did to global memory.
struct traffic {
  std::uint64_t requested_reads = 0;  ///< bytes that threads asked for
  std::uint64_t requested_writes = 0;
  std::uint64_t distinct_reads = 0;  ///< bytes of those, each counted once a launch: what memory must deliver
  std::uint64_t distinct_writes = 0;
  std::uint64_t packet_bytes = 0;  ///< requested in accesses of 16 bytes
  // With the lint on: by request of a warp, the bytes that its lanes asked for, each once, and the 32-byte sectors that
  // these lie in; of all accesses, and of those of 16 bytes.
  std::uint64_t warp_bytes = 0, sectors = 0;
  std::uint64_t packet_warp_bytes = 0, packet_sectors = 0;
  std::uint64_t barriers = 0;
  std::uint64_t shuffles = 0;

  std::uint64_t requested() const { return requested_reads + requested_writes; }
  std::uint64_t distinct() const { return distinct_reads + distinct_writes; }
  /// Bytes used of each sector moved: 1 is coalesced, 1/8 a column walked with 4-byte accesses.
  double coalescing() const { return static_cast<double>(warp_bytes) / (32.0 * static_cast<double>(sectors)); }
  double packet_coalescing() const {
    return static_cast<double>(packet_warp_bytes) / (32.0 * static_cast<double>(packet_sectors));
  }
};
traffic const& counted_traffic();
void reset_traffic();

/// Memory that kernels may reach. Anything else that they load or store is out of bounds.
class allocation {
 public:
  allocation(std::string name, std::size_t bytes, std::size_t granule);
  ~allocation();
  allocation(allocation const&) = delete;
  allocation& operator=(allocation const&) = delete;

  std::string const& name() const { return name_; }
  std::byte* begin() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  friend struct memory_access;

  std::string name_;
  std::size_t bytes_;
  std::size_t granule_;  // an element: no access is smaller
  std::byte* memory_;
  // One entry a granule: the launch that last read it, wrote it, and the block that wrote it.
  std::vector<std::uint32_t> read_in_, written_in_, written_by_;
};

template <class T>
class buffer {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  buffer(std::string name, std::size_t count)
      : allocation_(std::move(name), count * sizeof(T), sizeof(T)), count_(count) {}

  T* data() const { return reinterpret_cast<T*>(allocation_.begin()); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  /// 0xFF in every byte: a NaN, in float and in bf16.
  void poison() const { std::memset(data(), 0xFF, count_ * sizeof(T)); }
  void assign(std::vector<T> const& values) const { std::memcpy(data(), values.data(), values.size() * sizeof(T)); }

 private:
  allocation allocation_;
  std::size_t count_;
};

enum class access { load, store, atomic };
/// Checks and counts one access of the running thread; throws what unwinds the kernel when it may not be made.
void account(access kind, void const* address, std::size_t bytes, place at);

template <class T>
T load_value(T const* address, place at = place::here()) {
  account(access::load, address, sizeof(T), at);
  return *address;
}
template <class T>
void store_value(T* address, T value, place at = place::here()) {
  account(access::store, address, sizeof(T), at);
  *address = value;
}
/// Several elements in one access, as a vector load or store of the GPU makes it.
template <class Vector, class T>
Vector load_vector(T const* address, place at = place::here()) {
  account(access::load, address, sizeof(Vector), at);
  Vector value;
  std::memcpy(&value, address, sizeof(Vector));
  return value;
}
template <class Vector, class T>
void store_vector(T* address, Vector const& value, place at = place::here()) {
  account(access::store, address, sizeof(Vector), at);
  std::memcpy(address, &value, sizeof(Vector));
}

}  // namespace simt
