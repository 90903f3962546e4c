// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/memory.hpp>
#include <gpumem/core/tensor.hpp>

#include <cstdint>

namespace gpumem {

/// A tensor of a recording, by its number on the tape; 0 is no tensor.
struct ref {
  int id = 0;
  constexpr explicit operator bool() const { return id != 0; }
  friend constexpr bool operator==(ref, ref) = default;
};

/// How the gradient of one input comes into being when an operation runs backward.
enum class gradient : std::uint8_t {
  none,        // nothing flows to this input
  fresh,       // a new tensor
  fresh_view,  // a new tensor delivered through a view (a Linear on a 3-D input): never added to in place
  pass,        // the very gradient of the output (add)
  view,        // a view of the output's gradient (reshape, transpose, a kernel that writes over it)
  saved        // written over saved[k], k being the input's place
};

/// A tensor: a storage of its own, or a view that keeps another's storage alive.
struct tensor {
  std::int64_t elements = 0;
  dtype type = dtype::fp32;
  gpumem::role role = gpumem::role::weight;
  bool parameter = false;  // its gradient ends in .grad
  bool needs_gradient = false;
  bool resident = false;          // there before the step and after it
  bool saved_in_segment = false;  // an operation of the segment that makes it saves its storage
  bool held = false;              // the program refers to it until backward is over
  std::int64_t rows = 1;          // of a parameter's shape
  int storage = 0;                // whose bytes it shares: its own number or that of the tensor it is a view of
  int last_reader = 0;            // the last operation that reads the storage in forward
  int consumers = 0;              // inputs that send it a gradient
  int cast_of = 0;                // the parameter that it is a copy of under autocast; 0 for none
};

/// What a checkpoint inside a block does to an operation.
enum class recompute : std::uint8_t {
  none,         // it saves what it saves
  keeps_input,  // no operation of its own: the checkpoint keeps what it is given
  again         // it saves nothing in forward; backward runs it again, with the rest of its checkpoint
};

/// One operation as the framework's autograd sees it. `out` are the outputs through which a gradient comes back;
/// workspaces live only while the operation runs, on top of everything that it allocates.
struct operation {
  char const* name = "";
  ref in[4] = {};
  gradient how[4] = {};
  ref out[3] = {};
  ref saved[7] = {};
  bytes workspace_forward{}, workspace_backward{};
  gpumem::recompute recompute = gpumem::recompute::none;  // set by record
  int first_tensor = 0, end_tensor = 0;                   // set by record: the tensors that it allocates
};

/// A stretch of operations that runs `count` times, each run feeding the next, in groups of `group` runs. Where it is
/// checkpointed only the input of each group is kept, and backward records the group again.
struct segment {
  int first = 0, end = 0, first_tensor = 0, end_tensor = 0;
  std::int64_t count = 1, group = 1;
  bool checkpointed = false;
  gpumem::phase phase = gpumem::phase::forward;
  ref in{}, out{};

  [[nodiscard]] constexpr std::int64_t runs() const { return count * group; }
};

}  // namespace gpumem
