// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/bytes.hpp>

#include <cstdint>

namespace gpumem {

/// A GPU in the numbers that decide memory. `capacity` is what a CUDA program sees as total (cudaMemGetInfo), which is
/// less than the `board_total` that nvidia-smi prints (0: not known); a budget is held against `capacity`.
struct device {
  bytes capacity{};
  bytes board_total{};
  std::int64_t multiprocessors = 108;
  std::int64_t compute_capability = 80;  // major * 10 + minor
  std::int64_t bandwidth = 0;            // of memory, 1e9 bytes a second; 0: not known
  std::int64_t half_rate = 0;  // dense fp16 or bf16 on tensor cores, fp32 sums, 1e12 FLOPs a second; 0: not known
  bytes l2_cache{};            // 0: not known

  /// Resident threads a multiprocessor (CUDA C++ Programming Guide, technical specifications per compute capability).
  [[nodiscard]] constexpr std::int64_t threads_per_multiprocessor() const {
    if (compute_capability == 75) return 1024;
    const bool consumer = compute_capability == 86 || compute_capability == 89 || compute_capability / 10 == 12;
    return consumer ? 1536 : 2048;
  }
  /// PyTorch's cuBLAS workspace, a handle and stream: 32 MiB from Hopper on, else `:4096:2:16:8` (CUDABlas.cpp).
  [[nodiscard]] constexpr bytes cublas_workspace() const {
    const std::int64_t major = compute_capability / 10;
    return major == 9 || major == 10 || major == 12 ? bytes{32u << 20} : bytes{(2 * 4096 + 8 * 16) << 10};
  }
  friend constexpr bool operator==(device const&, device const&) = default;
};

namespace detail {
constexpr device make_device(std::uint64_t usable_MiB, std::uint64_t smi_MiB, std::int64_t sms, std::int64_t cc,
                             std::int64_t bandwidth = 0, std::int64_t half_rate = 0, std::uint64_t l2_MiB = 0) {
  return {.capacity = {usable_MiB << 20},
          .board_total = {smi_MiB << 20},
          .multiprocessors = sms,
          .compute_capability = cc,
          .bandwidth = bandwidth,
          .half_rate = half_rate,
          .l2_cache = {l2_MiB << 20}};
}
}  // namespace detail

/// The devices known by name. Totals as CUDA programs and nvidia-smi (driver 510 and later) printed them, the lower end
/// where reports differ, rounded down to MiB; every entry was seen in published output or is widely reported.
/// Bandwidths and half rates are the vendor's datasheet figures as published specifications repeat them, for those
/// devices where that was checked; sparse figures halved. The others have none. L2 caches as NVIDIA's architecture
/// papers state them; the H200's as its driver reports it.
namespace devices {
inline constexpr device v100_16gb = detail::make_device(16148, 16384, 80, 70, 900, 125, 6);
inline constexpr device v100_32gb = detail::make_device(32491, 32768, 80, 70, 900, 125, 6);
inline constexpr device t4_16gb = detail::make_device(14909, 15360, 40, 75, 320, 65, 4);
inline constexpr device rtx_2080_ti = detail::make_device(11008, 11264, 68, 75);
inline constexpr device a100_40gb_pcie = detail::make_device(40192, 40960, 108, 80);
inline constexpr device a100_40gb = detail::make_device(40192, 40960, 108, 80, 1555, 312, 40);
inline constexpr device a100_80gb_pcie = detail::make_device(81049, 81920, 108, 80);
inline constexpr device a100_80gb = detail::make_device(81049, 81920, 108, 80, 2039, 312, 40);
inline constexpr device a10_24gb = detail::make_device(22630, 23028, 72, 86);
inline constexpr device a30_24gb = detail::make_device(24064, 24576, 56, 80);
inline constexpr device a40_48gb = detail::make_device(45404, 46068, 84, 86);
inline constexpr device rtx_a6000 = detail::make_device(48537, 49140, 84, 86);
inline constexpr device rtx_3060_12gb = detail::make_device(12032, 12288, 28, 86);
inline constexpr device rtx_3070 = detail::make_device(7966, 8192, 46, 86);
inline constexpr device rtx_3080_10gb = detail::make_device(10004, 10240, 68, 86);
inline constexpr device rtx_3090 = detail::make_device(24115, 24576, 82, 86);
inline constexpr device l4_24gb = detail::make_device(22528, 23034, 58, 89, 300, 121, 48);
inline constexpr device l40s_48gb = detail::make_device(45455, 46068, 142, 89);
inline constexpr device rtx_4060_ti_8gb = detail::make_device(7782, 8188, 34, 89);
inline constexpr device rtx_4060_ti_16gb = detail::make_device(15974, 16380, 34, 89);
inline constexpr device rtx_4070 = detail::make_device(11878, 12282, 46, 89);
inline constexpr device rtx_4080 = detail::make_device(15974, 16376, 76, 89);
inline constexpr device rtx_4090 = detail::make_device(24084, 24564, 128, 89, 1008, 165, 72);
inline constexpr device rtx_6000_ada = detail::make_device(48537, 49140, 142, 89);
inline constexpr device rtx_5080 = detail::make_device(15872, 16303, 84, 120);
inline constexpr device rtx_5090 = detail::make_device(32112, 32607, 170, 120);
inline constexpr device rtx_pro_6000_blackwell_ws = detail::make_device(97249, 97887, 188, 120);
inline constexpr device h100_pcie_80gb = detail::make_device(80998, 81559, 114, 90);
inline constexpr device h100_80gb = detail::make_device(80998, 81559, 132, 90, 3350, 989, 50);
inline constexpr device h100_nvl_94gb = detail::make_device(95334, 95830, 132, 90);
inline constexpr device h20_96gb = detail::make_device(97280, 97871, 78, 90);
inline constexpr device h200_141gb = detail::make_device(143155, 143771, 132, 90, 4800, 989, 60);
inline constexpr device gh200_96gb = detail::make_device(96768, 97871, 132, 90);
inline constexpr device gh200_144gb_hbm3e = detail::make_device(145920, 0, 132, 90);
inline constexpr device b200_180gb = detail::make_device(182630, 183359, 148, 100);
inline constexpr device gb200 = detail::make_device(188733, 189471, 152, 100);
inline constexpr device b300_sxm6_ac = detail::make_device(274114, 275040, 148, 103);
inline constexpr device gb300 =
    detail::make_device(283184, 284208, 152, 103);  // capacity estimated: nvidia-smi less 1 GiB
}  // namespace devices

/// A device with the words a program prints: the identifier above and the product's name.
struct named_device {
  char const* id;
  char const* name;
  device numbers;
};

inline constexpr named_device device_catalogue[] = {
    {"v100_16gb", "V100 SXM2 16GB", devices::v100_16gb},
    {"v100_32gb", "V100 SXM2 32GB", devices::v100_32gb},
    {"t4_16gb", "T4", devices::t4_16gb},
    {"rtx_2080_ti", "RTX 2080 Ti", devices::rtx_2080_ti},
    {"a100_40gb_pcie", "A100 40GB PCIe", devices::a100_40gb_pcie},
    {"a100_40gb", "A100 40GB SXM", devices::a100_40gb},
    {"a100_80gb_pcie", "A100 80GB PCIe", devices::a100_80gb_pcie},
    {"a100_80gb", "A100 80GB SXM", devices::a100_80gb},
    {"a10_24gb", "A10", devices::a10_24gb},
    {"a30_24gb", "A30", devices::a30_24gb},
    {"a40_48gb", "A40", devices::a40_48gb},
    {"rtx_a6000", "RTX A6000", devices::rtx_a6000},
    {"rtx_3060_12gb", "RTX 3060 12GB", devices::rtx_3060_12gb},
    {"rtx_3070", "RTX 3070", devices::rtx_3070},
    {"rtx_3080_10gb", "RTX 3080 10GB", devices::rtx_3080_10gb},
    {"rtx_3090", "RTX 3090", devices::rtx_3090},
    {"l4_24gb", "L4", devices::l4_24gb},
    {"l40s_48gb", "L40S", devices::l40s_48gb},
    {"rtx_4060_ti_8gb", "RTX 4060 Ti 8GB", devices::rtx_4060_ti_8gb},
    {"rtx_4060_ti_16gb", "RTX 4060 Ti 16GB", devices::rtx_4060_ti_16gb},
    {"rtx_4070", "RTX 4070", devices::rtx_4070},
    {"rtx_4080", "RTX 4080", devices::rtx_4080},
    {"rtx_4090", "RTX 4090", devices::rtx_4090},
    {"rtx_6000_ada", "RTX 6000 Ada", devices::rtx_6000_ada},
    {"rtx_5080", "RTX 5080", devices::rtx_5080},
    {"rtx_5090", "RTX 5090", devices::rtx_5090},
    {"rtx_pro_6000_blackwell_ws", "RTX PRO 6000 Blackwell WS", devices::rtx_pro_6000_blackwell_ws},
    {"h100_pcie_80gb", "H100 PCIe", devices::h100_pcie_80gb},
    {"h100_80gb", "H100 SXM5", devices::h100_80gb},
    {"h100_nvl_94gb", "H100 NVL", devices::h100_nvl_94gb},
    {"h20_96gb", "H20 96GB", devices::h20_96gb},
    {"h200_141gb", "H200 SXM", devices::h200_141gb},
    {"gh200_96gb", "GH200 96GB", devices::gh200_96gb},
    {"gh200_144gb_hbm3e", "GH200 144GB HBM3e", devices::gh200_144gb_hbm3e},
    {"b200_180gb", "B200 SXM", devices::b200_180gb},
    {"gb200", "GB200", devices::gb200},
    {"b300_sxm6_ac", "B300 SXM6 AC", devices::b300_sxm6_ac},
    {"gb300", "GB300", devices::gb300},
};

}  // namespace gpumem
