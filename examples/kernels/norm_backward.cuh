// SPDX-License-Identifier: MIT
// Layer norm and RMS norm, backward, with the gradients of gamma and beta.
//
// A row's gradient needs two sums over the row, gamma's and beta's one over every column each. All are made of one
// reading of x and dy: few blocks walk over many rows and keep their columns' sums, so that only one row of partial sums
// a block goes through memory. Two kernels, one for dx and one for gamma and beta, would read x and dy twice.
#pragma once
#include <numeric>
#include <stdexcept>

#include "norm.cuh"

namespace gpumem::kernels {

template <class T>
struct norm_backward_tensors {
  T const* x;
  T const* dy;
  T const* gamma;
  float const* mean;  // of layer norm only
  float const* reciprocal;
  T* dx;
  float* partials;  // [gamma, beta, what the sink sums][block][column]
};

/// What becomes of dx: here, it is the result. Another sink may fetch a tensor beside x and dy, and return one more value
/// a column to be summed.
template <class T>
struct gradient_sink {
  static constexpr int column_sums = 0;
  struct fetched {};

  __device__ __forceinline__ fetched fetch(row_packets<T> const&, int) const { return {}; }
  __device__ __forceinline__ packet<T> finish(row_packets<T> const&, int, packet<T> const& dx, fetched) const {
    return dx;
  }
};

/// Vectors of sums over columns that a backward norm leaves.
template <class Norm, class Sink>
inline constexpr int column_sums_of = Norm::parameters + Sink::column_sums;

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
template <class Norm, class T, int Lanes, int PacketsPerLane, class Sink>
__global__ void __launch_bounds__(threads_of_row_groups, 1)
    norm_backward_in_registers(norm_backward_tensors<T> tensors, Sink sink, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>, groups = threads_of_row_groups / Lanes;
  GPUMEM_DYNAMIC_SHARED(float, of_group);
  int const lane = lane_of_group<Lanes>(), group = static_cast<int>(threadIdx.x) / Lanes;
  unsigned const first_of_group = threadIdx.x % lanes_per_warp / Lanes * Lanes;

  using sums_of_lane = registers<registers<float, V>, PacketsPerLane>;
  sums_of_lane gamma_sums = {};
  [[maybe_unused]] sums_of_lane beta_sums = {}, sink_sums = {};
  // All groups of a block make the same number of rounds: their lanes meet in shuffles.
  for (std::int64_t round = 0; (round * gridDim.x + blockIdx.x) * groups < rows; ++round) {
    std::int64_t const row_number = round * gridDim.x * groups + row_of_group<Lanes>();
    auto const row = packets_of<T>(row_number, rows, columns);

    registers<norm_gradient<Norm, T>, PacketsPerLane> gradients;
    registers<typename Sink::fetched, PacketsPerLane> fetched;
    GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
      gradients[i].x = row.load(tensors.x, lane + i * Lanes, 0.0f);
      gradients[i].dy = row.load(tensors.dy, lane + i * Lanes, 0.0f);
      gradients[i].gamma = load_row_parameters(row, tensors.gamma, lane + i * Lanes);
      fetched[i] = sink.fetch(row, lane + i * Lanes);
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
      packet<T> const dx = gradients[i].dx(of_row, columns);
      row.store(tensors.dx, lane + i * Lanes, dx);
      [[maybe_unused]] packet<T> const summed = sink.finish(row, lane + i * Lanes, dx, fetched[i]);
      if constexpr (Sink::column_sums > 0) {
        GPUMEM_UNROLL for (int j = 0; j < V; ++j) sink_sums[i][j] += to_float(summed.values[j]);
      }
    }
  }

