// SPDX-License-Identifier: MIT
// Cross-entropy of each row of logits with its target, and the gradient of the losses' weighted sum. One kernel reads
// the logits and writes the gradient over them: one read, one write. As a chain it is log-softmax, the losses picked
// out of it, a gradient of zeros but for the targets, and log-softmax backward: four reads and two writes more.
#pragma once
#include "softmax.cuh"
#include "spread.cuh"

namespace gpumem::kernels {

/// Losses count with `weight`: 1 for their sum, 1 / rows for their mean. A row whose target is none of its columns is
/// left out: its loss and its gradient are 0.
template <class T>
struct cross_entropy_tensors {
  T* logits;
  std::int32_t const* targets;
  float* loss;
  float weight;
};

__device__ __forceinline__ bool is_column(int target, int columns) { return target >= 0 && target < columns; }

/// What a row's packets need for their gradient.
struct cross_entropy_row {
  float greatest, sum, weight;
  int target, columns;

  /// The thread that meets the target writes the loss.
  template <class T>
  __device__ __forceinline__ packet<T> gradient(packet<T> const& logits, int first_column, float* loss) const {
    bool const counts = is_column(target, columns);
    float const factor = counts ? weight / sum : 0.0f;
    packet<T> result;
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      float const x = to_float(logits.values[j]);
      bool const is_target = counts && first_column + j == target;
      if (is_target) store_value(loss, logf(sum) - (x - greatest));
      result.values[j] = from_float<T>(__expf(x - greatest) * factor - (is_target ? weight : 0.0f));
    }
    return result;
  }
};

template <class T, int Lanes, int PacketsPerLane>
__global__ void __launch_bounds__(threads_of_row_groups)
    cross_entropy_in_registers(cross_entropy_tensors<T> tensors, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>;
  std::int64_t const row_number = row_of_group<Lanes>();
  auto const row = packets_of<T>(row_number, rows, columns);
  int const lane = lane_of_group<Lanes>();

  registers<packet<T>, PacketsPerLane> logits;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) logits[i] = row.load(tensors.logits, lane + i * Lanes, lowest);
  int target = -1;
  if (lane == 0 && row_number < rows) target = load_value(tensors.targets + row_number);
  target = __shfl_sync(whole_warp, target, threadIdx.x % lanes_per_warp / Lanes * Lanes);
  if (lane == 0 && row_number < rows && !is_column(target, columns)) store_value(tensors.loss + row_number, 0.0f);

  float greatest = lowest;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) greatest = max_of{}(greatest, to_float(logits[i].values[j]));
  }
  greatest = reduce_lanes<Lanes>(greatest, max_of{});
  float sum = 0.0f;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) sum += __expf(to_float(logits[i].values[j]) - greatest);
  }
  sum = reduce_lanes<Lanes>(sum, sum_of{});

  cross_entropy_row const result{greatest, sum, tensors.weight, target, row.columns};
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    int const index = lane + i * Lanes;
    row.store(tensors.logits, index, result.gradient(logits[i], row.first_column(index), tensors.loss + row_number));
  }
}

/// One block a row. Not on the chip: the logits are read twice.
template <class T, bool OnChip>
__global__ void __launch_bounds__(most_threads_of_a_row)
    cross_entropy_in_block(cross_entropy_tensors<T> tensors, int columns) {
  constexpr int V = elements_per_packet<T>;
  GPUMEM_DYNAMIC_SHARED(T, kept);
  GPUMEM_SHARED(int, target_of_row, 1);
  row_packets<T> const row(blockIdx.x, columns);
  int const threads = static_cast<int>(blockDim.x);

  if (threadIdx.x == 0) {  // the barrier of the reduction shows it to the others
    int const target = load_value(tensors.targets + blockIdx.x);
    target_of_row[0] = target;
    if (!is_column(target, columns)) store_value(tensors.loss + blockIdx.x, 0.0f);
  }
  running_softmax softmax;
  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> const loaded = row.load(tensors.logits, i, lowest);
    if constexpr (OnChip) store_shared_16_bytes(kept, i * V, __builtin_bit_cast(uint4, loaded));
    softmax.add(loaded);
  }
  softmax = reduce_block(softmax);

  cross_entropy_row const result{softmax.greatest, softmax.sum, tensors.weight, target_of_row[0], columns};
  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> logits;
    if constexpr (OnChip) {
      logits = __builtin_bit_cast(packet<T>, load_shared_16_bytes(kept, i * V));
    } else {
      logits = row.load(tensors.logits, i, lowest);
    }
    row.store(tensors.logits, i, result.gradient(logits, row.first_column(i), tensors.loss + blockIdx.x));
  }
}

