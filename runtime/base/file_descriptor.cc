// SPDX-License-Identifier: Apache-2.0
//
// Which files a fork has to close in the child is kept by number, a bit each, and changed together
// with the files themselves under a lock that forks take as well: so the child never closes a
// number that the program has got meanwhile, and misses none. It calls nothing but close(). State
// of the whole process, as pthread_atfork() has no other.
#include "runtime/base/file_descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <mutex>
#include <system_error>

namespace prepost {
namespace {

constexpr size_t kTrackedMax = size_t{1} << 20;  ///< as many as Linux has unless told otherwise
constexpr size_t kWordBits = 64;

/// The files that a fork closes in the child. Under fork_mutex.
struct TrackedFiles {
  bool is_on = false;
  size_t words = 0;  ///< that have been used
  std::array<uint64_t, kTrackedMax / kWordBits> bits = {};
};
constinit std::mutex fork_mutex;
constinit TrackedFiles tracked_files;
constinit std::atomic<uint32_t> fork_depth = 0;

uint64_t BitOf(int fd) { return uint64_t{1} << (static_cast<size_t>(fd) % kWordBits); }
uint64_t& WordOf(int fd) { return tracked_files.bits[static_cast<size_t>(fd) / kWordBits]; }

/// In the child, which has the lock of its parent's thread.
void CloseTrackedFiles() {
  for (size_t i = 0; i < tracked_files.words; ++i) {
    uint64_t& word = tracked_files.bits[i];
    for (; word != 0; word &= word - 1)
      close(static_cast<int>(i * kWordBits + static_cast<size_t>(std::countr_zero(word))));
  }
  fork_depth.fetch_add(1);
  fork_mutex.unlock();
}

/// The limit of open files as the program set it, and what is reserved on top.
struct FileRooms {
  std::mutex mutex;
  size_t files = 0;
  rlim_t program = 0;  ///< its own limit
  rlim_t raised = 0;   ///< to which it was raised here; another one is the program's own
};
constinit FileRooms file_rooms;

}  // namespace

void CloseFilesInForks() {
  static const int registered =
      pthread_atfork([] { fork_mutex.lock(); }, [] { fork_mutex.unlock(); }, CloseTrackedFiles);
  const NoForks guard;
  tracked_files.is_on = registered == 0;
}

uint32_t ForkDepth() { return fork_depth.load(std::memory_order_relaxed); }

NoForks::NoForks() { fork_mutex.lock(); }
NoForks::~NoForks() { fork_mutex.unlock(); }

FileDescriptor::FileDescriptor(int fd, const NoForks&) : fd_(fd) {
  if (fd < 0 || !tracked_files.is_on || static_cast<size_t>(fd) >= kTrackedMax) return;
  depth_ = ForkDepth();
  WordOf(fd) |= BitOf(fd);
  tracked_files.words = std::max(tracked_files.words, static_cast<size_t>(fd) / kWordBits + 1);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    depth_ = other.depth_;
  }
  return *this;
}

void FileDescriptor::Close() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0) return;
  if (depth_ == kEveryDepth) {
    close(fd);
    return;
  }
  const NoForks guard;
  if (depth_ != ForkDepth()) return;  // the fork has closed it
  WordOf(fd) &= ~BitOf(fd);
  close(fd);
}

bool IsSealed(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

Status SystemError(StatusCode code, const std::string& what, int error) {
  return {code, what + ": " + std::system_category().message(error)};
}

Status FileClosedError() {
  return EnvironmentError("the program has closed a file descriptor of the session");
}

bool IsReadable(int fd) {
  pollfd file = {.fd = fd, .events = POLLIN, .revents = 0};
  return fd >= 0 && poll(&file, 1, 0) > 0 && (file.revents & POLLIN) != 0;
}

int WatchForReading(int epoll, int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return errno;
  epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

size_t FilesMax() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<size_t>(limit.rlim_max) : 0;
}

Status RaiseFileLimit(size_t needed) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || needed <= limit.rlim_cur) return {};
  if (needed > limit.rlim_max) {
    return EnvironmentError(
        fmt::format("this plan needs {} open files on one machine, the limit is {} (ulimit -n)",
                    needed, limit.rlim_max));
  }
  limit.rlim_cur = needed;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  return SystemError(StatusCode::kEnvironment, "cannot raise the limit of open files", errno);
}

Result<FileRoom> FileRoom::Reserve(size_t files) { return Make(files, /*is_spare=*/false); }
Result<FileRoom> FileRoom::ReserveSpare(size_t files) { return Make(files, /*is_spare=*/true); }

Result<FileRoom> FileRoom::Make(size_t files, bool is_spare) {
  FileRoom room;
  const std::lock_guard lock(file_rooms.mutex);
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    if (limit.rlim_cur != file_rooms.raised) file_rooms.program = limit.rlim_cur;
    // A program that may open as many as the system allows needs half of them at most.
    const rlim_t others =
        is_spare ? file_rooms.files + std::min(file_rooms.program, limit.rlim_max / 2) : 0;
    if (others + files > limit.rlim_max) {
      return EnvironmentError(fmt::format(
          "a group needs {} open files, the limit is {} (ulimit -Hn)", files, limit.rlim_max));
    }
    // Not all is needed by all at once, so that what there is may do.
    const rlim_t wanted = std::min<rlim_t>(file_rooms.files + files, limit.rlim_max);
    const rlim_t raised = std::min(limit.rlim_max - wanted, file_rooms.program) + wanted;
    if (raised > limit.rlim_cur) {
      limit.rlim_cur = raised;
      if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return SystemError(StatusCode::kEnvironment, "cannot raise the limit of open files", errno);
      file_rooms.raised = raised;
    }
  }
  file_rooms.files += files;
  room.files_ = files;
  return room;
}

FileRoom::~FileRoom() {
  if (files_ == 0) return;
  const std::lock_guard lock(file_rooms.mutex);
  file_rooms.files -= files_;
}

Status ReadExactly(int fd, uint64_t offset, std::span<std::byte> out, const std::string& name) {
  while (!out.empty()) {
    const ssize_t got = pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return SystemError(StatusCode::kRejected, fmt::format("cannot read {}", name), errno);
    }
    if (got == 0) {
      struct stat about = {};  // of what has no size: as far as was read
      const bool has_size = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
      return Rejected(fmt::format("{} was cut short meanwhile: it ends at byte {}", name,
                                  has_size ? static_cast<uint64_t>(about.st_size) : offset));
    }
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

Status WriteExactly(int fd, uint64_t offset, std::span<const std::byte> bytes,
                    const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      return SystemError(StatusCode::kRejected, fmt::format("cannot write {}", name), errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return {};
}

}  // namespace prepost
