// SPDX-License-Identifier: MIT
// How rows are spread over threads, by their width.
//
//   up to 256 packets (1024 floats, 2048 bf16)   8, 16 or 32 lanes hold a row in registers; 128 threads a block
//   beyond, while the row fits                   a block holds a row in shared memory
//   beyond                                       a block streams the row, and reads it once more where it must
#pragma once
#include <algorithm>

#include "packet.cuh"

namespace gpumem::kernels {

inline constexpr int threads_of_row_groups = 128;
inline constexpr int most_threads_of_a_row = 1024;
inline constexpr int most_packets_in_registers = 256;

/// The row that this thread works on, where `Lanes` lanes share one.
template <int Lanes>
__device__ __forceinline__ std::int64_t row_of_group() {
  constexpr int rows_per_block = threads_of_row_groups / Lanes;
  return static_cast<std::int64_t>(blockIdx.x) * rows_per_block + static_cast<int>(threadIdx.x) / Lanes;
}
template <int Lanes>
__device__ __forceinline__ int lane_of_group() {
  return static_cast<int>(threadIdx.x) % Lanes;
}

/// That row's packets; none where the grid reaches beyond the last row.
template <class T>
__device__ __forceinline__ row_packets<T> packets_of(std::int64_t row, std::int64_t rows, int columns) {
  row_packets<T> result(row < rows ? row : 0, columns);
  if (row >= rows) result.make_empty();
  return result;
}

template <int Lanes_, int PacketsPerLane_>
struct row_group {
  static constexpr int lanes = Lanes_;
  static constexpr int packets_per_lane = PacketsPerLane_;
  static constexpr int rows_per_block = threads_of_row_groups / lanes;

  static unsigned blocks(std::int64_t rows) {
    return static_cast<unsigned>((rows + rows_per_block - 1) / rows_per_block);
  }
};

/// Calls `launch_group` with the smallest group that holds a row in its registers, `launch_block` if none does.
template <class T, class LaunchGroup, class LaunchBlock>
void by_width(int columns, LaunchGroup launch_group, LaunchBlock launch_block) {
  int const packets = most_packets_per_row<T>(columns);
  if (packets <= 16) return launch_group(row_group<8, 2>{});
  if (packets <= 32) return launch_group(row_group<16, 2>{});
  if (packets <= 64) return launch_group(row_group<32, 2>{});
  if (packets <= most_packets_in_registers) return launch_group(row_group<32, 8>{});
  launch_block();
}

/// Threads of a block that works on one row: about four packets each.
template <class T>
unsigned threads_for_row(int columns) {
  int const wanted = (most_packets_per_row<T>(columns) + 3) / 4;
  return static_cast<unsigned>(std::clamp((wanted + 31) / 32 * 32, 128, most_threads_of_a_row));
}

/// Shared memory that holds `tensors` rows of packets.
template <class T>
std::size_t shared_bytes_for_row(int columns, int tensors = 1) {
  return static_cast<std::size_t>(most_packets_per_row<T>(columns)) * 16 * static_cast<std::size_t>(tensors);
}

// Static shared memory of the block reductions comes on top of the dynamic.
inline constexpr std::size_t shared_bytes_of_reductions = 1024;

/// A row is read once where its packets stay on the chip until it is written: the table's formulas turn on it.
template <class T>
bool row_stays_on_chip(device_context const& device, int columns, int tensors = 1) {
  return most_packets_per_row<T>(columns) <= most_packets_in_registers ||
         shared_bytes_for_row<T>(columns, tensors) + shared_bytes_of_reductions <= device.shared_bytes_per_block;
}

}  // namespace gpumem::kernels
