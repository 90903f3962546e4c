// SPDX-License-Identifier: MIT
// What we say of every run of tests/data/measured_runs.csv: one list for the test of the whole table and for the
// program that prints it.
#pragma once
#include <gpumem/arena.hpp>
#include <gpumem/models/llm_c.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "bert_large.hpp"
#include "fine_tunes.hpp"
#include "operation_records.hpp"

namespace measured {

struct prediction {
  std::string id;
  std::uint64_t bytes = 0;
  std::string where;        // phase and operation of the peak
  std::string largest;      // category
  std::uint64_t thumb = 0;  // the rule of thumb; 0 where it says nothing
};

inline char const* largest_category(memory const& m) {
  category most = category::weights;
  for (int c = 0; c < categories; ++c)
    if (m[static_cast<category>(c)] > m[most]) most = static_cast<category>(c);
  return name(most);
}

inline std::string place(moment const& m) {
  std::string text = name(m.phase);
  for (char& c : text)
    if (c == '_') c = ' ';
  return m.operation[0] == '\0' ? text : text + ", " + m.operation;
}

inline prediction prediction_of(char const* id, moment const& peak, bytes beside = {}, std::uint64_t thumb = 0) {
  return {id, (peak.total + beside).value, place(peak), largest_category(peak.categories), thumb};
}

/// llm.c's GPT-2 124M: 56 sequences of 1,024 tokens, GELU recomputed, cuDNN attention.
inline arena llm_c_arena() {
  return arena_of(llm_c{.layers = 12, .hidden = 768, .heads = 12, .vocabulary = 50257, .positions = 1024},
                  {.micro_batch = 56, .sequence = 1024}, make_plan(master_weights<>{}, adamw{}, bare{}));
}

inline std::vector<prediction> predictions() {
  std::vector<prediction> all;
  for (fine_tune const& f : fine_tunes) {
    const breakdown b = estimate(f.model, f.load, f.how);
    all.push_back(prediction_of(f.id, b.peak, {}, b.rule_of_thumb.total.value));
  }
  for (operation_record const& r : operation_records) all.push_back(prediction_of(r.id, r.peak));
  for (bert_run const& r : bert_runs) {
    const breakdown b = estimate(bert_large, r.load, r.how);
    all.push_back(prediction_of(r.id, b.peak, bert_context, b.rule_of_thumb.total.value));
  }
  all.push_back({"llmc-124M-A800", llm_c_arena().activations.value, "static arena", "activations", 0});
  return all;
}

}  // namespace measured
