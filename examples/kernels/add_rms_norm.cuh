// SPDX-License-Identifier: MIT
// The residual add and RMS norm of a transformer block: sum = x + residual, y = sum / rms(sum) * gamma.
//
// Both results are needed later, so two reads and two writes are the least. As a chain (add, square, mean, times the
// reciprocal of the root, times gamma) it is six reads and four writes. The reciprocals are kept for backward.
#pragma once
#include "column_primitives.cuh"
#include "reduce.cuh"
#include "rows.cuh"

namespace gpumem::kernels {

inline constexpr float rms_norm_epsilon = 1e-5f;

/// From a row's sum of squares: the reciprocal of the root of their mean.
struct reciprocal_rms {
  int columns;
  __device__ float operator()(float sum_of_squares) const {
    return rsqrtf(sum_of_squares / static_cast<float>(columns) + rms_norm_epsilon);
  }
};

template <class T>
struct add_rms_norm_tensors {
  T const* x;
  T const* residual;
  T const* gamma;
  T* sum;
  T* y;
  float* reciprocal;
};

/// x + residual as it is stored, and the sum of its squares. The norm is that of the rounded sum, as in the chain.
template <class T>
__device__ __forceinline__ packet<T> add_packets(packet<T> const& a, packet<T> const& b, float& sum_of_squares) {
  packet<T> sum;
  GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
    sum.values[j] = from_float<T>(to_float(a.values[j]) + to_float(b.values[j]));
    sum_of_squares += to_float(sum.values[j]) * to_float(sum.values[j]);
  }
  return sum;
}
template <class T>
__device__ __forceinline__ packet<T> normalise(packet<T> const& sum, float reciprocal, packet<T> const& gamma) {
  packet<T> y;
  GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
    y.values[j] = from_float<T>(to_float(sum.values[j]) * reciprocal * to_float(gamma.values[j]));
  }
  return y;
}

/// Rows in registers, gamma in shared memory: each block reads it once, then walks over many rows.
template <class T, int Lanes, int PacketsPerLane>
__global__ void __launch_bounds__(threads_of_row_groups)
    add_rms_norm_in_registers(add_rms_norm_tensors<T> tensors, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>;
  GPUMEM_DYNAMIC_SHARED(T, gamma);
  row_packets<T> const whole_gamma(0, columns);
  for (int i = static_cast<int>(threadIdx.x); i < whole_gamma.count; i += threads_of_row_groups) {
    store_shared_16_bytes(gamma, i * V, __builtin_bit_cast(uint4, whole_gamma.load(tensors.gamma, i, 0.0f)));
  }
  __syncthreads();

  constexpr int rows_per_block = threads_of_row_groups / Lanes;
  int const lane = lane_of_group<Lanes>();
  // All groups of a block make the same number of rounds: their lanes meet in shuffles.
  for (std::int64_t round = 0; (round * gridDim.x + blockIdx.x) * rows_per_block < rows; ++round) {
    std::int64_t const row_number = round * gridDim.x * rows_per_block + row_of_group<Lanes>();
    auto const row = packets_of<T>(row_number, rows, columns);

    registers<packet<T>, PacketsPerLane> sums, residuals;
    GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
      sums[i] = row.load(tensors.x, lane + i * Lanes, 0.0f);
      residuals[i] = row.load(tensors.residual, lane + i * Lanes, 0.0f);
    }
    float sum_of_squares = 0.0f;
    GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
      sums[i] = add_packets(sums[i], residuals[i], sum_of_squares);
      row.store(tensors.sum, lane + i * Lanes, sums[i]);
    }
    float const reciprocal = reciprocal_rms{columns}(reduce_lanes<Lanes>(sum_of_squares, sum_of{}));
    if (lane == 0 && row_number < rows) store_value(tensors.reciprocal + row_number, reciprocal);

    GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
      int const column = row.first_column(lane + i * Lanes);
      packet<T> factors;
      if (row.skipped == 0 && column + V <= row.columns) {
        factors = __builtin_bit_cast(packet<T>, load_shared_16_bytes(gamma, column));
      } else {
        GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
          bool const inside = column + j >= 0 && column + j < row.columns;
          factors.values[j] = inside ? gamma[column + j] : from_float<T>(0.0f);
        }
      }
      row.store(tensors.y, lane + i * Lanes, normalise(sums[i], reciprocal, factors));
    }
  }
}

