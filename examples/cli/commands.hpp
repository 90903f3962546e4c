// SPDX-License-Identifier: MIT
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace gpumem::cli {

/// What the user typed for `gpumem estimate` or `gpumem traffic`; options that he left out are absent.
struct estimate_request {
  std::string config;
  std::optional<std::string> micro_batch, sequence, accumulation, device, memory, reserve, labels, bandwidth, tflops;
  std::vector<std::optional<std::string>> policies;  // one for each of policy_families()
  std::string format = "text";
};

/// What a command prints, and the exit status: 0, or 1 where a named device or memory does not hold the run.
struct answer {
  std::string output;
  int status = 0;
};

/// The commands. `unicode` is for text on a terminal that shows it. All throw input_error.
answer run_estimate(estimate_request const& request, bool unicode);
answer run_traffic(estimate_request const& request);
answer run_parameters(std::string const& config, std::string const& format);
answer run_devices(std::string const& format);

}  // namespace gpumem::cli