template <class T>
void cross_entropy_fused(device_context const& device, cross_entropy_tensors<T> const& tensors, std::int64_t rows,
                         int columns) {
  by_width<T>(
      columns,
      [&](auto group) {
        using G = decltype(group);
        launch("cross_entropy_in_registers", cross_entropy_in_registers<T, G::lanes, G::packets_per_lane>,
               G::blocks(rows), threads_of_row_groups, 0, device.on, tensors, rows, columns);
      },
      [&] {
        auto const blocks = static_cast<unsigned>(rows);
        unsigned const threads = threads_for_row<T>(columns);
        if (row_stays_on_chip<T>(device, columns)) {
          launch("cross_entropy_in_block<on chip>", cross_entropy_in_block<T, true>, blocks, threads,
                 shared_bytes_for_row<T>(columns), device.on, tensors, columns);
        } else {
          launch("cross_entropy_in_block<re-read>", cross_entropy_in_block<T, false>, blocks, threads, 0, device.on,
                 tensors, columns);
        }
      });
}

// ---- chain

/// The loss of each row from its log-softmax. A row that is left out reads its first value, and does not use it.
template <class T>
__global__ void __launch_bounds__(threads_of_maps)
    pick_losses_kernel(T const* log_softmax, std::int32_t const* targets, float* loss, std::int64_t rows, int columns) {
  std::int64_t const row = static_cast<std::int64_t>(blockIdx.x) * threads_of_maps + threadIdx.x;
  if (row >= rows) return;
  int const target = load_value(targets + row);
  bool const counts = is_column(target, columns);
  float const value = to_float(load_value(log_softmax + row * columns + (counts ? target : 0)));
  store_value(loss + row, counts ? -value : 0.0f);
}

/// The gradient of the losses in the log-softmax: zeros, but for the targets.
template <class T, int Lanes>
__global__ void __launch_bounds__(Lanes == 0 ? most_threads_of_a_row : threads_of_row_groups)
    fill_loss_gradient_kernel(std::int32_t const* targets, T* gradient, float weight, std::int64_t rows, int columns) {
  constexpr bool block = Lanes == 0;
  std::int64_t const row_number = block ? static_cast<std::int64_t>(blockIdx.x) : row_of_group < block ? 1 : Lanes > ();
  int const lane = block ? static_cast<int>(threadIdx.x) : lane_of_group < block ? 1 : Lanes > ();
  int const lanes = block ? static_cast<int>(blockDim.x) : Lanes;
  auto const row = packets_of<T>(row_number, rows, columns);

  int target = -1;
  if (lane == 0 && row_number < rows) target = load_value(targets + row_number);
  if constexpr (block) {
    target = __builtin_bit_cast(int, broadcast_in_block(__builtin_bit_cast(float, target)));
  } else {
    target = __shfl_sync(whole_warp, target, threadIdx.x % lanes_per_warp / Lanes * Lanes);
  }
  for (int i = lane; i < row.count; i += lanes) {
    packet<T> values;
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      bool const is_target = is_column(target, columns) && row.first_column(i) + j == target;
      values.values[j] = from_float<T>(is_target ? -weight : 0.0f);
    }
    row.store(gradient, i, values);
  }
}

/// Tensors that live only between the launches: log-softmax and its gradient, and what bf16 logits are widened to.
struct cross_entropy_temporaries {
  float* log_softmax;
  float* gradient;
  float* wide;
};

/// log-softmax, pick, fill, log-softmax backward.
inline void cross_entropy_chain(device_context const& device, cross_entropy_tensors<float> const& tensors,
                                cross_entropy_temporaries const& t, std::int64_t rows, int columns) {
  softmax_forward_fused<true>(device, static_cast<float const*>(tensors.logits), t.log_softmax, rows, columns);
  launch("pick losses", pick_losses_kernel<float>, blocks_for(rows, threads_of_maps), threads_of_maps, 0, device.on,
         t.log_softmax, tensors.targets, tensors.loss, rows, columns);
  by_lanes<float>(rows, columns, [&](auto group, unsigned blocks, unsigned threads) {
    launch("fill loss gradient", fill_loss_gradient_kernel<float, decltype(group)::lanes>, blocks, threads, 0,
           device.on, tensors.targets, t.gradient, tensors.weight, rows, columns);
  });
  softmax_backward_fused<true>(device, static_cast<float const*>(t.log_softmax), static_cast<float const*>(t.gradient),
                               tensors.logits, rows, columns);
}

/// bf16 logits go through fp32: log-softmax is as large as the logarithm of the width, and a bf16 of that size too
/// coarse for the probability.
inline void cross_entropy_chain(device_context const& device, cross_entropy_tensors<bf16> const& tensors,
                                cross_entropy_temporaries const& t, std::int64_t rows, int columns) {
  widen(device, tensors.logits, t.wide, rows * columns);
  cross_entropy_chain(device, cross_entropy_tensors<float>{t.wide, tensors.targets, tensors.loss, tensors.weight}, t,
                      rows, columns);
  narrow(device, t.wide, tensors.logits, rows * columns);
}

}  // namespace gpumem::kernels
