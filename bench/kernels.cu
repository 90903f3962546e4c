// SPDX-License-Identifier: MIT
// Times each operation fused and as a chain, and holds the times against what the bytes predict. On a GPU it times the
// kernels; built without nvcc, or run where there is no driver, the same program times loops on the host.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels_host.hpp"
#if defined(__CUDACC__)
#include "kernels_gpu.cuh"
#endif

namespace gpumem::bench {
namespace {

constexpr std::int64_t full_elements = std::int64_t{1} << 28;  // fp32: 1 GiB a tensor, beyond any cache
constexpr std::int64_t quick_elements = std::int64_t{1} << 20;
constexpr std::int64_t host_columns = 4096;

// ---- where tensors live and how time is taken

class machine {
 public:
  virtual ~machine() = default;
  virtual void* allocate(std::size_t bytes, std::string const& dtype, std::uint32_t seed) = 0;
  virtual void free(void* tensor) = 0;
  virtual double seconds(std::function<void()> const& run) = 0;
  virtual std::vector<workload> workloads(std::int64_t elements) const = 0;
  /// Bytes that this machine moves for those that the operation asks for.
  virtual double bytes(bytes_moved const& moved) const = 0;
  virtual std::size_t cache_bytes() const { return 0; }
  virtual std::size_t usable_bytes() const = 0;
  virtual double peak_bytes_per_second() const { return 0; }
  virtual void describe() const = 0;
};

class host_machine final : public machine {
 public:
  explicit host_machine(std::string reason) : reason_(std::move(reason)) {}

  void* allocate(std::size_t bytes, std::string const&, std::uint32_t seed) override {
    constexpr std::size_t page = 4096;
    auto* const values = static_cast<float*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
    if (values == nullptr) throw std::bad_alloc();
    std::uint32_t state = seed * 2654435761u + 1;
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) {
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
      values[i] = static_cast<float>(state >> 8) * 0x1p-24f;
    }
    return values;
  }
  void free(void* tensor) override { std::free(tensor); }
  double seconds(std::function<void()> const& run) override {
    double const begin = processor_seconds();
    run();
    benchmark::ClobberMemory();
    return processor_seconds() - begin;
  }
  std::vector<workload> workloads(std::int64_t elements) const override {
    return host::workloads(elements / host_columns, host_columns);
  }
  double bytes(bytes_moved const& moved) const override { return moved.total_with_write_allocate(); }
  std::size_t usable_bytes() const override { return std::size_t{8} << 30; }
  void describe() const override {
    benchmark::AddCustomContext("gpumem_mode", "host");
    benchmark::AddCustomContext("gpumem_mode_reason", reason_);
    benchmark::AddCustomContext("gpumem_time", "processor time of one thread");
    benchmark::AddCustomContext("gpumem_bytes", "reads + 2 x writes, + 1 x in place: a store first reads the line that it changes");
  }

 private:
  /// Processor time, not time of day: what else runs on the machine takes turns with this one thread.
  static double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  std::string reason_;
};

#if defined(__CUDACC__)
class gpu_machine final : public machine {
 public:
  explicit gpu_machine(gpu::device device) : device_(std::move(device)) {
    kernels::check(cudaEventCreate(&begin_), "cudaEventCreate");
    kernels::check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  void* allocate(std::size_t bytes, std::string const& dtype, std::uint32_t seed) override {
    void* tensor = nullptr;
    kernels::check(cudaMalloc(&tensor, bytes), "cudaMalloc");
    gpu::fill(tensor, bytes, dtype, seed);
    return tensor;
  }
  void free(void* tensor) override { cudaFree(tensor); }
  double seconds(std::function<void()> const& run) override {
    kernels::check(cudaEventRecord(begin_), "cudaEventRecord");
    run();
    kernels::check(cudaEventRecord(end_), "cudaEventRecord");
    kernels::check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    kernels::check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }
  std::vector<workload> workloads(std::int64_t elements) const override {
    return gpu::workloads(device_.context, elements);
  }
  double bytes(bytes_moved const& moved) const override { return moved.total(); }
  std::size_t cache_bytes() const override { return device_.l2_bytes; }
  std::size_t usable_bytes() const override { return device_.free_bytes / 10 * 8; }
  double peak_bytes_per_second() const override { return device_.peak_bytes_per_second; }
  void describe() const override {
    benchmark::AddCustomContext("gpumem_mode", "gpu");
    benchmark::AddCustomContext("gpumem_device", device_.name);
    benchmark::AddCustomContext("gpumem_compute_capability", device_.compute_capability);
    benchmark::AddCustomContext("gpumem_driver", device_.driver);
    benchmark::AddCustomContext("gpumem_memory_MiB", std::to_string(device_.memory_bytes >> 20));
    benchmark::AddCustomContext("gpumem_l2_MiB", std::to_string(device_.l2_bytes >> 20));
    benchmark::AddCustomContext("gpumem_peak_GBps", std::to_string(device_.peak_bytes_per_second * 1e-9));
  }

 private:
  gpu::device device_;
  cudaEvent_t begin_{}, end_{};
};
#endif

std::unique_ptr<machine> find_machine() {
  std::string reason = "built without nvcc";
#if defined(__CUDACC__)
  auto const devices = gpu::find_devices(reason);
  if (!devices.empty()) return std::make_unique<gpu_machine>(devices.front());
#endif
  return std::make_unique<host_machine>(reason);
}

// ---- running

/// The tensors of the workload at hand. Where they would fit into the cache there are several sets to go round, so that
/// each run finds its own set no longer there.
class tensor_sets {
 public:
  explicit tensor_sets(machine& m) : machine_(m) {}
  ~tensor_sets() { clear(); }
  tensor_sets(tensor_sets const&) = delete;
  tensor_sets& operator=(tensor_sets const&) = delete;

