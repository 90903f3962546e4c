// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/models/encoder.hpp>
#include <gpumem/models/encoder_classifier.hpp>
#include <gpumem/models/encoder_decoder.hpp>
#include <gpumem/models/latent_decoder.hpp>
#include <gpumem/models/parameter_count.hpp>
#include <gpumem/models/transformer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gpumem::cli {

/// What a config describes: one of the library's models and what a report says beside it.
struct described_model {
  std::string model_type{};
  std::variant<transformer, decoder, expert_decoder, latent_decoder, encoder, encoder_decoder> numbers{};
  std::optional<encoder_classifier> classifier{};  // an encoder with a classifier's head, which estimate records
  std::int64_t longest_sequence = 0;               // that the config allows; 0: no limit
  bool learned_positions = false;                  // the limit is the length of a table
  bool tied_head = false;                          // the head's matrix is the embedding table
  std::string not_modelled{};                      // why estimate cannot answer though the numbers are a transformer's
  std::vector<std::string> notes{};
  std::vector<std::string> recording_notes{};  // where the recorded operations are not the family's own
  std::vector<std::string> not_counted{};      // parts of the checkpoint that are outside of the count
};

/// The model that the text of a config describes. Throws input_error, without a file's name.
described_model describe(std::string_view text);

/// The text of a file, at most json_table::most_bytes. Throws input_error that names the file.
std::string read_file(std::string const& path);

/// The parameters of a described model. Throws input_error.
parameter_count count_parameters(described_model const& m);

/// The model types that describe() knows, in alphabetical order, separated by ", ".
std::string known_model_types();

}  // namespace gpumem::cli
