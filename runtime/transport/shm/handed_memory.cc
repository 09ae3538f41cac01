// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/handed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace prepost {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

}  // namespace

Result<HandedMemory> MakeHandedMemory(const char* name, uint64_t bytes) {
  HandedMemory made;
  made.file =
      FileDescriptor::Open([name] { return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  const int fd = made.file.get();
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0)
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
  const bool is_one = fcntl(file.get(), F_GET_SEALS) == kSeals && fstat(file.get(), &found) == 0 &&
                      is_size(static_cast<uint64_t>(found.st_size));
  if (!is_one) return Rejected("what another process has handed over is no such memory");
  return Mapping::OfFile(file.get(), static_cast<uint64_t>(found.st_size), Mapping::Access::kRead);
}

}  // namespace prepost
