// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/node_buffer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace prepost {

Result<NodeBuffer> NodeBuffer::Open(NodeId node, uint64_t bytes, const OutputSet* outputs,
                                    BufferPlace place) {
  if (outputs == nullptr) return OfMemory(node, bytes);
  return OfFile(PartialOutput::Create(outputs->TemporaryPath(node)), bytes, place);
}

Result<NodeBuffer> NodeBuffer::OpenUnnamed(NodeId node, uint64_t bytes, const OutputSet* outputs,
                                           BufferPlace place) {
  if (outputs == nullptr) return OfMemory(node, bytes);
  return OfFile(PartialOutput::CreateUnnamed(outputs->TemporaryPath(node)), bytes, place);
}

Result<NodeBuffer> NodeBuffer::OfFile(Result<PartialOutput> output, uint64_t bytes,
                                      BufferPlace place) {
  if (!output.ok()) return output.status();
  NodeBuffer buffer;
  buffer.bytes_ = bytes;
  buffer.place_ = place;
  buffer.output_ = std::move(*output);
  return buffer;
}

Result<NodeBuffer> NodeBuffer::OfMemory(NodeId node, uint64_t bytes) {
  NodeBuffer buffer;
  buffer.bytes_ = bytes;
  buffer.memory_file_ = FileDescriptor(
      memfd_create(fmt::format("prepost:{}", node.value).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (buffer.memory_file_.valid() && ftruncate(buffer.fd(), static_cast<off_t>(bytes)) == 0 &&
      fcntl(buffer.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    return buffer;
  }
  return SystemError(StatusCode::kEnvironment,
                     fmt::format("cannot make the memory of node {}, {} bytes", node.value, bytes),
                     errno);
}

Status NodeBuffer::Reserve(const Checkpoint& checkpoint) {
  if (output_) PREPOST_RETURN_IF_ERROR(output_->Reserve(bytes_, checkpoint));
  if (is_in_file()) return {};
  Result<Mapping> memory = output_ ? Mapping::Anonymous(bytes_)
                                   : Mapping::OfFile(fd(), bytes_, Mapping::Access::kReadWrite);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  return memory_.Touch(Mapping::Access::kReadWrite, checkpoint);
}

Status NodeBuffer::Write(const Checkpoint& checkpoint) {
  if (!output_ || is_in_file()) return {};
  return output_->Write(memory_.bytes(), checkpoint);
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
