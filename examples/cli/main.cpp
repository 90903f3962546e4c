// SPDX-License-Identifier: MIT
// The program gpumem: reads the command line, prints one answer or one line about what is wrong.
#include <CLI/CLI.hpp>
#include <gpumem/core/version.hpp>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <langinfo.h>
#include <unistd.h>
#endif

#include "commands.hpp"
#include "input_error.hpp"
#include "policies.hpp"

namespace {

using namespace gpumem::cli;

constexpr int input_is_wrong = 2;

bool terminal_shows_unicode() {
#if defined(__unix__) || defined(__APPLE__)
  if (isatty(STDOUT_FILENO) == 0) return false;
  std::setlocale(LC_CTYPE, "");
  return std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
#else
  return false;
#endif
}

int fail(std::string_view reason) {
  std::fprintf(stderr, "gpumem: %s\n", printable(reason).c_str());
  return input_is_wrong;
}

// A reader that has gone away (gpumem ... | head) is no error; a full disk is.
int print(std::string const& text, int status) {
  bool const written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return status;
  return fail(std::string("standard output: ") + std::strerror(errno));
}

void add_step_options(CLI::App& command, estimate_request& to) {
  command.add_option("CONFIG.json", to.config, "The model's config")->required()->option_text(" ");
  command
      .add_option("--micro-batch", to.micro_batch,
                  "Sequences that go through the model at once (1); max: as many as fit")
      ->option_text("N");
  command.add_option("--sequence", to.sequence, "Tokens in a sequence (the config's longest, at most 4096)")
      ->option_text("N");
  command.add_option("--accumulation", to.accumulation, "Micro-batches to a step (1)")->option_text("N");
  auto const& families = policy_families();
  to.policies.resize(families.size());
  for (std::size_t i = 0; i < families.size(); ++i)
    command
        .add_option("--" + std::string(families[i].name), to.policies[i],
                    known_values(families[i]) + " (" + std::string(families[i].otherwise) + ")")
        ->option_text("NAME");
  command.add_option("--labels", to.labels, "Classes of an encoder's classifier (2)")->option_text("N");
}

void add_estimate_options(CLI::App& command, estimate_request& to) {
  add_step_options(command, to);
  command.add_option("--device", to.device, "A GPU of gpumem devices: does the step fit?")->option_text("ID");
  command.add_option("--memory", to.memory, "The same for a size such as 24GiB")->option_text("SIZE");
  command.add_option("--reserve", to.reserve, "Set aside for the CUDA context and the allocator (1GiB)")
      ->option_text("SIZE");
}

void add_traffic_options(CLI::App& command, estimate_request& to) {
  add_step_options(command, to);
  command.add_option("--device", to.device, "A GPU of gpumem devices whose rates are known")->option_text("ID");
  command.add_option("--bandwidth", to.bandwidth, "Memory bandwidth in 1e9 bytes a second")->option_text("N");
  command.add_option("--tflops", to.tflops, "Rate of contractions in 1e12 FLOPs a second")->option_text("N");
}

int run(int argc, char** argv) {
  CLI::App app{"GPU memory of a training run, before it starts", "gpumem"};
  app.set_version_flag("--version", "gpumem " + std::to_string(GPUMEM_VERSION_MAJOR) + '.' +
                                        std::to_string(GPUMEM_VERSION_MINOR) + '.' +
                                        std::to_string(GPUMEM_VERSION_PATCH));
  app.require_subcommand(1);
  app.footer("Exit status: 0 it fits or no device was named, 1 it does not fit, 2 the input is wrong.");
  estimate_request request;
  CLI::App& estimate = *app.add_subcommand("estimate", "Memory of a training step, phase by phase");
  CLI::App& traffic = *app.add_subcommand("traffic", "FLOPs, bytes and predicted time of a training step, by class");
  CLI::App& parameters = *app.add_subcommand("parameters", "Number of parameters, by architecture");
  CLI::App& devices = *app.add_subcommand("devices", "The GPUs known by name, in MiB");
  add_estimate_options(estimate, request);
  add_traffic_options(traffic, request);
  parameters.add_option("CONFIG.json", request.config, "The model's config")->required()->option_text(" ");
  for (CLI::App* command : {&estimate, &traffic, &parameters, &devices})
    command->add_option("--format", request.format, "text, markdown, json (text)")->option_text("NAME");

  try {
    app.parse(argc, argv);
  } catch (CLI::CallForHelp const&) {
    return print(app.help(), 0);
  } catch (CLI::CallForVersion const& version) {
    return print(version.what() + std::string("\n"), 0);
  } catch (CLI::ParseError const& e) {
    return fail(e.what());
  }
  answer const given = estimate     ? run_estimate(request, terminal_shows_unicode())
                       : traffic    ? run_traffic(request)
                       : parameters ? run_parameters(request.config, request.format)
                                    : run_devices(request.format);
  return print(given.output, given.status);
}

}  // namespace

int main(int argc, char** argv) {
#if defined(SIGPIPE)
  std::signal(SIGPIPE, SIG_IGN);
#endif
  try {
    return run(argc, argv);
  } catch (std::exception const& e) {
    return fail(e.what());
  }
}
