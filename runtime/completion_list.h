// SPDX-License-Identifier: Apache-2.0
//
// CompletionList: the ops that have completed at an endpoint, until its Poll() has handed them out.
#ifndef PREPOST_RUNTIME_COMPLETION_LIST_H_
#define PREPOST_RUNTIME_COMPLETION_LIST_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "prepost/ir/ids.h"

namespace prepost {

/// Used by one thread. Allocates only in Reserve(): an op completes once, so all fit one array.
class CompletionList {
 public:
  void Reserve(size_t ops) { completed_.reserve(ops); }
  void Add(OpId op) { completed_.push_back(op); }
  bool empty() const { return taken_ == completed_.size(); }
  /// Writes the oldest ones to `out`; how many.
  size_t Take(std::span<OpId> out) {
    const size_t count = std::min(out.size(), completed_.size() - taken_);
    std::copy_n(completed_.begin() + static_cast<ptrdiff_t>(taken_), count, out.begin());
    taken_ += count;
    return count;
  }

 private:
  std::vector<OpId> completed_;
  size_t taken_ = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_COMPLETION_LIST_H_
