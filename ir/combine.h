// SPDX-License-Identifier: Apache-2.0
//
// Combine: what a collective that reduces does to the values of a block: which operation, on
// elements of which type.
#ifndef PREPOST_IR_COMBINE_H_
#define PREPOST_IR_COMBINE_H_

#include <cstdint>
#include <string>

#include "ir/base/status.h"
#include "prepost/collective.h"

namespace prepost {

/// The words of files: "sum", "float32".
const char* Name(CombineOp op);
const char* Name(ElementType type);
/// Bytes of an element; 0 of kNone.
uint64_t SizeOf(ElementType type);
/// Whether it is a floating-point type, whose sums depend on the order of additions.
bool IsFloat(ElementType type);

/// kNone and kNone where nothing is combined. A value.
struct Combine {
  CombineOp op = CombineOp::kNone;
  ElementType type = ElementType::kNone;

  bool is_none() const { return op == CombineOp::kNone && type == ElementType::kNone; }
  /// Whether operands must be in the order of ranks.
  bool is_ordered() const { return op == CombineOp::kUserOrdered; }
  /// Whether the same operands give the same bytes in every order and grouping: those of integers,
  /// and min and max of floats too (NaN wins, -0 is below 0).
  bool is_exact() const;
  /// Whether operands that are counted twice change nothing: min, max, and, or.
  bool is_idempotent() const;

  friend bool operator==(const Combine&, const Combine&) = default;
};

/// "sum:float32"; "none".
std::string ToString(const Combine& combine);

/// Errors (kRejected): a type without such an operation; one of the two without the other.
Status CheckCombine(const Combine& combine);

}  // namespace prepost

#endif  // PREPOST_IR_COMBINE_H_
