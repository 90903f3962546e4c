// SPDX-License-Identifier: MIT
// Primitives that go by columns: combine every row with a vector, and sum each column.
#pragma once
#include <algorithm>
#include <numeric>

#include "primitives.cuh"

namespace gpumem::kernels {

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