  void prepare(workload const& w) {
    if (owner_ == &w) return;
    clear();
    std::size_t of_one_set = 0;
    for (std::size_t const bytes : w.tensor_bytes) of_one_set += bytes;
    std::size_t const wanted = 4 * machine_.cache_bytes() / of_one_set + 1;
    std::size_t const possible = std::max<std::size_t>(1, machine_.usable_bytes() / of_one_set);
    sets_.resize(std::min(wanted, possible));
    std::uint32_t seed = 1;
    for (auto& set : sets_) {
      for (std::size_t const bytes : w.tensor_bytes) set.push_back(machine_.allocate(bytes, w.dtype, seed++));
    }
    owner_ = &w;
  }
  tensors const& next() { return sets_[turn_++ % sets_.size()]; }

 private:
  void clear() {
    for (auto const& set : sets_) {
      for (void* const tensor : set) machine_.free(tensor);
    }
    sets_.clear();
    owner_ = nullptr;
  }

  machine& machine_;
  workload const* owner_ = nullptr;
  std::vector<tensors> sets_;
  std::size_t turn_ = 0;
};

double median(std::vector<double> values) {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Bytes per second of a copy: what every other operation is held against.
double measure_copy(machine& m, tensor_sets& sets, workload const& copy, int runs) {
  sets.prepare(copy);
  std::vector<double> seconds;
  for (int i = 0; i <= runs; ++i) {
    double const s = m.seconds([&] { copy.run(variant::fused, sets.next()); });
    if (i > 0) seconds.push_back(s);  // the first warms up
  }
  return m.bytes(copy.fused) / median(seconds);
}

struct context {
  machine& on;
  tensor_sets& sets;
  double copy_bytes_per_second;
  std::string warm = "";  // what ran last
};

void time_variant(benchmark::State& state, context& c, workload const& w, variant v) {
  c.sets.prepare(w);
  auto const run = [&] { w.run(v, c.sets.next()); };
  double total = 0;
  try {
    if (c.warm != w.name(v)) c.on.seconds(run);
    c.warm = w.name(v);
    for (auto _ : state) {
      double const s = c.on.seconds(run);
      state.SetIterationTime(s);
      total += s;
    }
  } catch (std::exception const& error) {
    state.SkipWithError(error.what());
    return;
  }
  double const seconds = total / static_cast<double>(state.iterations());
  double const bytes = c.on.bytes(w.moved(v));
  double const rate = bytes / seconds;
  state.counters["pred_bytes"] = bytes;
  state.counters["GBps"] = rate * 1e-9;
  state.counters["of_copy"] = rate / c.copy_bytes_per_second;
  if (c.on.peak_bytes_per_second() > 0) state.counters["of_peak"] = rate / c.on.peak_bytes_per_second();
  state.counters["pred_ms"] = 1e3 * bytes / c.copy_bytes_per_second;
  if (w.has_chain) state.counters["ratio_pred"] = c.on.bytes(w.chain) / c.on.bytes(w.fused);
  state.SetLabel(w.compute_bound ? "compute-bound: bytes do not predict its time" : "");
}

// ---- reporting

/// The console's lines, and at the end the table that the benchmark is for.
class table_reporter final : public benchmark::ConsoleReporter {
 public:
  table_reporter(std::vector<workload> const& workloads, machine const& m, std::string file)
      : workloads_(workloads), machine_(m), file_(std::move(file)) {}

  void ReportRuns(std::vector<Run> const& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (auto const& run : runs) {
      bool const is_median = run.run_type == Run::RT_Aggregate && run.aggregate_name == "median";
      bool const is_only_run = run.run_type == Run::RT_Iteration && run.repetitions <= 1;
      if (run.error_occurred || !(is_median || is_only_run)) continue;
      result& r = results_[run.run_name.function_name];
      r.milliseconds = run.GetAdjustedRealTime();
      r.of_copy = run.counters.count("of_copy") > 0 ? run.counters.at("of_copy").value : 0;
    }
  }

  void Finalize() override {
    std::string const table = to_markdown();
    GetOutputStream() << "\n" << table;
    if (!file_.empty()) std::ofstream(file_) << table;
  }

 private:
  struct result {
    double milliseconds = 0, of_copy = 0;
  };

  std::string to_markdown() const {
    std::string text =
        "| op | dtype | shape | chain ms | fused ms | ratio | predicted | error | fused, of copy |\n"
        "|---|---|---|---|---|---|---|---|---|\n";
    for (auto const& w : workloads_) {
      auto const fused = results_.find(w.name(variant::fused));
      auto const chain = results_.find(w.name(variant::chain));
      if (fused == results_.end() || (w.has_chain && chain == results_.end())) continue;
      text += "| " + w.operation + " | " + w.dtype + " | " + w.shape + " | ";
      if (w.has_chain) {
        double const ratio = chain->second.milliseconds / fused->second.milliseconds;
        double const expected = machine_.bytes(w.chain) / machine_.bytes(w.fused);
        text += format("%.3f", chain->second.milliseconds) + " | " + format("%.3f", fused->second.milliseconds) +
                " | " + format("%.2f", ratio) + " | " + format("%.2f", expected) + " | " +
                (w.compute_bound ? "compute-bound" : format("%+.0f %%", 100 * (ratio / expected - 1))) + " | ";
      } else {
        text += "| " + format("%.3f", fused->second.milliseconds) + " | | | | ";
      }
      text += format("%.0f %%", 100 * fused->second.of_copy) + " |\n";
    }
    return text;
  }
  static std::string format(char const* how, double value) {
    char text[64];
    std::snprintf(text, sizeof text, how, value);
    return text;
  }

  std::vector<workload> const& workloads_;
  machine const& machine_;
  std::string file_;
  std::map<std::string, result> results_;
};

/// Takes `--name` or `--name=value` out of the arguments.
bool take_flag(std::vector<char*>& arguments, std::string const& name, std::string* value = nullptr) {
  for (auto a = arguments.begin() + 1; a != arguments.end(); ++a) {
    std::string const text = *a;
    bool const matches = value == nullptr ? text == name : text.rfind(name + "=", 0) == 0;
    if (!matches) continue;
    if (value != nullptr) *value = text.substr(name.size() + 1);
    arguments.erase(a);
    return true;
  }
  return false;
}

int run(std::vector<char*> arguments) {
  bool const quick = take_flag(arguments, "--gpumem_quick");
  std::string table_file;
  take_flag(arguments, "--gpumem_table", &table_file);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;

  auto const on = find_machine();
  std::int64_t elements = quick ? quick_elements : full_elements;
  constexpr std::size_t most_tensors = 7;
  while (static_cast<std::size_t>(elements) * sizeof(float) * most_tensors > on->usable_bytes()) elements /= 2;
  auto const workloads = on->workloads(elements);

  tensor_sets sets(*on);
  context c{*on, sets, measure_copy(*on, sets, workloads.front(), quick ? 3 : 10)};
  on->describe();
  benchmark::AddCustomContext("gpumem_copy_GBps", std::to_string(c.copy_bytes_per_second * 1e-9));
  benchmark::AddCustomContext("gpumem_size", quick ? "quick: small tensors, the ratios mean nothing" : "full");

  bool const gpu = on->cache_bytes() > 0;
  int const repetitions = quick ? 1 : gpu ? 30 : 5;
  for (auto const& w : workloads) {
    for (auto const v : {variant::chain, variant::fused}) {
      if (v == variant::chain && !w.has_chain) continue;
      auto* const b = benchmark::RegisterBenchmark(
          w.name(v).c_str(), [&c, &w, v](benchmark::State& state) { time_variant(state, c, w, v); });
      b->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(quick ? 3 : 1)->Repetitions(repetitions);
      if (repetitions > 1) b->ReportAggregatesOnly();
    }
  }
  table_reporter reporter(workloads, *on, table_file);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace gpumem::bench

int main(int argc, char** argv) {
  try {
    return gpumem::bench::run({argv, argv + argc});
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
