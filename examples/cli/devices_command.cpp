// SPDX-License-Identifier: MIT
#include <gpumem/core/device.hpp>
#include <gpumem/format.hpp>

#include "commands.hpp"
#include "model_facts.hpp"

namespace gpumem::cli {

answer run_devices(std::string const& format) {
  require_format(format);
  using detail::padded;
  std::string text;
  auto const mebibytes = [](bytes b) { return b.value == 0 ? std::string("-") : std::to_string(mebibytes_down(b)); };
  auto const capability = [](device const& d) {
    return std::to_string(d.compute_capability / 10) + '.' + std::to_string(d.compute_capability % 10);
  };
  if (format == "json") {
    for (named_device const& d : device_catalogue)
      text += (text.empty() ? "[\n  " : ",\n  ") +
              detail::json_object(
                  {{"id", d.id},
                   {"name", d.name},
                   {"capacity", std::to_string(d.numbers.capacity.value), true},
                   {"board_total",
                    d.numbers.board_total.value == 0 ? "null" : std::to_string(d.numbers.board_total.value), true},
                   {"multiprocessors", std::to_string(d.numbers.multiprocessors), true},
                   {"compute_capability", capability(d.numbers)}});
    return {text + "\n]\n"};
  }
  if (format == "markdown") {
    text = "| id | name | usable MiB | nvidia-smi MiB | compute capability |\n|---|---|---:|---:|---:|\n";
    for (named_device const& d : device_catalogue)
      text += std::string("| ") + d.id + " | " + d.name + " | " + mebibytes(d.numbers.capacity) + " | " +
              mebibytes(d.numbers.board_total) + " | " + capability(d.numbers) + " |\n";
    return {text};
  }
  text = padded("id", 28) + padded("name", 28) + padded("usable", 8, true) + padded("smi", 8, true) +
         padded("cc", 6, true) + '\n';
  for (named_device const& d : device_catalogue)
    text += padded(d.id, 28) + padded(d.name, 28) + padded(mebibytes(d.numbers.capacity), 8, true) +
            padded(mebibytes(d.numbers.board_total), 8, true) + padded(capability(d.numbers), 6, true) + '\n';
  text +=
      "MiB. usable: what a CUDA program sees as total; budgets are held against it.\nsmi: what nvidia-smi prints.\n";
  return {text};
}

}  // namespace gpumem::cli
