// SPDX-License-Identifier: MIT
// The norm of the gradients, and the factor that clips it. Fused: one read, as the optimizer can scale the gradients
// when it reads them (adamw_step::gradient_scale). As a chain: square, sum, scale, five accesses.
#pragma once
#include "primitives.cuh"

namespace gpumem::kernels {

/// Norm and factor, both on the device: the step is launched without waiting for them.
struct clipping {
  float* norm;
  float* scale;
  float* partials;  // clipping_blocks of them
  float greatest_norm;
};

inline constexpr int packets_in_flight_of_sums = packets_in_flight<1>;

template <class T>
unsigned clipping_blocks(device_context const& device, std::int64_t elements) {
  std::int64_t const resident =
      static_cast<std::int64_t>(device.multiprocessors) * (device.threads_per_multiprocessor / threads_of_maps);
  constexpr std::int64_t elements_per_block = threads_of_maps * packets_in_flight_of_sums * elements_per_packet<T>;
  return static_cast<unsigned>(std::min<std::int64_t>(blocks_for(elements, elements_per_block), resident));
}

/// One partial sum a block, of Operation of the elements. Blocks stride over the tensor.
template <class T, class Operation>
__global__ void __launch_bounds__(threads_of_maps)
    sum_all_kernel(T const* x, float* partials, std::int64_t elements, Operation operation) {
  constexpr int V = elements_per_packet<T>, P = packets_in_flight_of_sums;
  std::int64_t const stride = static_cast<std::int64_t>(gridDim.x) * (threads_of_maps * P);
  float sum = 0.0f;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (threads_of_maps * P) + threadIdx.x;
       first * V < elements; first += stride) {
    registers<packet<T>, P> loaded;
    GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
      loaded[i] = load_packet(x, (first + i * threads_of_maps) * V, 0, elements, 0.0f);
    }
    GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
      GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
        registers<float, 1> const argument{to_float(loaded[i].values[j])};
        sum += operation(argument);
      }
    }
  }
  sum = reduce_block(sum, sum_of{});
  if (threadIdx.x == 0) store_value(partials + blockIdx.x, sum);
}

/// One block: the norm from the partial sums, and min(1, greatest norm / norm).
template <int Threads>
__global__ void __launch_bounds__(Threads) finish_norm_kernel(clipping c, int partials) {
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < partials; i += Threads) sum += load_value(c.partials + i);
  float const norm = sqrtf(reduce_block(sum, sum_of{}));
  if (threadIdx.x != 0) return;
  store_value(c.norm, norm);
  store_value(c.scale, norm > c.greatest_norm ? c.greatest_norm / norm : 1.0f);
}

template <class T, class Operation>
void sum_all(device_context const& device, char const* name, T const* x, clipping const& c, std::int64_t elements,
             Operation operation) {
  unsigned const blocks = clipping_blocks<T>(device, elements);
  launch(name, sum_all_kernel<T, Operation>, blocks, threads_of_maps, 0, device.on, x, c.partials, elements, operation);
  launch("finish norm", finish_norm_kernel<threads_of_maps>, 1u, threads_of_maps, 0, device.on, c,
         static_cast<int>(blocks));
}

template <class T>
void gradient_clipping_fused(device_context const& device, T const* gradient, clipping const& c,
                             std::int64_t elements) {
  sum_all(device, "sum of squares", gradient, c, elements, square{});
}

/// y = x times a factor that is on the device.
template <class T>
__global__ void __launch_bounds__(threads_of_maps)
    scale_kernel(T const* x, float const* scale, T* y, std::int64_t elements) {
  constexpr int V = elements_per_packet<T>, P = packets_in_flight<1>;
  std::int64_t const first_packet = static_cast<std::int64_t>(blockIdx.x) * (threads_of_maps * P) + threadIdx.x;
  registers<packet<T>, P> loaded;
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    loaded[i] = load_packet(x, (first_packet + i * threads_of_maps) * V, 0, elements, 0.0f);
  }
  float const factor = load_value(scale);
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      loaded[i].values[j] = from_float<T>(to_float(loaded[i].values[j]) * factor);
    }
    store_packet(y, (first_packet + i * threads_of_maps) * V, 0, elements, loaded[i]);
  }
}

/// Threads of scale_kernel, each of which asks for the factor.
template <class T>
std::int64_t readers_of_scale(std::int64_t elements) {
  constexpr std::int64_t per_block = threads_of_maps * packets_in_flight<1> * elements_per_packet<T>;
  return static_cast<std::int64_t>(blocks_for(elements, per_block)) * threads_of_maps;
}

/// square, sum, scale in place.
template <class T>
void gradient_clipping_chain(device_context const& device, T* gradient, clipping const& c, T* squares,
                             std::int64_t elements) {
  map_elements(device, "square", elements, squares, square{}, static_cast<T const*>(gradient));
  sum_all(device, "sum", static_cast<T const*>(squares), c, elements, identity{});
  launch("scale", scale_kernel<T>, static_cast<unsigned>(readers_of_scale<T>(elements) / threads_of_maps),
         threads_of_maps, 0, device.on, static_cast<T const*>(gradient), static_cast<float const*>(c.scale), gradient,
         elements);
}

}  // namespace gpumem::kernels
