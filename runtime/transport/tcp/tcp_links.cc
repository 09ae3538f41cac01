// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_links.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/transport/tcp/tcp_address.h"
#include "runtime/transport/tcp/tcp_path.h"

namespace prepost {
namespace {

bool IsLater(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

TcpLinks::TcpLinks(std::vector<TcpSocket> sockets) : sockets_(std::move(sockets)) {
  for (const TcpSocket& socket : sockets_) files_.try_emplace(socket.peer, socket.fd.get());
}

int TcpLinks::File(NodeId peer) const {
  const auto found = files_.find(peer);
  PREPOST_CHECK(found != files_.end());
  return found->second;
}

Result<size_t> TcpLinks::Send(NodeId peer, std::span<const std::byte> bytes) {
  const ssize_t sent = send(File(peer), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (IsLater(errno)) return size_t{0};
  return Rejected(std::strerror(errno));
}

Result<size_t> TcpLinks::Receive(NodeId peer, std::span<std::byte> bytes) {
  const ssize_t got = recv(File(peer), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0) return Rejected("it closed the connection");
  if (IsLater(errno)) return size_t{0};
  return Rejected(std::strerror(errno));
}

std::chrono::microseconds TcpLinks::RoundTripTo(NodeId peer) const {
  return Has(peer) ? RoundTripOf(File(peer)) : std::chrono::microseconds(0);
}

std::string TcpLinks::LocalHost() const {
  return sockets_.empty() ? "" : LocalAddress(sockets_.front().fd).Host();
}

std::optional<NodeId> TcpLinks::ClosedPeer() const {
  for (const TcpSocket& socket : sockets_) {
    char byte;
    const ssize_t got = recv(socket.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !IsLater(errno))) return socket.peer;
  }
  return std::nullopt;
}

Result<std::unique_ptr<PeerLinks>> TcpLinks::Copy() const {
  std::vector<TcpSocket> copies;
  for (const TcpSocket& socket : sockets_) {
    auto copy = FileDescriptor::Open([&] { return fcntl(socket.fd.get(), F_DUPFD_CLOEXEC, 0); });
    if (!copy.valid())
      return SystemError(StatusCode::kEnvironment, "cannot copy a connection", errno);
    copies.push_back({.peer = socket.peer, .lane = socket.lane, .fd = std::move(copy)});
  }
  return std::unique_ptr<PeerLinks>(std::make_unique<TcpLinks>(std::move(copies)));
}

void TcpLinks::Shut() {
  for (const TcpSocket& socket : sockets_) shutdown(socket.fd.get(), SHUT_RDWR);
}

}  // namespace prepost
