// SPDX-License-Identifier: Apache-2.0
//
// NodeBuffer: where one receiver's copy of the message comes to lie, in a file or only in memory,
// and the check of a finished copy. The same for every executor.
#ifndef PREPOST_RUNTIME_NODE_BUFFER_H_
#define PREPOST_RUNTIME_NODE_BUFFER_H_

#include <cstddef>
#include <optional>
#include <span>

#include "prepost/ir/plan.h"
#include "prepost/ir/status.h"
#include "prepost/runtime/checkpoint.h"
#include "prepost/runtime/mapping.h"
#include "prepost/runtime/message_file.h"
#include "prepost/runtime/message_sum.h"
#include "prepost/runtime/output_set.h"

namespace prepost {

class NodeBuffer {
 public:
  /// Room for the message of `plan` at `node`, not the root: its temporary file in `outputs` or, if
  /// that is null, memory that no file backs. Errors: those of PartialOutput and Mapping.
  static Result<NodeBuffer> Create(const Plan& plan, NodeId node, const OutputSet* outputs,
                                   const Checkpoint& checkpoint = {});

  std::span<std::byte> bytes() const { return output_ ? output_->bytes() : memory_.bytes(); }
  /// The sum of what is there now.
  Result<MessageSum> Sum(const Checkpoint& checkpoint = {}) const;

 private:
  std::optional<PartialOutput> output_;
  Mapping memory_;
};

/// An error (kRejected) with both sums if the copy of `node` is not what the root has.
Status CheckCopy(NodeId node, const MessageSum& sum, const MessageSum& root_sum);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_NODE_BUFFER_H_
