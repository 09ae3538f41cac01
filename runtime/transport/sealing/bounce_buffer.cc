// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/sealing/bounce_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "ir/base/count.h"

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
  buffer->file_ = FileDescriptor::Open(
      [] { return memfd_create("prepost:seal", MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  const int fd = buffer->file_.get();
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return SystemError(StatusCode::kEnvironment,
                       "cannot make the memory for sealing, " + Count(bytes, "byte"), errno);
  }
  Result<Mapping> mapping = Mapping::OfFile(fd, bytes, Mapping::Access::kReadWrite);
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
