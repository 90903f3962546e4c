// SPDX-License-Identifier: MIT
// Tensors of the tests: checked memory of the executor on the CPU, managed memory where nvcc compiles.
#pragma once
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "portable.cuh"

namespace gpumem::kernels::test {

#if defined(__CUDACC__)

/// As simt::buffer, but reached by a GPU.
template <class T>
class buffer {
 public:
  buffer(std::string const& name, std::size_t count) : count_(count) {
    check(cudaMallocManaged(&data_, count == 0 ? 1 : count * sizeof(T)), name.c_str());
  }
  ~buffer() { cudaFree(data_); }
  buffer(buffer const&) = delete;
  buffer& operator=(buffer const&) = delete;

  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + count_; }
  void poison() const { std::memset(data_, 0xFF, count_ * sizeof(T)); }
  void assign(std::vector<T> const& values) const { std::memcpy(data_, values.data(), values.size() * sizeof(T)); }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

#else

template <class T>
using buffer = simt::buffer<T>;

#endif

}  // namespace gpumem::kernels::test
