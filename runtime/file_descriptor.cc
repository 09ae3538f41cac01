// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/file_descriptor.h"

#include <unistd.h>

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

Status SystemError(StatusCode code, const std::string& what, int error) {
  return {code, what + ": " + std::system_category().message(error)};
}

}  // namespace prepost
