// SPDX-License-Identifier: Apache-2.0
//
// CompletionList: the ops that have completed at an endpoint, until its Poll() has handed them out.
#ifndef PREPOST_RUNTIME_EXECUTOR_COMPLETION_LIST_H_
#define PREPOST_RUNTIME_EXECUTOR_COMPLETION_LIST_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/ids.h"
#include "runtime/base/sequence_ring.h"

namespace prepost {

/// Used by one thread. Allocates only in Reserve().
class CompletionList {
 public:
  /// For `ops` that are posted and not handed out at once, at most (Playable::look_ahead()).
  /// Empties it.
  void Reserve(size_t ops) {
    completed_.Resize(ops);
    added_ = taken_ = 0;
  }
  void Add(OpId op) { completed_[added_++] = op; }
  bool empty() const { return taken_ == added_; }
  /// Writes the oldest ones to `out`; how many.
  size_t Take(std::span<OpId> out) {
    size_t count = 0;
    while (count < out.size() && taken_ < added_) out[count++] = completed_[taken_++];
    return count;
  }

 private:
  SequenceRing<OpId> completed_;
  uint64_t added_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_COMPLETION_LIST_H_
