// SPDX-License-Identifier: Apache-2.0
//
// FabricEndpoint: libfabric as the transport of the CPU executor, over any provider that has
// endpoints for messages. A send completes when its bytes are in place (FI_DELIVERY_COMPLETE).
#ifndef PREPOST_BACKENDS_FABRIC_FABRIC_ENDPOINT_H_
#define PREPOST_BACKENDS_FABRIC_FABRIC_ENDPOINT_H_

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/fabric/endpoints.h"
#include "runtime/endpoint.h"
#include "runtime/transport/tcp_mesh.h"

namespace prepost::fabric {

/// See Endpoint. What a provider does not take at once is posted again when it has completed
/// something. Arrivals are not observed, and how often a peer had to wait is not known. A provider
/// that makes progress only when it is asked delivers nothing to a peer, not even that what the peer
/// sent is in place, while nobody asks: there each node, when all its ops have completed, says so to
/// its peers over `sockets`, and is quiet when all of them have said it.
class FabricEndpoint final : public Endpoint {
 public:
  /// `endpoints` are connected and have no counters. `sockets`: at least one with each peer.
  /// `wake_fd`: while it is readable, Poll() does not wait; -1: none. Not owned.
  FabricEndpoint(std::unique_ptr<Endpoints> endpoints, std::vector<TcpSocket> sockets, int wake_fd);

  void PostRecv(const RecvRequest& request) override { Post(request.op); }
  void PostSend(const SendRequest& request) override { Post(request.op); }
  Result<PollOutcome> Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) override;
  Status Flush() override { return Retry(); }
  bool quiet() const override { return held_back_ == 0 && peers_.empty(); }
  std::optional<NodeId> lost_peer() const override { return lost_peer_; }
  EndpointCounters counters() const override { return counters_; }
  void Stop() override { endpoints_ = nullptr; }

 private:
  /// Of an end: how many of its ops the executor has posted, and the provider has taken.
  struct Queue {
    uint32_t posted = 0;
    uint32_t taken = 0;
  };

  void Post(OpId op);
  void Submit(uint32_t end);
  Status Part();
  Status Lost(const TcpSocket& peer);
  Status Retry();
  Result<size_t> Read(std::span<OpId> completed);

  std::unique_ptr<Endpoints> endpoints_;  // null: stopped
  const int wake_fd_;
  std::vector<Queue> queues_;  // by end
  std::vector<TcpSocket> sockets_;
  std::vector<const TcpSocket*> peers_;  // that have not said that they are done; one of each
  uint64_t open_ops_ = 0;                // not completed
  std::vector<pollfd> waits_;
  bool has_said_ = false;   // that all have
  uint64_t held_back_ = 0;  // posted and not taken, of all ends
  Status failure_;          // of a post
  std::optional<NodeId> lost_peer_;
  EndpointCounters counters_;
};

}  // namespace prepost::fabric

#endif  // PREPOST_BACKENDS_FABRIC_FABRIC_ENDPOINT_H_