/// One block a row. A row too long for shared memory is read back from where its sum was written: three reads instead
/// of two. Gamma comes from memory for the first row, from the caches for the others.
template <class T, bool OnChip>
__global__ void __launch_bounds__(most_threads_of_a_row)
    add_rms_norm_in_block(add_rms_norm_tensors<T> tensors, int columns) {
  constexpr int V = elements_per_packet<T>;
  GPUMEM_DYNAMIC_SHARED(T, kept);
  row_packets<T> const row(blockIdx.x, columns);
  int const threads = static_cast<int>(blockDim.x);

  float sum_of_squares = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> const x = row.load(tensors.x, i, 0.0f);
    packet<T> const sum = add_packets(x, row.load(tensors.residual, i, 0.0f), sum_of_squares);
    if constexpr (OnChip) store_shared_16_bytes(kept, i * V, __builtin_bit_cast(uint4, sum));
    row.store(tensors.sum, i, sum);
  }
  float const reciprocal = reciprocal_rms{columns}(reduce_block(sum_of_squares, sum_of{}));
  if (threadIdx.x == 0) store_value(tensors.reciprocal + blockIdx.x, reciprocal);

  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> sum;
    if constexpr (OnChip) {
      sum = __builtin_bit_cast(packet<T>, load_shared_16_bytes(kept, i * V));
    } else {
      sum = row.load(tensors.sum, i, 0.0f);
    }
    row.store(tensors.y, i, normalise(sum, reciprocal, load_row_parameters(row, tensors.gamma, i)));
  }
}

template <class T, class G>
unsigned add_rms_norm_blocks(device_context const& device, std::int64_t rows, G) {
  std::int64_t const resident =
      static_cast<std::int64_t>(device.multiprocessors) * (device.threads_per_multiprocessor / threads_of_row_groups);
  return static_cast<unsigned>(std::min<std::int64_t>(G::blocks(rows), resident));
}

template <class T>
void add_rms_norm_fused(device_context const& device, add_rms_norm_tensors<T> const& tensors, std::int64_t rows,
                        int columns) {
  by_width<T>(
      columns,
      [&](auto group) {
        using G = decltype(group);
        launch("add_rms_norm_in_registers", add_rms_norm_in_registers<T, G::lanes, G::packets_per_lane>,
               add_rms_norm_blocks<T>(device, rows, group), threads_of_row_groups, shared_bytes_for_row<T>(columns),
               device.on, tensors, rows, columns);
      },
      [&] {
        auto const blocks = static_cast<unsigned>(rows);
        unsigned const threads = threads_for_row<T>(columns);
        if (row_stays_on_chip<T>(device, columns)) {
          launch("add_rms_norm_in_block<on chip>", add_rms_norm_in_block<T, true>, blocks, threads,
                 shared_bytes_for_row<T>(columns), device.on, tensors, columns);
        } else {
          launch("add_rms_norm_in_block<re-read>", add_rms_norm_in_block<T, false>, blocks, threads, 0, device.on,
                 tensors, columns);
        }
      });
}

/// How often all blocks together ask for gamma.
template <class T>
std::int64_t readers_of_gamma(device_context const& device, std::int64_t rows, int columns) {
  std::int64_t readers = rows;
  by_width<T>(
      columns, [&](auto group) { readers = add_rms_norm_blocks<T>(device, rows, group); }, [] {});
  return readers;
}

template <class T>
void add_rms_norm_chain(device_context const& device, add_rms_norm_tensors<T> const& tensors, T* squares, T* scaled,
                        std::int64_t rows, int columns) {
  std::int64_t const elements = rows * columns;
  map_elements(device, "add", elements, tensors.sum, add{}, tensors.x, tensors.residual);
  map_elements(device, "square", elements, squares, square{}, tensors.sum);
  reduce_rows(device, "mean, root, reciprocal", squares, tensors.reciprocal, rows, columns, sum_of{},
              reciprocal_rms{columns});
  map_rows(device, "multiply by row", tensors.sum, tensors.reciprocal, scaled, rows, columns, product{});
  map_columns(device, "multiply by column", scaled, tensors.gamma, tensors.y, rows, columns, product{});
}

}  // namespace gpumem::kernels
