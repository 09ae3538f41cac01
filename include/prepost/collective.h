// SPDX-License-Identifier: Apache-2.0
//
// What a collective is, and what combines: the words that plans, their files and calls of groups
// have in common.
#ifndef PREPOST_COLLECTIVE_H_
#define PREPOST_COLLECTIVE_H_

#include <cstdint>

namespace prepost {

enum class CollectiveKind : uint8_t {
  kMulticast,  ///< of MPI's words: broadcast
  kReduce,
  kAllreduce,
  kReduceScatter,
  kAllgather,
  kGather,
  kScatter,
  kAlltoall,
  kBarrier
};

/// kUser and kUserOrdered are the caller's. All but kUserOrdered commute: operands may be swapped.
enum class CombineOp : uint8_t {
  kNone,
  kSum,
  kProd,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kUser,
  kUserOrdered
};

enum class ElementType : uint8_t {
  kNone,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64
};

}  // namespace prepost

#endif  // PREPOST_COLLECTIVE_H_
