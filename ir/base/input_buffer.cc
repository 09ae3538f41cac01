// SPDX-License-Identifier: Apache-2.0
#include "ir/base/input_buffer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace prepost {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

InputBuffer::InputBuffer(const std::string& path)
    : is_own_(true), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) error_ = errno;
}

InputBuffer::InputBuffer(int file) : is_own_(false), file_(file) {}

InputBuffer::~InputBuffer() {
  if (is_own_ && file_ >= 0) close(file_);
}

Status InputBuffer::status(const std::string& path) const {
  if (error_ == 0) return {};
  return Rejected("cannot read: " + std::system_category().message(error_), path);
}

InputBuffer::int_type InputBuffer::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  bytes_.resize(size_t{1} << 16);
  size_t filled = 0;
  bool has_ended = false;
  // The first time as many as a byte-order mark has, which is no part of a text.
  while (error_ == 0 && !has_ended && filled < (is_begun_ ? 1 : kByteOrderMark.size())) {
    const ssize_t got = read(file_, bytes_.data() + filled, bytes_.size() - filled);
    if (got > 0) filled += static_cast<size_t>(got);
    has_ended = got == 0;
    if (got >= 0) continue;
    if (errno == EAGAIN) {
      pollfd readable = {.fd = file_, .events = POLLIN, .revents = 0};
      poll(&readable, 1, /*timeout=*/-1);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  const bool is_marked = !std::exchange(is_begun_, true) &&
                         std::string_view(bytes_.data(), filled).starts_with(kByteOrderMark);
  char* const begin = bytes_.data() + (is_marked ? kByteOrderMark.size() : 0);
  setg(begin, begin, bytes_.data() + filled);
  return gptr() < egptr() ? traits_type::to_int_type(*gptr())
         : is_marked      ? underflow()
                          : traits_type::eof();
}

InputBuffer::pos_type InputBuffer::seekpos(pos_type position, std::ios_base::openmode) {
  if (position != pos_type(0) || lseek(file_, 0, SEEK_SET) != 0) return pos_type(off_type(-1));
  setg(nullptr, nullptr, nullptr);
  is_begun_ = false;
  return pos_type(0);
}

}  // namespace prepost
