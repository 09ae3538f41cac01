// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "ir/base/count.h"

namespace prepost {
namespace {

/// Without a name, where there is room for it; empty: nowhere.
FileDescriptor MakeUnnamed(uint64_t bytes) {
  const char* const chosen = std::getenv("TMPDIR");  // NOLINT: nobody sets it
  for (const char* const folder : {"/dev/shm", chosen, "/tmp"}) {
    if (folder == nullptr || *folder == '\0') continue;
    FileDescriptor file = FileDescriptor::Open(
        [folder] { return open(folder, O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600); });
    if (!file.valid()) {
      std::string path = std::string(folder) + "/prepost-XXXXXX";
      file = FileDescriptor::Open([&path] { return mkostemp(path.data(), O_CLOEXEC); });
      if (file.valid()) unlink(path.c_str());
    }
    // Reserved, or a write to its memory would be a signal where the disk is full.
    const int fd = file.get();
    if (file.valid() && ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
        (bytes == 0 || posix_fallocate(fd, 0, static_cast<off_t>(bytes)) == 0)) {
      return file;
    }
  }
  return {};
}

}  // namespace

Result<FileDescriptor> MakeMemoryFile(const std::string& name, uint64_t bytes) {
  FileDescriptor file = FileDescriptor::Open(
      [&name] { return memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  if (file.valid() && ftruncate(file.get(), static_cast<off_t>(bytes)) == 0 &&
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    return file;
  }
  const int error = errno;
  if (!file.valid()) {  // else the system knows it, and has no room
    file = MakeUnnamed(bytes);
    if (file.valid()) return file;
  }
  return SystemError(StatusCode::kEnvironment,
                     "cannot make a file of " + Count(bytes, "byte") + " in memory (memfd_create)",
                     error);
}

}  // namespace prepost
