// SPDX-License-Identifier: MIT
// Layer norm and RMS norm, forward: a row is read once and kept on the chip.
#pragma once
#include "norm.cuh"

namespace gpumem::kernels {

/// What is to be normalised: here, a tensor as it lies in memory. All packets of a thread are fetched before the first is
/// finished, so that their loads are in flight together.
template <class T>
struct tensor_source {
  using fetched = packet<T>;
  T const* x;

  __device__ __forceinline__ fetched fetch(row_packets<T> const& row, int index) const {
    return row.load(x, index, 0.0f);
  }
  __device__ __forceinline__ packet<T> finish(row_packets<T> const&, int, fetched const& values) const {
    return values;
  }
  /// Where the row has not stayed on the chip.
  __device__ __forceinline__ packet<T> load_again(row_packets<T> const& row, int index) const {
    return row.load(x, index, 0.0f);
  }
};

template <class Norm, class T>
__device__ __forceinline__ void normalise_and_store(row_packets<T> const& row, int index, packet<T> const& x,
                                                    norm_statistics statistics, norm_parameters<T> const& parameters,
                                                    T* y) {
  packet<T> const gamma = load_row_parameters(row, parameters.gamma, index);
  packet<T> result;
  if constexpr (Norm::centered) {
    packet<T> const beta = load_row_parameters(row, parameters.beta, index);
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      float const normalised = (to_float(x.values[j]) - statistics.mean) * statistics.reciprocal;
      result.values[j] = from_float<T>(normalised * to_float(gamma.values[j]) + to_float(beta.values[j]));
    }
  } else {
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      result.values[j] = from_float<T>(to_float(x.values[j]) * statistics.reciprocal * to_float(gamma.values[j]));
    }
  }
  row.store(y, index, result);
}

/// The row is in registers, so mean and variance may take two passes: no difference of two large sums.
template <class Norm, class T, int Lanes, int PacketsPerLane, class Source>
__global__ void __launch_bounds__(threads_of_row_groups)
    norm_in_registers(Source source, norm_parameters<T> parameters, norm_outputs<T> outputs, std::int64_t rows,
                      int columns) {
  constexpr int V = elements_per_packet<T>;
  std::int64_t const row_number = row_of_group<Lanes>();
  auto const row = packets_of<T>(row_number, rows, columns);
  int const lane = lane_of_group<Lanes>();

  registers<typename Source::fetched, PacketsPerLane> fetched;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) fetched[i] = source.fetch(row, lane + i * Lanes);
  registers<packet<T>, PacketsPerLane> values;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    values[i] = source.finish(row, lane + i * Lanes, fetched[i]);
  }

  norm_statistics statistics;
  if constexpr (Norm::centered) {
    float sum = 0.0f;
    GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
      GPUMEM_UNROLL for (int j = 0; j < V; ++j) sum += to_float(values[i].values[j]);
    }
    statistics.mean = mean_of{columns}(reduce_lanes<Lanes>(sum, sum_of{}));
  }
  float squares = 0.0f;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    int const column = row.first_column(lane + i * Lanes);
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      bool const inside = column + j >= 0 && column + j < row.columns;
      float const difference = inside ? to_float(values[i].values[j]) - statistics.mean : 0.0f;
      squares += difference * difference;
    }
  }
  statistics.reciprocal = reciprocal_root_of_mean{columns}(reduce_lanes<Lanes>(squares, sum_of{}));
  if (lane == 0 && row_number < rows) statistics.store<Norm>(outputs, row_number);

  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    normalise_and_store<Norm>(row, lane + i * Lanes, values[i], statistics, parameters, outputs.y);
  }
}

/// Count, mean and sum of squared differences from the mean of the values seen so far. Two such can be combined, so one
/// pass and one reduction do, again without a difference of two large sums.
struct running_moments {
  float count = 0.0f, mean = 0.0f, squares = 0.0f;

  __device__ __forceinline__ void combine(running_moments other) {
    float const total = count + other.count;
    float const weight = total > 0.0f ? other.count / total : 0.0f;
    float const difference = other.mean - mean;
    mean += difference * weight;
    squares += other.squares + difference * difference * count * weight;
    count = total;
  }
  template <class T>
  __device__ __forceinline__ void add(packet<T> const& p, int first_column, int columns) {
    running_moments here;
    float sum = 0.0f;
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      bool const inside = first_column + j >= 0 && first_column + j < columns;
      here.count += inside ? 1.0f : 0.0f;
      sum += inside ? to_float(p.values[j]) : 0.0f;
    }
    here.mean = sum / here.count;
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      bool const inside = first_column + j >= 0 && first_column + j < columns;
      float const difference = inside ? to_float(p.values[j]) - here.mean : 0.0f;
      here.squares += difference * difference;
    }
    combine(here);
  }
  __device__ __forceinline__ void combine_lanes() {
    GPUMEM_UNROLL for (int distance = lanes_per_warp / 2; distance > 0; distance /= 2) {
      combine({__shfl_xor_sync(whole_warp, count, distance), __shfl_xor_sync(whole_warp, mean, distance),
               __shfl_xor_sync(whole_warp, squares, distance)});
    }
  }
};

