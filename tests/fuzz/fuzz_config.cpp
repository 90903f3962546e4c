// SPDX-License-Identifier: MIT
// The fuzz target: any bytes are either a config that is counted (and, where its blocks are recorded, estimated) or
// refused with one of our errors. Everything else is a finding, and so are two counts that differ.
#include <gpumem/core/error.hpp>
#include <gpumem/estimate.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "config.hpp"
#include "input_error.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void read(std::string_view text) {
  gpumem::cli::described_model const m = gpumem::cli::describe(text);
  std::uint64_t const parameters = gpumem::cli::count_parameters(m).total();
  require(parameters > 0);
  if (auto const* const t = std::get_if<gpumem::transformer>(&m.numbers)) {
    gpumem::breakdown const b = gpumem::estimate(*t, {.micro_batch = 3, .sequence = 5});
    require(b.parameters == parameters);
    require(b.peak.total >= b.at(gpumem::phase::optimizer_step).total);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  try {
    read({reinterpret_cast<char const*>(data), size});
  } catch (gpumem::cli::input_error const& e) {
    require(std::strlen(e.what()) > 0);
  } catch (gpumem::error const& e) {
    require(std::strlen(e.what()) > 0);
  }
  return 0;
}
