// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/node_buffer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace prepost {

Result<NodeBuffer> NodeBuffer::Open(NodeId node, uint64_t bytes, const OutputSet* outputs) {
  NodeBuffer buffer;
  buffer.bytes_ = bytes;
  if (outputs == nullptr) {
    PREPOST_RETURN_IF_ERROR(buffer.OpenMemory(node));
    return buffer;
  }
  Result<PartialOutput> output = PartialOutput::Create(outputs->TemporaryPath(node));
  if (!output.ok()) return output.status();
  buffer.output_ = std::move(*output);
  return buffer;
}

Status NodeBuffer::OpenMemory(NodeId node) {
  memory_file_ = FileDescriptor(
      memfd_create(fmt::format("prepost:{}", node.value).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory_file_.valid() && ftruncate(fd(), static_cast<off_t>(bytes_)) == 0 &&
      fcntl(fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    return {};
  }
  return SystemError(StatusCode::kEnvironment,
                     fmt::format("cannot make the memory of node {}, {} bytes", node.value, bytes_),
                     errno);
}

Status NodeBuffer::Reserve(const Checkpoint& checkpoint) {
  if (output_) return output_->Reserve(bytes_, checkpoint);
  Result<Mapping> memory = Mapping::OfFile(fd(), bytes_, Mapping::Access::kReadWrite);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  return memory_.Touch(Mapping::Access::kReadWrite, checkpoint);
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
