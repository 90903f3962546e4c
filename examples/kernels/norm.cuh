// SPDX-License-Identifier: MIT
// Layer norm, y = (x - mean) / deviation * gamma + beta, and RMS norm, y = x / rms * gamma, forward and backward.
//
// Forward reads a row once and keeps it on the chip. Backward needs two sums over a row before it can write the row,
// and two sums over every column, for gamma and beta. It reads x and dy once for all of them: few blocks walk over many
// rows and keep their columns' sums, so that only one row of partial sums a block goes through memory. Two kernels, one
// for dx and one for gamma and beta, would read x and dy twice.
#pragma once
#include <numeric>
#include <stdexcept>

#include "primitives.cuh"

namespace gpumem::kernels {

inline constexpr float norm_epsilon = 1e-5f;

struct layer_norm {
  static constexpr bool centered = true;
  static constexpr int parameters = 2;
};
struct rms_norm {
  static constexpr bool centered = false;
  static constexpr int parameters = 1;
};

/// From a sum of squares over a row: the reciprocal of the root of their mean.
struct reciprocal_root_of_mean {
  int columns;
  __device__ float operator()(float sum_of_squares) const {
    return rsqrtf(sum_of_squares / static_cast<float>(columns) + norm_epsilon);
  }
};
struct mean_of {
  int columns;
  __device__ float operator()(float sum) const { return sum / static_cast<float>(columns); }
};

/// `beta` and `mean` are of layer norm only.
template <class T>
struct norm_parameters {
  T const* gamma;
  T const* beta;
};
template <class T>
struct norm_outputs {
  T* y;
  float* mean;
  float* reciprocal;
};

struct norm_statistics {
  float mean = 0.0f, reciprocal = 0.0f;

  template <class Norm, class T>
  __device__ __forceinline__ void store(norm_outputs<T> const& outputs, std::int64_t row) const {
    if constexpr (Norm::centered) store_value(outputs.mean + row, mean);
    store_value(outputs.reciprocal + row, reciprocal);
  }
};

// ---- forward, fused

/// What is to be normalised: as it lies in memory.
template <class T>
struct tensor_source {
  T const* x;
  __device__ __forceinline__ packet<T> load(row_packets<T> const& row, int index) const {
    return row.load(x, index, 0.0f);
  }
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

  registers<packet<T>, PacketsPerLane> values;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) values[i] = source.load(row, lane + i * Lanes);

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
    packet<T> const values = source.load(row, i);
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

// ---- backward, fused

template <class T>
struct norm_backward_tensors {
  T const* x;
  T const* dy;
  T const* gamma;
  float const* mean;  // of layer norm only
  float const* reciprocal;
  T* dx;
  float* partials;  // [gamma, beta][block][column]
};

/// One packet's part in the sums of its row and of its columns, and its gradient once the former are known.
///
///   dx = reciprocal * (dy gamma - mean of dy gamma - xhat * mean of dy gamma xhat), the first mean in layer norm only
///
/// Beyond the row dy is 0, and so is every product with it.
template <class Norm, class T>
struct norm_gradient {
  packet<T> x, dy, gamma;
  norm_statistics statistics;

  __device__ __forceinline__ float normalised(int j) const {
    return (to_float(x.values[j]) - statistics.mean) * statistics.reciprocal;
  }
  __device__ __forceinline__ float scaled(int j) const { return to_float(dy.values[j]) * to_float(gamma.values[j]); }

  __device__ __forceinline__ void add_to(two_sums& of_row) const {
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      if constexpr (Norm::centered) of_row.first += scaled(j);
      of_row.second += scaled(j) * normalised(j);
    }
  }
  __device__ __forceinline__ packet<T> dx(two_sums of_row, int columns) const {
    float const mean_of_scaled = mean_of{columns}(of_row.first);
    float const mean_of_products = mean_of{columns}(of_row.second);
    packet<T> result;
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      float const centered = scaled(j) - mean_of_scaled - normalised(j) * mean_of_products;
      result.values[j] = from_float<T>(statistics.reciprocal * centered);
    }
    return result;
  }
};

