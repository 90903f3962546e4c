// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/format.hpp>

#include "config.hpp"

namespace gpumem::cli {

/// The model that a config file describes. Throws input_error that names the file.
described_model load_model(std::string const& path);

/// A model's numbers by the library's names, for JSON.
std::vector<fact> model_facts(described_model const& m);

/// A model in one line.
std::string model_line(described_model const& m, std::uint64_t parameters);

/// Refuses a format that is none of text, markdown and json.
void require_format(std::string const& format);

}  // namespace gpumem::cli
