// SPDX-License-Identifier: Apache-2.0
//
// Memory that is sealed on both sides is copied by memcpy. A file may shrink under its mapping,
// where an access from user space is a SIGBUS; there the kernel copies, from the source's page
// cache straight into the mapped target (pread), and says so if either is gone. Both copy each byte
// once.
//
// Why not always pread: it copies page by page, and took twice the time of memcpy between two
// memory files (bench/transport_bench.cc prints what it takes here).
#include "runtime/transport/shm/shm_source.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/file_descriptor.h"

namespace prepost {

Result<ShmSource> ShmSource::Make(const Options& options, const Checkpoint& checkpoint) {
  ShmSource source;
  source.fd_ = options.fd;
  source.is_mapped_ = options.is_target_sealed && IsSealed(options.fd);
  if (!source.is_mapped_) return source;
  Result<Mapping> mapping = Mapping::OfFile(options.fd, options.bytes, Mapping::Access::kRead);
  if (!mapping.ok()) return mapping.status();
  source.mapping_ = std::move(*mapping);
  PREPOST_RETURN_IF_ERROR(source.mapping_.Touch(Mapping::Access::kRead, checkpoint));
  return source;
}

Result<size_t> ShmSource::Copy(uint64_t offset, std::span<std::byte> target) const {
  if (is_mapped_) {
    std::memcpy(target.data(), mapping_.bytes().subspan(offset, target.size()).data(),
                target.size());
    return target.size();
  }
  ssize_t got;
  do {
    got = pread(fd_, target.data(), target.size(), static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0) return Rejected("the copy there ends before it; was its file truncated meanwhile?");
  if (errno == EFAULT) {
    return Rejected("the memory for it is gone; was its file truncated meanwhile?");
  }
  return SystemError(StatusCode::kRejected, "reading failed", errno);
}

}  // namespace prepost
