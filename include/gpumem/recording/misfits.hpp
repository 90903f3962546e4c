// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/tape.hpp>

#include <cstdint>

namespace gpumem {

/// A dimension of a contraction that does not suit tensor cores, which are the most efficient on multiples of 16 bytes
/// (8 halves) and, from A100 on, of 128 (64 halves): NVIDIA, Matrix Multiplication Background User's Guide, 2.2.
struct misfit {
  std::int64_t size = 0, multiple = 0, padded = 0;
  bool vocabulary = false;
};

struct misfit_list {
  misfit items[8] = {};
  int count = 0;
};

namespace detail {
constexpr bool is_vocabulary(tape const& recording, std::int64_t size) {
  for (int id = 1; id <= recording.tensors(); ++id) {
    tensor const& t = recording.tensor_at(id);
    if (t.parameter && t.role == role::embedding && t.rows == size) return true;
  }
  return false;
}
}  // namespace detail

/// The dimensions of a recording's linear layers and batched products that do not suit the hardware, each once. The
/// first 8, in the order of recording.
constexpr misfit_list misfits_of(tape const& recording) {
  misfit_list found;
  const auto look = [&found](std::int64_t size, bool vocabulary) {
    if (size < 8 || size % 64 == 0 || found.count == 8) return;
    for (int i = 0; i < found.count; ++i)
      if (found.items[i].size == size) return;
    const std::int64_t multiple = size % 8 != 0 && !vocabulary ? 8 : 64;
    found.items[found.count++] = {size, multiple, (size + multiple - 1) / multiple * multiple, vocabulary};
  };
  for (int s = 0; s < recording.segments(); ++s) {
    segment const& part = recording.segment_at(s);
    for (int i = part.first; i < part.end; ++i) {
      operation const& o = recording.operation_at(i);
      if (o.cost.kind != operation_class::contraction || o.cost.flops_backward != 0) continue;
      tensor const& second = recording.at(o.in[1]);
      tensor const& weight = second.cast_of != 0 ? recording.tensor_at(second.cast_of) : second;
      look(o.cost.inner, false);
      if (weight.parameter && o.cost.inner != 0)
        look(weight.elements / o.cost.inner, detail::is_vocabulary(recording, weight.elements / o.cost.inner));
    }
  }
  return found;
}

}  // namespace gpumem
