// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>

#include "dynamic_code.hpp"
#include "kernels_host_loops.hpp"

namespace gpumem::bench::host {
namespace {

// ---- AdamW

struct step {
  float decay = 0.99999f, one_minus_beta1 = 0.1f, beta2 = 0.999f, one_minus_beta2 = 1e-3f, epsilon = 1e-8f;
  float step_size = 3.7e-3f, reciprocal_of_correction = 18.28f;
};

/// One parameter's step.
void update(step const& s, float& weight, float& mean, float& square, float gradient) {
  mean += s.one_minus_beta1 * (gradient - mean);
  square = s.beta2 * square + s.one_minus_beta2 * gradient * gradient;
  weight = weight * s.decay - s.step_size * mean / (std::sqrt(square) * s.reciprocal_of_correction + s.epsilon);
}

void adamw_fused(std::int64_t n, float* __restrict__ weight, float* __restrict__ mean, float* __restrict__ square,
                 float const* __restrict__ gradient) {
  step const s;
  for (std::int64_t i = 0; i < n; ++i) update(s, weight[i], mean[i], square[i], gradient[i]);
}

void adamw_chain(std::int64_t n, float* weight, float* mean, float* square, float const* gradient, float* temporary) {
  step const s;
  map(n, weight, [&](std::int64_t i) { return weight[i] * s.decay; });
  map(n, mean, [&](std::int64_t i) { return mean[i] + s.one_minus_beta1 * (gradient[i] - mean[i]); });
  map(n, square, [&](std::int64_t i) { return square[i] * s.beta2; });
  map(n, square, [&](std::int64_t i) { return square[i] + s.one_minus_beta2 * gradient[i] * gradient[i]; });
  map(n, temporary, [&](std::int64_t i) { return std::sqrt(square[i]); });
  map(n, temporary, [&](std::int64_t i) { return temporary[i] * s.reciprocal_of_correction; });
  map(n, temporary, [&](std::int64_t i) { return temporary[i] + s.epsilon; });
  map(n, weight, [&](std::int64_t i) { return weight[i] - s.step_size * mean[i] / temporary[i]; });
}

// ---- AdamW, moments in 8 bits

using kernels::signed_code;
using kernels::unsigned_code;

constexpr std::int64_t elements_of_scale = kernels::elements_of_scale;

struct quantised_tensors {
  float *weight, *gradient;
  std::uint8_t *mean, *square;
  float *mean_scale, *square_scale;
};

template <class Code>
void dequantise(std::uint8_t const* __restrict__ codes, float scale, float* __restrict__ values) {
  for (std::int64_t i = 0; i < elements_of_scale; ++i) values[i] = Code::decode(codes[i]) * scale;
}
/// Magnitudes compare as the integers that their bits are; of those a maximum vectorises.
float greatest_magnitude(float const* values) {
  std::int32_t greatest = 0;
  for (std::int64_t i = 0; i < elements_of_scale; ++i) {
    greatest = std::max(greatest, std::bit_cast<std::int32_t>(values[i]) & 0x7fffffff);
  }
  return std::bit_cast<float>(greatest);
}
template <class Code, class... Soon>
void quantise(float const* values, float scale, std::uint8_t* codes, Soon const*... soon) {
  float const reciprocal = kernels::reciprocal_of_scale(scale);
  for_row(
      elements_of_scale,
      [=](std::int64_t i) { codes[i] = static_cast<std::uint8_t>(Code::encode(values[i], reciprocal)); }, soon...);
}

template <class Block>
void each_block(std::int64_t n, Block block) {
  for (std::int64_t b = 0; b < n / elements_of_scale; ++b) block(b, b * elements_of_scale);
}

void adamw_8bit_fused(std::int64_t n, quantised_tensors const& q) {
  each_block(n, [&](std::int64_t b, std::int64_t first) {
    float mean[elements_of_scale], square[elements_of_scale];
    float const mean_scale = q.mean_scale[b], square_scale = q.square_scale[b];
    float* __restrict__ const weight = q.weight + first;
    float const* __restrict__ const gradient = q.gradient + first;
    std::uint8_t const* __restrict__ const means = q.mean + first, * __restrict__ const squares = q.square + first;
    step const s;
    for (std::int64_t i = 0; i < elements_of_scale; ++i) {
      mean[i] = signed_code::decode(means[i]) * mean_scale;
      square[i] = unsigned_code::decode(squares[i]) * square_scale;
      update(s, weight[i], mean[i], square[i], gradient[i]);
    }
    constexpr std::int64_t next = elements_of_scale;
    q.mean_scale[b] = greatest_magnitude(mean);
    quantise<signed_code>(mean, q.mean_scale[b], q.mean + first, weight + next, means + next);
    q.square_scale[b] = greatest_magnitude(square);
    quantise<unsigned_code>(square, q.square_scale[b], q.square + first, gradient + next, squares + next);
  });
}

/// Dequantise, AdamW, greatest magnitudes, quantise; all but AdamW for each moment.
void adamw_8bit_chain(std::int64_t n, quantised_tensors const& q, float* mean, float* square) {
  each_block(n, [&](std::int64_t b, std::int64_t first) {
    dequantise<signed_code>(q.mean + first, q.mean_scale[b], mean + first);
  });
  each_block(n, [&](std::int64_t b, std::int64_t first) {
    dequantise<unsigned_code>(q.square + first, q.square_scale[b], square + first);
  });
  adamw_fused(n, q.weight, mean, square, q.gradient);
  each_block(n, [&](std::int64_t b, std::int64_t first) { q.mean_scale[b] = greatest_magnitude(mean + first); });
  each_block(n, [&](std::int64_t b, std::int64_t first) { q.square_scale[b] = greatest_magnitude(square + first); });
  each_block(n, [&](std::int64_t b, std::int64_t first) {
    quantise<signed_code>(mean + first, q.mean_scale[b], q.mean + first);
  });
  each_block(n, [&](std::int64_t b, std::int64_t first) {
    quantise<unsigned_code>(square + first, q.square_scale[b], q.square + first);
  });
}

// ---- gradient norm and clipping

float norm_of(std::int64_t n, float const* gradient) {
  return std::sqrt(sum_over(n, [=](std::int64_t i) { return gradient[i] * gradient[i]; }));
}

void clipping_chain(std::int64_t n, float* gradient, float* squares) {
  map_pairs(n, gradient, gradient, squares, times{});
  float const norm = std::sqrt(sum_over(n, [=](std::int64_t i) { return squares[i]; }));
  map(n, gradient, [=, factor = 1.0f / (1.0f + 1e-9f * norm)](std::int64_t i) { return gradient[i] * factor; });
}

}  // namespace

std::vector<workload> optimizer_workloads(std::int64_t rows, std::int64_t columns) {
  matrix_of const m{rows, columns};
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(float));
  std::uint64_t const count = bytes.elements();
  std::size_t const codes = count, scales = count / static_cast<std::size_t>(elements_of_scale) * sizeof(float);
  std::vector<workload> all;

