// SPDX-License-Identifier: MIT
#pragma once
#include <gpumem/core/bytes.hpp>

#include <cstdint>

namespace gpumem {

/// What a kernel moves through memory, in bytes, and computes. Every distinct input is read once, every output written
/// once, a broadcast vector once.
struct traffic {
  std::uint64_t reads = 0, writes = 0, flops = 0;

  [[nodiscard]] constexpr std::uint64_t total() const { return checked_add(reads, writes); }
  /// FLOPs a byte: the arithmetic intensity of a roofline.
  [[nodiscard]] constexpr double intensity() const {
    return total() == 0 ? 0.0 : static_cast<double>(flops) / static_cast<double>(total());
  }
  friend constexpr traffic operator+(traffic const& a, traffic const& b) {
    return {checked_add(a.reads, b.reads), checked_add(a.writes, b.writes), checked_add(a.flops, b.flops)};
  }
  friend constexpr traffic operator*(traffic const& a, std::uint64_t times) {
    return {checked_multiply(a.reads, times), checked_multiply(a.writes, times), checked_multiply(a.flops, times)};
  }
  constexpr traffic& operator+=(traffic const& b) { return *this = *this + b; }
  friend constexpr bool operator==(traffic const&, traffic const&) = default;
};

/// The bytes of one over those of the other: the speed-up where bandwidth is all that counts.
constexpr double byte_ratio(traffic const& slow, traffic const& fast) {
  return fast.total() == 0 ? 0.0 : static_cast<double>(slow.total()) / static_cast<double>(fast.total());
}

/// A [rows, columns] activation and what belongs to it: bytes of an element, bytes of a parameter (one a column), the
/// blocks of a backward kernel that each keep partial sums, and the bits a dropout mask takes an element in the fused
/// kernel (8, 1, or 0 where it is drawn again).
struct row_shape {
  std::uint64_t rows = 1, columns = 1;
  std::uint64_t element_bytes = 2, parameter_bytes = 2;
  std::uint64_t blocks = 0, mask_bits = 8;

  [[nodiscard]] constexpr std::uint64_t elements() const { return checked_multiply(rows, columns); }
};

/// One kernel over rows: how many whole tensors, row statistics (one fp32 or int32 a row) and vectors (one parameter a
/// column) it reads and writes.
struct row_pass {
  char const* name = "";
  std::uint64_t reads = 0, writes = 0;                // whole tensors
  std::uint64_t rereads = 0;                          // of the reads, those that find their row on chip where it fits
  std::uint64_t wide_reads = 0, wide_writes = 0;      // whole tensors in fp32
  std::uint64_t row_reads = 0, row_writes = 0;        // 4 bytes a row
  std::uint64_t column_reads = 0, column_writes = 0;  // parameters
  std::uint64_t partials = 0;                         // fp32 vectors that each block writes and a second kernel reads
  bool masks_a_byte = false, masks = false;           // writes a dropout mask: one byte an element, or the shape's bits
  bool reads_mask_a_byte = false, reads_mask = false;

  [[nodiscard]] constexpr bool empty() const { return *name == '\0'; }
  /// The bytes at a shape; `on_chip`: a row that is read again is found in a cache, not in memory.
  [[nodiscard]] constexpr traffic at(row_shape const& s, bool on_chip = false) const {
    const std::uint64_t n = s.elements(), tensor = checked_multiply(n, s.element_bytes), wide = checked_multiply(n, 4),
                        partial = checked_multiply(checked_multiply(partials * s.blocks, s.columns), 4);
    const std::uint64_t mask = divide_up(checked_multiply(n, s.mask_bits), 8);
    const std::uint64_t mask_in = (reads_mask_a_byte ? n : 0) + (reads_mask ? mask : 0),
                        mask_out = (masks_a_byte ? n : 0) + (masks ? mask : 0);
    const std::uint64_t rows4 = s.rows * 4, vector = s.columns * s.parameter_bytes;
    return {.reads = sum(tensor, on_chip ? reads - rereads : reads, wide, wide_reads, rows4, row_reads, vector,
                         column_reads, partial) +
                     mask_in,
            .writes = sum(tensor, writes, wide, wide_writes, rows4, row_writes, vector, column_writes, partial) +
                      mask_out};
  }

 private:
  static constexpr std::uint64_t sum(std::uint64_t a, std::uint64_t m, std::uint64_t b, std::uint64_t n,
                                     std::uint64_t c, std::uint64_t o, std::uint64_t d, std::uint64_t p,
                                     std::uint64_t rest) {
    return checked_add(checked_add(checked_multiply(a, m), checked_multiply(b, n)),
                       checked_add(checked_add(checked_multiply(c, o), checked_multiply(d, p)), rest));
  }
};

/// A fused kernel beside the chain of kernels that does the same without fusion. Both do the same FLOPs.
struct row_kernel {
  char const* name = "";
  std::uint64_t flops = 0;  // an element
  row_pass one{};
  row_pass steps[13] = {};

  [[nodiscard]] constexpr traffic fused(row_shape const& s, bool on_chip = false) const {
    traffic t = one.at(s, on_chip);
    t.flops = checked_multiply(s.elements(), flops);
    return t;
  }
  [[nodiscard]] constexpr traffic chain(row_shape const& s, bool on_chip = false) const {
    traffic t;
    for (row_pass const& p : steps)
      if (!p.empty()) t += p.at(s, on_chip);
    t.flops = checked_multiply(s.elements(), flops);
    return t;
  }
  /// The same where a row leaves the chip before its last use: `tensors` of it are then read once more.
  [[nodiscard]] constexpr row_kernel reading_again(std::uint64_t tensors) const {
    row_kernel k = *this;
    k.one.reads += tensors;
    k.one.rereads += tensors;
    return k;
  }
  /// Kernels launched by the chain.
  [[nodiscard]] constexpr std::uint64_t launches() const {
    std::uint64_t n = 0;
    for (row_pass const& p : steps) n += p.empty() ? 0u : 1u;
    return n;
  }
  [[nodiscard]] constexpr double speedup(row_shape const& s) const { return byte_ratio(chain(s), fused(s)); }
};

}  // namespace gpumem
