// SPDX-License-Identifier: Apache-2.0
//
// ByteWriter and ByteReader: integers and byte strings of fixed size, little-endian, one after the
// other. For messages of fixed layout; running over the end is a mistake of ours.
#ifndef PREPOST_RUNTIME_BASE_LITTLE_ENDIAN_H_
#define PREPOST_RUNTIME_BASE_LITTLE_ENDIAN_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/base/status.h"

namespace prepost {

class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> out) : out_(out) {}

  template <std::unsigned_integral Integer>
  void Put(Integer value) {
    for (size_t i = 0; i < sizeof(Integer); ++i) {
      *Take(1).data() = static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i));
    }
  }
  void PutBytes(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, Take(bytes.size()).begin());
  }
  void PutZeros(size_t count) { std::ranges::fill(Take(count), std::byte{0}); }
  /// What is still to be written.
  size_t left() const { return out_.size(); }

 private:
  std::span<std::byte> Take(size_t count) {
    PREPOST_CHECK(count <= out_.size());
    const std::span<std::byte> taken = out_.first(count);
    out_ = out_.subspan(count);
    return taken;
  }

  std::span<std::byte> out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> in) : in_(in) {}

  template <std::unsigned_integral Integer>
  Integer Get() {
    const std::span<const std::byte> bytes = Take(sizeof(Integer));
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(Integer); ++i) {
      value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
    }
    return static_cast<Integer>(value);
  }
  std::span<const std::byte> Take(size_t count) {
    PREPOST_CHECK(count <= in_.size());
    const std::span<const std::byte> taken = in_.first(count);
    in_ = in_.subspan(count);
    return taken;
  }
  size_t left() const { return in_.size(); }

 private:
  std::span<const std::byte> in_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_LITTLE_ENDIAN_H_
