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
  bool softmax_saves_input = false;  // until torch 1.10 (_softmax_backward_data took it)
  bool mean_saves_input = false;     // until torch 1.13
  bool gradients_kept = false;       // zero_grad fills them with zeros, the default before torch 2.0
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

/// What the version of PyTorch decides, as one number: 100 * major + minor (1.10 is 110, 2.4 is 204). Softmax and mean
/// keep their inputs in old ones, sums of gradients are in place since 2.0, zero_grad frees gradients since 2.0, a
/// foreach step holds one list since 2.1.
constexpr runtime pytorch(std::int64_t version, runtime r = {}) {
  r.softmax_saves_input = version <= 110;
  r.mean_saves_input = version <= 113;
  r.sums_in_place = version >= 200;
  r.gradients_kept = version < 200;
  r.foreach_lists = version >= 201 ? 1 : 2;
  return r;
}

/// PyTorch 2.1 and later on CUDA.
struct pytorch_cuda {
  using family = runtime_family;
  static constexpr runtime numbers{};
};

/// PyTorch of another version on CUDA, as `pytorch` says; `zero_grad_frees` where the program frees gradients anyway.
template <std::int64_t Version, bool ZeroGradFrees = (Version >= 200)>
struct pytorch_cuda_version {
  static_assert(Version >= 100, "pytorch_cuda_version<V>: V is 100 * major + minor");
  using family = runtime_family;
  static constexpr runtime numbers = [] {
    runtime r = pytorch(Version);
    r.gradients_kept = !ZeroGradFrees;
    return r;
  }();
};

/// PyTorch 1.13 on the CPU whose program frees gradients: no rounding, no workspaces, two foreach lists, sums of
/// gradients never in place.
struct pytorch_1_13_cpu {
  using family = runtime_family;
  static constexpr runtime numbers{.granule = 1,
                                   .foreach_lists = 2,
                                   .sums_in_place = false,
                                   .multiprocessors = 0,
                                   .threads_per_multiprocessor = 0,
                                   .mean_saves_input = true,
                                   .cublas_workspace = {0}};
};

/// A program that allocates its own memory, to the byte, and calls no library that does.
struct bare {
  using family = runtime_family;
  static constexpr runtime numbers{
      .granule = 1, .multiprocessors = 0, .threads_per_multiprocessor = 0, .cublas_workspace = {0}};
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

static_assert(pytorch(201) == runtime{});
static_assert(runtime_policy<pytorch_cuda> && runtime_policy<pytorch_cuda_version<110>> &&
              runtime_policy<pytorch_1_13_cpu> && runtime_policy<bare> && reserve_policy<reserve<bytes{1}>>);

}  // namespace gpumem
