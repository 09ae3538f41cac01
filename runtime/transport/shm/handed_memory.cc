// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/handed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace prepost {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

/// Kernels before 6.3 do not know that it is never a program, and later ones may insist on it.
int MakeFile(const char* name) {
  constexpr unsigned int kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create(name, kFlags | MFD_NOEXEC_SEAL);
  return fd < 0 && errno == EINVAL ? memfd_create(name, kFlags) : fd;
}

}  // namespace

Result<HandedMemory> MakeHandedMemory(const char* name, uint64_t bytes, bool is_backed) {
  HandedMemory made;
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)  // else it would be a signal
    return EnvironmentError("memory for another process is larger than files may be (ulimit -f)");
  made.file = FileDescriptor::Open([name] { return MakeFile(name); });
  const int fd = made.file.get();
  const auto size = static_cast<off_t>(bytes);
  if (fd < 0 || ftruncate(fd, size) != 0 || (is_backed && fallocate(fd, 0, 0, size) != 0))
    return SystemError(StatusCode::kEnvironment, "cannot make memory for another process", errno);
  Result<Mapping> memory = Mapping::OfFile(fd, bytes, Mapping::Access::kReadWrite);
  if (!memory.ok()) return memory.status();
  made.memory = *std::move(memory);
  if (fcntl(fd, F_ADD_SEALS, kSeals) != 0)
    return SystemError(StatusCode::kEnvironment, "cannot seal memory for another process", errno);
  return made;
}

Result<Mapping> MapHandedMemory(const FileDescriptor& file,
                                const std::function<bool(uint64_t)>& is_size) {
  struct stat found = {};
  const int seals = fcntl(file.get(), F_GET_SEALS);
  const bool is_one = seals >= 0 && (seals & kSeals) == kSeals && fstat(file.get(), &found) == 0 &&
                      is_size(static_cast<uint64_t>(found.st_size));
  if (!is_one) return Rejected("what another process has handed over is no such memory");
  return Mapping::OfFile(file.get(), static_cast<uint64_t>(found.st_size), Mapping::Access::kRead);
}

}  // namespace prepost
