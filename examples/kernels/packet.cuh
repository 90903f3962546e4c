// SPDX-License-Identifier: MIT
// Packets: the 16 bytes that one thread moves in one access. A GPU reaches its bandwidth only with wide accesses.
#pragma once
#include "bf16.hpp"
#include "portable.cuh"

namespace gpumem::kernels {

template <class T>
inline constexpr int elements_per_packet = 16 / static_cast<int>(sizeof(T));

template <class T>
struct alignas(16) packet {
  T values[16 / sizeof(T)];
};

/// An array that loops with constant bounds keep in registers.
template <class T, int Count>
using registers = T[static_cast<std::size_t>(Count)];

/// A finite stand-in for minus infinity: exp(lowest - x) is 0, and lowest - lowest is no NaN.
inline constexpr float lowest = -3.0e38f;

/// Elements [first, first + V) of a tensor; what lies outside [begin, end) is not read and becomes `fill`.
template <class T>
__device__ __forceinline__ packet<T> load_packet(T const* tensor, std::int64_t first, std::int64_t begin,
                                                 std::int64_t end, float fill, place at = place::here()) {
  constexpr int V = elements_per_packet<T>;
  if (first >= begin && first + V <= end) return __builtin_bit_cast(packet<T>, load_16_bytes(tensor + first, at));
  packet<T> result;
  GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
    bool const inside = first + j >= begin && first + j < end;
    result.values[j] = inside ? load_value(tensor + first + j, at) : from_float<T>(fill);
  }
  return result;
}

template <class T>
__device__ __forceinline__ void store_packet(T* tensor, std::int64_t first, std::int64_t begin, std::int64_t end,
                                             packet<T> const& source, place at = place::here()) {
  constexpr int V = elements_per_packet<T>;
  if (first >= begin && first + V <= end) {
    store_16_bytes(tensor + first, __builtin_bit_cast(uint4, source), at);
    return;
  }
  GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
    if (first + j >= begin && first + j < end) store_value(tensor + first + j, source.values[j], at);
  }
}

/// One row of a matrix as packets. Where the width is no multiple of a packet, rows begin and end inside one: the first
/// and the last packet of a row are then partial, every other access still has its 16 bytes. Tensors begin at a
/// multiple of 16 bytes.
template <class T>
struct row_packets {
  std::int64_t begin;  // first element of the row, counted from the tensor's first
  int columns;
  int skipped;  // elements of the first packet that belong to the row before
  int count;

  __device__ row_packets(std::int64_t row, int columns_)
      : begin(row * columns_), columns(columns_), skipped(static_cast<int>(begin % elements_per_packet<T>)) {
    count = (skipped + columns + elements_per_packet<T> - 1) / elements_per_packet<T>;
  }
  /// A row that is not there: no packet is loaded or stored, yet its threads take part in every exchange.
  __device__ void make_empty() { columns = count = 0; }

  __device__ std::int64_t first_element(int index) const {
    return begin - skipped + static_cast<std::int64_t>(index) * elements_per_packet<T>;
  }
  /// The column of a packet's first element; negative if that belongs to the row before.
  __device__ int first_column(int index) const { return index * elements_per_packet<T> - skipped; }

  __device__ __forceinline__ packet<T> load(T const* tensor, int index, float fill, place at = place::here()) const {
    return load_packet(tensor, first_element(index), begin, begin + columns, fill, at);
  }
  __device__ __forceinline__ void store(T* tensor, int index, packet<T> const& source, place at = place::here()) const {
    store_packet(tensor, first_element(index), begin, begin + columns, source, at);
  }
};

/// The parameters, one a column, that go with a packet of a row.
template <class T>
__device__ __forceinline__ packet<T> load_row_parameters(row_packets<T> const& row, T const* parameter, int index,
                                                         place at = place::here()) {
  constexpr int V = elements_per_packet<T>;
  int const column = row.first_column(index);
  if (row.skipped == 0 && column + V <= row.columns) {
    return __builtin_bit_cast(packet<T>, load_16_bytes_cached(parameter + column, at));
  }
  packet<T> result;
  GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
    bool const inside = column + j >= 0 && column + j < row.columns;
    result.values[j] = inside ? load_value(parameter + column + j, at) : from_float<T>(0.0f);
  }
  return result;
}

/// Most packets that a row of this width takes, wherever it begins.
template <class T>
constexpr int most_packets_per_row(int columns) {
  constexpr int V = elements_per_packet<T>;
  return columns % V == 0 ? columns / V : (columns + 2 * V - 2) / V;
}

}  // namespace gpumem::kernels
