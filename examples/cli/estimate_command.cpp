// SPDX-License-Identifier: MIT
#include <gpumem/core/device.hpp>
#include <gpumem/core/error.hpp>
#include <gpumem/estimate.hpp>
#include <gpumem/replay.hpp>
#include <gpumem/search.hpp>

#include <algorithm>

#include "advice.hpp"
#include "commands.hpp"
#include "input_error.hpp"
#include "model_facts.hpp"
#include "numbers.hpp"
#include "policies.hpp"
#include "requests.hpp"

namespace gpumem::cli {
namespace {

constexpr std::int64_t default_sequence = 4096;
constexpr char const* largest = "max";
constexpr char const* autocast_note =
    "mixed-bf16 (assumed): fp32 master + bf16 copy, fp32 gradients; training with torch.autocast? "
    "--precision autocast-bf16";

}  // namespace

recorded_numbers recorded_model(estimate_request const& request, described_model const& m) {
  auto const refuse_model = [&](std::string const& what) {
    throw input_error(printable(request.config) + ": activations of " + what +
                      " are not modelled yet; see gpumem parameters");
  };
  auto const* const numbers = std::get_if<transformer>(&m.numbers);
  if (numbers == nullptr && !m.classifier) refuse_model(m.model_type);
  if (!m.not_modelled.empty()) refuse_model(m.model_type + " with " + m.not_modelled);
  if (numbers != nullptr) {
    if (request.labels) refuse("--labels", one_line(*request.labels, 40), "only encoders end in a classifier");
    return *numbers;
  }
  encoder_classifier encoder = *m.classifier;
  if (request.labels) encoder.labels = positive_number("--labels", *request.labels);
  return encoder;
}

workload read_workload(estimate_request const& request, described_model const& m, std::vector<std::string>& notes) {
  workload load;
  if (request.micro_batch && *request.micro_batch != largest)
    load.micro_batch = positive_number("--micro-batch", *request.micro_batch);
  if (request.accumulation) load.accumulation = positive_number("--accumulation", *request.accumulation);
  std::int64_t const longest = m.longest_sequence;
  load.sequence = longest == 0 ? default_sequence : std::min(default_sequence, longest);
  if (request.sequence) load.sequence = positive_number("--sequence", *request.sequence);
  if (longest != 0 && load.sequence > longest) {
    if (m.learned_positions)
      refuse("--sequence", *request.sequence,
             "longer than the " + std::to_string(longest) + " rows of the learned position table");
    notes.push_back("sequence " + std::to_string(load.sequence) + " is longer than the " + std::to_string(longest) +
                    " positions of the config");
  }
  if (load.micro_batch > largest_number / load.sequence)
    refuse("--micro-batch", std::to_string(load.micro_batch),
           "times the sequence of " + std::to_string(load.sequence) + " must be at most 2^40 tokens");
  return load;
}

named_device const* known_device(std::string const& id) {
  for (named_device const& d : device_catalogue)
    if (id == d.id) return &d;
  return nullptr;
}

void refuse_run(estimate_request const& request, workload const& load, error const& e) {
  std::string_view const what = e.what();
  bool const too_large =
      what.starts_with("elements of ") || what.starts_with("MiB") || what.starts_with("the number of");
  std::string const at = too_large ? "--micro-batch " + std::to_string(load.micro_batch) + " with --sequence " +
                                         std::to_string(load.sequence) + ": "
                                   : "";
  throw input_error(printable(request.config) + ": " + at + e.what());
}

void read_plan(estimate_request const& request, report& to, plan& p) {
  auto const& families = policy_families();
  for (std::size_t i = 0; i < families.size(); ++i) {
    policy_family const& family = families[i];
    bool const given = i < request.policies.size() && request.policies[i].has_value();
    std::string const value = given ? *request.policies[i] : std::string(family.otherwise);
    choose(p, family, value);
    to.plan.push_back({std::string(family.name), value});
  }
  if (request.reserve) p.reserve = size_in_bytes("--reserve", *request.reserve, true);
}

namespace {

named_device const& find_device(std::string const& id) {
  if (named_device const* const d = known_device(id)) return *d;
  refuse("--device", one_line(id, 40), "not known; gpumem devices lists them, --memory takes a size");
}

void read_device(estimate_request const& request, report& to, plan& p) {
  if (request.device && request.memory)
    refuse("--memory", one_line(*request.memory, 40), "only one of --device and --memory");
  if (request.device) {
    named_device const& d = find_device(*request.device);
    p = on_device(p, d.numbers);
    to.gpu = device_fact{d.id, d.name, d.numbers.capacity};
  } else if (request.memory) {
    to.gpu = device_fact{"memory", "memory " + *request.memory, size_in_bytes("--memory", *request.memory)};
  }
}

template <model M>
std::int64_t find_micro_batch(M const& m, workload const& load, plan const& p, report& to) {
  if (!to.gpu) refuse("--micro-batch", largest, "needs --device or --memory");
  std::int64_t const most = largest_micro_batch(m, load, p, to.gpu->capacity);
  to.notes.push_back(most == 0 ? "not even a micro-batch of 1 fits"
                               : "micro-batch " + std::to_string(most) + " is the largest that fits");
  return most == 0 ? 1 : most;
}

// What the allocator and the device see; a model of very many blocks is not replayed.
template <model M>
std::optional<machine_memory> replayed(M const& m, workload const& load, plan const& p, bytes context, report& to) {
  try {
    return on_machine(m, load, p, context, to.gpu ? to.gpu->capacity : caching_allocator::unlimited);
  } catch (error const& e) {
    to.notes.push_back("reserved memory is not known: " + std::string(e.what()));
    return {};
  }
}

// Kernels with 32-bit indices fail on larger tensors, some of them silently.
constexpr std::int64_t largest_indexed = 2147483647;

template <model M>
std::int64_t largest_tensor(M const& m, workload const& load, plan const& p) {
  tape_with_room<> t;
  operations ops{t, p};
  static_cast<void>(record(ops, m, load));
  std::int64_t most = 0;
  for (int id = 1; id <= t.tensors(); ++id) most = std::max(most, t.tensor_at(id).elements);
  return most;
}

// Whether the block is one whose saved bytes were measured: GPT-2's, BERT's, and Llama's without biases, dropout and
// autocast.
bool is_measured(encoder_classifier const& m, plan const&) {
  return m.activation == activation::gelu && m.attention_dropout == m.hidden_dropout;
}
bool is_measured(transformer const& m, plan const& p) {
  if (m.heads * m.head_width() != m.hidden) return false;
  transformer const gpt2{}, llama_block = llama(transformer{});
  bool const no_dropout = !m.attention_dropout && !m.hidden_dropout;
  auto const has_parts_of = [&m](transformer const& block) {
    return m.norm == block.norm && m.position == block.position && m.gated == block.gated &&
           m.fused_qkv == block.fused_qkv && m.fused_gate_up == block.fused_gate_up && m.qkv_bias == block.qkv_bias &&
           m.output_bias == block.output_bias && m.feed_forward_bias == block.feed_forward_bias &&
           m.block == block.block && m.qk_norm == block.qk_norm && m.softcap == block.softcap &&
           m.multipliers == block.multipliers;
  };
  if (has_parts_of(gpt2))
    return (m.activation == activation::gelu_new || m.activation == activation::gelu) &&
           m.attention_dropout == m.hidden_dropout && m.key_value_heads() == m.heads;
  return has_parts_of(llama_block) && m.activation == activation::silu && no_dropout && !p.precision.autocast;
}

}  // namespace

answer run_estimate(estimate_request const& request, bool unicode) {
  require_format(request.format);
  report r;
  plan p;
  read_plan(request, r, p);
  read_device(request, r, p);
  described_model const d = load_model(request.config);
  recorded_numbers const recorded = recorded_model(request, d);
  bytes const context = cuda_context(request.device ? find_device(*request.device).numbers : device{});
  estimator const memory = [&recorded](workload const& some, plan const& how) {
    return std::visit([&](auto const& m) { return estimate(m, some, how); }, recorded);
  };
  r.notes = d.notes;
  r.notes.insert(r.notes.end(), d.recording_notes.begin(), d.recording_notes.end());
  workload load = read_workload(request, d, r.notes);
  try {
    if (request.micro_batch && *request.micro_batch == largest)
      load.micro_batch = std::visit([&](auto const& m) { return find_micro_batch(m, load, p, r); }, recorded);
    r.memory = memory(load, p);
    std::int64_t const n = std::visit([&](auto const& m) { return largest_tensor(m, load, p); }, recorded);
    if (n > largest_indexed)
      r.notes.push_back("the largest tensor has " + detail::with_thousands(static_cast<std::uint64_t>(n)) +
                        " elements, more than 2^31 - 1: kernels with 32-bit indices fail on it");
    r.machine = std::visit([&](auto const& m) { return replayed(m, load, p, context, r); }, recorded);
    if (r.gpu && r.fits() && r.machine && r.machine->device() > r.gpu->capacity)
      r.notes.emplace_back(
          "replayed in the allocator's segments it needs more than the device has: run it with "
          "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    if (!r.fits()) {
      fixes const found =
          std::visit([&](auto const& m) { return cheapest_fixes(m, load, p, r.gpu->capacity); }, recorded);
      r.advice = advise(found, memory, load, p);
    }
  } catch (error const& e) {
    refuse_run(request, load, e);
  }
  r.trains = p.optimizer.trains;
  r.title = model_line(d, r.memory.parameters);
  r.model = model_facts(d);
  r.basis = std::visit([&](auto const& m) { return is_measured(m, p); }, recorded) ? "measured" : "derived";
  r.workload = {{"micro_batch", std::to_string(load.micro_batch), true},
                {"sequence", std::to_string(load.sequence), true},
                {"accumulation", std::to_string(load.accumulation), true}};
  if (auto const* const encoder = std::get_if<encoder_classifier>(&recorded))
    r.notes.push_back("with a classifier of " + std::to_string(encoder->labels) +
                      " labels; gpumem parameters counts the base model");
  if (p.checkpointing.selective && p.attention != attention_kind::eager)
    r.notes.emplace_back("selective checkpointing under flash attention saves only the softmax statistics");
  bool const precision_given = !request.policies.empty() && request.policies.front().has_value();
  if (!precision_given && r.trains) r.notes.emplace_back(autocast_note);
  if (request.format == "json") {
    if (!request.sequence) r.notes.push_back("sequence " + std::to_string(load.sequence) + " (assumed)");
    return {to_json(r), r.fits() ? 0 : 1};
  }
  if (!request.sequence) r.workload[1].value += " (assumed)";
  return {request.format == "markdown" ? to_markdown(r) : to_text(r, unicode), r.fits() ? 0 : 1};
}

}  // namespace gpumem::cli
