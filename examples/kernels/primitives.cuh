// SPDX-License-Identifier: MIT
// The kernels that a framework without fusion launches one after the other: element by element, reduce each row,
// combine each row with one number (column_primitives.cuh: with a vector). Each reaches the bandwidth on its own; a
// chain of them moves its intermediates through memory, and that is what it pays for.
#pragma once
#include "reduce.cuh"
#include "rows.cuh"

namespace gpumem::kernels {

inline constexpr int threads_of_maps = 256;

inline unsigned blocks_for(std::int64_t items, std::int64_t items_per_block) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (items + items_per_block - 1) / items_per_block));
}

// ---- out[i] = operation(in0[i], in1[i], ...)

template <class T, int Count>
struct input_tensors {
  T const* tensor[static_cast<std::size_t>(Count)];
};

struct add {
  __device__ float operator()(float const (&v)[2]) const { return v[0] + v[1]; }
};
struct subtract {
  __device__ float operator()(float const (&v)[2]) const { return v[0] - v[1]; }
};
struct multiply {
  __device__ float operator()(float const (&v)[2]) const { return v[0] * v[1]; }
};
struct square {
  __device__ float operator()(float const (&v)[1]) const { return v[0] * v[0]; }
};
struct identity {
  __device__ float operator()(float const (&v)[1]) const { return v[0]; }
};

/// Packets that a thread loads before it uses the first: enough bytes in flight to cover the latency of the memory.
template <int Inputs>
inline constexpr int packets_in_flight = Inputs == 1 ? 4 : 2;

template <class T, int Inputs, class Operation>
__global__ void __launch_bounds__(threads_of_maps)
    map_kernel(std::int64_t elements, T* out, Operation operation, input_tensors<T, Inputs> inputs) {
  constexpr int V = elements_per_packet<T>, P = packets_in_flight<Inputs>;
  std::int64_t const first_packet = static_cast<std::int64_t>(blockIdx.x) * (threads_of_maps * P) + threadIdx.x;

  registers<registers<packet<T>, Inputs>, P> loaded;
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    GPUMEM_UNROLL for (int t = 0; t < Inputs; ++t) {
      loaded[i][t] = load_packet(inputs.tensor[t], (first_packet + i * threads_of_maps) * V, 0, elements, 0.0f);
    }
  }
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    packet<T> result;
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      registers<float, Inputs> arguments;
      GPUMEM_UNROLL for (int t = 0; t < Inputs; ++t) arguments[t] = to_float(loaded[i][t].values[j]);
      result.values[j] = from_float<T>(operation(arguments));
    }
    store_packet(out, (first_packet + i * threads_of_maps) * V, 0, elements, result);
  }
}

/// `out` may be one of the inputs.
template <class T, class Operation, class... Inputs>
void map_elements(device_context const& device, char const* name, std::int64_t elements, T* out, Operation operation,
                  Inputs const*... inputs) {
  constexpr int count = static_cast<int>(sizeof...(Inputs));
  std::int64_t const packets = (elements + elements_per_packet<T> - 1) / elements_per_packet<T>;
  launch(name, map_kernel<T, count, Operation>, blocks_for(packets, threads_of_maps * packets_in_flight<count>),
         threads_of_maps, 0, device.on, elements, out, operation, input_tensors<T, count>{{inputs...}});
}

// ---- out[row] = finish(reduction of the row)

struct as_it_is {
  __device__ float operator()(float x) const { return x; }
};

