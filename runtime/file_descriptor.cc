// SPDX-License-Identifier: Apache-2.0
#include "runtime/file_descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace prepost {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.fd_;
    other.fd_ = -1;
  }
  return *this;
}

void FileDescriptor::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool IsSealed(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

Status SystemError(StatusCode code, const std::string& what, int error) {
  return {code, what + ": " + std::system_category().message(error)};
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

Status ReadExactly(int fd, uint64_t offset, std::span<std::byte> out, const std::string& name) {
  while (!out.empty()) {
    const ssize_t got = pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return SystemError(StatusCode::kRejected, fmt::format("cannot read {}", name), errno);
    }
    if (got == 0) {
      return Rejected(fmt::format("{} was cut short meanwhile: it ends at byte {}", name, offset));
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
