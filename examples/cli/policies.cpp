// SPDX-License-Identifier: MIT
#include "policies.hpp"

#include "input_error.hpp"
#include "numbers.hpp"

namespace gpumem::cli {
namespace {

template <precision_policy P>
void use(plan& p) {
  p.precision = P::numbers;
}
template <optimizer_policy P>
void use(plan& p) {
  p.optimizer = make_plan(P{}).optimizer;
}
template <checkpointing_policy P>
void use(plan& p) {
  p.checkpointing = P::numbers;
}
template <attention_policy P>
void use(plan& p) {
  p.attention = P::kind;
}
template <kernels_policy P>
void use(plan& p) {
  p.kernels = P::kind;
}
template <loss_policy P>
void use(plan& p) {
  p.loss = P::numbers;
}

constexpr std::string_view every_prefix = "every:", first_prefix = "first:";
constexpr dtype bf16 = dtype::bf16, fp16 = dtype::fp16;

}  // namespace

std::vector<policy_family> const& policy_families() {
  static std::vector<policy_family> const families = {
      {"precision",
       "mixed-bf16",
       {{"fp32", use<fp32>},
        {"mixed-bf16", use<mixed<bf16>>},
        {"mixed-fp16", use<mixed<fp16>>},
        {"autocast-bf16", use<autocast<bf16>>},
        {"autocast-fp16", use<autocast<fp16>>},
        {"pure-bf16", use<pure<bf16>>},
        {"pure-fp16", use<pure<fp16>>},
        {"master-bf16", use<master_weights<bf16>>},
        {"master-fp16", use<master_weights<fp16>>},
        {"megatron-bf16", use<megatron<bf16>>},
        {"megatron-fp16", use<megatron<fp16>>}},
       {"fp8", "mixed-fp8", "fp64"}},
      {"optimizer",
       "adamw",
       {{"adamw", use<adamw>},
        {"adamw-loop", use<adamw_loop>},
        {"adamw-fused", use<adamw_fused>},
        {"adamw-amsgrad", use<adamw_amsgrad>},
        {"adamw-8bit", use<adamw_8bit>},
        {"adamw-8bit-2048", use<adamw_8bit_2048>},
        {"adamw-8bit-trainer", use<embeddings_in_32bit<adamw_8bit>>},
        {"adamw-8bit-paged", use<paged<adamw_8bit>>},
        {"adamw-8bit-torchao", use<adamw_torchao_8bit>},
        {"adamw-4bit", use<adamw_4bit>},
        {"ademamix-8bit", use<ademamix_8bit>},
        {"lion", use<lion>},
        {"lion-8bit", use<lion_8bit>},
        {"adafactor", use<adafactor>},
        {"sgd", use<sgd>},
        {"sgd-momentum", use<sgd_momentum>},
        {"lomo", use<in_backward<sgd>>},
        {"adamw-in-backward", use<in_backward<adamw_loop>>},
        {"none", use<inference>}},
       {"adam-mini", "muon", "galore", "adagrad", "rmsprop"}},
      {"checkpointing",
       "none",
       {{"none", use<no_checkpointing>},
        {"full", use<checkpoint_every<1>>},
        {"every:K", nullptr},
        {"first:N", nullptr},
        {"selective", use<selective_checkpointing>}},
       {"offloaded"}},
      {"attention",
       "flash",
       {{"eager", use<eager_attention>},
        {"flash", use<flash_attention>},
        {"flash-repeated", use<flash_attention_repeated>},
        {"efficient", use<efficient_attention>}},
       {"flex"}},
      {"kernels",
       "eager",
       {{"eager", use<eager_kernels>},
        {"fused", use<fused_kernels>},
        {"liger", use<liger_kernels>},
        {"liger-0.2", use<liger_0_2_kernels>},
        {"unsloth", use<unsloth_kernels>}},
       {"compiled"}},
      {"loss",
       "eager",
       {{"eager", use<eager_loss>},
        {"eager-4.45", use<eager_loss_4_45>},
        {"eager-4.46", use<eager_loss_4_46>},
        {"eager-held", use<outputs_held<eager_loss>>},
        {"eager-4.45-held", use<outputs_held<eager_loss_4_45>>},
        {"in-place", use<in_place_loss>},
        {"triton", use<triton_loss>},
        {"fused-linear", use<fused_linear_loss>}},
       {"chunked"}},
  };
  return families;
}

std::string known_values(policy_family const& family) {
  std::string names;
  for (policy_choice const& c : family.choices) names.append(names.empty() ? "" : ", ").append(c.value);
  return names;
}

void choose(plan& to, policy_family const& family, std::string_view value) {
  std::string const option = "--" + std::string(family.name);
  if (family.name == "checkpointing" && value.starts_with(every_prefix)) {
    auto const every = whole_number(value.substr(every_prefix.size()));
    if (!every || *every == 0) refuse(option, one_line(value, 40), "K of every:K " + std::string(count_rule));
    to.checkpointing = {.every = *every};
    return;
  }
  if (family.name == "checkpointing" && value.starts_with(first_prefix)) {
    auto const first = whole_number(value.substr(first_prefix.size()));
    if (!first || *first == 0) refuse(option, one_line(value, 40), "N of first:N " + std::string(count_rule));
    to.checkpointing = {.every = 1, .first = *first};
    return;
  }
  for (policy_choice const& c : family.choices)
    if (c.value == value && c.apply != nullptr) return c.apply(to);
  for (std::string_view const later : family.not_yet)
    if (later == value) refuse(option, value, "not yet; known are " + known_values(family));
  refuse(option, one_line(value, 40), "not known; known are " + known_values(family));
}

}  // namespace gpumem::cli
