// SPDX-License-Identifier: Apache-2.0
//
// FileDescriptor: the owner of one open file, socket or pipe end, with exact reads and writes and
// the wording of a failed system call. Used by everything under runtime/ that talks to the kernel.
#ifndef PREPOST_RUNTIME_BASE_FILE_DESCRIPTOR_H_
#define PREPOST_RUNTIME_BASE_FILE_DESCRIPTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "ir/base/status.h"

namespace prepost {

/// From now on a fork of this process closes, in the child, all files that FileDescriptors own
/// which are made from now on (numbers below 2^20). For programs that only use the library: they
/// may fork at any time, and their children must not keep connections open whose other ends wait
/// for an end.
void CloseFilesInForks();
/// How many forks lie between this process and the one in which CloseFilesInForks() was called:
/// what was made at another depth belongs to a parent of this process, and its threads are not
/// here.
uint32_t ForkDepth();

/// No other thread forks between its construction and destruction. Needs no memory.
class NoForks {
 public:
  NoForks();
  ~NoForks();
  NoForks(const NoForks&) = delete;
  NoForks& operator=(const NoForks&) = delete;
};

/// Closes what it owns. Move only; empty is -1, and so is one that a fork has closed.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : FileDescriptor(fd, NoForks()) {}
  /// What `open` returns, a system call that does not wait: no fork comes between it and its owner.
  template <typename Call>
  static FileDescriptor Open(Call open) {
    const NoForks guard;
    return FileDescriptor(open(), guard);
  }
  /// The same of two; -1: there is none.
  template <typename Call>
  static std::array<FileDescriptor, 2> OpenTwo(Call open) {
    const NoForks guard;
    const std::array<int, 2> opened = open();
    return {FileDescriptor(opened[0], guard), FileDescriptor(opened[1], guard)};
  }
  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), depth_(other.depth_) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { Close(); }

  int get() const { return depth_ == kEveryDepth || depth_ == ForkDepth() ? fd_ : -1; }
  bool valid() const { return get() >= 0; }
  void Close();

 private:
  static constexpr uint32_t kEveryDepth = UINT32_MAX;

  FileDescriptor(int fd, const NoForks& guard);

  int fd_ = -1;
  uint32_t depth_ = kEveryDepth;  ///< at which it is open; every: forks leave it open
};

/// True when no process can make the open file shorter (it is a memory file, sealed against it), so
/// that its mappings may be read and written without fear of SIGBUS (mapping.h).
bool IsSealed(int fd);

/// "what: No space left on device". `error` is an errno value.
Status SystemError(StatusCode code, const std::string& what, int error);

/// kEnvironment: what is said where a file is not open any more that nobody here has closed.
Status FileClosedError();

/// Whether `fd` can be read without waiting; -1: never.
bool IsReadable(int fd);

/// Has the epoll file `epoll` be readable while `fd` is, reads of which no longer wait. 0 or an
/// errno value.
int WatchForReading(int epoll, int fd);

/// How many files the system lets this process have open at most.
size_t FilesMax();

/// Makes room for `needed` open files. Errors: kEnvironment.
Status RaiseFileLimit(size_t needed);

/// Room for some open files, beside whatever else the process has open: while there are any, the
/// limit of open files is what the program had set, and theirs on top, as far as the system allows.
/// It is not lowered again. Move only; any thread.
class FileRoom {
 public:
  FileRoom() = default;
  /// Errors: kEnvironment: `files` alone are more than the system allows.
  static Result<FileRoom> Reserve(size_t files);
  /// Of files that one can do without. Errors (kEnvironment): also where they, what is reserved
  /// already, and the program's own limit, or half of the system's if that is less, are more
  /// together than the system allows.
  static Result<FileRoom> ReserveSpare(size_t files);
  FileRoom(FileRoom&& other) noexcept : files_(std::exchange(other.files_, 0)) {}
  FileRoom& operator=(FileRoom&& other) noexcept {
    std::swap(files_, other.files_);
    return *this;
  }
  ~FileRoom();

 private:
  static Result<FileRoom> Make(size_t files, bool is_spare);

  size_t files_ = 0;
};

/// Fills `out` from byte `offset` of an open file. Errors (kRejected), with `name`: a read that
/// fails, a file that ends before, as one does that was cut short meanwhile.
Status ReadExactly(int fd, uint64_t offset, std::span<std::byte> out, const std::string& name);
/// Writes all of `bytes` at byte `offset` of an open file. Errors (kRejected), with `name`: a write
/// that fails, as on a full disk.
Status WriteExactly(int fd, uint64_t offset, std::span<const std::byte> bytes,
                    const std::string& name);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_BASE_FILE_DESCRIPTOR_H_
