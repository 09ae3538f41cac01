// SPDX-License-Identifier: Apache-2.0
//
// TcpLinks: PeerLinks over TCP connections, as bootstrap.h and tcp_mesh.h make them.
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_TCP_LINKS_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_TCP_LINKS_H_

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/transport/peer_links.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {

/// See PeerLinks. Of several connections with a peer the first is used; that any of them is closed
/// counts.
class TcpLinks final : public PeerLinks {
 public:
  explicit TcpLinks(std::vector<TcpSocket> sockets);

  bool Has(NodeId peer) const override { return files_.contains(peer); }
  Result<size_t> Send(NodeId peer, std::span<const std::byte> bytes) override;
  Result<size_t> Receive(NodeId peer, std::span<std::byte> bytes) override;
  int File(NodeId peer) const override;
  std::chrono::microseconds RoundTripTo(NodeId peer) const override;
  std::string LocalHost() const override;
  std::optional<NodeId> ClosedPeer() const override;
  Result<std::unique_ptr<PeerLinks>> Copy() const override;
  void Shut() override;

 private:
  const std::vector<TcpSocket> sockets_;
  std::map<NodeId, int> files_;  ///< of each peer's first socket
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_TCP_LINKS_H_
