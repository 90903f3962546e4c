// SPDX-License-Identifier: MIT
// The second witness: whole steps of small models under LibTorch 1.13 with a counting allocator, against the walk,
// phase by phase. Every step is measured after one that has made gradients and states.
#include <gpumem/estimate.hpp>

#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../catch.hpp"
#include "counting_allocator.hpp"
#include "models.hpp"

using namespace gpumem;

namespace {

struct phases_seen {
  long long forward = 0, forward_end = 0, backward = 0, backward_end = 0, step = 0;
};

using step_function = std::function<void(std::vector<at::Tensor>&)>;

/// Runs a step twice and reports the second one; of an accumulating step the last micro-batch.
phases_seen measure(witness::parameter_list& parameters, std::function<at::Tensor()> const& loss,
                    step_function const& update, std::int64_t accumulation, bool keep_gradients) {
  phases_seen seen;
  const auto live = [] { return witness::counted().live; };
  const auto peak = [] { return witness::counted().peak; };
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t i = 0; i < accumulation; ++i) {
      witness::watch();
      at::Tensor value = loss();
      seen.forward = peak(), seen.forward_end = live();
      witness::watch();
      value.backward();
      seen.backward = peak();
      value.reset();
      seen.backward_end = live();
    }
    witness::watch();
    update(parameters.all);
    seen.step = peak();
    for (at::Tensor& p : parameters.all)
      if (keep_gradients)
        p.mutable_grad().detach_().zero_();
      else
        p.mutable_grad().reset();
  }
  return seen;
}

/// torch/optim/adamw.py 1.13, foreach: two lists.
step_function foreach_adamw() {
  auto first = std::make_shared<std::vector<at::Tensor>>(), second = std::make_shared<std::vector<at::Tensor>>();
  return [first, second](std::vector<at::Tensor>& parameters) {
    const at::NoGradGuard no_grad;
    if (first->empty())
      for (at::Tensor const& p : parameters) first->push_back(at::zeros_like(p)), second->push_back(at::zeros_like(p));
    std::vector<at::Tensor> gradients;
    for (at::Tensor const& p : parameters) gradients.push_back(p.grad());
    at::_foreach_mul_(parameters, 0.999), at::_foreach_mul_(*first, 0.9), at::_foreach_add_(*first, gradients, 0.1);
    at::_foreach_mul_(*second, 0.999), at::_foreach_addcmul_(*second, gradients, gradients, 0.001);
    auto roots = at::_foreach_sqrt(*second);
    at::_foreach_div_(roots, 0.5);
    const auto denominators = at::_foreach_add(roots, 1e-8);
    at::_foreach_addcdiv_(parameters, *first, denominators, -1e-3);
  };
}

template <class Optimizer, class Options>
step_function built_in(Options const& options) {
  auto optimizer = std::make_shared<std::unique_ptr<Optimizer>>();
  return [optimizer, options](std::vector<at::Tensor>& parameters) {
    if (!*optimizer) *optimizer = std::make_unique<Optimizer>(parameters, options);
    (*optimizer)->step();
  };
}
step_function loop_adamw() { return built_in<torch::optim::AdamW>(torch::optim::AdamWOptions(1e-3)); }
step_function sgd_with_momentum() { return built_in<torch::optim::SGD>(torch::optim::SGDOptions(1e-3).momentum(0.9)); }

void compare(char const* what, long long seen, bytes said) {
  const double error = (static_cast<double>(said.value) - static_cast<double>(seen)) / static_cast<double>(seen);
  std::printf("  %-13s %12lld %12llu %+8.4f %%\n", what, seen, static_cast<unsigned long long>(said.value),
              100 * error);
  // glog, which LibTorch brings along, has a CHECK of its own.
  if (std::abs(error) >= 0.001) FAIL_CHECK(what << ": measured " << seen << ", walk " << said.value);
}

void compare(char const* run, phases_seen const& seen, breakdown const& said) {
  std::printf("%s: forward at %s, backward at %s\n", run, said.at(phase::forward).operation,
              said.at(phase::backward).operation);
  const bytes forward = said.at(phase::forward).total, loss = said.at(phase::loss).total;
  compare("forward", seen.forward, forward > loss ? forward : loss);
  compare("forward end", seen.forward_end, said.forward_end.total);
  compare("backward", seen.backward, said.at(phase::backward).total);
  compare("backward end", seen.backward_end, said.at(phase::backward_end).total);
  compare("step", seen.step, said.at(phase::optimizer_step).total);
}

