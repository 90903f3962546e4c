// SPDX-License-Identifier: MIT
// The measured figures of tests/data/measured_runs.csv.
#pragma once
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace measured {

struct run {
  std::string id, source, gpu, figure;  // figure: what was measured (tests/data/README.md)
  std::uint64_t bytes = 0;
};

inline std::vector<run> read_runs(std::string const& path = GPUMEM_TEST_DATA "/measured_runs.csv") {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("cannot read " + path);
  std::vector<run> runs;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    run r;
    std::string count;
    std::getline(cells, r.id, ','), std::getline(cells, r.source, ','), std::getline(cells, r.gpu, ',');
    std::getline(cells, r.figure, ','), std::getline(cells, count);
    r.bytes = std::stoull(count);
    runs.push_back(r);
  }
  return runs;
}

inline std::uint64_t bytes_of(std::string const& id) {
  static const std::vector<run> runs = read_runs();
  for (run const& r : runs)
    if (r.id == id) return r.bytes;
  throw std::runtime_error("no measured run " + id);
}

/// How far a prediction is from the measurement, in parts of the measurement.
inline double error_of(std::uint64_t predicted, std::uint64_t measured_bytes) {
  return (static_cast<double>(predicted) - static_cast<double>(measured_bytes)) / static_cast<double>(measured_bytes);
}

}  // namespace measured
