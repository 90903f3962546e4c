// SPDX-License-Identifier: MIT
// What estimate and traffic read alike from a request.
#pragma once
#include <gpumem/core/device.hpp>
#include <gpumem/core/error.hpp>
#include <gpumem/core/workload.hpp>
#include <gpumem/format.hpp>
#include <gpumem/models/encoder_classifier.hpp>
#include <gpumem/models/transformer.hpp>
#include <gpumem/policies/plan.hpp>

#include <string>
#include <variant>
#include <vector>

#include "commands.hpp"
#include "config.hpp"

namespace gpumem::cli {

using recorded_numbers = std::variant<transformer, encoder_classifier>;

/// The numbers of a model whose operations are recorded, or a refusal.
recorded_numbers recorded_model(estimate_request const& request, described_model const& m);

/// Micro-batch, sequence and accumulation, with their defaults from the config.
workload read_workload(estimate_request const& request, described_model const& m, std::vector<std::string>& notes);

/// The plan of the families' options; `to.plan` lists them.
void read_plan(estimate_request const& request, report& to, plan& p);

/// A device of the catalogue by its identifier, or null.
named_device const* known_device(std::string const& id);

/// Refuses a run that the library refused; where a tensor of it is too large, with the two numbers that made it so.
[[noreturn]] void refuse_run(estimate_request const& request, workload const& load, error const& e);

}  // namespace gpumem::cli