constexpr transformer small_gpt{.layers = 3,
                                .hidden = 128,
                                .heads = 4,
                                .vocabulary = 2000,
                                .positions = 128,
                                .activation = activation::gelu,
                                .embedding_dropout = false,
                                .attention_dropout = false,
                                .hidden_dropout = false};
constexpr transformer small_llama =
    llama({.layers = 3, .hidden = 128, .heads = 8, .vocabulary = 2000, .kv_heads = 2, .feed_forward = 352});
constexpr encoder_classifier small_bert{.layers = 3,
                                        .hidden = 128,
                                        .heads = 4,
                                        .vocabulary = 2000,
                                        .positions = 128,
                                        .attention_dropout = false,
                                        .hidden_dropout = false,
                                        .head_dropout = false};

template <policy... Policies>
plan witnessed(Policies... policies) {
  return make_plan(fp32{}, eager_attention{}, pytorch_1_13_cpu{}, policies...);
}

struct run {
  char const* name;
  step_function update;
  plan how;
  std::int64_t accumulation = 1;
  bool keep_gradients = false;
};

std::vector<run> runs() {
  plan kept = witnessed(adamw_loop{});
  kept.runtime.gradients_kept = true;
  return {{"loop AdamW", loop_adamw(), witnessed(adamw_loop{})},
          {"foreach AdamW", foreach_adamw(), witnessed(adamw{})},
          {"SGD with momentum", sgd_with_momentum(), witnessed(sgd_momentum{})},
          {"loop AdamW, accumulation 2", loop_adamw(), witnessed(adamw_loop{}), 2},
          {"loop AdamW, gradients kept", loop_adamw(), kept, 1, true}};
}

template <class Model, class Shape, class Loss>
void check_model(char const* what, Shape const& shape, workload load, std::int64_t labels, Loss const& loss) {
  for (run const& r : runs()) {
    const long long before = witness::counted().live;
    witness::parameter_list parameters;
    const witness::batch in = witness::make_batch(load.micro_batch, load.sequence, shape.vocabulary, labels);
    Model model(shape, parameters);
    const long long constants = witness::counted().live - before;
    phases_seen seen = measure(
        parameters, [&] { return loss(model, in); }, r.update, r.accumulation, r.keep_gradients);
    // What the model holds beside its parameters (a causal buffer), and whatever was alive before.
    const auto batch_bytes = static_cast<long long>(in.bytes());
    const long long beside = before + constants - batch_bytes;
    for (long long* each : {&seen.forward, &seen.forward_end, &seen.backward, &seen.backward_end, &seen.step})
      *each -= beside;
    load.accumulation = r.accumulation;
    compare((std::string(what) + ", " + r.name).c_str(), seen, estimate(shape, load, r.how));
  }
}

}  // namespace

TEST_CASE("a small GPT's steps, phase by phase", "[witness]") {
  witness::count_tensors();
  check_model<witness::gpt>("GPT", small_gpt, {.micro_batch = 4, .sequence = 128}, 0,
                            [](witness::gpt& m, witness::batch const& in) { return m.loss(in); });
}

TEST_CASE("a small Llama's steps, phase by phase", "[witness]") {
  witness::count_tensors();
  check_model<witness::llama_model>("Llama", small_llama, {.micro_batch = 4, .sequence = 128}, 0,
                                    [](witness::llama_model& m, witness::batch const& in) { return m.loss(in); });
}

TEST_CASE("a small BERT's steps, phase by phase", "[witness]") {
  witness::count_tensors();
  check_model<witness::bert>("BERT", small_bert, {.micro_batch = 4, .sequence = 128}, small_bert.labels,
                             [](witness::bert& m, witness::batch const& in) { return m.loss(in); });
}

TEST_CASE("long sequences and few words, where the worst point is in attention", "[witness]") {
  witness::count_tensors();
  constexpr workload long_load{.micro_batch = 2, .sequence = 256};
  transformer g = small_gpt, l = small_llama;
  encoder_classifier b = small_bert;
  g.vocabulary = l.vocabulary = b.vocabulary = 64, g.positions = b.positions = 256;
  check_model<witness::gpt>("long GPT", g, long_load, 0,
                            [](witness::gpt& m, witness::batch const& in) { return m.loss(in); });
  check_model<witness::llama_model>("long Llama", l, long_load, 0,
                                    [](witness::llama_model& m, witness::batch const& in) { return m.loss(in); });
  check_model<witness::bert>("long BERT", b, long_load, b.labels,
                             [](witness::bert& m, witness::batch const& in) { return m.loss(in); });
}
