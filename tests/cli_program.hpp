// SPDX-License-Identifier: MIT
// Runs the real program gpumem, as a shell would, and keeps what it printed.
#pragma once
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace cli_program {

struct result {
  int status = -1;       // of the exit, or minus the signal that ended it
  double seconds = 0;    // of processor time: a busy machine must not fail a test
  std::string out, err;  // standard output and standard error
};

/// A folder of this test program that goes with it.
class scratch_folder {
 public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gpumem_cli_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~scratch_folder() { std::filesystem::remove_all(path_); }
  scratch_folder(scratch_folder const&) = delete;
  scratch_folder& operator=(scratch_folder const&) = delete;

  [[nodiscard]] std::string file(std::string const& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline scratch_folder const& scratch() {
  static scratch_folder const folder;
  return folder;
}

inline std::string contents(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Writes a file into the scratch folder and gives its path.
inline std::string write(std::string const& name, std::string const& text) {
  std::string path = scratch().file(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// Runs gpumem with `arguments`; standard output goes to `output` where it is named.
inline result run(std::vector<std::string> arguments, std::string const& output = "") {
  std::string const out = output.empty() ? scratch().file("stdout") : output, err = scratch().file("stderr");
  arguments.insert(arguments.begin(), GPUMEM_PROGRAM);
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  int const failed = posix_spawn(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error("cannot run " + arguments[0]);

  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) throw std::runtime_error("lost " + arguments[0]);
  result r;
  r.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  auto const seconds = [](timeval const& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  r.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  if (output.empty()) r.out = contents(out);
  r.err = contents(err);
  return r;
}

/// What gpumem writes to a terminal of that locale.
inline std::string run_on_terminal(std::vector<std::string> arguments, std::string const& locale) {
  int const terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) throw std::runtime_error("no terminal");
  std::string const side = ptsname(terminal);
  int const open_side = open(side.c_str(), O_RDWR | O_NOCTTY);  // so that what was written outlives the program
  setenv("LC_ALL", locale.c_str(), 1);
  static_cast<void>(run(std::move(arguments), side));
  unsetenv("LC_ALL");
  std::string text;
  char part[4096];
  fcntl(terminal, F_SETFL, O_NONBLOCK);
  for (ssize_t n = 0; (n = read(terminal, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
  close(open_side), close(terminal);
  return text;
}

}  // namespace cli_program
