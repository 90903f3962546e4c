// SPDX-License-Identifier: MIT
// Softmax of each row, y = exp(x - max x) / sum exp(x - max x), and its gradient dx = y (dy - sum y dy).
//
// Both are bandwidth-bound: five operations an element against 4 to 8 bytes. What counts is how often the row is read.
// A framework without a fused softmax launches max, subtract and exp, sum, divide: four reads and two writes. Here a
// row is read once and kept on the chip until the two numbers that need all of it, maximum and sum, are known.
#pragma once
#include "primitives.cuh"
#include "reduce.cuh"
#include "rows.cuh"

namespace gpumem::kernels {

// ---- forward, fused

/// The row lives in the registers of `Lanes` lanes: one read, one write, and no shared memory. `Log`: the logarithm of
/// the softmax.
template <class T, int Lanes, int PacketsPerLane, bool Log = false>
__global__ void __launch_bounds__(threads_of_row_groups)
    softmax_in_registers(T const* x, T* y, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>;
  auto const row = packets_of<T>(row_of_group<Lanes>(), rows, columns);
  int const lane = lane_of_group<Lanes>();

  registers<packet<T>, PacketsPerLane> loaded;  // all loads are in flight before the first value is used
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) loaded[i] = row.load(x, lane + i * Lanes, lowest);

  registers<registers<float, V>, PacketsPerLane> values;
  float greatest = lowest;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      values[i][j] = to_float(loaded[i].values[j]);
      greatest = max_of{}(greatest, values[i][j]);
    }
  }
  greatest = reduce_lanes<Lanes>(greatest, max_of{});

  float sum = 0.0f;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      float const exponential = __expf(values[i][j] - greatest);
      sum += exponential;
      if constexpr (!Log) values[i][j] = exponential;
    }
  }
  sum = reduce_lanes<Lanes>(sum, sum_of{});
  float const scale = 1.0f / sum, shift = greatest + logf(sum);

  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    packet<T> result;
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      result.values[j] = from_float<T>(Log ? values[i][j] - shift : values[i][j] * scale);
    }
    row.store(y, lane + i * Lanes, result);
  }
}

/// A maximum, and the sum of exp(x - maximum) over the values seen so far. Adding a greater value rescales the sum, so
/// one pass and one reduction give both (the "online" softmax).
struct running_softmax {
  float greatest = lowest;
  float sum = 0.0f;

  __device__ __forceinline__ void combine(float other_greatest, float other_sum) {
    float const common = max_of{}(greatest, other_greatest);
    sum = sum * __expf(greatest - common) + other_sum * __expf(other_greatest - common);
    greatest = common;
  }
  template <class T>
  __device__ __forceinline__ void add(packet<T> const& p) {
    float greatest_here = to_float(p.values[0]);
    GPUMEM_UNROLL for (int j = 1; j < elements_per_packet<T>; ++j) {
      greatest_here = max_of{}(greatest_here, to_float(p.values[j]));
    }
    float sum_here = 0.0f;
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      sum_here += __expf(to_float(p.values[j]) - greatest_here);
    }
    combine(greatest_here, sum_here);
  }
  __device__ __forceinline__ void combine_lanes() {
    GPUMEM_UNROLL for (int distance = lanes_per_warp / 2; distance > 0; distance /= 2) {
      float const other_greatest = __shfl_xor_sync(whole_warp, greatest, distance);
      float const other_sum = __shfl_xor_sync(whole_warp, sum, distance);
      combine(other_greatest, other_sum);
    }
  }
};

/// As reduce_block, for the pair.
__device__ __forceinline__ running_softmax reduce_block(running_softmax value) {
  GPUMEM_SHARED(float, greatest_of_warp, lanes_per_warp);
  GPUMEM_SHARED(float, sum_of_warp, lanes_per_warp);
  int const lane = static_cast<int>(threadIdx.x) % lanes_per_warp;
  int const warp = static_cast<int>(threadIdx.x) / lanes_per_warp;
  value.combine_lanes();
  if (lane == 0) {
    greatest_of_warp[warp] = value.greatest;
    sum_of_warp[warp] = value.sum;
  }
  __syncthreads();
  value = {};
  if (lane < static_cast<int>(blockDim.x) / lanes_per_warp) {
    value.greatest = greatest_of_warp[lane];
    value.sum = sum_of_warp[lane];
  }
  value.combine_lanes();
  return value;
}

