// SPDX-License-Identifier: MIT
// What the host's loops are made of. All of them vectorise; those that call exp where there is a vector exp.
#pragma once
#include <cmath>
#include <cstdint>

#include "kernels_host.hpp"

// g++ learns of glibc's vector exp by this declaration, clang by an option.
#if defined(GPUMEM_HAS_VECTOR_EXP) && !defined(__clang__)
extern "C" __attribute__((simd("notinbranch"))) float expf(float) noexcept;
#endif

namespace gpumem::bench::host {

namespace predicted = kernels::predicted;

/// Without a vector exp, what calls it is bound by that and not by memory.
#if defined(GPUMEM_HAS_VECTOR_EXP)
inline constexpr bool exp_is_slow = false;
#else
inline constexpr bool exp_is_slow = true;
#endif

inline constexpr int lanes = 64;  // partial sums that let a reduction vectorise, and not wait for its last addition

/// Asks for `lanes` values that are needed soon, so that the memory does not rest while the core computes on a row that
/// it holds. Nothing more is read than without.
template <class T>
void fetch(T const* soon) {
  constexpr int cache_line = 64 / sizeof(T);
  for (int i = 0; i < lanes; i += cache_line) __builtin_prefetch(soon + i, 0, 2);
}

struct plus {
  float operator()(float a, float b) const { return a + b; }
};
struct minus {
  float operator()(float a, float b) const { return a - b; }
};
struct times {
  float operator()(float a, float b) const { return a * b; }
};
struct greater_of {
  float operator()(float a, float b) const { return a > b ? a : b; }
};

/// All term(i) combined, beginning with `neutral`; meanwhile as many values of each of `soon` are fetched.
template <class Combine, class Term, class... Soon>
float combine_over(std::int64_t count, float neutral, Combine combine, Term term, Soon const*... soon) {
  float partial[lanes];
  for (float& p : partial) p = neutral;
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    (fetch(soon + i), ...);
    for (int j = 0; j < lanes; ++j) partial[j] = combine(partial[j], term(i + j));
  }
  float all = neutral;
  for (; i < count; ++i) all = combine(all, term(i));
  for (float const p : partial) all = combine(all, p);
  return all;
}
template <class Term, class... Soon>
float sum_over(std::int64_t count, Term term, Soon const*... soon) {
  return combine_over(count, 0.0f, plus{}, term, soon...);
}
template <class... Soon>
float max_over(float const* x, std::int64_t count, Soon const*... soon) {
  return combine_over(
      count, x[0], greater_of{}, [=](std::int64_t i) { return x[i]; }, soon...);
}

template <class Operation>
void map(std::int64_t count, float* out, Operation operation) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = operation(i);
}

/// each(i) for all i of a row; meanwhile as many values of each of `soon` are fetched.
template <class Each, class... Soon>
void for_row(std::int64_t count, Each each, Soon const*... soon) {
  for (std::int64_t first = 0; first < count; first += lanes) {
    (fetch(soon + first), ...);
    std::int64_t const end = first + lanes < count ? first + lanes : count;
    for (std::int64_t i = first; i < end; ++i) each(i);
  }
}

struct matrix_of {
  std::int64_t rows, columns;
  std::int64_t elements() const { return rows * columns; }

  template <class Row>
  void each_row(Row row) const {
    for (std::int64_t r = 0; r < rows; ++r) row(r, r * columns);
  }
};

// ---- the passes that chains are made of

/// out[i] = operation(x[i], y[i])
template <class Operation>
void map_pairs(std::int64_t count, float const* x, float const* y, float* out, Operation operation) {
  map(count, out, [=](std::int64_t i) { return operation(x[i], y[i]); });
}
/// y[row][column] = operation(x[row][column], statistic[row])
template <class Operation>
void map_rows(matrix_of m, float const* x, float const* statistic, float* y, Operation operation) {
  m.each_row([=](std::int64_t r, std::int64_t first) {
    map(m.columns, y + first, [=, s = statistic[r]](std::int64_t i) { return operation(x[first + i], s); });
  });
}
/// y[row][column] = operation(x[row][column], parameter[column])
template <class Operation>
void map_columns(matrix_of m, float const* x, float const* parameter, float* y, Operation operation) {
  m.each_row([=](std::int64_t, std::int64_t first) {
    map(m.columns, y + first, [=](std::int64_t i) { return operation(x[first + i], parameter[i]); });
  });
}
/// out[row] = finish(sum of the row)
template <class Finish>
void reduce_rows(matrix_of m, float const* x, float* out, Finish finish) {
  m.each_row([=](std::int64_t r, std::int64_t first) {
    out[r] = finish(sum_over(m.columns, [=](std::int64_t i) { return x[first + i]; }));
  });
}
/// out[column] = sum of the column
inline void reduce_columns(matrix_of m, float const* x, float* out) {
  map(m.columns, out, [](std::int64_t) { return 0.0f; });
  m.each_row([=](std::int64_t, std::int64_t first) {
    map(m.columns, out, [=](std::int64_t i) { return out[i] + x[first + i]; });
  });
}

struct mean_of {
  std::int64_t columns;
  float operator()(float sum) const { return sum / static_cast<float>(columns); }
};
/// From a sum of squares: the reciprocal of the root of their mean.
struct reciprocal_root_of_mean {
  std::int64_t columns;
  float operator()(float squares) const { return 1.0f / std::sqrt(squares / static_cast<float>(columns) + 1e-5f); }
};

/// Whether dropout keeps an element: a hash of its place. How random that is makes no difference to its time.
inline std::uint8_t draw(std::int64_t element) {
  std::uint32_t const hash = static_cast<std::uint32_t>(element) * 2654435761u;
  return (hash ^ hash >> 15) * 2246822519u >= 429496730u ? 1 : 0;
}
inline float drop(float x, std::uint8_t kept) { return x * static_cast<float>(kept) * (1.0f / 0.9f); }

inline float* as_floats(void* tensor) { return static_cast<float*>(tensor); }
inline std::uint8_t* as_bytes(void* tensor) { return static_cast<std::uint8_t*>(tensor); }

// The operations of each file.
std::vector<workload> softmax_workloads(std::int64_t rows, std::int64_t columns);
std::vector<workload> norm_forward_workloads(std::int64_t rows, std::int64_t columns);
std::vector<workload> norm_backward_workloads(std::int64_t rows, std::int64_t columns);
std::vector<workload> map_workloads(std::int64_t rows, std::int64_t columns);
std::vector<workload> optimizer_workloads(std::int64_t rows, std::int64_t columns);

}  // namespace gpumem::bench::host