  row_packets<T> const place_of_sums(row_of_group<Lanes>(), columns);
  auto const store_partials = [&](sums_of_lane const& sums, std::int64_t out_row) {
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
  if constexpr (Sink::column_sums > 0) {
    __syncthreads();
    store_partials(sink_sums, static_cast<std::int64_t>(Norm::parameters) * gridDim.x + blockIdx.x);
  }
}

/// The sums of the columns are in shared memory, each packet's with the thread that always works on it. Rows too, where
/// there is room; else they are read twice.
template <class Norm, class T, bool OnChip, class Sink>
__global__ void __launch_bounds__(most_threads_of_a_row)
    norm_backward_in_block(norm_backward_tensors<T> tensors, Sink sink, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>, F = elements_per_packet<float>;
  GPUMEM_DYNAMIC_SHARED(float, shared);
  GPUMEM_SHARED(float, statistics_of_round, 4);
  int const thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  row_packets<T> const first_row(blockIdx.x, columns);
  int const of_one_sum = first_row.count * V, beta_begin = of_one_sum;
  [[maybe_unused]] int const sink_begin = of_one_sum * Norm::parameters;
  int const kept_begin = of_one_sum * column_sums_of<Norm, Sink>;

  for (int i = thread; i < first_row.count; i += threads) {
    GPUMEM_UNROLL for (int sum = 0; sum < column_sums_of<Norm, Sink>; ++sum) {
      GPUMEM_UNROLL for (int part = 0; part < V / F; ++part) {
        store_shared_16_bytes(shared, sum * of_one_sum + i * V + part * F, uint4{});
      }
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
      auto const fetched = sink.fetch(row, i);
      packet<T> const dx = gradient.dx(of_row, columns);
      row.store(tensors.dx, i, dx);
      [[maybe_unused]] packet<T> const summed = sink.finish(row, i, dx, fetched);
      if constexpr (Sink::column_sums > 0) {
        registers<float, V> terms;
        GPUMEM_UNROLL for (int j = 0; j < V; ++j) terms[j] = to_float(summed.values[j]);
        add_to_shared(sink_begin + i * V, terms);
      }
    }
  }

  // Gamma's and beta's sums were complete before the last round's barrier; the sink's were not.
  if constexpr (Sink::column_sums > 0) __syncthreads();
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
  GPUMEM_UNROLL for (int sum = 0; sum < column_sums_of<Norm, Sink>; ++sum) {
    store_partials(sum * of_one_sum, static_cast<std::int64_t>(sum) * gridDim.x + blockIdx.x);
  }
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

template <class Norm, class T, class Sink = gradient_sink<T>>
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
                                 static_cast<std::size_t>(column_sums_of<Norm, Sink>);
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

/// `partials` has plan.blocks rows of fp32 for each vector of sums; `sums`: gamma's, beta's, the sink's.
template <class Norm, class T, class Sink>
void norm_backward_into(device_context const& device, norm_backward_tensors<T> const& tensors, Sink sink,
                        column_sums<T> sums, std::int64_t rows, int columns) {
  auto const plan = plan_norm_backward<Norm, T, Sink>(device, rows, columns);
  if (!plan.possible)
    throw std::invalid_argument("norm backward: the sums of a row's columns exceed the shared memory");
  auto const launch_with = [&](char const* name, auto kernel) {
    launch(name, kernel, plan.blocks, plan.threads, plan.shared_bytes, device.on, tensors, sink, rows, columns);
  };
  by_width_of_backward<T>(
      columns,
      [&](auto group) {
        using G = decltype(group);
        launch_with("norm_backward_in_registers",
                    norm_backward_in_registers<Norm, T, G::lanes, G::packets_per_lane, Sink>);
      },
      [&] {
        if (plan.on_chip) {
          launch_with("norm_backward_in_block<on chip>", norm_backward_in_block<Norm, T, true, Sink>);
        } else {
          launch_with("norm_backward_in_block<re-read>", norm_backward_in_block<Norm, T, false, Sink>);
        }
      });
  reduce_columns(device, "sum partials", tensors.partials, sums, column_sums_of<Norm, Sink>, plan.blocks, columns);
}

template <class Norm, class T>
void norm_backward_fused(device_context const& device, norm_backward_tensors<T> const& tensors,
                         column_sums<T> parameter_gradients, std::int64_t rows, int columns) {
  norm_backward_into<Norm>(device, tensors, gradient_sink<T>{}, parameter_gradients, rows, columns);
}

}  // namespace gpumem::kernels
