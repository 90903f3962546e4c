// SPDX-License-Identifier: MIT
// Meaning: a recording of one's own has more operations or tensors than its tape has room for.
// Fix: give it a larger one, `tape_with_room<Operations, Tensors>`, and pass it to `step_memory`; and record what is
// repeated once, with `operations::blocks`.
#include <gpumem/budget.hpp>
using namespace gpumem;

#if GPUMEM_ACCEPT
constexpr int room = 40;
#else
constexpr int room = 20;  // expected-error {{tape_is_full}}
#endif
constexpr std::uint64_t peak_of_thirty_layers() {
  constexpr plan p;
  tape_with_room<room, 200> recording;
  operations ops{recording, p};
  ref x = recording.constant(64 * 128, dtype::bf16);
  for (int layer = 0; layer < 30; ++layer) x = ops.linear(x, 128, 128);
  ops.finish(x);
  return step_memory(recording, x, {.micro_batch = 1, .sequence = 64}, p).peak.total.value;
}
static_assert(peak_of_thirty_layers() > 0);