/// One block a row. On the chip: one read, one write; each thread reads back only what it put into shared memory
/// itself, so that needs no barrier. Not on the chip: two reads, one write.
template <class T, bool OnChip, bool Log = false>
__global__ void __launch_bounds__(most_threads_of_a_row) softmax_in_block(T const* x, T* y, int columns) {
  constexpr int V = elements_per_packet<T>;
  GPUMEM_DYNAMIC_SHARED(T, kept);
  row_packets<T> const row(blockIdx.x, columns);
  int const threads = static_cast<int>(blockDim.x);

  running_softmax softmax;
  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> const loaded = row.load(x, i, lowest);
    if constexpr (OnChip) store_shared_16_bytes(kept, i * V, __builtin_bit_cast(uint4, loaded));
    softmax.add(loaded);
  }
  softmax = reduce_block(softmax);

  float const scale = 1.0f / softmax.sum, shift = softmax.greatest + logf(softmax.sum);
  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> values;
    if constexpr (OnChip) {
      values = __builtin_bit_cast(packet<T>, load_shared_16_bytes(kept, i * V));
    } else {
      values = row.load(x, i, lowest);
    }
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      float const value = to_float(values.values[j]);
      values.values[j] = from_float<T>(Log ? value - shift : __expf(value - softmax.greatest) * scale);
    }
    row.store(y, i, values);
  }
}

template <bool Log = false, class T>
void softmax_forward_fused(device_context const& device, T const* x, T* y, std::int64_t rows, int columns) {
  by_width<T>(
      columns,
      [&](auto group) {
        using G = decltype(group);
        launch("softmax_in_registers", softmax_in_registers<T, G::lanes, G::packets_per_lane, Log>, G::blocks(rows),
               threads_of_row_groups, 0, device.on, x, y, rows, columns);
      },
      [&] {
        auto const blocks = static_cast<unsigned>(rows);
        unsigned const threads = threads_for_row<T>(columns);
        if (row_stays_on_chip<T>(device, columns)) {
          launch("softmax_in_block<on chip>", softmax_in_block<T, true, Log>, blocks, threads,
                 shared_bytes_for_row<T>(columns), device.on, x, y, columns);
        } else {
          launch("softmax_in_block<re-read>", softmax_in_block<T, false, Log>, blocks, threads, 0, device.on, x, y,
                 columns);
        }
      });
}

// ---- backward, fused

/// Of y = softmax x: dx = y (dy - sum of y dy). Of its logarithm: dx = dy - exp(y) * sum of dy.
template <bool Log>
struct softmax_gradient {
  __device__ static float term(float y, float dy) { return Log ? dy : y * dy; }
  __device__ static float dx(float y, float dy, float sum) { return Log ? dy - __expf(y) * sum : y * (dy - sum); }
};

/// Two reads, one write: y and dy wait in registers, as they came, for the sum over their row.
template <class T, int Lanes, int PacketsPerLane, bool Log = false>
__global__ void __launch_bounds__(threads_of_row_groups)
    softmax_backward_in_registers(T const* y, T const* dy, T* dx, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>;
  auto const row = packets_of<T>(row_of_group<Lanes>(), rows, columns);
  int const lane = lane_of_group<Lanes>();

  registers<packet<T>, PacketsPerLane> outputs, gradients;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    outputs[i] = row.load(y, lane + i * Lanes, 0.0f);
    gradients[i] = row.load(dy, lane + i * Lanes, 0.0f);
  }
  float dot = 0.0f;
  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      dot += softmax_gradient<Log>::term(to_float(outputs[i].values[j]), to_float(gradients[i].values[j]));
    }
  }
  dot = reduce_lanes<Lanes>(dot, sum_of{});

  GPUMEM_UNROLL for (int i = 0; i < PacketsPerLane; ++i) {
    packet<T> result;
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      float const y_here = to_float(outputs[i].values[j]), dy_here = to_float(gradients[i].values[j]);
      result.values[j] = from_float<T>(softmax_gradient<Log>::dx(y_here, dy_here, dot));
    }
    row.store(dx, lane + i * Lanes, result);
  }
}

