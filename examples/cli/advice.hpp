// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/breakdown.hpp>
#include <gpumem/core/workload.hpp>
#include <gpumem/policies/plan.hpp>

#include <functional>
#include <string>
#include <vector>

namespace gpumem::cli {

/// A model's memory under a workload and a plan.
using estimator = std::function<breakdown(workload const&, plan const&)>;

/// What to change first where a run does not fit into `capacity`: single changes, each estimated, the one that needs
/// the least memory first; and all of them together where none suffices.
std::vector<std::string> advise(estimator const& memory, workload const& load, plan const& p, bytes capacity);

}  // namespace gpumem::cli
