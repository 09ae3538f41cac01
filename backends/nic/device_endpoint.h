// SPDX-License-Identifier: Apache-2.0
//
// DeviceEndpoint: a NIC as the transport of the CPU executor: plain work requests, posted one by
// one as the executor asks, and completions that it reads. The queue pairs are those of a preposted
// plan; there are no WAITs, and the host does what those would do.
#ifndef PREPOST_BACKENDS_NIC_DEVICE_ENDPOINT_H_
#define PREPOST_BACKENDS_NIC_DEVICE_ENDPOINT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prepost/backends/nic/cqe_reader.h"
#include "prepost/backends/nic/device.h"
#include "prepost/backends/nic/device_lease.h"
#include "prepost/backends/nic/number_index.h"
#include "prepost/backends/nic/pairing.h"
#include "prepost/runtime/endpoint.h"

namespace prepost::nic {

struct DeviceEndpointConfig {
  /// The node's message buffer, in which all blocks lie: read at the root, written elsewhere.
  std::span<const std::byte> message;
  bool writable = false;
  uint8_t epoch = 0;  ///< in every block's immediate
  /// A power of two, at most 32768. What does not fit a ring waits in memory until there is room.
  uint32_t ring_wqes_max = 32768;
  uint32_t cq_entries_max = 1u << 22;  ///< a power of two; rings are shorter where it is too small
  bool may_sleep = true;               ///< false: Poll() is called without a timeout only
  int wake_fd = -1;  ///< while it is readable, Poll() does not sleep; -1: none. Not owned
  /// Where what is kept of requests stands. Not owned
  std::pmr::memory_resource* memory = std::pmr::new_delete_resource();
};

/// See Endpoint. One RC QP per peer and lane, and one CQ for all, as a host wants it that looks and
/// sleeps in one place. Every send is signaled and has a doorbell of its own. Completions come in
/// the order of each queue; their bytes and immediates are checked against what was posted.
/// A NIC does not tell when the first bytes of a block arrive, so arrivals are not observed; nor
/// how often a peer had to wait for a receive. Used by the device's thread. With it its DeviceLease
/// ends: then the message buffer may go.
class DeviceEndpoint final : public Endpoint {
 public:
  /// Makes the queues of `node`, which ConnectAll() must connect before the first post. `device`
  /// must outlive the endpoint. Errors: the device's; kRejected for a block or a CQ that is too
  /// large.
  static Result<std::unique_ptr<DeviceEndpoint>> Make(Device& device, const Plan& plan, NodeId node,
                                                      const DeviceEndpointConfig& config);

  OpenNode open_node() const;
  uint32_t cq_number() const { return cq_.number; }
  /// Asks for the event of the next completion, unless that is done: what Poll() does before it
  /// sleeps. A host that will sleep can do so ahead of the start.
  Status RequestEvents();

  /// What the next Poll() needs of memory, of the first CQE that it takes: each needs what the one
  /// before asks for. They change nothing, and check nothing.
  void ForeseeLink() const {
    if (const Link* link = NextLink()) {
      for (size_t at = 0; at < sizeof(Link); at += 64) {
        __builtin_prefetch(reinterpret_cast<const std::byte*>(link) + at, 1);
      }
    }
  }
  void ForeseeSlot() const {
    if (const Slot* slot = NextSlot()) __builtin_prefetch(slot);
  }
  /// The op that it completes, if there is one.
  std::optional<OpId> NextOp() const {
    const Slot* slot = NextSlot();
    return slot == nullptr ? std::nullopt : std::optional(slot->op);
  }

  /// The same of the next post on the channel, of which `stage` 0 and those up to 3 are called in
  /// turn.
  void ForeseePost(ChannelId channel, bool is_send, size_t stage) const;

  void PostRecv(const RecvRequest& request) override;
  void PostSend(const SendRequest& request) override;
  Result<PollOutcome> Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) override;
  Status Flush() override { return {}; }
  bool quiet() const override { return true; }
  std::optional<NodeId> lost_peer() const override { return lost_peer_; }
  void Stop() override { lease_.MoveToError(); }
  EndpointCounters counters() const override {
    return {.wakeups = device_.counters().wakeups, .bytes_moved = bytes_moved_};
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  struct Slot {
    OpId op;
    uint32_t block = kNoBlock;
    uint32_t bytes = 0;
    const std::byte* memory = nullptr;
  };
  /// A send or a receive queue. Indices of slots are those of WQEs, which the ring has modulo its
  /// size: in the order of posting and of completing.
  struct Queue {
    explicit Queue(std::pmr::memory_resource* memory) : slots(memory) {}

    std::pmr::vector<Slot> slots;  ///< asked for so far
    uint32_t posted = 0;           ///< of these, in the ring
    uint32_t completed = 0;
    uint32_t in_flight_max = 0;

    bool has_room() const { return posted - completed < in_flight_max; }
    uint32_t held_back() const { return static_cast<uint32_t>(slots.size()) - posted; }
  };
  struct Link {
    explicit Link(std::pmr::memory_resource* memory) : sends(memory), receives(memory) {}

    Pair pair;
    Qp qp;
    Queue sends;
    Queue receives;
    bool is_freed = false;  ///< in freed_
  };

  DeviceEndpoint(Device& device, const Plan& plan, NodeId node, const DeviceEndpointConfig& config)
      : device_(device),
        lease_(device),
        plan_(plan),
        node_(node),
        config_(config),
        links_(config.memory) {}

  /// Of the next CQE; null: there is none, or none of ours.
  const Link* NextLink() const;
  const Slot* NextSlot() const;
  uint64_t EntriesOf(const Pairing& pairing) const;
  Status MakeQueues(const Pairing& pairing);
  Status MakeLink(const Pair& pair);
  void MapChannels(const Pairing& pairing);
  Link& LinkOf(ChannelId channel) { return links_[link_of_channel_[channel.index()]]; }
  void FillRing(Link& link);
  void FillFreedRings();
  void WriteSend(const Qp& qp, const Slot& slot, uint16_t index) const;
  void WriteReceive(const Qp& qp, const Slot& slot, uint16_t index) const;
  Result<size_t> Take(std::span<OpId> completed);
  Status CheckDevice();
  Result<OpId> Complete(const Cqe& cqe);
  Status Failed(const Link& link, bool is_send, const std::string& what) const;

  Device& device_;
  DeviceLease lease_;
  const Plan& plan_;
  const NodeId node_;
  DeviceEndpointConfig config_;
  uint32_t lkey_ = 0;
  Cq cq_;
  std::optional<CqeReader> reader_;
  std::pmr::vector<Link> links_;           // sorted by (peer, lane)
  NumberIndex link_of_qp_;                 // by QPN
  std::vector<uint32_t> link_of_channel_;  // by plan channel; kNone: not ours
  std::vector<uint32_t> freed_;            // scratch: links in whose rings there is room again
  ErrorPacer errors_;
  bool event_requested_ = false;  // and not come yet
  uint64_t bytes_moved_ = 0;
  std::optional<NodeId> lost_peer_;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_DEVICE_ENDPOINT_H_
