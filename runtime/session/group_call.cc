// SPDX-License-Identifier: Apache-2.0
//
// The variant of a start: bits 0 to 3 the kind, 4 to 7 the operation, 8 to 11 the type, 12: uneven.
#include "runtime/session/group_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/count.h"

namespace prepost {
namespace {

constexpr int kOpShift = 4, kTypeShift = 8, kUnevenShift = 12;
constexpr uint32_t kField = 0xf;

}  // namespace

MessageStart StartOf(const CallShape& shape, uint32_t number) {
  const auto field = [](auto value, int shift) { return static_cast<uint32_t>(value) << shift; };
  return {.number = number,
          .bytes = shape.bytes,
          .variant = static_cast<uint16_t>(
              field(shape.kind, 0) | field(shape.combine.op, kOpShift) |
              field(shape.combine.type, kTypeShift) | field(shape.is_uneven, kUnevenShift)),
          .call_root = shape.root.value};
}

std::optional<CallShape> CallOf(const MessageStart& start) {
  if (!start.call_root) return std::nullopt;
  const auto field = [&](int shift) {
    return static_cast<uint32_t>(start.variant >> shift) & kField;
  };
  CallShape shape = {.root = NodeId(*start.call_root),
                     .bytes = start.bytes,
                     .is_uneven = field(kUnevenShift) != 0};
  // A stranger's word: what is none reads as the last one, and differs from every call.
  shape.kind = static_cast<CollectiveKind>(
      std::min<uint32_t>(field(0), static_cast<uint32_t>(CollectiveKind::kBarrier)));
  shape.combine.op = static_cast<CombineOp>(
      std::min<uint32_t>(field(kOpShift), static_cast<uint32_t>(CombineOp::kUserOrdered)));
  shape.combine.type = static_cast<ElementType>(
      std::min<uint32_t>(field(kTypeShift), static_cast<uint32_t>(ElementType::kFloat64)));
  return shape;
}

std::string Describe(const CallShape& shape) {
  std::string text = shape.kind == CollectiveKind::kMulticast ? "broadcast" : Name(shape.kind);
  if (shape.kind == CollectiveKind::kBarrier) return text;
  if (shape.is_uneven) return text + " of parts of any sizes";
  if (!shape.combine.is_none()) text += " " + ToString(shape.combine);
  const bool has_parts = PartsOf(shape.kind, 2) > 1;
  text += fmt::format(" of {}{}", has_parts ? "parts of " : "", Count(shape.bytes, "byte"));
  if (!HasRoot(shape.kind)) return text;
  const bool is_to = shape.kind == CollectiveKind::kReduce || shape.kind == CollectiveKind::kGather;
  return text + fmt::format(" {} node {}", is_to ? "to" : "from", shape.root.value);
}

}  // namespace prepost
