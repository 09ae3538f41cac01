// SPDX-License-Identifier: Apache-2.0
//
// QueuedEndpoint: the transport of the CPU executor over a device that has a queue for each end of
// a channel (ChannelQueues): endpoints of libfabric, queue pairs of libibverbs.
#ifndef PREPOST_RUNTIME_DEVICE_QUEUED_ENDPOINT_H_
#define PREPOST_RUNTIME_DEVICE_QUEUED_ENDPOINT_H_

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/device/channel_ends.h"
#include "runtime/executor/endpoint.h"
#include "runtime/executor/executor.h"
#include "runtime/transport/peer_links.h"

namespace prepost {

/// The queues of a node for one message after the other, connected with those of its peers. Used by
/// one thread. When they are gone nothing touches the memory.
class ChannelQueues {
 public:
  virtual ~ChannelQueues() = default;

  virtual const ChannelEnds& ends() const = 0;
  /// The next op of its end, in channel order. False: nothing is taken now, until the queue has
  /// completed something. A send completes when its bytes are in place. Errors: kRejected.
  virtual Result<bool> Post(OpId op) = 0;
  /// Writes ops that have completed to `completed`, and how many. Errors (kRejected): one has
  /// failed, or a receive is not what the plan has. lost_peer(): the peer that does not answer, if
  /// it is that.
  virtual Result<size_t> Read(std::span<OpId> completed) = 0;
  /// Before file() is waited for: false asks to read once more first.
  virtual bool MayWait() = 0;
  /// After file() was readable. Errors (kRejected): the device reports one.
  virtual Status TakeEvents() { return {}; }
  /// -1: there is none.
  virtual int file() const = 0;
  /// Whether messages make progress by themselves, and not only when somebody reads.
  virtual bool is_automatic() const = 0;
  /// Whether a queue that takes nothing now does so after the next of its completions.
  virtual bool has_room_on_completion() const = 0;
  virtual std::optional<NodeId> lost_peer() const = 0;
  /// All ops have completed: the memory is not needed any more.
  virtual void Release() = 0;
  /// After that: the next message, of the same plan, from and to this memory. All nodes do so.
  /// Errors: kEnvironment.
  virtual Status Restart(const NodeMemory& memory) = 0;
  /// Nothing touches the memory any more. Only to be destroyed afterwards.
  virtual void Stop() = 0;
};

/// See Endpoint. What a queue does not take at once is posted again when something has completed.
/// Arrivals are not observed, and how often a peer had to wait is not known. Queues that make
/// progress only when they are read deliver nothing to a peer, not even that what the peer sent is
/// in place, while nobody reads: there each node, when all its ops have completed, says so to its
/// peers over `links`, and is quiet when all of them have said it.
class QueuedEndpoint final : public Endpoint {
 public:
  /// `links`: with each peer, not null. `wake_fd`: while it is readable, Poll() does not wait;
  /// -1: none. Not owned.
  QueuedEndpoint(std::shared_ptr<ChannelQueues> queues, std::unique_ptr<PeerLinks> links,
                 int wake_fd);
  /// Queues that have completed everything are released, others stopped.
  ~QueuedEndpoint() override;
  QueuedEndpoint(const QueuedEndpoint&) = delete;
  QueuedEndpoint& operator=(const QueuedEndpoint&) = delete;

  void PostRecv(const RecvRequest& request) override { Post(request.op); }
  void PostSend(const SendRequest& request) override { Post(request.op); }
  Result<PollOutcome> Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) override;
  Status Flush() override { return Retry(); }
  bool quiet() const override { return held_back_ == 0 && peers_.empty(); }
  std::optional<NodeId> lost_peer() const override { return lost_peer_; }
  EndpointCounters counters() const override { return counters_; }
  void Stop() override;
  void ObserveWakeups(std::function<void()> observer) override { on_wakeup_ = std::move(observer); }

 private:
  /// Of an end: how many of its ops the executor has posted, and its queue has taken.
  struct Posts {
    uint32_t posted = 0;
    uint32_t taken = 0;
  };

  Status Glance(bool* woken);
  void Post(OpId op);
  void Submit(uint32_t end);
  Status SayGoodbye();
  Status Lost(NodeId peer);
  Status Retry();
  Result<size_t> Read(std::span<OpId> completed);

  std::shared_ptr<ChannelQueues> queues_;  // null: stopped
  const int wake_fd_;
  std::vector<Posts> posts_;  // by end
  std::unique_ptr<PeerLinks> links_;
  std::vector<NodeId> peers_;  // that have not said that they are done; one of each
  uint64_t open_ops_;          // not completed
  std::vector<pollfd> waits_;
  uint32_t polls_ = 0;
  bool has_said_ = false;   // that all have
  uint64_t held_back_ = 0;  // posted and not taken, of all ends
  Status failure_;          // of a post
  std::optional<NodeId> lost_peer_;
  std::function<void()> on_wakeup_;  // may be empty
  EndpointCounters counters_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_DEVICE_QUEUED_ENDPOINT_H_
