// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/control_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace prepost {

void ControlMessage::SetText(const std::string& value) {
  const size_t length = std::min(value.size(), text.size() - 1);
  std::copy_n(value.begin(), length, text.begin());
  text[length] = '\0';
}

Result<std::pair<ControlSocket, ControlSocket>> ControlSocket::MakePair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return SystemError(StatusCode::kEnvironment, "cannot make a control connection", errno);
  }
  return std::pair(ControlSocket(fds[0]), ControlSocket(fds[1]));
}

bool ControlSocket::Send(const ControlMessage& message) {
  return send(fd(), &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(message));
}

std::optional<ControlMessage> ControlSocket::Receive(bool wait) {
  ControlMessage message;
  for (;;) {
    const ssize_t got = recv(fd(), &message, sizeof(message), wait ? 0 : MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof(message))) return message;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return std::nullopt;
    closed_ = true;
    return std::nullopt;
  }
}

}  // namespace prepost
