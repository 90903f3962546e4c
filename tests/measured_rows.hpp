// SPDX-License-Identifier: MIT
// The measured rows of tests/data/saved_bytes_per_layer.csv.
#pragma once
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "measured_blocks.hpp"

namespace measured_blocks {

struct row {
  std::string kind_name;
  kind what;
  shape dims;
  std::uint64_t measured = 0;
};

inline std::vector<row> measured_rows() {
  std::ifstream file{GPUMEM_TEST_DATA "/saved_bytes_per_layer.csv"};
  std::string line, cell;
  std::getline(file, line);
  std::vector<row> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> c;
    for (std::istringstream cells{line}; std::getline(cells, cell, ',');) c.push_back(cell);
    if (c.size() != 12) throw std::runtime_error("not a row of twelve: " + line);
    const auto n = [&](std::size_t i) { return std::stoll(c[i]); };
    rows.push_back({.kind_name = c[0] + ' ' + c[1] + ' ' + c[2] + ' ' + c[3] + ' ' + c[4],
                    .what = {.arch = c[0] == "llama"         ? architecture::llama
                                     : c[0] == "bert_postln" ? architecture::bert
                                                             : architecture::gpt2,
                             .flash = c[1] == "flash",
                             .fused = c[2].find("unfused") == std::string::npos,
                             .prec = c[3] == "fp32"   ? precision::fp32
                                     : c[3] == "bf16" ? precision::bf16
                                                      : precision::autocast,
                             .dropout = c[4] != "0.0"},
                    .dims = {n(5), n(6), n(7), n(8), n(9), n(10)},
                    .measured = std::stoull(c[11])});
  }
  return rows;
}

}  // namespace measured_blocks
