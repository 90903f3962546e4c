// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/policies/plan.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gpumem::cli {

/// A value of a family's option and what it does to a plan.
struct policy_choice {
  std::string_view value;
  void (*apply)(plan&);
};

/// A family of policies on the command line.
struct policy_family {
  std::string_view name;  // of the option, without --
  std::string_view otherwise;
  std::vector<policy_choice> choices;
  std::vector<std::string_view> not_yet;
};

/// The families in the order in which reports name them. One table: options, help, reports and the test that holds
/// these defaults against make_plan()'s read it.
std::vector<policy_family> const& policy_families();

/// Puts a family's value into a plan. Refuses values that are unknown or not there yet.
void choose(plan& to, policy_family const& family, std::string_view value);

/// The values that a family knows, separated by ", ".
std::string known_values(policy_family const& family);

}  // namespace gpumem::cli
