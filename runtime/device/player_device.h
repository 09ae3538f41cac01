// SPDX-License-Identifier: Apache-2.0
//
// PlayerDevice: what a node's part of a plan can be played over besides TCP and shared memory: a
// NIC whose queues are preposted or driven, or an endpoint of a library. Each kind of device
// implements it (backends/registry.h opens them); runs, groups and comparisons use it alike.
#ifndef PREPOST_RUNTIME_DEVICE_PLAYER_DEVICE_H_
#define PREPOST_RUNTIME_DEVICE_PLAYER_DEVICE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "ir/verify/verify.h"
#include "runtime/device/peer_exchange.h"
#include "runtime/device/queued_endpoint.h"
#include "runtime/executor/player.h"
#include "runtime/transport/peer_links.h"

namespace prepost {

/// Used by one thread, as are its players, which it must outlive.
class PlayerDevice {
 public:
  /// A node's part of a plan, as the device carries it out by itself. Any device of the same kind
  /// and limits can be given it.
  class Program {
   public:
    virtual ~Program() = default;
    /// How many the host hands over before the start, receives included.
    virtual uint64_t work_requests() const = 0;
  };
  /// What is the same for both kinds of players.
  struct Task {
    const VerifiedPlan& plan;  ///< must outlive the player
    NodeId node;
    /// With each peer, to learn where its device is; what else they carry is not read. Never null.
    std::unique_ptr<PeerLinks> links;
    PlayerContext context;
    /// What connects this player stays with the device when it has ended well, for the next one.
    bool is_kept = false;
    /// The plan and the node are those of the last player, which was kept, at all nodes: what it
    /// was connected by is used again.
    bool is_as_before = false;
    /// How long a peer may take to say where its device is, for which all members are ready.
    std::chrono::milliseconds answer_max{30000};
  };

  virtual ~PlayerDevice() = default;

  /// Whether driven players' messages make progress by themselves, and not only while they are
  /// polled.
  virtual bool is_automatic() const { return true; }
  /// Whether queues that were made on it stay until it is closed, so that it should be from time to
  /// time.
  virtual bool keeps_queues() const { return false; }
  /// Messages to come will be received into parts of `memory`, which stays where it is as long as
  /// the device: it need not be made known to the hardware for each. May be empty.
  virtual void KeepMemory(std::span<std::byte> /*memory*/) {}

  /// Errors (kRejected): the plan does not fit the device, or is for CPUs alone
  /// (WhyNotPreposted()); or the device carries out nothing by itself.
  virtual Result<std::shared_ptr<const Program>> Lower(const VerifiedPlan& plan,
                                                       NodeId node) const = 0;
  /// The device does all from Start() to the final completion, and no CPU touches it meanwhile.
  /// `program` is of Lower() and must outlive the player. Errors: kEnvironment; a peer does not
  /// answer, or plays otherwise, or there can be no such program (kRejected); those of the task's
  /// checkpoint.
  virtual Result<std::unique_ptr<Player>> MakePreposted(const Program& program, Task task) = 0;
  /// The CPU executor over the device. Errors: as of MakePreposted().
  virtual Result<std::unique_ptr<Player>> MakeDriven(Task task) = 0;
};

/// By node.
using DevicePrograms = std::vector<std::shared_ptr<const PlayerDevice::Program>>;
/// Those of all nodes, each on a device of this kind and limits. Errors: those of Lower().
Result<DevicePrograms> LowerAll(const PlayerDevice& device, const VerifiedPlan& plan);

/// Preposted if there is a program, else driven. Errors: those of either.
Result<std::unique_ptr<Player>> MakeDevicePlayer(PlayerDevice& device,
                                                 const PlayerDevice::Program* program,
                                                 PlayerDevice::Task task);

// For those who implement one.

/// How `task`'s node exchanges what `what` names with its peers (peer_exchange.h). Refers to
/// `task`.
RecordExchange ExchangeOf(const PlayerDevice::Task& task, std::string what);

/// The CPU executor over `queues`, which are `task`'s node's.
std::unique_ptr<Player> MakeQueuedPlayer(std::shared_ptr<ChannelQueues> queues,
                                         PlayerDevice::Task task);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_DEVICE_PLAYER_DEVICE_H_
