// SPDX-License-Identifier: MIT
// Meaning: the run's peak and its reserve are more than what a CUDA program sees of the device. The numbers stand in
// the template arguments of `training_run`: what is required, available and missing, the phase of the peak and its
// categories, in MiB.
// Fix: whatever the largest category says: fewer activations by `checkpoint_every<1>` or a smaller micro-batch, smaller
// states by another optimizer, a larger device. `fits` asks the same question without insisting.
#include <gpumem/budget.hpp>
using namespace gpumem;

constexpr transformer gpt2{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024};
#if GPUMEM_ACCEPT
constexpr std::int64_t micro_batch = 8;
#else
constexpr std::int64_t micro_batch = 32;
// expected-error {{the training run does not fit the device}}
// expected-error {{required_MiB<[0-9]+U?L?>.*available_MiB<12032U?L?>.*missing_MiB<[0-9]+U?L?>.*peak_in_backward}}
// expected-error {{weights_MiB<713U?L?>.*gradients_MiB<0U?L?>.*optimizer_states_MiB<950U?L?>.*activations_MiB<[0-9]+}}
// expected-error {{temporaries_MiB<[0-9]+U?L?>.*overhead_MiB<17U?L?>.*reserve_MiB<1024U?L?>}}
#endif

using run = budget<gpt2, workload{.micro_batch = micro_batch, .sequence = 1024}, mixed<dtype::bf16>, adamw>;
static_assert(require_fits<run, devices::rtx_3060_12gb>);
