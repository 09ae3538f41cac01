// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/node_buffer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace prepost {
namespace {

/// Between checkpoints while memory is touched.
constexpr uint64_t kTouchStepBytes = uint64_t{64} << 20;

}  // namespace

Result<NodeBuffer> NodeBuffer::Open(NodeId node, const OutputSet* outputs) {
  if (outputs == nullptr) return OfMemory(node);
  return OfFile(PartialOutput::Create(outputs->TemporaryPath(node)));
}

Result<NodeBuffer> NodeBuffer::OpenUnnamed(NodeId node, const OutputSet* outputs) {
  if (outputs == nullptr) return OfMemory(node);
  return OfFile(PartialOutput::CreateUnnamed(outputs->TemporaryPath(node)));
}

Result<NodeBuffer> NodeBuffer::OfFile(Result<PartialOutput> output) {
  if (!output.ok()) return output.status();
  NodeBuffer buffer;
  buffer.output_ = std::move(*output);
  return buffer;
}

Result<NodeBuffer> NodeBuffer::OfMemory(NodeId node) {
  NodeBuffer buffer;
  buffer.memory_file_ = FileDescriptor(
      memfd_create(fmt::format("prepost:{}", node.value).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (buffer.memory_file_.valid()) return buffer;
  return SystemError(StatusCode::kEnvironment,
                     fmt::format("cannot make the memory of node {}", node.value), errno);
}

Status NodeBuffer::Reserve(uint64_t bytes, const Checkpoint& checkpoint) {
  return output_ ? output_->Reserve(bytes, checkpoint) : ReserveMemory(bytes, checkpoint);
}

Status NodeBuffer::ReserveMemory(uint64_t bytes, const Checkpoint& checkpoint) {
  const auto failed = [bytes] {
    return SystemError(StatusCode::kEnvironment,
                       fmt::format("cannot reserve {} bytes of memory", bytes), errno);
  };
  if (ftruncate(fd(), static_cast<off_t>(bytes)) != 0) return failed();
  if (fcntl(fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return failed();
  Result<Mapping> memory = Mapping::OfFile(fd(), bytes, Mapping::Access::kReadWrite);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  for (uint64_t offset = 0; offset < bytes; offset += kTouchStepBytes) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    const auto step = memory_.bytes().subspan(offset, std::min(bytes - offset, kTouchStepBytes));
    if (madvise(step.data(), step.size(), MADV_POPULATE_WRITE) != 0) return failed();
  }
  return {};
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
