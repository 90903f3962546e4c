// SPDX-License-Identifier: MIT
// What the problems are made of: random inputs, comparison with a reference, the shape. One file of operations each
// uses it; problems.cpp puts their lists together.
#pragma once
#include <cstring>
#include <random>
#include <utility>

#include "buffer.hpp"
#include "column_primitives.cuh"
#include "problems.hpp"

namespace gpumem::kernels::test {

using reference = std::vector<double>;

class random_values {
 public:
  explicit random_values(std::uint64_t seed) : engine_(seed) {}

  template <class T>
  void normal(buffer<T> const& out, float deviation = 1.0f) {
    std::normal_distribution<float> values(0.0f, deviation);
    for (T& value : out) value = from_float<T>(values(engine_));
  }
  template <class T>
  void uniform(buffer<T> const& out, float low, float high) {
    std::uniform_real_distribution<float> values(low, high);
    for (T& value : out) value = from_float<T>(values(engine_));
  }
  /// Normal; but of one sign and away from zero in a tensor so small that one cancellation would decide its error.
  template <class T>
  void typical(buffer<T> const& out) {
    out.size() < 64 ? uniform(out, 0.5f, 1.5f) : normal(out);
  }

 private:
  std::mt19937_64 engine_;
};

template <class T>
output_error compare(std::string output, buffer<T> const& out, reference const& expected) {
  output_error error{std::move(output), sizeof(T) == 4 ? 1e-5 : 5e-3};
  for (std::size_t i = 0; i < out.size(); ++i) {
    double const d = static_cast<double>(to_float(out[i])) - expected[i];
    error.difference += d * d;
    error.norm += expected[i] * expected[i];
  }
  return error;
}

template <class T>
double at(buffer<T> const& values, std::size_t i) {
  return static_cast<double>(to_float(values[i]));
}
inline double at(reference const& values, std::size_t i) { return values[i]; }

template <class... Buffers>
void poison(Buffers const&... buffers) {
  (buffers.poison(), ...);
}

template <class... Buffers>
std::vector<unsigned char> bits_of(Buffers const&... buffers) {
  std::vector<unsigned char> bits;
  auto const append = [&bits](auto const& b) {
    auto const* const bytes = reinterpret_cast<unsigned char const*>(b.data());
    bits.insert(bits.end(), bytes, bytes + b.size() * sizeof(b[0]));
  };
  (append(buffers), ...);
  return bits;
}

struct setting {
  device_context device;
  test::shape shape;
  random_values random;

  std::size_t elements() const { return static_cast<std::size_t>(shape.rows) * columns(); }
  std::size_t rows() const { return static_cast<std::size_t>(shape.rows); }
  std::size_t columns() const { return static_cast<std::size_t>(shape.columns); }
  template <class T>
  row_shape bytes(std::int64_t blocks = 0) const {
    return predicted::matrix(shape.rows, shape.columns, sizeof(T), blocks);
  }
  template <class T>
  std::int64_t parameter_bytes() const {
    return static_cast<std::int64_t>(columns() * sizeof(T));
  }
};

/// What a map over columns asks for beyond one reading of its parameter.
template <class T>
std::int64_t repeats_of_map_columns(setting const& s) {
  auto const plan = plan_columns<T>(s.device, s.shape.rows, s.shape.columns);
  return plan.template requested_parameters<T>() * static_cast<std::int64_t>(sizeof(T)) - s.parameter_bytes<T>();
}

template <class T>
bool row_on_chip(setting const& s) {
  return row_stays_on_chip<T>(s.device, s.shape.columns);
}

template <template <class> class Problem>
std::unique_ptr<problem> make(device_context const& device, dtype type, shape s, std::uint64_t seed) {
  setting const setup{device, s, random_values(seed)};
  if (type == dtype::fp32) return std::make_unique<Problem<float>>(setup);
  return std::make_unique<Problem<bf16>>(setup);
}

// The operations of each file.
std::vector<operation> norm_operations();
std::vector<operation> map_operations();
std::vector<operation> dropout_operations();
std::vector<operation> optimizer_operations();

inline std::vector<variant> both_variants() { return {variant::fused, variant::chain}; }

}  // namespace gpumem::kernels::test
