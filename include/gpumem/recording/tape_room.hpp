// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/owned_array.hpp>
#include <gpumem/recording/tape.hpp>

#include <cstddef>  // std::size_t

namespace gpumem {

/// A tape with room for a number of operations, tensors and segments; a full one is an error that says so.
template <int Operations = 256, int Tensors = 304, int Segments = 12>
class tape_with_room : public tape {
 public:
  constexpr tape_with_room() : tape(tensors_, Tensors + 1, operations_, Operations + 1, segments_, Segments) {}

 private:
  tensor tensors_[std::size_t{Tensors} + 1] = {};
  operation operations_[std::size_t{Operations} + 1] = {};
  segment segments_[std::size_t{Segments}] = {};
};

namespace detail {
struct room_of_a_tape {
  constexpr room_of_a_tape(int operations, int tensors, int segments)
      : tensor_room(tensors + 1), operation_room(operations + 1), segment_room(segments) {}
  owned_array<tensor> tensor_room;
  owned_array<operation> operation_room;
  owned_array<segment> segment_room;
};
}  // namespace detail

/// A tape whose room is known when it is made.
class sized_tape : detail::room_of_a_tape, public tape {
 public:
  constexpr sized_tape(int operations, int tensors, int segments)
      : room_of_a_tape(operations, tensors, segments),
        tape(tensor_room.data(), tensor_room.size(), operation_room.data(), operation_room.size(), segment_room.data(),
             segment_room.size()) {}
};

}  // namespace gpumem
