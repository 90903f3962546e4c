// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/recording/tape.hpp>

#include <cstdint>

namespace gpumem {

/// A dimension of a contraction that does not suit tensor cores: not a multiple of 8 (16 bytes of half, below which
/// kernels fall back) or of 64 (128 bytes, the tile they run fastest with). NVIDIA, Matrix Multiplication Background.
struct misfit {
  std::int64_t size = 0, multiple = 0, padded = 0;
  bool vocabulary = false;
};

struct misfit_list {
  misfit items[8] = {};
  int count = 0;
};

/// The dimensions of a recording's linear layers and batched products that do not suit the hardware, each once. The
/// first 8, in the order of recording.
constexpr misfit_list misfits_of(tape const& recording) {
  misfit_list found;
  const auto look = [&found](std::int64_t size, bool vocabulary) {
    if (size < 2 || size % 64 == 0 || found.count == 8) return;
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
        look(weight.elements / o.cost.inner, weight.role == role::embedding || part.phase == phase::loss);
    }
  }
  return found;
}

}  // namespace gpumem
