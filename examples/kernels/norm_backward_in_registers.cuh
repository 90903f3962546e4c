// SPDX-License-Identifier: MIT
// Backward norm for rows that a group of lanes holds in registers.
#pragma once
#include "norm_gradient.cuh"

namespace gpumem::kernels {

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

}  // namespace gpumem::kernels
