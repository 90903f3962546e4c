// SPDX-License-Identifier: MIT
// Every operation with random inputs, its float64 reference and the bytes it has to move, for whoever runs kernels.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "portable.cuh"
#include "predicted_bytes.hpp"

namespace gpumem::kernels::test {

enum class variant { fused, chain };
enum class dtype { fp32, bf16 };

struct shape {
  std::int64_t rows;
  int columns;
};

struct output_error {
  std::string output;
  double limit;                     // 1e-5 for fp32, 5e-3 for bf16
  double difference = 0, norm = 0;  // squared

  /// ||output - reference|| / ||reference||
  double relative() const { return difference == 0 ? 0 : std::sqrt(difference / norm); }
};

class problem {
 public:
  virtual ~problem() = default;
  /// Poisons the outputs, sets what is updated in place back to its first values, and launches.
  virtual void run(variant v) = 0;
  virtual std::vector<output_error> errors() const = 0;
  /// The bits of all outputs, to compare schedules with.
  virtual std::vector<unsigned char> output_bits() const = 0;
  virtual traffic predicted(variant v) const = 0;
  /// Whether the prediction counts each byte of the inputs once. A row that does not fit on the chip is read again.
  virtual bool reads_once(variant) const { return true; }
  /// Reads of a parameter beyond its first, which the caches answer.
  virtual std::int64_t repeated_parameter_bytes(variant) const { return 0; }
  /// Bytes of accesses that have no 16 bytes at aligned widths; negative: up to seven statistics of each row.
  virtual std::int64_t scalar_bytes(variant) const { return -1; }
};

struct operation {
  std::string name;
  std::vector<variant> variants;
  std::unique_ptr<problem> (*make)(device_context const&, dtype, shape, std::uint64_t seed);
  /// Whether the operation has a kernel for these; null: for all.
  bool (*possible)(device_context const&, dtype, shape) = nullptr;

  bool is_possible(device_context const& device, dtype type, shape s) const {
    return possible == nullptr || possible(device, type, s);
  }
};

std::vector<operation> const& operations();
operation const& find_operation(std::string const& name);

inline char const* to_string(variant v) { return v == variant::fused ? "fused" : "chain"; }
inline char const* to_string(dtype d) { return d == dtype::fp32 ? "fp32" : "bf16"; }

/// A small device, so that few rows already make blocks and threads go round more than once.
inline device_context small_device(std::size_t shared_bytes_per_block = 227 * 1024) {
  return {.multiprocessors = 2, .threads_per_multiprocessor = 256, .shared_bytes_per_block = shared_bytes_per_block};
}

}  // namespace gpumem::kernels::test
