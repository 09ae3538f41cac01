// SPDX-License-Identifier: Apache-2.0
//
// Player: one node's part of a transfer, armed, whatever carries it out: the CPU executor over a
// transport, or a NIC that was given all of it. A Member leads it from the start to the end.
#ifndef PREPOST_RUNTIME_EXECUTOR_PLAYER_H_
#define PREPOST_RUNTIME_EXECUTOR_PLAYER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/base/checkpoint.h"
#include "runtime/executor/endpoint.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/op_event.h"
#include "runtime/executor/playable.h"
#include "runtime/trace/report.h"
#include "runtime/transport/peer_links.h"

namespace prepost {

/// Used by one thread: Start() once every node has armed, then Poll() until done() or an error.
class Player {
 public:
  /// From here on nothing touches the memory that it was made with, whatever it was at.
  virtual ~Player() = default;

  virtual void Start() = 0;
  /// Does what there is to do; waits for more for up to `timeout` (negative: for ever), or until
  /// the wake-up source it was made with is readable.
  virtual Status Poll(std::chrono::milliseconds timeout) = 0;
  virtual bool done() const = 0;
  /// The last Poll() was ended by the wake-up source.
  virtual bool woken() const = 0;
  /// Counts so far; times are the caller's.
  virtual NodeReport report() const = 0;
  /// Offloaded, after the end: of the queues that are longer than their rings.
  virtual std::vector<QueueRearms> queue_rearms() const { return {}; }
  /// Rises whenever this host has seen anything happen. Cheap: paces its waiting.
  virtual uint64_t progress() const = 0;
  /// Rises whenever anything has happened here, also what the host need not see. For whoever asks
  /// about once a second whether the run goes on: may cost commands to a device.
  virtual uint64_t AskProgress() { return progress(); }
  /// For a run that stands still: what it waits for, in words, of up to `ops_max` ops. After
  /// AskProgress(), and as costly.
  virtual std::string Waiting(size_t ops_max) const = 0;
  /// After an error: ends what goes on without the host, as a NIC's queues do. Connections stay, so
  /// that nobody takes this node for the one that is lost.
  virtual void Stop() = 0;
  /// After an error: the peer whose loss it is.
  virtual std::optional<NodeId> lost_peer() const = 0;
};

/// What a player is made of besides the plan.
struct PlayerContext {
  NodeMemory memory;
  int wake_fd = -1;       ///< ends Poll()'s waiting while it is readable. Not owned
  Checkpoint checkpoint;  ///< to be called while making takes long
  OpObserver observer;    ///< may be empty
  /// How long making may wait between two calls of `checkpoint`.
  std::chrono::milliseconds checkpoint_interval{100};
};
/// Connects this node with its peers and arms it.
using PlayerFactory = std::function<Result<std::unique_ptr<Player>>(const PlayerContext&)>;
/// Arms `node` over `links`, which are there, one with each peer, and not null.
using ConnectedPlayerFactory = std::function<Result<std::unique_ptr<Player>>(
    NodeId node, std::unique_ptr<PeerLinks> links, const PlayerContext& context)>;

/// The CPU executor over an endpoint.
class CpuPlayer final : public Player {
 public:
  /// Arms. `plan` must be verified and outlive the player.
  CpuPlayer(Playable plan, NodeId node, std::unique_ptr<Endpoint> endpoint,
            const PlayerContext& context)
      : endpoint_(std::move(endpoint)), executor_(plan, node, *endpoint_, context.observer) {
    executor_.Prepare(context.memory);
    executor_.Arm();
  }

  void Start() override { executor_.Start(); }
  Status Poll(std::chrono::milliseconds timeout) override { return executor_.Poll(timeout); }
  bool done() const override { return executor_.done(); }
  bool woken() const override { return executor_.woken(); }
  NodeReport report() const override { return executor_.report(); }
  uint64_t progress() const override { return executor_.progress(); }
  std::string Waiting(size_t ops_max) const override { return executor_.Waiting(ops_max); }
  void Stop() override { endpoint_->Stop(); }
  std::optional<NodeId> lost_peer() const override { return endpoint_->lost_peer(); }

 private:
  std::unique_ptr<Endpoint> endpoint_;
  CpuExecutor executor_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_PLAYER_H_
