// SPDX-License-Identifier: MIT
// AdamW in its three kinds, and clipping, on the GPU.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "adamw.cuh"
#include "adamw_8bit_chain.cuh"
#include "gradient_norm.cuh"
#include "kernels_gpu_device.cuh"

namespace gpumem::bench::gpu {

inline std::vector<workload> optimizer_workloads(device_context const& on, std::int64_t n) {
  auto const count = static_cast<std::size_t>(n), wide = count * sizeof(float), narrow = count * sizeof(bf16);
  kernels::adamw_step const step({}, 1);
  auto const f = [](void* p) { return static_cast<float*>(p); };
  auto const b = [](void* p) { return static_cast<bf16*>(p); };
  std::vector<workload> all;
  all.push_back({.operation = "adamw",
                 .dtype = "fp32",
                 .shape = std::to_string(n),
                 .tensor_bytes = {wide, wide, wide, wide, wide},
                 .fused = predicted::adamw.fused(count),
                 .chain = predicted::adamw.chain(count),
                 .run = [=](variant v, tensors const& p) {
                   kernels::adamw_state const s{f(p[0]), f(p[1]), f(p[2])};
                   if (v == variant::fused) return adamw_fused(on, s, f(p[3]), step, n);
                   adamw_chain(on, s, f(p[3]), f(p[4]), step, n);
                 }});
  all.push_back({.operation = "adamw_master",
                 .dtype = "bf16",
                 .shape = std::to_string(n),
                 .tensor_bytes = {wide, wide, wide, narrow, narrow, wide, wide},
                 .fused = predicted::adamw_master.fused(count),
                 .chain = predicted::adamw_master.chain(count),
                 .run = [=](variant v, tensors const& p) {
                   kernels::adamw_state const s{f(p[0]), f(p[1]), f(p[2])};
                   if (v == variant::fused) return adamw_master_fused(on, s, b(p[3]), b(p[4]), step, n);
                   adamw_master_chain(on, s, b(p[3]), b(p[4]), f(p[5]), f(p[6]), step, n);
                 }});
  return all;
}

template <class T>
std::vector<workload> parameter_workloads(device_context const& on, std::int64_t n) {
  auto const narrow = static_cast<std::size_t>(n) * sizeof(T), wide = static_cast<std::size_t>(n) * sizeof(float);
  auto const count = static_cast<std::size_t>(n), codes = count;
  std::size_t const scales = (codes + 255) / 256 * sizeof(float);
  std::string const dtype = dtype_of(sizeof(T));
  auto const t = [](void* p) { return static_cast<T*>(p); };
  auto const f = [](void* p) { return static_cast<float*>(p); };
  auto const code = [](void* p) { return static_cast<std::uint8_t*>(p); };
  kernels::adamw_step const step({}, 1);
  unsigned const blocks = kernels::clipping_blocks<T>(on, n);
  std::vector<workload> all;

  all.push_back({.operation = "adamw_8bit",
                 .dtype = dtype,
                 .shape = std::to_string(n),
                 .tensor_bytes = {narrow, narrow, codes, codes, scales, scales, wide, wide},
                 .fused = predicted::adamw_8bit(sizeof(T)).fused(count),
                 .chain = predicted::adamw_8bit(sizeof(T)).chain(count),
                 .run = [=](variant v, tensors const& p) {
                   kernels::quantised_moments const moments{code(p[2]), code(p[3]), f(p[4]), f(p[5])};
                   T const* const gradient = t(p[1]);
                   if (v == variant::fused) return adamw_8bit_fused(on, t(p[0]), gradient, moments, step, n);
                   adamw_8bit_chain(on, t(p[0]), gradient, moments, f(p[6]), f(p[7]), step, n);
                 }});
  all.push_back({.operation = "clipping",
                 .dtype = dtype,
                 .shape = std::to_string(n),
                 .tensor_bytes = {narrow, 16, 16, blocks * sizeof(float), narrow},
                 .fused = predicted::gradient_clipping_fused(count, sizeof(T), blocks),
                 .chain = predicted::gradient_clipping_chain(count, sizeof(T), blocks),
                 .run = [=](variant v, tensors const& p) {
                   kernels::clipping const clip{f(p[1]), f(p[2]), f(p[3]), 1.0f};
                   if (v == variant::fused) return gradient_clipping_fused(on, t(p[0]), clip, n);
                   gradient_clipping_chain(on, t(p[0]), clip, t(p[4]), n);
                 }});
  return all;
}

}  // namespace gpumem::bench::gpu
