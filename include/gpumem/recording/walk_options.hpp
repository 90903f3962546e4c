// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/dtype.hpp>
#include <gpumem/core/memory.hpp>

#include <cstdint>

namespace gpumem {

/// Sees what a walk allocates and frees, block by block. Of a repeated segment it sees one run: record unrolled to see
/// all of them.
class walk_observer {
 public:
  constexpr virtual void allocate(int block, std::uint64_t size) = 0;
  constexpr virtual void free(int block) = 0;

 protected:
  constexpr walk_observer() = default;
  ~walk_observer() = default;
};

/// What a walk needs besides the tape.
struct walk_options {
  memory resident{};              // alive all the time, beside what the tape holds as resident
  dtype gradients = dtype::fp32;  // of .grad; a gradient of another dtype is cast into it
  bool cast_gradients = true;     // false: each .grad has its parameter's dtype
  bool backward = true;
  bool accumulate = false;          // report a micro-batch that finds the gradients of an earlier one
  bool retain_graph = false;        // backward frees nothing that forward saved
  bool update_in_backward = false;  // a parameter is updated, and its .grad freed, once its gradient has arrived
  std::int64_t update_tensors = 0;  // of its size, which that allocates meanwhile
  bool gradient_given = false;      // the caller passes the gradient to start from, and counts it
  walk_observer* observer = nullptr;
};

}  // namespace gpumem