  all.push_back({.operation = "adamw",
                 .dtype = dtype,
                 .shape = std::to_string(count),
                 .tensor_bytes = {tensor, tensor, tensor, tensor, tensor},
                 // All is written in place, but for the square root's temporary.
                 .fused = {predicted::adamw.fused(count), 3 * tensor},
                 .chain = {predicted::adamw.chain(count), 7 * tensor},
                 .run = [n = m.elements()](variant v, tensors const& t) {
                   if (v == variant::fused) {
                     return adamw_fused(n, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]));
                   }
                   adamw_chain(n, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]), as_floats(t[4]));
                 }});
  optimizer_kernel const entry = predicted::adamw_8bit(sizeof(float));
  all.push_back({.operation = "adamw_8bit",
                 .dtype = dtype,
                 .shape = std::to_string(count),
                 .tensor_bytes = {tensor, tensor, codes, codes, scales, scales, tensor, tensor},
                 // In place: all that the fused loop writes; AdamW's three tensors of the chain.
                 .fused = {entry.fused(count), entry.fused(count).writes},
                 .chain = {entry.chain(count), 3 * tensor},
                 .run = [n = m.elements()](variant v, tensors const& t) {
                   quantised_tensors const q{as_floats(t[0]), as_floats(t[1]), as_bytes(t[2]),
                                             as_bytes(t[3]),  as_floats(t[4]), as_floats(t[5])};
                   if (v == variant::fused) return adamw_8bit_fused(n, q);
                   adamw_8bit_chain(n, q, as_floats(t[6]), as_floats(t[7]));
                 }});
  all.push_back({.operation = "clipping",
                 .dtype = dtype,
                 .shape = std::to_string(count),
                 .tensor_bytes = {tensor, sizeof(float), tensor},
                 .fused = predicted::gradient_clipping_fused(count, sizeof(float), 0),
                 .chain = {predicted::gradient_clipping_chain(count, sizeof(float), 0), tensor},
                 .run = [n = m.elements()](variant v, tensors const& t) {
                   if (v == variant::chain) return clipping_chain(n, as_floats(t[0]), as_floats(t[2]));
                   *as_floats(t[1]) = norm_of(n, as_floats(t[0]));
                 }});
  return all;
}

}  // namespace gpumem::bench::host