/// Lanes that share a row; 0 stands for a whole block.
template <class T, int Lanes, class Reduction, class Finish>
__global__ void __launch_bounds__(Lanes == 0 ? most_threads_of_a_row : threads_of_row_groups)
    reduce_rows_kernel(T const* x, float* out, std::int64_t rows, int columns, Reduction reduction, Finish finish) {
  constexpr bool block = Lanes == 0;
  std::int64_t const row_number = block ? static_cast<std::int64_t>(blockIdx.x) : row_of_group < block ? 1 : Lanes > ();
  int const lane = block ? static_cast<int>(threadIdx.x) : lane_of_group < block ? 1 : Lanes > ();
  int const lanes = block ? static_cast<int>(blockDim.x) : Lanes;
  auto const row = packets_of<T>(row_number, rows, columns);

  float value = Reduction::identity;
  for (int i = lane; i < row.count; i += lanes) {
    packet<T> const loaded = row.load(x, i, Reduction::identity);
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      value = reduction(value, to_float(loaded.values[j]));
    }
  }
  if constexpr (block) {
    value = reduce_block(value, reduction);
  } else {
    value = reduce_lanes<Lanes>(value, reduction);
  }
  if (lane == 0 && row_number < rows) store_value(out + row_number, finish(value));
}

// ---- y[row][column] = operation(x[row][column], statistic[row])

struct product {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct difference {
  __device__ float operator()(float a, float b) const { return a - b; }
};
struct sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <class T, int Lanes, class Operation>
__global__ void __launch_bounds__(Lanes == 0 ? most_threads_of_a_row : threads_of_row_groups)
    map_rows_kernel(T const* x, float const* statistic, T* y, std::int64_t rows, int columns, Operation operation) {
  constexpr bool block = Lanes == 0;
  std::int64_t const row_number = block ? static_cast<std::int64_t>(blockIdx.x) : row_of_group < block ? 1 : Lanes > ();
  int const lane = block ? static_cast<int>(threadIdx.x) : lane_of_group < block ? 1 : Lanes > ();
  int const lanes = block ? static_cast<int>(blockDim.x) : Lanes;
  auto const row = packets_of<T>(row_number, rows, columns);

  float of_row = lane == 0 && row_number < rows ? load_value(statistic + row_number) : 0.0f;
  if constexpr (block) {
    of_row = broadcast_in_block(of_row);
  } else {
    unsigned const first_of_group = threadIdx.x % lanes_per_warp / Lanes * Lanes;
    of_row = __shfl_sync(whole_warp, of_row, first_of_group);
  }
  for (int i = lane; i < row.count; i += lanes) {
    packet<T> values = row.load(x, i, 0.0f);
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      values.values[j] = from_float<T>(operation(to_float(values.values[j]), of_row));
    }
    row.store(y, i, values);
  }
}

struct whole_block {
  static constexpr int lanes = 0;
};

/// Calls `launch_lanes` with the lanes, the grid and the block that suit rows of this width.
template <class T, class LaunchLanes>
void by_lanes(std::int64_t rows, int columns, LaunchLanes launch_lanes) {
  int const packets = most_packets_per_row<T>(columns);
  if (packets <= 16) return launch_lanes(row_group<8, 1>{}, row_group<8, 1>::blocks(rows), threads_of_row_groups);
  if (packets <= most_packets_in_registers) {
    return launch_lanes(row_group<32, 1>{}, row_group<32, 1>::blocks(rows), threads_of_row_groups);
  }
  launch_lanes(whole_block{}, static_cast<unsigned>(rows), threads_for_row<T>(columns));
}

template <class T, class Reduction, class Finish>
void reduce_rows(device_context const& device, char const* name, T const* x, float* out, std::int64_t rows, int columns,
                 Reduction reduction, Finish finish) {
  by_lanes<T>(rows, columns, [&](auto group, unsigned blocks, unsigned threads) {
    launch(name, reduce_rows_kernel<T, decltype(group)::lanes, Reduction, Finish>, blocks, threads, 0, device.on, x,
           out, rows, columns, reduction, finish);
  });
}

template <class T, class Operation>
void map_rows(device_context const& device, char const* name, T const* x, float const* statistic, T* y,
              std::int64_t rows, int columns, Operation operation) {
  by_lanes<T>(rows, columns, [&](auto group, unsigned blocks, unsigned threads) {
    launch(name, map_rows_kernel<T, decltype(group)::lanes, Operation>, blocks, threads, 0, device.on, x, statistic, y,
           rows, columns, operation);
  });
}

}  // namespace gpumem::kernels
