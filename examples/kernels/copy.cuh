// SPDX-License-Identifier: MIT
// Copy: one read, one write, no arithmetic. Its bandwidth is what 100 % means for every other kernel.
#pragma once
#include "primitives.cuh"

namespace gpumem::kernels {

template <class T>
__global__ void __launch_bounds__(threads_of_maps) copy_kernel(T const* x, T* y, std::int64_t elements) {
  constexpr int V = elements_per_packet<T>, P = packets_in_flight<1>;
  std::int64_t const first_packet = static_cast<std::int64_t>(blockIdx.x) * (threads_of_maps * P) + threadIdx.x;
  registers<packet<T>, P> loaded;
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    loaded[i] = load_packet(x, (first_packet + i * threads_of_maps) * V, 0, elements, 0.0f);
  }
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    store_packet(y, (first_packet + i * threads_of_maps) * V, 0, elements, loaded[i]);
  }
}

template <class T>
void copy(device_context const& device, T const* x, T* y, std::int64_t elements) {
  std::int64_t const packets = (elements + elements_per_packet<T> - 1) / elements_per_packet<T>;
  launch("copy", copy_kernel<T>, blocks_for(packets, threads_of_maps * packets_in_flight<1>), threads_of_maps, 0,
         device.on, x, y, elements);
}

}  // namespace gpumem::kernels
