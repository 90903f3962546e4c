// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/device.hpp>

#include <concepts>
#include <cstdint>

namespace gpumem {

/// What the framework and the device add to the model's own arithmetic. Without a device: an A100.
struct runtime {
  std::uint64_t granule = 512;      // the allocator rounds every tensor up to this (c10 CUDACachingAllocator.cpp)
  std::uint64_t unseen_below = 0;   // tensors smaller than this count nothing: for comparing with a coarse probe
  std::uint64_t foreach_lists = 1;  // parameter-sized lists that a foreach step holds (torch/optim, since 2.1)
  bool sums_in_place = true;        // a second gradient is added into the first where nobody else holds it (torch 2.0)
  std::int64_t multiprocessors = devices::a100_80gb.multiprocessors;  // 0: no CUDA reductions, hence no workspaces
  std::int64_t threads_per_multiprocessor = devices::a100_80gb.threads_per_multiprocessor();
  bytes cublas_workspace = devices::a100_80gb.cublas_workspace();  // a thread that has run a matmul

  friend constexpr bool operator==(runtime const&, runtime const&) = default;
};

struct runtime_family {};
struct reserve_family {};

/// A runtime policy names its family and holds its `numbers`.
template <class R>
concept runtime_policy = std::same_as<typename R::family, runtime_family> && requires {
  { R::numbers } -> std::convertible_to<runtime>;
};

/// PyTorch 2.1 and later on CUDA.
struct pytorch_cuda {
  using family = runtime_family;
  static constexpr runtime numbers{};
};

/// PyTorch 1.13 on the CPU: no rounding, no workspaces, two foreach lists, sums of gradients never in place.
struct pytorch_1_13_cpu {
  using family = runtime_family;
  static constexpr runtime numbers{.granule = 1,
                                   .foreach_lists = 2,
                                   .sums_in_place = false,
                                   .multiprocessors = 0,
                                   .threads_per_multiprocessor = 0,
                                   .cublas_workspace = {0}};
};

/// Memory set aside beside the peak, on a line of its own: the CUDA context, libraries and what the allocator cannot
/// use.
template <bytes B>
struct reserve {
  using family = reserve_family;
  static constexpr bytes amount = B;
};

template <class R>
concept reserve_policy = std::same_as<typename R::family, reserve_family> && requires {
  { R::amount } -> std::convertible_to<bytes>;
};

static_assert(runtime_policy<pytorch_cuda> && runtime_policy<pytorch_1_13_cpu> && reserve_policy<reserve<bytes{1}>>);

}  // namespace gpumem