/// Groups of lanes hold a row each, and in further registers the sums of the columns that they always see: rows are
/// dealt out so that all of a group's rows begin at the same place in a packet.
template <class Norm, class T, int Lanes, int PacketsPerLane>
__global__ void __launch_bounds__(threads_of_row_groups)
    norm_backward_in_registers(norm_backward_tensors<T> tensors, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>, groups = threads_of_row_groups / Lanes;
  GPUMEM_DYNAMIC_SHARED(float, of_group);
  int const lane = lane_of_group<Lanes>(), group = static_cast<int>(threadIdx.x) / Lanes;
  unsigned const first_of_group = threadIdx.x % lanes_per_warp / Lanes * Lanes;

  registers<registers<float, V>, PacketsPerLane> gamma_sums = {}, beta_sums = {};
  // All groups of a block make the same number of rounds: their lanes meet in shuffles.
  for (std::int64_t round = 0; (round * gridDim.x + blockIdx.x) * groups < rows; ++round) {
    std::int64_t const row_number = round * gridDim.x * groups + row_of_group<Lanes>();
    auto const row = packets_of<T>(row_number, rows, columns);

    registers<norm_gradient<Norm, T>, PacketsPerLane> gradients;
    GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
      gradients[i].x = row.load(tensors.x, lane + i * Lanes, 0.0f);
      gradients[i].dy = row.load(tensors.dy, lane + i * Lanes, 0.0f);
      gradients[i].gamma = load_row_parameters(row, tensors.gamma, lane + i * Lanes);
    }
    norm_statistics statistics;
    if (lane == 0 && row_number < rows) {
      if constexpr (Norm::centered) statistics.mean = load_value(tensors.mean + row_number);
      statistics.reciprocal = load_value(tensors.reciprocal + row_number);
    }
    if constexpr (Norm::centered) statistics.mean = __shfl_sync(whole_warp, statistics.mean, first_of_group);
    statistics.reciprocal = __shfl_sync(whole_warp, statistics.reciprocal, first_of_group);

    two_sums of_row;
    GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
      gradients[i].statistics = statistics;
      gradients[i].add_to(of_row);
      GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
        float const dy = to_float(gradients[i].dy.values[j]);
        gamma_sums[i][j] += dy * gradients[i].normalised(j);
        if constexpr (Norm::centered) beta_sums[i][j] += dy;
      }
    }
    if constexpr (Norm::centered) of_row.first = reduce_lanes<Lanes>(of_row.first, sum_of{});
    of_row.second = reduce_lanes<Lanes>(of_row.second, sum_of{});
    GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
      row.store(tensors.dx, lane + i * Lanes, gradients[i].dx(of_row, columns));
    }
  }

  row_packets<T> const place_of_sums(row_of_group<Lanes>(), columns);
  auto const store_partials = [&](registers<registers<float, V>, PacketsPerLane> const& sums, std::int64_t out_row) {
    GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
      int const column = place_of_sums.first_column(lane + i * Lanes);
      GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
        if (column + j >= 0 && column + j < columns) of_group[group * columns + column + j] = sums[i][j];
      }
    }
    __syncthreads();
    row_packets<float> const out(out_row, columns);
    for (int i = static_cast<int>(threadIdx.x); i < out.count; i += threads_of_row_groups) {
      packet<float> total{};
      GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<float>; ++j) {
        int const column = out.first_column(i) + j;
        bool const inside = column >= 0 && column < columns;
        for (int g = 0; inside && g < groups; ++g) total.values[j] += of_group[g * columns + column];
      }
      out.store(tensors.partials, i, total);
    }
  };
  store_partials(gamma_sums, blockIdx.x);
  if constexpr (Norm::centered) {
    __syncthreads();
    store_partials(beta_sums, static_cast<std::int64_t>(gridDim.x) + blockIdx.x);
  }
}

