// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/workload.hpp>
#include <gpumem/models/transformer.hpp>
#include <gpumem/policies/plan.hpp>

#include <string>
#include <vector>

namespace gpumem::cli {

/// What to change first where a run does not fit into `capacity`: single changes, each estimated, the one that needs
/// the least memory first; and all of them together where none suffices.
std::vector<std::string> advise(transformer const& m, workload const& load, plan const& p, bytes capacity);

}  // namespace gpumem::cli
