// SPDX-License-Identifier: MIT
// Dropout: each element is kept with probability 1 - p and scaled by 1 / (1 - p), or becomes 0. Random numbers are a
// function of seed and place (Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3": Philox 4x32, 10 rounds),
// so that every launch shape, and the CPU, draws the same. A call gives the 128 bits of one packet. What was kept is
// written as a mask of one byte an element, and backward reads it.
#pragma once
#include <type_traits>

#include "primitives.cuh"

namespace gpumem::kernels {

__device__ __forceinline__ uint4 philox_4x32_10(uint4 counter, unsigned first_key, unsigned second_key) {
  GPUMEM_UNROLL for (int round = 0; round < 10; ++round) {
    std::uint64_t const a = std::uint64_t{0xD2511F53u} * counter.x;
    std::uint64_t const b = std::uint64_t{0xCD9E8D57u} * counter.z;
    counter = uint4{static_cast<unsigned>(b >> 32) ^ counter.y ^ first_key, static_cast<unsigned>(b),
                    static_cast<unsigned>(a >> 32) ^ counter.w ^ second_key, static_cast<unsigned>(a)};
    first_key += 0x9E3779B9u;
    second_key += 0xBB67AE85u;
  }
  return counter;
}

/// Which elements of a packet are kept: byte j is 1 or 0.
template <class T>
struct packet_mask {
  static constexpr int V = elements_per_packet<T>;
  std::conditional_t<V == 4, unsigned, unsigned long long> bytes;
  using word = decltype(bytes);

  __device__ __forceinline__ bool keeps(int j) const { return (bytes >> 8 * j & 1u) != 0; }

  /// As load_packet; what lies outside is not kept.
  __device__ static packet_mask load(std::uint8_t const* mask, std::int64_t first, std::int64_t begin, std::int64_t end,
                                     place at = place::here()) {
    if (first >= begin && first + V <= end) return {load_word<word>(mask + first, at)};
    packet_mask result{0};
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      bool const inside = first + j >= begin && first + j < end;
      if (inside) result.bytes |= static_cast<word>(load_value(mask + first + j, at)) << 8 * j;
    }
    return result;
  }
  __device__ void store(std::uint8_t* mask, std::int64_t first, std::int64_t begin, std::int64_t end,
                        place at = place::here()) const {
    if (first >= begin && first + V <= end) return store_word(mask + first, bytes, at);
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      bool const inside = first + j >= begin && first + j < end;
      if (inside) store_value(mask + first + j, static_cast<std::uint8_t>(keeps(j) ? 1 : 0), at);
    }
  }
};

struct dropout {
  std::uint64_t seed;
  unsigned dropped;  ///< of 65,536: the probability

  __device__ __forceinline__ float scale() const { return 65536.0f / static_cast<float>(65536u - dropped); }

  /// The mask of the packet whose first element is `first`.
  template <class T>
  __device__ __forceinline__ packet_mask<T> draw(std::int64_t first) const {
    constexpr int V = elements_per_packet<T>;
    auto const number = static_cast<std::uint64_t>(first / V);
    uint4 const bits = philox_4x32_10(uint4{static_cast<unsigned>(number), static_cast<unsigned>(number >> 32), 0u, 0u},
                                      static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
    unsigned const words[4] = {bits.x, bits.y, bits.z, bits.w};
    packet_mask<T> result{0};
    GPUMEM_UNROLL for (int j = 0; j < V; ++j) {
      unsigned const of_element = V == 4 ? words[j % 4] >> 16 : words[j / 2 % 4] >> 16 * (j % 2) & 0xffffu;
      typename packet_mask<T>::word const kept = of_element >= dropped ? 1u : 0u;
      result.bytes |= kept << 8 * j;
    }
    return result;
  }
  template <class T>
  __device__ __forceinline__ packet<T> apply(packet_mask<T> mask, packet<T> values) const {
    GPUMEM_UNROLL for (int j = 0; j < elements_per_packet<T>; ++j) {
      values.values[j] = from_float<T>(mask.keeps(j) ? to_float(values.values[j]) * scale() : 0.0f);
    }
    return values;
  }
};

// ---- as kernels of a chain

/// y = dropout of x. Forward draws the mask and writes it, backward reads it.
template <class T, bool Forward>
__global__ void __launch_bounds__(threads_of_maps)
    dropout_kernel(T const* x, T* y, std::uint8_t* mask, dropout drop, std::int64_t elements) {
  constexpr int V = elements_per_packet<T>, P = packets_in_flight<1>;
  std::int64_t const first_packet = static_cast<std::int64_t>(blockIdx.x) * (threads_of_maps * P) + threadIdx.x;
  registers<packet<T>, P> loaded;
  registers<packet_mask<T>, P> masks;
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    std::int64_t const first = (first_packet + i * threads_of_maps) * V;
    loaded[i] = load_packet(x, first, 0, elements, 0.0f);
    if constexpr (!Forward) masks[i] = packet_mask<T>::load(mask, first, 0, elements);
  }
  GPUMEM_UNROLL for (int i = 0; i < P; ++i) {
    std::int64_t const first = (first_packet + i * threads_of_maps) * V;
    if constexpr (Forward) {
      masks[i] = drop.draw<T>(first);
      masks[i].store(mask, first, 0, elements);
    }
    store_packet(y, first, 0, elements, drop.apply(masks[i], loaded[i]));
  }
}

template <bool Forward, class T>
void drop_elements(device_context const& device, char const* name, T const* x, T* y, std::uint8_t* mask,
                   dropout const& drop, std::int64_t elements) {
  constexpr std::int64_t per_block = threads_of_maps * packets_in_flight<1> * elements_per_packet<T>;
  launch(name, dropout_kernel<T, Forward>, blocks_for(elements, per_block), threads_of_maps, 0, device.on, x, y, mask,
         drop, elements);
}

}  // namespace gpumem::kernels
