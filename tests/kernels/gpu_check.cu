// SPDX-License-Identifier: MIT
// The kernels on a GPU against the float64 references. Exits with 77, which CTest takes for "skipped", where there is
// none.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <random>
#include <string>

#include "problems.hpp"

using namespace gpumem::kernels;
using namespace gpumem::kernels::test;

namespace {

constexpr int skipped = 77;

/// Errors of one output, over all shapes: that of the largest ones, and that of all small ones taken together.
struct worst_error {
  double large = 0;
  output_error small{};

  void add(output_error const& error, bool is_small) {
    if (!is_small) {
      large = std::max(large, error.relative() == error.relative() ? error.relative() : 1e300);
    }
    small.limit = error.limit;
    if (is_small) {
      small.difference += error.difference;
      small.norm += error.norm;
    }
  }
  bool is_right() const { return large < small.limit && small.relative() < small.limit; }
};

bool check_operation(operation const& op, variant v, dtype type, device_context const& device, bool quick,
                     std::uint64_t seed) {
  constexpr std::int64_t few_values = 256;
  std::map<std::string, worst_error> outputs;
  auto const check_shape = [&](shape s) {
    if (!op.is_possible(device, type, s)) return;
    auto const p = op.make(device, type, s, seed++);
    p->run(v);
    check(cudaDeviceSynchronize(), op.name.c_str());
    for (auto const& error : p->errors()) outputs[error.output].add(error, s.rows * s.columns < few_values);
  };
  for (std::int64_t const rows : {1, 2, 31, 32, 33, 67}) {
    for (int const columns : {1, 7, 32, 64, 768, 1000}) check_shape({rows, columns});
  }
  for (std::int64_t const rows : {1, 3}) {
    for (int const columns : {4096, 50257}) check_shape({rows, columns});
  }
  if (!quick) check_shape({4099, 4096});
  bool right = true;
  for (auto const& [output, error] : outputs) {
    std::printf("%-6s %-16s %s %s  %-10s relative error %.1e, small tensors %.1e\n", error.is_right() ? "ok" : "WRONG",
                op.name.c_str(), to_string(v), to_string(type), output.c_str(), error.large, error.small.relative());
    right = right && error.is_right();
  }
  return right;
}

int run(bool quick) {
  int devices = 0;
  cudaError_t const status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess || devices == 0) {
    std::printf("skipped: %s\n", status != cudaSuccess ? cudaGetErrorString(status) : "no device");
    return skipped;
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  device_context device{.multiprocessors = properties.multiProcessorCount,
                        .threads_per_multiprocessor = properties.maxThreadsPerMultiProcessor,
                        .shared_bytes_per_block = properties.sharedMemPerBlockOptin};
  device_context without_shared = device;
  without_shared.shared_bytes_per_block = 4 * 1024;  // rows are read again then

  std::uint64_t const seed = std::random_device{}();
  std::printf("%s, seed %llu\n", properties.name, static_cast<unsigned long long>(seed));
  bool right = true;
  for (auto const& op : operations()) {
    for (auto const v : op.variants) {
      for (auto const type : {dtype::fp32, dtype::bf16}) {
        right = check_operation(op, v, type, device, quick, seed) && right;
        if (v == variant::fused) right = check_operation(op, v, type, without_shared, quick, seed) && right;
      }
    }
  }
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 && std::string(argv[1]) == "--quick");
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
