// SPDX-License-Identifier: MIT
// What the executor's own files share about the launch that is running.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "executor.hpp"

namespace simt {

/// How often the running thread has made an access on a line: the n-th of each lane together are one request.
struct line_count {
  place at;
  unsigned count;
};

struct running_launch {
  bool active = false;  ///< a thread of a kernel is running
  std::uint32_t launch_number = 0;
  std::uint32_t block_number = 0;
  unsigned thread_number = 0;
  std::vector<line_count>* lines = nullptr;  ///< of the running thread
};
extern running_launch running;
extern traffic counters;

/// A warp's requests of this block end here; the next block's are others.
void forget_requests();

}  // namespace simt
