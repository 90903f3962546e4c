// SPDX-License-Identifier: MIT
// Backward norm for rows that take a block each.
#pragma once
#include "norm_gradient.cuh"

namespace gpumem::kernels {

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

}  // namespace gpumem::kernels