/// The sums of the columns are in shared memory, each packet's with the thread that always works on it. Rows too, where
/// there is room; else they are read twice.
template <class Norm, class T, bool OnChip>
__global__ void __launch_bounds__(most_threads_of_a_row)
    norm_backward_in_block(norm_backward_tensors<T> tensors, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>, F = elements_per_packet<float>;
  GPUMEM_DYNAMIC_SHARED(float, shared);
  GPUMEM_SHARED(float, statistics_of_round, 4);
  int const thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  row_packets<T> const first_row(blockIdx.x, columns);
  int const beta_begin = first_row.count * V, kept_begin = first_row.count * V * Norm::parameters;

  for (int i = thread; i < first_row.count; i += threads) {
    GPUMEM_UNROLL for (int part = 0; part < V / F; ++part) {
      store_shared_16_bytes(shared, i * V + part * F, uint4{});
      if constexpr (Norm::centered) store_shared_16_bytes(shared, beta_begin + i * V + part * F, uint4{});
    }
  }
  auto const add_to_shared = [&](int begin, registers<float, V> const& terms) {
    GPUMEM_UNROLL for (int part = 0; part < V / F; ++part) {
      auto sums = __builtin_bit_cast(packet<float>, load_shared_16_bytes(shared, begin + part * F));
      GPUMEM_UNROLL for (int j = 0; j < F; ++j) sums.values[j] += terms[part * F + j];
      store_shared_16_bytes(shared, begin + part * F, __builtin_bit_cast(uint4, sums));
    }
  };
  // A round's statistics are fetched in the round before, ahead of its barrier.
  auto const fetch_statistics = [&](std::int64_t row_number, int round) {
    if (thread != 0 || row_number >= rows) return;
    if constexpr (Norm::centered) statistics_of_round[round % 2 * 2] = load_value(tensors.mean + row_number);
    statistics_of_round[round % 2 * 2 + 1] = load_value(tensors.reciprocal + row_number);
  };
  fetch_statistics(blockIdx.x, 0);
  __syncthreads();

  int round = 0;
  for (std::int64_t row_number = blockIdx.x; row_number < rows; row_number += gridDim.x, ++round) {
    row_packets<T> const row(row_number, columns);
    norm_gradient<Norm, T> gradient;
    if constexpr (Norm::centered) gradient.statistics.mean = statistics_of_round[round % 2 * 2];
    gradient.statistics.reciprocal = statistics_of_round[round % 2 * 2 + 1];
    fetch_statistics(row_number + gridDim.x, round + 1);

    two_sums of_row;
    for (int i = thread; i < row.count; i += threads) {
      gradient.x = row.load(tensors.x, i, 0.0f);
      gradient.dy = row.load(tensors.dy, i, 0.0f);
      gradient.gamma = load_row_parameters(row, tensors.gamma, i);
      if constexpr (OnChip) {
        store_shared_16_bytes(shared, kept_begin + 2 * i * F, __builtin_bit_cast(uint4, gradient.x));
        store_shared_16_bytes(shared, kept_begin + (2 * i + 1) * F, __builtin_bit_cast(uint4, gradient.dy));
      }
      gradient.add_to(of_row);
      registers<float, V> terms;
      GPUMEM_UNROLL for (int j = 0; j < V; ++j) terms[j] = to_float(gradient.dy.values[j]) * gradient.normalised(j);
      add_to_shared(i * V, terms);
      if constexpr (Norm::centered) {
        GPUMEM_UNROLL for (int j = 0; j < V; ++j) terms[j] = to_float(gradient.dy.values[j]);
        add_to_shared(beta_begin + i * V, terms);
      }
    }
    of_row = reduce_block_in_round(of_row, round);
    for (int i = thread; i < row.count; i += threads) {
      if constexpr (OnChip) {
        gradient.x = __builtin_bit_cast(packet<T>, load_shared_16_bytes(shared, kept_begin + 2 * i * F));
        gradient.dy = __builtin_bit_cast(packet<T>, load_shared_16_bytes(shared, kept_begin + (2 * i + 1) * F));
      } else {
        gradient.x = row.load(tensors.x, i, 0.0f);
        gradient.dy = row.load(tensors.dy, i, 0.0f);
      }
      gradient.gamma = load_row_parameters(row, tensors.gamma, i);
      row.store(tensors.dx, i, gradient.dx(of_row, columns));
    }
  }

  __syncthreads();
  auto const store_partials = [&](int begin, std::int64_t out_row) {
    row_packets<float> const out(out_row, columns);
    for (int i = thread; i < out.count; i += threads) {
      packet<float> sums{};
      GPUMEM_UNROLL for (int j = 0; j < F; ++j) {
        int const column = out.first_column(i) + j;
        if (column >= 0 && column < columns) sums.values[j] = shared[begin + first_row.skipped + column];
      }
      out.store(tensors.partials, i, sums);
    }
  };
  store_partials(0, blockIdx.x);
  if constexpr (Norm::centered) store_partials(beta_begin, static_cast<std::int64_t>(gridDim.x) + blockIdx.x);
}

/// As by_width, for backward: beside a row the registers hold its columns' sums, so a group takes shorter rows.
template <class T, class LaunchGroup, class LaunchBlock>
void by_width_of_backward(int columns, LaunchGroup launch_group, LaunchBlock launch_block) {
  int const packets = most_packets_per_row<T>(columns);
  if (packets <= 16) return launch_group(row_group<8, 2>{});
  if (packets <= 32) return launch_group(row_group<16, 2>{});
  if (packets <= 64) return launch_group(row_group<32, 2>{});
  launch_block();
}

