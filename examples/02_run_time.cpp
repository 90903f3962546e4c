// SPDX-License-Identifier: MIT
// The same numbers at run time: how large a micro-batch of Llama 3 8B fits, policy by policy.
#include <gpumem/budget.hpp>
#include <iostream>

using namespace gpumem;

namespace {

constexpr transformer llama3_8b =
    llama({.layers = 32, .hidden = 4096, .heads = 32, .vocabulary = 128256, .kv_heads = 8, .feed_forward = 14336});

std::int64_t largest_micro_batch(plan const& p, device const& d, std::int64_t sequence) {
  std::int64_t fits = 0;
  while (estimate(llama3_8b, {.micro_batch = fits + 1, .sequence = sequence}, p).required() <= d.capacity) ++fits;
  return fits;
}

void print(char const* how, plan const& p) {
  const device& d = devices::h200_141gb;
  std::cout << how << ": micro-batch " << largest_micro_batch(on_device(p, d), d, 4096) << '\n';
}

}  // namespace

int main() {
  std::cout << "Llama 3 8B, sequence 4096, on one H200\n";
  print("  pure bf16, AdamW", make_plan(pure<>{}));
  print("  pure bf16, AdamW, checkpointing", make_plan(pure<>{}, checkpoint_every<1>{}));
  print("  pure bf16, 8-bit AdamW, checkpointing", make_plan(pure<>{}, adamw_8bit{}, checkpoint_every<1>{}));
  print("  fp32 master, AdamW (foreach), checkpointing", make_plan(master_weights<>{}, checkpoint_every<1>{}));
  print("  fp32 master, AdamW (fused), checkpointing",
        make_plan(master_weights<>{}, adamw_fused{}, checkpoint_every<1>{}));

  try {
    static_cast<void>(estimate(llama3_8b, {.micro_batch = 1, .sequence = -1}));
  } catch (error const& e) {
    std::cout << "refused: " << e.what() << '\n';
  }
}
