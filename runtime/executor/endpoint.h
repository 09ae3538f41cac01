// SPDX-License-Identifier: Apache-2.0
//
// Endpoint: what an executor needs of a transport, at one node: post receives, post sends, poll for
// completions (tcp_endpoint.h, shm_endpoint.h). It knows channels and blocks, but not what must
// come after what.
#ifndef PREPOST_RUNTIME_EXECUTOR_ENDPOINT_H_
#define PREPOST_RUNTIME_EXECUTOR_ENDPOINT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "ir/plan.h"

namespace prepost {

/// A send or a receive as it is posted. `memory` is empty for a credit and must live until the op
/// has completed.
struct SendRequest {
  OpId op;
  ChannelId channel;
  uint32_t block = kNoBlock;
  std::span<const std::byte> memory;
};
struct RecvRequest {
  OpId op;
  ChannelId channel;
  uint32_t block = kNoBlock;
  std::span<std::byte> memory;
};

/// What one Poll() brought.
struct PollOutcome {
  size_t completed = 0;  ///< how many ops were written
  bool woken = false;    ///< the transport's wake-up source has something to say
};

/// What an endpoint has done so far.
struct EndpointCounters {
  uint64_t wakeups = 0;      ///< times it came back from waiting
  uint64_t early = 0;        ///< times a block was held back because no receive was posted for it
  uint64_t bytes_moved = 0;  ///< in both directions; rises whenever there is progress
};

/// Used by one thread. After Prepare-time set-up, posting and polling allocate nothing and take no
/// lock.
///
/// The i-th send posted on a channel goes into the i-th receive posted on it; block and size are
/// checked. A receive completes when its bytes are in place, a send when they are in place at the
/// receiver (docs/plan.md), or, of a call's small blocks over TCP, when they are written. A send
/// that finds no posted receive waits for it without loss. An error is final: nothing may be posted
/// afterwards.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual void PostRecv(const RecvRequest& request) = 0;
  virtual void PostSend(const SendRequest& request) = 0;
  /// Moves bytes; when nothing completes, waits for up to `timeout` (negative: for ever). Writes
  /// the ops that completed to `completed`. Errors: kRejected, naming the peer.
  virtual Result<PollOutcome> Poll(std::span<OpId> completed,
                                   std::chrono::milliseconds timeout) = 0;
  /// Hands over to the network what it takes without waiting: for after the last completion.
  /// Errors: as Poll().
  virtual Status Flush() = 0;
  /// True when nothing that a peer may be waiting for is still to be sent. Flush() and Poll() get
  /// there.
  virtual bool quiet() const = 0;
  /// The peer whose loss is the cause of Poll()'s error; none for other errors.
  virtual std::optional<NodeId> lost_peer() const = 0;
  virtual EndpointCounters counters() const = 0;
  /// Whether peers still acknowledge what was sent to them; lost_peer() is one that has not for
  /// about `silence`. To be called a few times in that time. A transport that is lost with its peer
  /// has nothing to check. Errors: kRejected.
  virtual Status CheckPeers(std::chrono::milliseconds /*silence*/) { return {}; }
  /// Asks all peers for a sign of life, and returns one that has given none for `silence` since it
  /// was asked, or has read nothing of what waits for it: its connections are open, but carry
  /// nothing, unless it does not poll them. To be called a few times in that time.
  virtual std::optional<NodeId> AskPeers(std::chrono::milliseconds /*silence*/) {
    return std::nullopt;
  }
  /// After an error: ends what a device would still do with the memory. Connections stay.
  virtual void Stop() {}

  /// Has `observer` called when the first bytes of a block arrive, with the op of its receive, for
  /// traces. Before the first post. A transport that does not know when that is calls nobody.
  virtual void ObserveArrivals(std::function<void(OpId)> /*observer*/) {}
  /// Has `observer` called at each return from waiting that counters() counts, before anything that
  /// it brings. Before the first Poll().
  virtual void ObserveWakeups(std::function<void()> /*observer*/) {}
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_ENDPOINT_H_
