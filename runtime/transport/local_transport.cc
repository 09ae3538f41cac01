// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/local_transport.h"

#include <utility>

#include "runtime/transport/shm/shm_board.h"
#include "runtime/transport/shm/shm_endpoint.h"
#include "runtime/transport/tcp/tcp_endpoint.h"
#include "runtime/transport/tcp/tcp_links.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {
namespace {

class LocalTcp final : public LocalTransport {
 public:
  LocalTcp(Playable plan, TcpMesh mesh, const LocalTcpOptions& options)
      : plan_(plan), mesh_(std::move(mesh)), options_(options) {}

  std::vector<int> FilesOf(NodeId node) const override {
    std::vector<int> files;
    for (const TcpSocket& socket : mesh_[node.index()]) files.push_back(socket.fd.get());
    return files;
  }
  Result<std::unique_ptr<Endpoint>> MakeEndpoint(NodeId node, int wake_fd,
                                                 const Checkpoint& /*checkpoint*/) override {
    std::vector<TcpSocket>& sockets = mesh_[node.index()];
    if (options_.key) SealSockets(node, sockets, *options_.key, Cipher());
    auto endpoint = TcpEndpoint::Make(plan_, node, std::move(sockets), wake_fd);
    if (!endpoint.ok()) return endpoint.status();
    return std::unique_ptr<Endpoint>(std::move(*endpoint));
  }
  std::unique_ptr<PeerLinks> TakeLinks(NodeId node) override {
    PREPOST_CHECK(!options_.key);
    return std::make_unique<TcpLinks>(std::move(mesh_[node.index()]));
  }

 private:
  SealCipher Cipher() const {
    if (options_.cipher != SealCipher::kNone) return options_.cipher;
    return BestCipher(SealCiphersHere(), SealCiphersHere());
  }

  const Playable plan_;
  TcpMesh mesh_;
  const LocalTcpOptions options_;
};

class LocalShm final : public LocalTransport {
 public:
  LocalShm(Playable plan, const LocalMemory& memory, ShmBoard board)
      : plan_(plan), memory_(memory), board_(std::move(board)) {}

  std::vector<int> FilesOf(NodeId node) const override {
    return ShmEndpoint::FilesOf(plan_, node, board_, memory_);
  }
  Result<std::unique_ptr<Endpoint>> MakeEndpoint(NodeId node, int wake_fd,
                                                 const Checkpoint& checkpoint) override {
    auto endpoint = ShmEndpoint::Make(plan_, node, board_, memory_, wake_fd, checkpoint);
    if (!endpoint.ok()) return endpoint.status();
    return std::unique_ptr<Endpoint>(std::move(*endpoint));
  }

 private:
  const Playable plan_;
  const LocalMemory memory_;
  ShmBoard board_;
};

}  // namespace

size_t LocalTransport::FilesNeeded(TransportKind kind, Playable plan) {
  switch (kind) {
    case TransportKind::kTcp:
      return 2 * TcpConnections(plan).size();
    case TransportKind::kShm:
      return ShmBoard::FilesNeeded(plan);
  }
  PREPOST_CHECK(false);
  return 0;
}

Result<std::unique_ptr<LocalTransport>> LocalTransport::Make(TransportKind kind, Playable plan,
                                                             const LocalMemory& memory,
                                                             const LocalTcpOptions& tcp) {
  switch (kind) {
    case TransportKind::kTcp: {
      Result<TcpMesh> mesh = MakeTcpMesh(plan, tcp.streams);
      if (!mesh.ok()) return mesh.status();
      if (tcp.change) tcp.change(*mesh);
      return std::unique_ptr<LocalTransport>(new LocalTcp(plan, std::move(*mesh), tcp));
    }
    case TransportKind::kShm: {
      Result<ShmBoard> board = ShmBoard::Make(plan);
      if (!board.ok()) return board.status();
      return std::unique_ptr<LocalTransport>(new LocalShm(plan, memory, std::move(*board)));
    }
  }
  PREPOST_CHECK(false);
  return EnvironmentError("");
}

}  // namespace prepost
