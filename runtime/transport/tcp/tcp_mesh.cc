// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_mesh.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/transport/tcp/tcp_path.h"

namespace prepost {
namespace {

/// Bytes of one socket that the kernel holds and has not sent. Enough to keep a link busy between
/// two wake-ups, too little for two sends to share the uplink for long (docs/running.md).
constexpr int kUnsentBytesMax = 256 << 10;

/// Strangers that may connect to our listener before we give up.
constexpr int kStrangersMax = 100;

Status NetworkError(const char* what) {
  return SystemError(StatusCode::kEnvironment, fmt::format("cannot connect nodes: {}", what),
                     errno);
}

Result<FileDescriptor> NewSocket() {
  FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return NetworkError("socket");
  return fd;
}

Result<FileDescriptor> Listen(sockaddr_in* address) {
  Result<FileDescriptor> listener = NewSocket();
  if (!listener.ok()) return listener;
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(*address);
  auto* const generic = reinterpret_cast<sockaddr*>(address);
  if (bind(listener->get(), generic, length) != 0) return NetworkError("bind to 127.0.0.1");
  if (listen(listener->get(), SOMAXCONN) != 0) return NetworkError("listen");
  if (getsockname(listener->get(), generic, &length) != 0) return NetworkError("getsockname");
  return listener;
}

/// Accepts the connection whose other end is `client`; strangers' are closed.
Result<FileDescriptor> AcceptOwn(const FileDescriptor& listener, const FileDescriptor& client) {
  sockaddr_in own = {};
  socklen_t length = sizeof(own);
  if (getsockname(client.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    return NetworkError("getsockname");
  }
  for (int strangers = 0; strangers <= kStrangersMax; ++strangers) {
    sockaddr_in peer = {};
    length = sizeof(peer);
    FileDescriptor fd(
        accept4(listener.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC));
    if (!fd.valid()) return NetworkError("accept");
    if (peer.sin_port == own.sin_port && peer.sin_addr.s_addr == own.sin_addr.s_addr) return fd;
  }
  return EnvironmentError(
      fmt::format("cannot connect nodes: {} strangers connected to our port", kStrangersMax));
}

Result<std::pair<FileDescriptor, FileDescriptor>> Connect(const FileDescriptor& listener,
                                                          const sockaddr_in& address) {
  Result<FileDescriptor> client = NewSocket();
  if (!client.ok()) return client.status();
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (connect(client->get(), generic, sizeof(address)) != 0) return NetworkError("connect");
  Result<FileDescriptor> server = AcceptOwn(listener, *client);
  if (!server.ok()) return server.status();
  PREPOST_RETURN_IF_ERROR(ConfigureTcp(*client));
  PREPOST_RETURN_IF_ERROR(ConfigureTcp(*server));
  return std::pair(std::move(*client), std::move(*server));
}

}  // namespace

std::vector<TcpConnection> TcpConnections(Playable plan) {
  std::vector<TcpConnection> all;
  for (const Channel& channel : plan.channels()) {
    const auto [low, high] = std::minmax(channel.from, channel.to);
    all.push_back({.low = low, .high = high, .lane = channel.lane});
    all.push_back({.low = low, .high = high, .lane = Lane::kCredits});
  }
  std::ranges::sort(all);
  const auto rest = std::ranges::unique(all);
  all.erase(rest.begin(), rest.end());
  return all;
}

Status ConfigureTcp(const FileDescriptor& fd) {
  const int on = 1;
  const int unsent = kUnsentBytesMax;
  if (setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) {
    return NetworkError("TCP_NODELAY");
  }
  if (setsockopt(fd.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent)) != 0) {
    return NetworkError("TCP_NOTSENT_LOWAT");
  }
  return {};
}

Result<TcpMesh> MakeTcpMesh(Playable plan, uint16_t streams) {
  TcpMesh mesh(plan.header().nodes);
  sockaddr_in address = {};
  const Result<FileDescriptor> listener = Listen(&address);
  if (!listener.ok()) return listener.status();
  for (const TcpConnection& connection : TcpConnections(plan)) {
    const uint16_t count = connection.lane == Lane::kBlocks ? streams : uint16_t{1};
    for (uint16_t stream = 0; stream < count; ++stream) {
      auto ends = Connect(*listener, address);
      if (!ends.ok()) return ends.status();
      const auto add = [&](NodeId node, NodeId peer, FileDescriptor& fd) {
        const Status status = ShapeStream(fd.get(), count, {});
        mesh[node.index()].push_back({.peer = peer,
                                      .lane = connection.lane,
                                      .stream = stream,
                                      .streams = count,
                                      .fd = std::move(fd)});
        return status;
      };
      PREPOST_RETURN_IF_ERROR(add(connection.low, connection.high, ends->first));
      PREPOST_RETURN_IF_ERROR(add(connection.high, connection.low, ends->second));
    }
  }
  return mesh;
}

void SealSockets(NodeId node, std::span<TcpSocket> sockets, const GroupKey& key,
                 SealCipher cipher) {
  for (TcpSocket& socket : sockets) {
    const auto [low, high] = std::minmax(node, socket.peer);
    const std::string name =
        fmt::format("{} {} {} {}", low.value, high.value, NumberOf(socket.lane), socket.stream);
    socket.seal = std::make_unique<LinkSeal>(key.Derive(std::as_bytes(std::span(name))), cipher,
                                             /*is_connector=*/node == low);
  }
}

}  // namespace prepost
