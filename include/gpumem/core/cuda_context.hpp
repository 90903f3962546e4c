// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/device.hpp>

#include <cstdint>

namespace gpumem {

/// What a CUDA context and the libraries loaded with it were seen to take of a device before the first tensor: memory
/// that nvidia-smi shows and no allocator counts. Since CUDA 11.7 kernels are loaded when they are first used.
struct context_report {
  char const* where;  // device and software
  std::int64_t compute_capability;
  bool lazy_loading;
  bytes size;
};

inline constexpr context_report context_reports[] = {
    {"V100, CUDA 11.2 (Hugging Face docs)", 70, false, {std::uint64_t{1343} << 20}},
    {"RTX 2080 Ti, torch 1.6 (pytorch#49877)", 75, false, {std::uint64_t{1035} << 20}},
    {"RTX 3090, torch 1.7, less one tensor (pytorch#49877)", 86, false, {std::uint64_t{1488} << 20}},
    {"RTX 6000 Ada, CUDA 13.0 (unsloth-zoo#1053)", 89, true, {std::uint64_t{426} << 20}},
    {"H100, vLLM's non-torch memory (llm-d)", 90, true, {std::uint64_t{563} << 20}},
};

/// The largest report of the same age of toolkit for the nearest compute capability at or above the device's, else of
/// that age at all. An allowance to state beside a peak, not a prediction.
constexpr bytes cuda_context(device const& d, bool lazy_loading = true) {
  bytes most{}, nearest{};
  std::int64_t found = 0;
  for (context_report const& r : context_reports) {
    if (r.lazy_loading != lazy_loading) continue;
    if (r.size > most) most = r.size;
    if (r.compute_capability >= d.compute_capability && (found == 0 || r.compute_capability < found))
      found = r.compute_capability, nearest = r.size;
  }
  return found != 0 ? nearest : most;
}

static_assert(cuda_context(devices::v100_16gb, false) == bytes{std::uint64_t{1343} << 20});
static_assert(cuda_context(devices::b200_180gb) == bytes{std::uint64_t{563} << 20});

}  // namespace gpumem
