// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/sealing/bounce_buffer.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/memory_file.h"

namespace prepost {
namespace {

/// Of a copy between the file and memory.
Io CopyOutcome(ssize_t moved) {
  if (moved > 0) return {.bytes = static_cast<size_t>(moved)};
  if (moved < 0 && errno == EINTR) return {.outcome = Io::Outcome::kHeld};
  if (moved < 0 && errno == EFAULT) return {.outcome = Io::Outcome::kBadMemory};
  return {.outcome = Io::Outcome::kFailed, .error = moved < 0 ? errno : EIO};
}

}  // namespace

Result<std::unique_ptr<BounceBuffer>> BounceBuffer::Make(size_t bytes) {
  std::unique_ptr<BounceBuffer> buffer(new BounceBuffer);
  Result<FileDescriptor> file = MakeMemoryFile("prepost:seal", bytes);
  if (!file.ok()) return file.status();
  buffer->file_ = *std::move(file);
  Result<Mapping> mapping =
      Mapping::OfFile(buffer->file_.get(), bytes, Mapping::Access::kReadWrite);
  if (!mapping.ok()) return mapping.status();
  buffer->mapping_ = *std::move(mapping);
  PREPOST_RETURN_IF_ERROR(buffer->mapping_.Touch(Mapping::Access::kReadWrite));
  return buffer;
}

Io BounceBuffer::Fill(std::span<const iovec> memory) {
  return CopyOutcome(pwritev(file_.get(), memory.data(), static_cast<int>(memory.size()), 0));
}

Io BounceBuffer::Drain(size_t offset, std::span<const iovec> memory) {
  return CopyOutcome(preadv(file_.get(), memory.data(), static_cast<int>(memory.size()),
                            static_cast<off_t>(offset)));
}

}  // namespace prepost
