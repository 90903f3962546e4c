// SPDX-License-Identifier: MIT
// One kernel source for two compilers: nvcc, and any C++ compiler with the executor in tests/simt. Kernels are plain
// CUDA but for what is defined here: shared memory, memory accesses, the launch.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#define GPUMEM_UNROLL _Pragma("unroll")
#define GPUMEM_SHARED(type, name, count) __shared__ type name[count]
#define GPUMEM_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char dynamic_shared_memory[]; \
  type* const name = reinterpret_cast<type*>(dynamic_shared_memory)

namespace gpumem::kernels {

using stream = cudaStream_t;

/// The executor names the line of a wrong access; on the GPU there is nothing to remember.
struct place {
  __device__ static constexpr place here() { return {}; }
};

template <class T>
using shared_array = T*;

template <class T>
__device__ __forceinline__ T load_value(T const* address, place = {}) {
  return *address;
}
template <class T>
__device__ __forceinline__ void store_value(T* address, T value, place = {}) {
  *address = value;
}
// A struct of 16 bytes may be moved in pieces; uint4 is always one access. Tensors are touched once, so they are marked
// as first to leave the caches.
template <class T>
__device__ __forceinline__ uint4 load_16_bytes(T const* address, place = {}) {
  return __ldcs(reinterpret_cast<uint4 const*>(address));
}
template <class T>
__device__ __forceinline__ uint4 load_16_bytes_cached(T const* address, place = {}) {
  return *reinterpret_cast<uint4 const*>(address);
}
template <class T>
__device__ __forceinline__ void store_16_bytes(T* address, uint4 value, place = {}) {
  __stcs(reinterpret_cast<uint4*>(address), value);
}
/// Several elements in one access narrower than a packet.
template <class Word, class T>
__device__ __forceinline__ Word load_word(T const* address, place = {}) {
  return __ldcs(reinterpret_cast<Word const*>(address));
}
template <class Word, class T>
__device__ __forceinline__ void store_word(T* address, Word word, place = {}) {
  __stcs(reinterpret_cast<Word*>(address), word);
}
template <class T>
__device__ __forceinline__ uint4 load_shared_16_bytes(T* array, int first, place = {}) {
  return *reinterpret_cast<uint4 const*>(array + first);
}
template <class T>
__device__ __forceinline__ void store_shared_16_bytes(T* array, int first, uint4 value, place = {}) {
  *reinterpret_cast<uint4*>(array + first) = value;
}

inline void check(cudaError_t status, char const* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

template <class... Parameters, class... Arguments>
void launch(char const* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, stream on,
            Arguments... arguments) {
  constexpr std::size_t without_opt_in = 48 * 1024;
  if (shared_bytes > without_opt_in) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          name);
  }
  kernel<<<grid, block, shared_bytes, on>>>(arguments...);
  check(cudaGetLastError(), name);
}

}  // namespace gpumem::kernels

#else

#include "simt/cuda_names.hpp"

#define GPUMEM_UNROLL
#define GPUMEM_SHARED(type, name, count) \
  static char name##_declaration;        \
  ::simt::shared_array<type> const name( \
      ::simt::static_shared_memory(&name##_declaration, sizeof(type) * (count), ::simt::place::here()))
#define GPUMEM_DYNAMIC_SHARED(type, name) \
  ::simt::shared_array<type> const name(::simt::dynamic_shared_memory(::simt::place::here()))

namespace gpumem::kernels {

struct stream {};

using simt::load_value;
using simt::place;
using simt::shared_array;
using simt::store_value;

template <class T>
uint4 load_16_bytes(T const* address, place at = place::here()) {
  return simt::load_vector<uint4>(address, at);
}
template <class T>
uint4 load_16_bytes_cached(T const* address, place at = place::here()) {
  return simt::load_vector<uint4>(address, at);
}
template <class T>
void store_16_bytes(T* address, uint4 value, place at = place::here()) {
  simt::store_vector(address, value, at);
}
template <class Word, class T>
Word load_word(T const* address, place at = place::here()) {
  return simt::load_vector<Word>(address, at);
}
template <class Word, class T>
void store_word(T* address, Word word, place at = place::here()) {
  simt::store_vector(address, word, at);
}
template <class T>
uint4 load_shared_16_bytes(shared_array<T> array, std::int64_t first, place at = place::here()) {
  uint4 value;
  std::memcpy(&value, array.checked(first, 16 / sizeof(T), at), 16);
  return value;
}
template <class T>
void store_shared_16_bytes(shared_array<T> array, std::int64_t first, uint4 value, place at = place::here()) {
  std::memcpy(array.checked(first, 16 / sizeof(T), at), &value, 16);
}

template <class... Parameters, class... Arguments>
void launch(char const* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, stream,
            Arguments... arguments) {
  simt::launch(name, kernel, grid, block, shared_bytes, arguments...);
}

}  // namespace gpumem::kernels

#endif

namespace gpumem::kernels {

/// What a launch has to know of the GPU it runs on.
struct device_context {
  int multiprocessors = 1;
  int threads_per_multiprocessor = 2048;
  std::size_t shared_bytes_per_block = 48 * 1024;  ///< with the opt-in: 227 KiB on compute capability 9.0
  stream on{};
};

}  // namespace gpumem::kernels
