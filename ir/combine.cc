// SPDX-License-Identifier: Apache-2.0
#include "ir/combine.h"

#include <fmt/format.h>

namespace prepost {

const char* Name(CombineOp op) {
  switch (op) {
    case CombineOp::kNone:
      return "none";
    case CombineOp::kSum:
      return "sum";
    case CombineOp::kProd:
      return "prod";
    case CombineOp::kMin:
      return "min";
    case CombineOp::kMax:
      return "max";
    case CombineOp::kAnd:
      return "and";
    case CombineOp::kOr:
      return "or";
    case CombineOp::kXor:
      return "xor";
    case CombineOp::kUser:
      return "user";
    case CombineOp::kUserOrdered:
      return "user_ordered";
  }
  PREPOST_CHECK(false);
  return "";
}

const char* Name(ElementType type) {
  switch (type) {
    case ElementType::kNone:
      return "none";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kUint16:
      return "uint16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kUint32:
      return "uint32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kUint64:
      return "uint64";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kBfloat16:
      return "bfloat16";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
  }
  PREPOST_CHECK(false);
  return "";
}

uint64_t SizeOf(ElementType type) {
  switch (type) {
    case ElementType::kNone:
      return 0;
    case ElementType::kInt8:
    case ElementType::kUint8:
      return 1;
    case ElementType::kInt16:
    case ElementType::kUint16:
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kUint32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kInt64:
    case ElementType::kUint64:
    case ElementType::kFloat64:
      return 8;
  }
  PREPOST_CHECK(false);
  return 0;
}

bool IsFloat(ElementType type) { return type >= ElementType::kFloat16; }

bool Combine::is_exact() const {
  if (op == CombineOp::kUser || op == CombineOp::kUserOrdered) return false;
  return !IsFloat(type) || op == CombineOp::kMin || op == CombineOp::kMax;
}

bool Combine::is_idempotent() const {
  return op == CombineOp::kMin || op == CombineOp::kMax || op == CombineOp::kAnd ||
         op == CombineOp::kOr;
}

std::string ToString(const Combine& combine) {
  if (combine.is_none()) return "none";
  return fmt::format("{}:{}", Name(combine.op), Name(combine.type));
}

Status CheckCombine(const Combine& combine) {
  const bool has_op = combine.op != CombineOp::kNone;
  const bool has_type = combine.type != ElementType::kNone;
  if (has_op != has_type) {
    return Rejected(fmt::format("{} without {}, expected both or none",
                                has_op ? "an operation" : "a type", has_op ? "a type" : "one"),
                    has_op ? "/type" : "/op");
  }
  const bool is_bitwise = combine.op == CombineOp::kAnd || combine.op == CombineOp::kOr ||
                          combine.op == CombineOp::kXor;
  if (is_bitwise && IsFloat(combine.type)) {
    return Rejected(fmt::format("{} of {}: bits are combined of integers, expected one of their "
                                "types, or one of sum, prod, min, max",
                                Name(combine.op), Name(combine.type)),
                    "/op");
  }
  return {};
}

}  // namespace prepost
