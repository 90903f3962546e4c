// SPDX-License-Identifier: MIT
// Prints the recordings of GPT-2, Llama, Gemma 3, Falcon and BERT, one operation a line. Built by different compilers
// the listings must be the same: C++ leaves the order of function arguments open, and a recording is made of calls.
#include <gpumem/models/encoder_classifier.hpp>
#include <gpumem/models/families.hpp>
#include <gpumem/models/transformer.hpp>
#include <iostream>

using namespace gpumem;

namespace {

template <model M>
void print(char const* title, M const& m, plan const& p) {
  tape_with_room<> recording;
  operations ops{recording, p};
  const ref loss = record(ops, m, {.micro_batch = 2, .sequence = 16});
  ops.finish(loss);
  std::cout << "# " << title << '\n';
  for (int i = 1; i <= recording.operations(); ++i) {
    operation const& o = recording.operation_at(i);
    std::cout << o.name << ':';
    for (ref r : o.in)
      if (r) std::cout << ' ' << r.id;
    std::cout << " ->";
    for (int t = o.first_tensor; t < o.end_tensor; ++t)
      std::cout << ' ' << t << '=' << recording.tensor_at(t).elements << ' ' << name(recording.tensor_at(t).type);
    std::cout << '\n';
  }
}

}  // namespace

int main() {
  constexpr transformer gpt2{.layers = 2, .hidden = 32, .heads = 2, .vocabulary = 100, .positions = 16};
  constexpr transformer small_llama =
      llama({.layers = 2, .hidden = 32, .heads = 4, .vocabulary = 100, .kv_heads = 2, .feed_forward = 88});
  print("GPT-2, autocast, eager attention", gpt2, make_plan(autocast<>{}, eager_attention{}));
  print("GPT-2, mixed, flash attention, checkpoints", gpt2, make_plan(checkpoint_every<1>{}));
  print("Llama, pure bf16, eager attention", small_llama, make_plan(pure<>{}, eager_attention{}));
  print("Llama, fused kernels, flash attention", small_llama, make_plan(pure<>{}, fused_kernels{}));
  print("Gemma 3, pure bf16, selective checkpointing", gemma3(small_llama),
        make_plan(pure<>{}, eager_attention{}, selective_checkpointing{}));
  print("Falcon, pure bf16, flash attention", falcon(small_llama), make_plan(pure<>{}));
  constexpr encoder_classifier bert{.layers = 2, .hidden = 32, .heads = 2, .vocabulary = 100, .positions = 16};
  print("BERT, autocast, eager attention", bert, make_plan(autocast<>{}, eager_attention{}));
}
