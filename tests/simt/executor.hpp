// SPDX-License-Identifier: MIT
// Runs a CUDA kernel on the CPU: every CUDA thread is a fiber, barriers and shuffles are where fibers change.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "memory.hpp"

namespace simt {

inline constexpr unsigned warp_size = 32;
inline constexpr unsigned whole_warp = 0xffffffffu;

/// A kernel did what it must not; the text names kernel, block, thread, file and line.
class kernel_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

enum class schedule { forward, reverse, random };

/// One barrier: the `barrier`-th that a thread passes in the `launch`-th launch since `begin_recording()`.
struct barrier_id {
  std::size_t launch = 0;
  std::size_t barrier = 0;
  friend bool operator==(barrier_id, barrier_id) = default;
};

struct options {
  simt::schedule schedule = simt::schedule::forward;  ///< order of blocks, and of the threads in each
  std::uint64_t seed = 1;                             ///< of the random schedule
  bool lint_coalescing = false;
  std::optional<barrier_id> skipped_barrier{};
  bool (*stop)() = nullptr;  ///< asked at barriers and exchanges: if true, the launch fails there
  std::size_t shared_bytes_per_block = 227 * 1024;  ///< what a block may use, static and dynamic
};
options& settings();

struct launch_record {
  std::string kernel;
  std::vector<place> barriers;  ///< in the order in which a thread of the block passes them
};
void begin_recording();
std::vector<launch_record> const& recorded_launches();

// ---- what the running thread sees
dim3 const& thread_index();
dim3 const& block_index();
dim3 const& block_dimensions();
dim3 const& grid_dimensions();

void block_barrier(place at);

struct warp_message {
  alignas(16) unsigned char bytes[16];
};
/// Each lane posts a message and receives that of lane `source`. All 32 lanes take part.
void exchange_in_warp(unsigned mask, warp_message& message, unsigned source, place at);
unsigned lane_index();

template <class T>
T shuffle(unsigned mask, T value, unsigned source, place at) {
  static_assert(sizeof(T) <= sizeof(warp_message) && std::is_trivially_copyable_v<T>);
  warp_message message{};
  std::memcpy(message.bytes, &value, sizeof(T));
  exchange_in_warp(mask, message, source, at);
  std::memcpy(&value, message.bytes, sizeof(T));
  return value;
}

// ---- shared memory
[[noreturn]] void fail(std::string const& what, place at);

struct shared_block {
  void* memory;
  std::size_t bytes;
};
/// The same memory for all threads of a block and one declaration; filled with NaN when the block starts.
shared_block static_shared_memory(void const* declaration, std::size_t bytes, place at);
shared_block dynamic_shared_memory(place at);

/// An index that remembers the line it was written on, so that an index out of bounds can be told with its line.
struct shared_index {
  template <class Integer>
  requires std::is_integral_v<Integer> shared_index(Integer value_, place at_ = place::here())
      : value(static_cast<std::int64_t>(value_)), at(at_) {}
  std::int64_t value;
  place at;
};

template <class T>
class shared_array {
 public:
  explicit shared_array(shared_block block) : data_(static_cast<T*>(block.memory)), size_(block.bytes / sizeof(T)) {}

  T& operator[](shared_index index) const { return *checked(index.value, 1, index.at); }
  T* checked(std::int64_t first, std::int64_t count, place at) const {
    if (first < 0 || first + count > static_cast<std::int64_t>(size_)) {
      fail("shared memory: index " + std::to_string(first + (first < 0 ? 0 : count - 1)) + " of an array of " +
               std::to_string(size_) + " is out of bounds",
           at);
    }
    return data_ + first;
  }

 private:
  T* data_;
  std::size_t size_;
};

// ---- launch
void execute(char const* kernel, dim3 grid, dim3 block, std::size_t dynamic_shared_bytes, void (*body)(void const*),
             void const* arguments);

template <class... Parameters, class... Arguments>
void launch(char const* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            Arguments... arguments) {
  using call = std::pair<void (*)(Parameters...), std::tuple<Parameters...>>;
  call const packed{kernel, std::tuple<Parameters...>(arguments...)};
  auto const body = [](void const* p) {
    auto const& c = *static_cast<call const*>(p);
    std::apply(c.first, c.second);
  };
  execute(name, grid, block, shared_bytes, body, &packed);
}

}  // namespace simt
