// SPDX-License-Identifier: MIT
#include "kernels_host_loops.hpp"

namespace gpumem::bench::host {
namespace {

// ---- softmax

/// x becomes exp(x - greatest), in `out`; returns the sum.
float exponentials_of_row(std::int64_t columns, float const* x, float greatest, float* out) {
  return sum_over(columns, [=](std::int64_t i) { return out[i] = std::exp(x[i] - greatest); });
}

void softmax_forward_fused(matrix_of m, float const* x, float* y) {
  m.each_row([=](std::int64_t, std::int64_t first) {
    float const *const row = x + first, *const next = row + m.columns;
    float* const out = y + first;
    float const greatest = max_over(row, m.columns, out);
    float const factor = 1.0f / exponentials_of_row(m.columns, row, greatest, out);
    for_row(m.columns, [=](std::int64_t i) { out[i] *= factor; }, next);
  });
}

void softmax_forward_chain(matrix_of m, float const* x, float* y, float* exponentials, float* maxima, float* sums) {
  m.each_row([&](std::int64_t r, std::int64_t first) { maxima[r] = max_over(x + first, m.columns); });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    map(m.columns, exponentials + first, [&](std::int64_t i) { return std::exp(x[first + i] - maxima[r]); });
  });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    sums[r] = sum_over(m.columns, [&](std::int64_t i) { return exponentials[first + i]; });
  });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    map(m.columns, y + first, [&](std::int64_t i) { return exponentials[first + i] / sums[r]; });
  });
}

void softmax_backward_fused(matrix_of m, float const* y, float const* dy, float* dx) {
  m.each_row([&](std::int64_t, std::int64_t first) {
    float const dot = sum_over(m.columns, [&](std::int64_t i) { return y[first + i] * dy[first + i]; });
    map(m.columns, dx + first, [&](std::int64_t i) { return y[first + i] * (dy[first + i] - dot); });
  });
}

void softmax_backward_chain(matrix_of m, float const* y, float const* dy, float* dx, float* products, float* scaled,
                            float* sums) {
  map(m.elements(), products, [&](std::int64_t i) { return y[i] * dy[i]; });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    sums[r] = sum_over(m.columns, [&](std::int64_t i) { return products[first + i]; });
  });
  m.each_row([&](std::int64_t r, std::int64_t first) {
    map(m.columns, scaled + first, [&, sum = sums[r]](std::int64_t i) { return y[first + i] * sum; });
  });
  map(m.elements(), dx, [&](std::int64_t i) { return products[i] - scaled[i]; });
}

// ---- cross-entropy, loss and gradient in place

/// Data are drawn from [0, 1): a target is made of that.
std::int64_t target_of(float value, std::int64_t columns) {
  return static_cast<std::int64_t>(value * static_cast<float>(columns));
}

void cross_entropy_fused(matrix_of m, float* logits, float const* targets, float* loss) {
  m.each_row([=](std::int64_t r, std::int64_t first) {
    float* const row = logits + first;
    std::int64_t const target = target_of(targets[r], m.columns);
    float const greatest = max_over(row, m.columns), of_target = row[target];
    float const sum = exponentials_of_row(m.columns, row, greatest, row);
    loss[r] = std::log(sum) + greatest - of_target;
    for_row(m.columns, [=, factor = 1.0f / sum](std::int64_t i) { row[i] *= factor; }, row + m.columns);
    row[target] -= 1.0f;
  });
}

/// log-softmax, losses, fill, log-softmax backward.
void cross_entropy_chain(matrix_of m, float* logits, float const* targets, float* loss, float* log_softmax,
                         float* gradient) {
  m.each_row([=](std::int64_t, std::int64_t first) {
    float const greatest = max_over(logits + first, m.columns);
    float const sum = sum_over(m.columns, [=](std::int64_t i) { return std::exp(logits[first + i] - greatest); });
    map(m.columns, log_softmax + first,
        [=, of_row = greatest + std::log(sum)](std::int64_t i) { return logits[first + i] - of_row; });
  });
  m.each_row([=](std::int64_t r, std::int64_t first) {
    loss[r] = -log_softmax[first + target_of(targets[r], m.columns)];
  });
  m.each_row([=](std::int64_t r, std::int64_t first) {
    map(m.columns, gradient + first, [](std::int64_t) { return 0.0f; });
    gradient[first + target_of(targets[r], m.columns)] = -1.0f;
  });
  m.each_row([=](std::int64_t, std::int64_t first) {
    float const sum = sum_over(m.columns, [=](std::int64_t i) { return gradient[first + i]; });
    map(m.columns, logits + first,
        [=](std::int64_t i) { return gradient[first + i] - std::exp(log_softmax[first + i]) * sum; });
  });
}

}  // namespace

std::vector<workload> softmax_workloads(std::int64_t rows, std::int64_t columns) {
  matrix_of const m{rows, columns};
  auto const [bytes, tensor, parameter, statistic, shape, dtype] = sizes_of(rows, columns, sizeof(float));
  std::vector<workload> all;

  all.push_back({.operation = "softmax_fwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, statistic, statistic},
                 .fused = predicted::softmax_forward.fused(bytes, true),
                 .chain = predicted::softmax_forward.chain(bytes),
                 .run =
                     [m](variant v, tensors const& t) {
                       if (v == variant::fused) return softmax_forward_fused(m, as_floats(t[0]), as_floats(t[1]));
                       softmax_forward_chain(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                             as_floats(t[4]));
                     },
                 .compute_bound = exp_is_slow});
  all.push_back({.operation = "softmax_bwd",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, tensor, tensor, tensor, tensor, statistic},
                 .fused = predicted::softmax_backward.fused(bytes, true),
                 .chain = predicted::softmax_backward.chain(bytes),
                 .run = [m](variant v, tensors const& t) {
                   if (v == variant::fused) {
                     return softmax_backward_fused(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]));
                   }
                   softmax_backward_chain(m, as_floats(t[0]), as_floats(t[1]), as_floats(t[2]), as_floats(t[3]),
                                          as_floats(t[4]), as_floats(t[5]));
                 }});
  all.push_back({.operation = "cross_entropy",
                 .dtype = dtype,
                 .shape = shape,
                 .tensor_bytes = {tensor, statistic, statistic, tensor, tensor},
                 .fused = {predicted::cross_entropy.fused(bytes), tensor},
                 .chain = predicted::cross_entropy_chain(bytes, true, true),
                 .run = [m](variant v, tensors const& t) {
                   float* const logits = as_floats(t[0]);
                   if (v == variant::fused) return cross_entropy_fused(m, logits, as_floats(t[1]), as_floats(t[2]));
                   cross_entropy_chain(m, logits, as_floats(t[1]), as_floats(t[2]), as_floats(t[3]), as_floats(t[4]));
                 },
                 .compute_bound = exp_is_slow});
  return all;
}

}  // namespace gpumem::bench::host
