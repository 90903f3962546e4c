// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>  // std::size_t

namespace gpumem::detail {

/// `size` default-valued elements on the heap, at compile time too, where std::vector is not constexpr in every
/// library.
template <class T>
class owned_array {
 public:
  constexpr explicit owned_array(int size) : items_(new T[static_cast<std::size_t>(size)]{}), size_(size) {}
  constexpr ~owned_array() { delete[] items_; }
  owned_array(owned_array const&) = delete;
  owned_array& operator=(owned_array const&) = delete;

  constexpr T& operator[](int i) { return items_[i]; }
  constexpr T const& operator[](int i) const { return items_[i]; }
  [[nodiscard]] constexpr T* data() { return items_; }
  [[nodiscard]] constexpr int size() const { return size_; }

  /// Makes room for at least `size` elements; those that are there stay.
  constexpr void grow(int size) {
    if (size <= size_) return;
    T* const more = new T[static_cast<std::size_t>(size)]{};
    for (int i = 0; i < size_; ++i) more[i] = items_[i];
    delete[] items_;
    items_ = more, size_ = size;
  }

 private:
  T* items_;
  int size_;
};

}  // namespace gpumem::detail
