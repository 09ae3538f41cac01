// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/node_buffer.h"

#include <fmt/format.h>

#include <utility>

namespace prepost {

Result<NodeBuffer> NodeBuffer::Create(const Plan& plan, NodeId node, const OutputSet* outputs,
                                      const Checkpoint& checkpoint) {
  const uint64_t bytes = plan.header().message.bytes;
  NodeBuffer buffer;
  if (outputs != nullptr) {
    Result<PartialOutput> output =
        PartialOutput::Create(outputs->TemporaryPath(node), bytes, checkpoint);
    if (!output.ok()) return output.status();
    buffer.output_ = std::move(*output);
  } else {
    Result<Mapping> memory = Mapping::Anonymous(bytes);
    if (!memory.ok()) return memory.status();
    buffer.memory_ = std::move(*memory);
  }
  return buffer;
}

Result<MessageSum> NodeBuffer::Sum(const Checkpoint& checkpoint) const {
  return output_ ? output_->Sum(checkpoint) : SumMemory(memory_.bytes(), checkpoint);
}

Status CheckCopy(NodeId node, const MessageSum& sum, const MessageSum& root_sum) {
  if (sum == root_sum) return {};
  return Rejected(
      fmt::format("the copy of node {} has the XXH3-128 sum {}, expected {} as at the root",
                  node.value, sum.ToString(), root_sum.ToString()));
}

}  // namespace prepost
