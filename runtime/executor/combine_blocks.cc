// SPDX-License-Identifier: Apache-2.0
//
// Elements are read and written by memcpy, which costs nothing and asks for no alignment; the loops
// are plain, so that compilers vectorize them.
#include "runtime/executor/combine_blocks.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace prepost {
namespace {

/// The bits of a 16-bit float, which is computed with as float32.
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

float ToFloat(Bfloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

float ToFloat(Float16 value) {
  const uint32_t sign = (value.bits & 0x8000u) << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1fu, fraction = value.bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

Bfloat16 ToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

Float16 ToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)  // NaN, quiet
    return {static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff))};
  if (magnitude >= 0x47800000) return {static_cast<uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x38800000) {
    // A multiple of 2^-24: adding a number whose last bit that is rounds to the nearest even.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000))};
  }
  const uint32_t rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
  return {static_cast<uint16_t>(sign | rounded >> 13)};
}

template <typename T>
auto Widened(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
    return ToFloat(value);
  } else if constexpr (std::is_integral_v<T>) {
    // Unsigned, so that it wraps around, and no smaller than int, which would be signed again.
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<std::conditional_t<sizeof(T) < 4, uint32_t, Unsigned>>(value);
  } else {
    return value;
  }
}

template <typename T, typename Wide>
T Narrowed(Wide value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(value);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return ToBfloat16(value);
  } else {
    return static_cast<T>(value);
  }
}

/// An integer that rises with the value, NaN apart: -0 below 0.
template <typename T>
auto OrderOf(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    using Bits = std::conditional_t<sizeof(T) == 2, uint16_t,
                                    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
    constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
    const Bits bits = std::bit_cast<Bits>(value);
    return static_cast<Bits>((bits & kSign) != 0 ? ~bits : bits | kSign);
  }
}

template <typename T>
bool IsNan(T value) {
  if constexpr (std::is_integral_v<T>) return false;
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>)
    return std::isnan(ToFloat(value));
  return false;
}

template <typename T, bool kIsMax>
T Extreme(T own, T other) {
  const bool own_nan = IsNan(own), other_nan = IsNan(other);
  if (own_nan != other_nan) return own_nan ? own : other;
  const bool other_is_greater = OrderOf(own) < OrderOf(other);
  return (kIsMax || own_nan) == other_is_greater ? other : own;
}

/// Every NaN is the same one: processors pass on that of one operand, which order decides.
template <typename Wide>
Wide Canonical(Wide value) {
  if constexpr (std::is_floating_point_v<Wide>)
    return value != value ? std::numeric_limits<Wide>::quiet_NaN() : value;
  return value;
}

template <CombineOp kOp, typename T>
T CombineOne(T own, T other) {
  if constexpr (kOp == CombineOp::kMin) return Extreme<T, false>(own, other);
  if constexpr (kOp == CombineOp::kMax) return Extreme<T, true>(own, other);
  if constexpr (kOp == CombineOp::kSum)
    return Narrowed<T>(Canonical(Widened(own) + Widened(other)));
  if constexpr (kOp == CombineOp::kProd)
    return Narrowed<T>(Canonical(Widened(own) * Widened(other)));
  if constexpr (std::is_integral_v<T>) {
    if constexpr (kOp == CombineOp::kAnd) return static_cast<T>(own & other);
    if constexpr (kOp == CombineOp::kOr) return static_cast<T>(own | other);
    if constexpr (kOp == CombineOp::kXor) return static_cast<T>(own ^ other);
  }
  PREPOST_CHECK(false);
  return own;
}

template <CombineOp kOp, typename T>
void CombineAll(std::byte* out, const std::byte* own, const std::byte* other, size_t elements) {
  for (size_t i = 0; i < elements; ++i) {
    T x, y;
    std::memcpy(&x, own + i * sizeof(T), sizeof(T));
    std::memcpy(&y, other + i * sizeof(T), sizeof(T));
    const T result = CombineOne<kOp, T>(x, y);
    std::memcpy(out + i * sizeof(T), &result, sizeof(T));
  }
}

template <CombineOp kOp>
CombineFunction OfType(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return CombineAll<kOp, int8_t>;
    case ElementType::kUint8:
      return CombineAll<kOp, uint8_t>;
    case ElementType::kInt16:
      return CombineAll<kOp, int16_t>;
    case ElementType::kUint16:
      return CombineAll<kOp, uint16_t>;
    case ElementType::kInt32:
      return CombineAll<kOp, int32_t>;
    case ElementType::kUint32:
      return CombineAll<kOp, uint32_t>;
    case ElementType::kInt64:
      return CombineAll<kOp, int64_t>;
    case ElementType::kUint64:
      return CombineAll<kOp, uint64_t>;
    case ElementType::kFloat16:
      return CombineAll<kOp, Float16>;
    case ElementType::kBfloat16:
      return CombineAll<kOp, Bfloat16>;
    case ElementType::kFloat32:
      return CombineAll<kOp, float>;
    case ElementType::kFloat64:
      return CombineAll<kOp, double>;
    case ElementType::kNone:
      break;
  }
  PREPOST_CHECK(false);
  return {};
}

}  // namespace

CombineFunction CombineFunctionOf(const Combine& combine) {
  PREPOST_CHECK(CheckCombine(combine).ok());
  switch (combine.op) {
    case CombineOp::kSum:
      return OfType<CombineOp::kSum>(combine.type);
    case CombineOp::kProd:
      return OfType<CombineOp::kProd>(combine.type);
    case CombineOp::kMin:
      return OfType<CombineOp::kMin>(combine.type);
    case CombineOp::kMax:
      return OfType<CombineOp::kMax>(combine.type);
    case CombineOp::kAnd:
      return OfType<CombineOp::kAnd>(combine.type);
    case CombineOp::kOr:
      return OfType<CombineOp::kOr>(combine.type);
    case CombineOp::kXor:
      return OfType<CombineOp::kXor>(combine.type);
    case CombineOp::kNone:
    case CombineOp::kUser:
    case CombineOp::kUserOrdered:
      break;
  }
  PREPOST_CHECK(false);
  return {};
}

}  // namespace prepost
