// SPDX-License-Identifier: MIT
// Layer norm and RMS norm, backward, with the gradients of gamma and beta.
//
// A row's gradient needs two sums over the row, gamma's and beta's one over every column each. All are made of one
// reading of x and dy: few blocks walk over many rows and keep their columns' sums, so that only one row of partial
// sums a block goes through memory. Two kernels, one for dx and one for gamma and beta, would read x and dy twice.
#pragma once
#include <numeric>
#include <stdexcept>

#include "norm_backward_in_block.cuh"
#include "norm_backward_in_registers.cuh"

namespace gpumem::kernels {

/// As by_width, for backward: beside a row the registers hold its columns' sums, so a group takes shorter rows.
template <class T, class LaunchGroup, class LaunchBlock>
void by_width_of_backward(int columns, LaunchGroup launch_group, LaunchBlock launch_block) {
  int const packets = most_packets_per_row<T>(columns);
  if (packets <= 16) return launch_group(row_group<8, 2>{});
  if (packets <= 32) return launch_group(row_group<16, 2>{});
  if (packets <= 64) return launch_group(row_group<32, 2>{});
  launch_block();
}

/// How a backward norm is launched. Blocks that make several rounds stride by a multiple of the rows after which rows
/// begin at the same place in a packet again.
struct norm_backward_plan {
  unsigned blocks = 0;
  unsigned threads = threads_of_row_groups;
  std::size_t shared_bytes = 0;
  bool in_registers = false;
  bool on_chip = true;
  bool possible = true;
};

template <class Norm, class T, class Sink = gradient_sink<T>>
norm_backward_plan plan_norm_backward(device_context const& device, std::int64_t rows, int columns) {
  constexpr int V = elements_per_packet<T>;
  norm_backward_plan plan;
  int rows_per_block = 1;
  by_width_of_backward<T>(
      columns,
      [&](auto group) {
        rows_per_block = decltype(group)::rows_per_block;
        plan.in_registers = true;
        plan.shared_bytes =
            static_cast<std::size_t>(rows_per_block) * static_cast<std::size_t>(columns) * sizeof(float);
      },
      [&] {
        plan.threads = threads_for_row<T>(columns);
        std::size_t const sums = static_cast<std::size_t>(most_packets_per_row<T>(columns)) * V * sizeof(float) *
                                 static_cast<std::size_t>(column_sums_of<Norm, Sink>);
        std::size_t const kept = shared_bytes_for_row<T>(columns, 2);
        plan.on_chip = sums + kept + shared_bytes_of_reductions <= device.shared_bytes_per_block;
        plan.shared_bytes = sums + (plan.on_chip ? kept : 0);
      });
  plan.possible = plan.shared_bytes + shared_bytes_of_reductions <= device.shared_bytes_per_block;

  std::int64_t const most_blocks = blocks_for(rows, rows_per_block);
  std::int64_t const by_threads = device.threads_per_multiprocessor / static_cast<int>(plan.threads);
  auto const by_shared =
      static_cast<std::int64_t>(device.shared_bytes_per_block / (plan.shared_bytes + shared_bytes_of_reductions));
  std::int64_t const resident = device.multiprocessors * std::max<std::int64_t>(1, std::min(by_threads, by_shared));
  int const period = V / std::gcd(columns, V);
  int const step = period / std::gcd(period, rows_per_block);
  plan.blocks = static_cast<unsigned>(most_blocks <= resident ? most_blocks
                                                              : std::max<std::int64_t>(resident / step * step, step));
  return plan;
}

/// `partials` has plan.blocks rows of fp32 for each vector of sums; `sums`: gamma's, beta's, the sink's.
template <class Norm, class T, class Sink>
void norm_backward_into(device_context const& device, norm_backward_tensors<T> const& tensors, Sink sink,
                        column_sums<T> sums, std::int64_t rows, int columns) {
  auto const plan = plan_norm_backward<Norm, T, Sink>(device, rows, columns);
  if (!plan.possible)
    throw std::invalid_argument("norm backward: the sums of a row's columns exceed the shared memory");
  auto const launch_with = [&](char const* name, auto kernel) {
    launch(name, kernel, plan.blocks, plan.threads, plan.shared_bytes, device.on, tensors, sink, rows, columns);
  };
  by_width_of_backward<T>(
      columns,
      [&](auto group) {
        using G = decltype(group);
        launch_with("norm_backward_in_registers",
                    norm_backward_in_registers<Norm, T, G::lanes, G::packets_per_lane, Sink>);
      },
      [&] {
        if (plan.on_chip) {
          launch_with("norm_backward_in_block<on chip>", norm_backward_in_block<Norm, T, true, Sink>);
        } else {
          launch_with("norm_backward_in_block<re-read>", norm_backward_in_block<Norm, T, false, Sink>);
        }
      });
  reduce_columns(device, "sum partials", tensors.partials, sums, column_sums_of<Norm, Sink>, plan.blocks, columns);
}

template <class Norm, class T>
void norm_backward_fused(device_context const& device, norm_backward_tensors<T> const& tensors,
                         column_sums<T> parameter_gradients, std::int64_t rows, int columns) {
  norm_backward_into<Norm>(device, tensors, gradient_sink<T>{}, parameter_gradients, rows, columns);
}

}  // namespace gpumem::kernels