/// How a backward norm is launched. Blocks that make several rounds stride by a multiple of the rows after which rows
/// begin at the same place in a packet again.
struct norm_backward_plan {
  unsigned blocks = 0;
  unsigned threads = threads_of_row_groups;
  std::size_t shared_bytes = 0;
  bool in_registers = false;
  bool on_chip = true;
  bool possible = true;
};

template <class Norm, class T>
norm_backward_plan plan_norm_backward(device_context const& device, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>;
  norm_backward_plan plan;
  int rows_per_block = 1;
  by_width_of_backward<T>(
      columns,
      [&](auto group) {
        rows_per_block = decltype(group)::rows_per_block;
        plan.in_registers = true;
        plan.shared_bytes =
            static_cast<std::size_t>(rows_per_block) * static_cast<std::size_t>(columns) * sizeof(float);
      },
      [&] {
        plan.threads = threads_for_row<T>(columns);
        std::size_t const sums = static_cast<std::size_t>(most_packets_per_row<T>(columns)) * V * sizeof(float) *
                                 static_cast<std::size_t>(Norm::parameters);
        std::size_t const kept = shared_bytes_for_row<T>(columns, 2);
        plan.on_chip = sums + kept + shared_bytes_of_reductions <= device.shared_bytes_per_block;
        plan.shared_bytes = sums + (plan.on_chip ? kept : 0);
      });
  plan.possible = plan.shared_bytes + shared_bytes_of_reductions <= device.shared_bytes_per_block;

  std::int64_t const most_blocks = blocks_for(rows, rows_per_block);
  std::int64_t const by_threads = device.threads_per_multiprocessor / static_cast<int>(plan.threads);
  auto const by_shared =
      static_cast<std::int64_t>(device.shared_bytes_per_block / (plan.shared_bytes + shared_bytes_of_reductions));
  std::int64_t const resident = device.multiprocessors * std::max<std::int64_t>(1, std::min(by_threads, by_shared));
  int const period = V / std::gcd(columns, V);
  int const step = period / std::gcd(period, rows_per_block);
  plan.blocks = static_cast<unsigned>(most_blocks <= resident ? most_blocks
                                                              : std::max<std::int64_t>(resident / step * step, step));
  return plan;
}

/// `partials` has plan.blocks rows of fp32 for each parameter.
template <class Norm, class T>
void norm_backward_fused(device_context const& device, norm_backward_tensors<T> const& tensors,
                         column_sums<T> parameter_gradients, std::int64_t rows, int columns) {
  auto const plan = plan_norm_backward<Norm, T>(device, rows, columns);
  if (!plan.possible)
    throw std::invalid_argument("norm backward: the sums of a row's columns exceed the shared memory");
  by_width_of_backward<T>(
      columns,
      [&](auto group) {
        using G = decltype(group);
        launch("norm_backward_in_registers", norm_backward_in_registers<Norm, T, G::lanes, G::packets_per_lane>,
               plan.blocks, plan.threads, plan.shared_bytes, device.on, tensors, rows, columns);
      },
      [&] {
        if (plan.on_chip) {
          launch("norm_backward_in_block<on chip>", norm_backward_in_block<Norm, T, true>, plan.blocks, plan.threads,
                 plan.shared_bytes, device.on, tensors, rows, columns);
        } else {
          launch("norm_backward_in_block<re-read>", norm_backward_in_block<Norm, T, false>, plan.blocks, plan.threads,
                 plan.shared_bytes, device.on, tensors, rows, columns);
        }
      });
  reduce_columns(device, "sum partials", tensors.partials, parameter_gradients, Norm::parameters, plan.blocks, columns);
}

// ---- chains

struct difference {
  __device__ float operator()(float a, float b) const { return a - b; }
};
struct sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Tensors that live only between the launches of a chain.
template <class T>
struct norm_temporaries {
  T* a;
  T* b;
  T* c;
  float* statistic;
  float* second_statistic;
};

/// mean, subtract, square, mean, times reciprocal, times gamma, plus beta.
template <class T>
void layer_norm_forward_chain(device_context const& device, T const* x, norm_parameters<T> const& parameters,
                              norm_outputs<T> const& outputs, norm_temporaries<T> const& t, std::int64_t rows,
                              int columns) {
  reduce_rows(device, "mean", x, outputs.mean, rows, columns, sum_of{}, mean_of{columns});
  map_rows(device, "subtract mean", x, outputs.mean, t.a, rows, columns, difference{});
  map_elements(device, "square", rows * columns, t.b, square{}, t.a);
  reduce_rows(device, "mean, root, reciprocal", t.b, outputs.reciprocal, rows, columns, sum_of{},
              reciprocal_root_of_mean{columns});
  map_rows(device, "multiply by row", t.a, outputs.reciprocal, t.b, rows, columns, product{});
  map_columns(device, "multiply by gamma", t.b, parameters.gamma, t.a, rows, columns, product{});
  map_columns(device, "add beta", t.a, parameters.beta, outputs.y, rows, columns, sum{});
}

