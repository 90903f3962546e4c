// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/search.hpp>

#include <functional>
#include <string>
#include <vector>

namespace gpumem::cli {

/// A model's memory under a workload and a plan.
using estimator = std::function<breakdown(workload const&, plan const&)>;

/// What to change first where a run does not fit into `capacity`, as options of the command line: the cheapest changes
/// that make it fit, each with its new peak; where there is none, how far all of them together go, and the smallest
/// device that holds the run as it is.
std::vector<std::string> advise(fixes const& found, estimator const& memory, workload const& load, plan const& p);

}  // namespace gpumem::cli