/// As reduce_block, for the three.
__device__ __forceinline__ running_moments reduce_block(running_moments value) {
  GPUMEM_SHARED(float, count_of_warp, lanes_per_warp);
  GPUMEM_SHARED(float, mean_of_warp, lanes_per_warp);
  GPUMEM_SHARED(float, squares_of_warp, lanes_per_warp);
  int const lane = static_cast<int>(threadIdx.x) % lanes_per_warp;
  int const warp = static_cast<int>(threadIdx.x) / lanes_per_warp;
  value.combine_lanes();
  if (lane == 0) {
    count_of_warp[warp] = value.count;
    mean_of_warp[warp] = value.mean;
    squares_of_warp[warp] = value.squares;
  }
  __syncthreads();
  value = {};
  if (lane < static_cast<int>(blockDim.x) / lanes_per_warp) {
    value = {count_of_warp[lane], mean_of_warp[lane], squares_of_warp[lane]};
  }
  value.combine_lanes();
  return value;
}

/// One block a row. Not on the chip: the row is read twice.
template <class Norm, class T, bool OnChip, class Source>
__global__ void __launch_bounds__(most_threads_of_a_row)
    norm_in_block(Source source, norm_parameters<T> parameters, norm_outputs<T> outputs, int columns) {
  constexpr int V = elements_per_packet<T>;
  GPUMEM_DYNAMIC_SHARED(T, kept);
  row_packets<T> const row(blockIdx.x, columns);
  int const threads = static_cast<int>(blockDim.x);

  running_moments moments;
  float squares = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> const values = source.finish(row, i, source.fetch(row, i));
    if constexpr (OnChip) store_shared_16_bytes(kept, i * V, __builtin_bit_cast(uint4, values));
    if constexpr (Norm::centered) {
      moments.add(values, row.first_column(i), columns);
    } else {
      GPUMEM_UNROLL for (int j = 0; j < V; ++j) squares += to_float(values.values[j]) * to_float(values.values[j]);
    }
  }
  norm_statistics statistics;
  if constexpr (Norm::centered) {
    moments = reduce_block(moments);
    statistics = {moments.mean, reciprocal_root_of_mean{columns}(moments.squares)};
  } else {
    statistics.reciprocal = reciprocal_root_of_mean{columns}(reduce_block(squares, sum_of{}));
  }
  if (threadIdx.x == 0) statistics.store<Norm>(outputs, blockIdx.x);

  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> values;
    if constexpr (OnChip) {
      values = __builtin_bit_cast(packet<T>, load_shared_16_bytes(kept, i * V));
    } else {
      values = source.load_again(row, i);
    }
    normalise_and_store<Norm>(row, i, values, statistics, parameters, outputs.y);
  }
}

template <class Norm, class T, class Source>
void norm_forward_of(device_context const& device, Source source, norm_parameters<T> const& parameters,
                     norm_outputs<T> const& outputs, std::int64_t rows, int columns) {
  by_width<T>(
      columns,
      [&](auto group) {
        using G = decltype(group);
        launch("norm_in_registers", norm_in_registers<Norm, T, G::lanes, G::packets_per_lane, Source>, G::blocks(rows),
               threads_of_row_groups, 0, device.on, source, parameters, outputs, rows, columns);
      },
      [&] {
        auto const blocks = static_cast<unsigned>(rows);
        unsigned const threads = threads_for_row<T>(columns);
        if (row_stays_on_chip<T>(device, columns)) {
          launch("norm_in_block<on chip>", norm_in_block<Norm, T, true, Source>, blocks, threads,
                 shared_bytes_for_row<T>(columns), device.on, source, parameters, outputs, columns);
        } else {
          launch("norm_in_block<re-read>", norm_in_block<Norm, T, false, Source>, blocks, threads, 0, device.on, source,
                 parameters, outputs, columns);
        }
      });
}

template <class Norm, class T>
void norm_forward_fused(device_context const& device, T const* x, norm_parameters<T> const& parameters,
                        norm_outputs<T> const& outputs, std::int64_t rows, int columns) {
  norm_forward_of<Norm>(device, tensor_source<T>{x}, parameters, outputs, rows, columns);
}

}  // namespace gpumem::kernels
