// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/node_buffer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/memory_file.h"

namespace prepost {

Result<NodeBuffer> NodeBuffer::Open(NodeId node, uint64_t bytes, const OutputSet* outputs) {
  NodeBuffer buffer;
  buffer.node_ = node;
  buffer.bytes_ = bytes;
  if (outputs == nullptr) {
    PREPOST_RETURN_IF_ERROR(buffer.MakeMemoryFile());
    return buffer;
  }
  Result<PartialOutput> output =
      PartialOutput::CreateUnnamed(outputs->TemporaryPath(node), outputs->FinalPath(node));
  if (!output.ok()) return output.status();
  buffer.output_ = *std::move(output);
  return buffer;
}

Status NodeBuffer::KeepApart() { return has_memory() ? Status() : MakeMemoryFile(); }

Status NodeBuffer::MakeMemoryFile() {
  Result<FileDescriptor> file =
      prepost::MakeMemoryFile(fmt::format("prepost:{}", node_.value), bytes_);
  if (!file.ok()) return file.status();
  memory_file_ = *std::move(file);
  return {};
}

Status NodeBuffer::Reserve(const Checkpoint& checkpoint) {
  if (output_) PREPOST_RETURN_IF_ERROR(output_->Reserve(bytes_, checkpoint));
  if (!has_memory()) return {};
  Result<Mapping> memory = Mapping::OfFile(memory_file_.get(), bytes_, Mapping::Access::kReadWrite);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  return memory_.Touch(Mapping::Access::kReadWrite, checkpoint);
}

Status NodeBuffer::Store(const Checkpoint& checkpoint) {
  return output_ && has_memory() ? output_->Write(memory_.bytes(), checkpoint) : Status();
}

Result<MessageSum> NodeBuffer::Sum(const Checkpoint& checkpoint) const {
  return output_ ? output_->Sum(checkpoint) : SumMemory(memory_.bytes(), checkpoint);
}

Status CheckCopy(NodeId node, const MessageSum& sum, const MessageSum& root_sum) {
  if (sum == root_sum) return {};
  return Rejected(
      fmt::format("the copy of node {} has the BLAKE2b-256 sum {}, expected {} as at the root",
                  node.value, sum.ToString(), root_sum.ToString()));
}

}  // namespace prepost
