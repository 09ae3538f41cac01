// SPDX-License-Identifier: Apache-2.0
//
// ByteSum: bytes of many transfers together. A message has up to 2^62 bytes, and what all nodes get
// of it together is beyond 64 bits.
#ifndef PREPOST_IR_BASE_BYTE_SUM_H_
#define PREPOST_IR_BASE_BYTE_SUM_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace prepost {

/// A whole number below 2^128. Nothing that fits into memory sums up to more.
class ByteSum {
 public:
  constexpr ByteSum() = default;
  constexpr ByteSum(uint64_t bytes) : low_(bytes) {}  // implicit: every number of bytes is one

  constexpr ByteSum& operator+=(const ByteSum& other) {
    low_ += other.low_;
    high_ += other.high_ + (low_ < other.low_ ? 1 : 0);
    return *this;
  }

  constexpr double ToDouble() const {
    return static_cast<double>(high_) * 0x1p64 + static_cast<double>(low_);
  }
  /// None from 2^64 on.
  constexpr std::optional<uint64_t> ToUint64() const {
    return high_ == 0 ? std::optional(low_) : std::nullopt;
  }
  /// "55340232221128654848": all digits.
  std::string ToText() const;

  friend constexpr auto operator<=>(const ByteSum&, const ByteSum&) = default;

 private:
  uint64_t high_ = 0;  // compared first
  uint64_t low_ = 0;
};

/// "1 byte", "4 bytes".
std::string CountBytes(const ByteSum& bytes);

}  // namespace prepost

#endif  // PREPOST_IR_BASE_BYTE_SUM_H_
