// SPDX-License-Identifier: Apache-2.0
//
// PeerLinks: a node's links to its peers, made by the code that formed the group. Over them members
// exchange where their devices are (peer_exchange.h), report that they are done
// (queued_endpoint.h), and notice that a peer is gone. Players, devices and movers reach peers by
// nothing else, and do not know what links are made of; over TCP they are TcpLinks (tcp_links.h).
#ifndef PREPOST_RUNTIME_TRANSPORT_PEER_LINKS_H_
#define PREPOST_RUNTIME_TRANSPORT_PEER_LINKS_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ir/base/status.h"
#include "ir/ids.h"

namespace prepost {

/// A link carries bytes both ways, in order. Used by one thread, but for Shut().
class PeerLinks {
 public:
  virtual ~PeerLinks() = default;

  /// Whether there is a link with `peer`: with each node that shares a channel of the plan.
  virtual bool Has(NodeId peer) const = 0;

  // With a peer that there is a link with.
  /// Sends as much of `bytes`, at least one, as the link takes without waiting; returns how many,
  /// 0: none now. Errors (kRejected): the link is lost; the message is why: "Broken pipe".
  virtual Result<size_t> Send(NodeId peer, std::span<const std::byte> bytes) = 0;
  /// Receives what has come into `bytes`, at least one; returns how many, 0: none so far. Errors
  /// (kRejected): the link is lost; the message is why: "it closed the connection".
  virtual Result<size_t> Receive(NodeId peer, std::span<std::byte> bytes) = 0;
  /// To be polled for either. Not owned by the caller.
  virtual int File(NodeId peer) const = 0;

  /// To a peer and back. 0: not known, as without a link.
  virtual std::chrono::microseconds RoundTripTo(NodeId peer) const = 0;
  /// This machine's address where its links are: "10.0.0.1". "": there are none.
  virtual std::string LocalHost() const = 0;
  /// A peer whose link is closed or broken. One with bytes that are not received yet is neither.
  virtual std::optional<NodeId> ClosedPeer() const = 0;
  /// For another player, over the same links: bytes go to the copy that receives them first.
  /// Errors: kEnvironment.
  virtual Result<std::unique_ptr<PeerLinks>> Copy() const = 0;
  /// Ends the links and their copies, at both ends: no member waits for the other any more. Called
  /// by any thread, also while another uses them.
  virtual void Shut() = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_PEER_LINKS_H_
