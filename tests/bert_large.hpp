// SPDX-License-Identifier: MIT
// Hugging Face's nine runs of BERT-large on a V100 16 GB ("Efficient training on a single GPU"): 512 tokens, two
// labels, PyTorch 1.10 as the page's date says (softmax keeps its input, gradients are zeroed and not freed), 8-bit
// blocks of 2048. nvidia-smi's figure: the CUDA context, 1343 MiB as the page prints it, and memory that PyTorch has
// reserved.
#pragma once
#include <gpumem/core/cuda_context.hpp>
#include <gpumem/estimate.hpp>
#include <gpumem/models/encoder_classifier.hpp>

#include <cstdint>

namespace measured {

using namespace gpumem;

inline constexpr encoder_classifier bert_large{
    .layers = 24, .hidden = 1024, .heads = 16, .vocabulary = 30522, .positions = 512};
inline constexpr bytes bert_context = cuda_context(devices::v100_16gb, false);

template <policy... Policies>
constexpr plan bert_training(Policies... policies) {
  return on_device(make_plan(eager_attention{}, pytorch_cuda_version<110>{}, policies...), devices::v100_16gb);
}

struct bert_run {
  char const* id;  // in tests/data/measured_runs.csv
  workload load;
  plan how;
};

inline constexpr bert_run bert_runs[] = {
    {"hfbert-vanilla", {4, 512}, bert_training(fp32{}, adamw_loop{})},
    {"hfbert-ga", {1, 512, 4}, bert_training(fp32{}, adamw_loop{})},
    {"hfbert-gc", {1, 512, 4}, bert_training(fp32{}, adamw_loop{}, checkpoint_every<1>{})},
    {"hfbert-fp16", {4, 512}, bert_training(autocast<dtype::fp16>{}, adamw_loop{})},
    {"hfbert-comb", {1, 512, 4}, bert_training(autocast<dtype::fp16>{}, adamw_loop{}, checkpoint_every<1>{})},
    {"hfbert-adafactor", {4, 512}, bert_training(fp32{}, adafactor{})},
    {"hfbert-comb-adafactor", {1, 512, 4}, bert_training(autocast<dtype::fp16>{}, adafactor{}, checkpoint_every<1>{})},
    {"hfbert-8bit", {4, 512}, bert_training(fp32{}, adamw_8bit_2048{})},
    {"hfbert-comb-8bit", {1, 512, 4}, bert_training(autocast<dtype::fp16>{}, adamw_8bit_2048{}, checkpoint_every<1>{})},
};

/// What we say of a run: the context and the worst moment.
constexpr bytes device_bytes(bert_run const& r) {
  return bert_context + estimate(bert_large, r.load, r.how).peak.total;
}

}  // namespace measured