template <class T, bool OnChip, bool Log = false>
__global__ void __launch_bounds__(most_threads_of_a_row)
    softmax_backward_in_block(T const* y, T const* dy, T* dx, int columns) {
  constexpr int V = elements_per_packet<T>;
  GPUMEM_DYNAMIC_SHARED(T, kept);  // the packets of y and dy in turn
  row_packets<T> const row(blockIdx.x, columns);
  int const threads = static_cast<int>(blockDim.x);

  float dot = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> const outputs = row.load(y, i, 0.0f);
    packet<T> const gradients = row.load(dy, i, 0.0f);
    if constexpr (OnChip) {
      store_shared_16_bytes(kept, 2 * i * V, __builtin_bit_cast(uint4, outputs));
      store_shared_16_bytes(kept, (2 * i + 1) * V, __builtin_bit_cast(uint4, gradients));
    }
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      dot += softmax_gradient<Log>::term(to_float(outputs.values[j]), to_float(gradients.values[j]));
    }
  }
  dot = reduce_block(dot, sum_of{});

  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += threads) {
    packet<T> outputs, gradients, result;
    if constexpr (OnChip) {
      outputs = __builtin_bit_cast(packet<T>, load_shared_16_bytes(kept, 2 * i * V));
      gradients = __builtin_bit_cast(packet<T>, load_shared_16_bytes(kept, (2 * i + 1) * V));
    } else {
      outputs = row.load(y, i, 0.0f);
      gradients = row.load(dy, i, 0.0f);
    }
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      float const y_here = to_float(outputs.values[j]), dy_here = to_float(gradients.values[j]);
      result.values[j] = from_float<T>(softmax_gradient<Log>::dx(y_here, dy_here, dot));
    }
    row.store(dx, i, result);
  }
}

template <bool Log = false, class T>
void softmax_backward_fused(device_context const& device, T const* y, T const* dy, T* dx, std::int64_t rows,
                            int columns) {
  by_width<T>(
      columns,
      [&](auto group) {
        using G = decltype(group);
        launch("softmax_backward_in_registers", softmax_backward_in_registers<T, G::lanes, G::packets_per_lane, Log>,
               G::blocks(rows), threads_of_row_groups, 0, device.on, y, dy, dx, rows, columns);
      },
      [&] {
        auto const blocks = static_cast<unsigned>(rows);
        unsigned const threads = threads_for_row<T>(columns);
        if (row_stays_on_chip<T>(device, columns, 2)) {
          launch("softmax_backward_in_block<on chip>", softmax_backward_in_block<T, true, Log>, blocks, threads,
                 shared_bytes_for_row<T>(columns, 2), device.on, y, dy, dx, columns);
        } else {
          launch("softmax_backward_in_block<re-read>", softmax_backward_in_block<T, false, Log>, blocks, threads, 0,
                 device.on, y, dy, dx, columns);
        }
      });
}

// ---- chains

struct exp_of_difference {
  __device__ float operator()(float x, float greatest) const { return __expf(x - greatest); }
};
struct quotient {
  __device__ float operator()(float x, float divisor) const { return x / divisor; }
};

/// max, subtract and exp, sum, divide. `exponentials` and the two statistics live only between the launches.
template <class T>
void softmax_forward_chain(device_context const& device, T const* x, T* y, T* exponentials, float* maxima, float* sums,
                           std::int64_t rows, int columns) {
  reduce_rows(device, "row max", x, maxima, rows, columns, max_of{}, as_it_is{});
  map_rows(device, "subtract, exp", x, maxima, exponentials, rows, columns, exp_of_difference{});
  reduce_rows(device, "row sum", exponentials, sums, rows, columns, sum_of{}, as_it_is{});
  map_rows(device, "divide", exponentials, sums, y, rows, columns, quotient{});
}

/// y dy, its row sum, y times that sum, subtract.
template <class T>
void softmax_backward_chain(device_context const& device, T const* y, T const* dy, T* dx, T* products, T* scaled,
                            float* sums, std::int64_t rows, int columns) {
  std::int64_t const elements = rows * columns;
  map_elements(device, "multiply", elements, products, multiply{}, y, dy);
  reduce_rows(device, "row sum", products, sums, rows, columns, sum_of{}, as_it_is{});
  map_rows(device, "multiply by row", y, sums, scaled, rows, columns, product{});
  map_elements(device, "subtract", elements, dx, subtract{}, products, scaled);
}

}  // namespace gpumem::kernels
