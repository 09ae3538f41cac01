// SPDX-License-Identifier: Apache-2.0
//
// FileDescriptor: the owner of one open file, socket or pipe end, with exact reads and writes and
// the wording
// of a failed system call. Used by everything under runtime/ that talks to the kernel.
#ifndef PREPOST_RUNTIME_FILE_DESCRIPTOR_H_
#define PREPOST_RUNTIME_FILE_DESCRIPTOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ir/status.h"

namespace prepost {

/// Closes what it owns. Move only; empty is -1.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

/// True when no process can make the open file shorter (it is a memory file, sealed against it), so
/// that its mappings may be read and written without fear of SIGBUS (mapping.h).
bool IsSealed(int fd);

/// "what: No space left on device". `error` is an errno value.
Status SystemError(StatusCode code, const std::string& what, int error);

/// Whether `fd` can be read without waiting; -1: never.
bool IsReadable(int fd);

/// Has the epoll file `epoll` be readable while `fd` is, reads of which no longer wait. 0 or an errno
/// value.
int WatchForReading(int epoll, int fd);

/// Makes room for `needed` open files. Errors: kEnvironment.
Status RaiseFileLimit(size_t needed);

/// Fills `out` from byte `offset` of an open file. Errors (kRejected), with `name`: a read that
/// fails, a file that ends before, as one does that was cut short meanwhile.
Status ReadExactly(int fd, uint64_t offset, std::span<std::byte> out, const std::string& name);
/// Writes all of `bytes` at byte `offset` of an open file. Errors (kRejected), with `name`: a write
/// that fails, as on a full disk.
Status WriteExactly(int fd, uint64_t offset, std::span<const std::byte> bytes,
                    const std::string& name);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_FILE_DESCRIPTOR_H_
