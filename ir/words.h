// SPDX-License-Identifier: Apache-2.0
//
// The words of files for enumerators, from their Name()s.
#ifndef PREPOST_IR_BASE_WORDS_H_
#define PREPOST_IR_BASE_WORDS_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// All of an enum.
template <typename Enum>
inline constexpr std::array<Enum, 0> kEnumerators = {};
template <>
inline constexpr std::array kEnumerators<CollectiveKind> = {
    CollectiveKind::kMulticast,     CollectiveKind::kReduce,    CollectiveKind::kAllreduce,
    CollectiveKind::kReduceScatter, CollectiveKind::kAllgather, CollectiveKind::kGather,
    CollectiveKind::kScatter,       CollectiveKind::kAlltoall,  CollectiveKind::kBarrier};
template <>
inline constexpr std::array kEnumerators<CombineOp> = {
    CombineOp::kSum, CombineOp::kProd, CombineOp::kMin,  CombineOp::kMax,        CombineOp::kAnd,
    CombineOp::kOr,  CombineOp::kXor,  CombineOp::kUser, CombineOp::kUserOrdered};
template <>
inline constexpr std::array kEnumerators<ElementType> = {
    ElementType::kInt8,    ElementType::kUint8,    ElementType::kInt16,   ElementType::kUint16,
    ElementType::kInt32,   ElementType::kUint32,   ElementType::kInt64,   ElementType::kUint64,
    ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat32, ElementType::kFloat64};
template <>
inline constexpr std::array kEnumerators<ReadyMode> = {ReadyMode::kBarrier, ReadyMode::kChannel,
                                                       ReadyMode::kWindow, ReadyMode::kRetry};
template <>
inline constexpr std::array kEnumerators<OpKind> = {OpKind::kSend, OpKind::kRecv, OpKind::kCombine};

/// The enumerator of a word; none: there is none.
template <typename Enum>
std::optional<Enum> EnumeratorOf(std::string_view word) {
  for (const Enum value : kEnumerators<Enum>) {
    if (word == Name(value)) return value;
  }
  return std::nullopt;
}

template <typename Enum>
std::vector<std::string> NamesOf() {
  std::vector<std::string> names;
  for (const Enum value : kEnumerators<Enum>) names.emplace_back(Name(value));
  return names;
}

}  // namespace prepost

#endif  // PREPOST_IR_BASE_WORDS_H_