/// square, mean, times reciprocal, times gamma.
template <class T>
void rms_norm_forward_chain(device_context const& device, T const* x, norm_parameters<T> const& parameters,
                            norm_outputs<T> const& outputs, norm_temporaries<T> const& t, std::int64_t rows,
                            int columns) {
  map_elements(device, "square", rows * columns, t.a, square{}, x);
  reduce_rows(device, "mean, root, reciprocal", t.a, outputs.reciprocal, rows, columns, sum_of{},
              reciprocal_root_of_mean{columns});
  map_rows(device, "multiply by row", x, outputs.reciprocal, t.a, rows, columns, product{});
  map_columns(device, "multiply by gamma", t.a, parameters.gamma, outputs.y, rows, columns, product{});
}

/// xhat (two), beta's sum, dy xhat, gamma's sum, dy gamma, mean, times xhat, mean, xhat times mean, subtract mean,
/// subtract, times reciprocal.
template <class T>
void layer_norm_backward_chain(device_context const& device, norm_backward_tensors<T> const& n,
                               column_sums<T> parameter_gradients, norm_temporaries<T> const& t, std::int64_t rows,
                               int columns) {
  std::int64_t const elements = rows * columns;
  T *const gamma_gradient = parameter_gradients.tensor[0], *const beta_gradient = parameter_gradients.tensor[1];
  map_rows(device, "subtract mean", n.x, n.mean, t.b, rows, columns, difference{});
  map_rows(device, "multiply by row", t.b, n.reciprocal, t.a, rows, columns, product{});
  reduce_columns(device, "sum columns", n.dy, column_sums<T>{{beta_gradient, nullptr}}, 1, rows, columns);
  map_elements(device, "multiply", elements, t.b, multiply{}, n.dy, t.a);
  reduce_columns(device, "sum columns", t.b, column_sums<T>{{gamma_gradient, nullptr}}, 1, rows, columns);
  map_columns(device, "multiply by gamma", n.dy, n.gamma, t.b, rows, columns, product{});
  reduce_rows(device, "mean", t.b, t.statistic, rows, columns, sum_of{}, mean_of{columns});
  map_elements(device, "multiply", elements, t.c, multiply{}, t.b, t.a);
  reduce_rows(device, "mean", t.c, t.second_statistic, rows, columns, sum_of{}, mean_of{columns});
  map_rows(device, "multiply by row", t.a, t.second_statistic, t.c, rows, columns, product{});
  map_rows(device, "subtract mean", t.b, t.statistic, t.a, rows, columns, difference{});
  map_elements(device, "subtract", elements, t.b, subtract{}, t.a, t.c);
  map_rows(device, "multiply by row", t.b, n.reciprocal, n.dx, rows, columns, product{});
}

/// xhat, dy xhat, gamma's sum, dy gamma, times xhat, mean, xhat times mean, subtract, times reciprocal.
template <class T>
void rms_norm_backward_chain(device_context const& device, norm_backward_tensors<T> const& n,
                             column_sums<T> parameter_gradients, norm_temporaries<T> const& t, std::int64_t rows,
                             int columns) {
  std::int64_t const elements = rows * columns;
  map_rows(device, "multiply by row", n.x, n.reciprocal, t.a, rows, columns, product{});
  map_elements(device, "multiply", elements, t.b, multiply{}, n.dy, t.a);
  reduce_columns(device, "sum columns", t.b, parameter_gradients, 1, rows, columns);
  map_columns(device, "multiply by gamma", n.dy, n.gamma, t.b, rows, columns, product{});
  map_elements(device, "multiply", elements, t.c, multiply{}, t.b, t.a);
  reduce_rows(device, "mean", t.c, t.statistic, rows, columns, sum_of{}, mean_of{columns});
  map_rows(device, "multiply by row", t.a, t.statistic, t.c, rows, columns, product{});
  map_elements(device, "subtract", elements, t.a, subtract{}, t.b, t.c);
  map_rows(device, "multiply by row", t.a, n.reciprocal, n.dx, rows, columns, product{});
}

}  // namespace gpumem::kernels
