// SPDX-License-Identifier: MIT
// The kernels that a framework without fusion launches one after the other: element by element, reduce each row,
// combine each row with one number or with a vector. Each reaches the bandwidth on its own; a chain of them moves its
// intermediates through memory, and that is what it pays for.
#pragma once
#include <numeric>

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

// ---- y[row][column] = operation(x[row][column], parameter[column])

/// Element packets repeat their columns every `period` packets. Threads stride by a multiple of that, so each sees the
/// same columns in all of its packets, keeps their parameters in registers, and every access to the tensor has 16 bytes
/// at any width.
struct column_plan {
  std::int64_t packets;
  std::int64_t stride;  // in packets; also the number of threads

  /// Elements of the parameter that all threads together ask for; what is beyond its own length comes from the caches.
  template <class T>
  std::int64_t requested_parameters() const {
    return std::min(packets, stride) * elements_per_packet<T>;
  }
};

template <class T>
column_plan plan_columns(device_context const& device, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>;
  std::int64_t const packets = (rows * columns + V - 1) / V;
  std::int64_t const period = columns / std::gcd(columns, V);
  std::int64_t const resident_threads =
      static_cast<std::int64_t>(device.multiprocessors) * device.threads_per_multiprocessor;
  std::int64_t const periods = std::max<std::int64_t>(1, std::min(resident_threads / period, packets / period));
  return {packets, periods * period};
}

/// Parameters of the columns from `first_column` on, starting over after the last.
template <class T>
__device__ __forceinline__ packet<T> load_repeated_parameters(T const* parameter, int first_column, int columns) {
  constexpr int V = elements_per_packet<T>;
  if (columns % V == 0) return __builtin_bit_cast(packet<T>, load_16_bytes_cached(parameter + first_column));
  packet<T> result;
  GPUMEM_UNROLL for (int j = 0; j < V; ++j) { result.values[j] = load_value(parameter + (first_column + j) % columns); }
  return result;
}

template <class T, class Operation>
__global__ void __launch_bounds__(threads_of_maps)
    map_columns_kernel(T const* x, T const* parameter, T* y, std::int64_t elements, int columns, column_plan plan,
                       Operation operation) {
  constexpr int V = elements_per_packet<T>, P = packets_in_flight<1>;
  std::int64_t const thread = static_cast<std::int64_t>(blockIdx.x) * threads_of_maps + threadIdx.x;
  if (thread >= plan.stride || thread >= plan.packets) return;

  packet<T> const parameters = load_repeated_parameters(parameter, static_cast<int>(thread * V % columns), columns);
  for (std::int64_t first = thread; first < plan.packets; first += P * plan.stride) {
    registers<packet<T>, P> values;
    GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
      values[i] = load_packet(x, (first + i * plan.stride) * V, 0, elements, 0.0f);
    }
    GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
      GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
        float const result = operation(to_float(values[i].values[j]), to_float(parameters.values[j]));
        values[i].values[j] = from_float<T>(result);
      }
      store_packet(y, (first + i * plan.stride) * V, 0, elements, values[i]);
    }
  }
}

template <class T, class Operation>
void map_columns(device_context const& device, char const* name, T const* x, T const* parameter, T* y,
                 std::int64_t rows, int columns, Operation operation) {
  column_plan const plan = plan_columns<T>(device, rows, columns);
  launch(name, map_columns_kernel<T, Operation>, blocks_for(std::min(plan.stride, plan.packets), threads_of_maps),
         threads_of_maps, 0, device.on, x, parameter, y, rows * columns, columns, plan, operation);
}

// ---- out[column] = sum over rows of x[row][column]

inline constexpr int packets_across = 4;  // 64 bytes of a row: whole sectors, and many blocks even for narrow rows
inline constexpr int most_threads_of_column_sums = 256;

/// Threads of a block: so many only where there are rows for all of them.
inline unsigned threads_of_column_sums(std::int64_t rows) {
  constexpr int few = 128, rows_in_flight = few / packets_across * packets_in_flight<1>;
  return rows <= rows_in_flight ? few : most_threads_of_column_sums;
}

/// Where the sums of each matrix go; matrices lie one after the other.
template <class T>
struct column_sums {
  T* tensor[3];
};

template <class In, class Out>
__global__ void __launch_bounds__(most_threads_of_column_sums)
    reduce_columns_kernel(In const* x, column_sums<Out> out, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<In>, W = elements_per_packet<Out>;
  constexpr int columns_of_block = packets_across * V, P = packets_in_flight<1>;
  GPUMEM_SHARED(float, of_warp, most_threads_of_column_sums / lanes_per_warp * columns_of_block);
  int const warps = static_cast<int>(blockDim.x) / lanes_per_warp;
  int const slots = static_cast<int>(blockDim.x) / packets_across;
  int const thread = static_cast<int>(threadIdx.x), lane = thread % packets_across;
  int const first_column = static_cast<int>(blockIdx.x) * columns_of_block + lane * V;
  In const* const matrix = x + static_cast<std::int64_t>(blockIdx.y) * rows * columns;

  registers<float, V> sums = {};
  bool const whole_packets = columns % V == 0;  // then no packet straddles the end of a row
  for (std::int64_t first_row = thread / packets_across; first_row < rows; first_row += slots * P) {
    registers<packet<In>, P> loaded;
    GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
      std::int64_t const row = first_row + i * slots, begin = row * columns;
      if (whole_packets && row < rows && first_column < columns) {
        loaded[i] = __builtin_bit_cast(packet<In>, load_16_bytes(matrix + begin + first_column));
      } else {
        GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
          bool const inside = row < rows && first_column + j < columns;
          loaded[i].values[j] = inside ? load_value(matrix + begin + first_column + j) : from_float<In>(0.0f);
        }
      }
    }
    GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
      GPUMEM_UNROLL for (int j = 0; j < V; ++j) sums[j] += to_float(loaded[i].values[j]);
    }
  }
  GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
    GPUMEM_UNROLL for (int distance = packets_across; distance < lanes_per_warp; distance *= 2) {
      sums[j] += __shfl_xor_sync(whole_warp, sums[j], distance);
    }
    if (thread % lanes_per_warp < packets_across) {
      of_warp[thread / lanes_per_warp * columns_of_block + lane * V + j] = sums[j];
    }
  }
  __syncthreads();
  if (thread >= columns_of_block / W) return;
  packet<Out> result;
  GPUMEM_UNROLL for (int j = 0; j < W; ++j) {
    float sum = 0.0f;
    for (int warp = 0; warp < warps; ++warp) sum += of_warp[warp * columns_of_block + thread * W + j];
    result.values[j] = from_float<Out>(sum);
  }
  std::int64_t const first = static_cast<std::int64_t>(blockIdx.x) * columns_of_block + thread * W;
  Out* const later = blockIdx.y == 1 ? out.tensor[1] : out.tensor[2];
  store_packet(blockIdx.y == 0 ? out.tensor[0] : later, first, 0, columns, result);
}

/// `count` matrices, one after the other, each to its own tensor of sums.
template <class In, class Out>
void reduce_columns(device_context const& device, char const* name, In const* x, column_sums<Out> out, int count,
                    std::int64_t rows, int columns) {
  dim3 const grid(blocks_for(columns, packets_across * elements_per_packet<In>), static_cast<unsigned>(count));
  launch(name, reduce_columns_kernel<In, Out>, grid, threads_of_column_sums(rows), 0, device.on, x, out, rows, columns);
}

}  // namespace gpumem::kernels
