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

  // What Poll() needs of memory. They change nothing, and check nothing.
  /// The QP of the next CQE, and whether that is a send's; 0: none has come.
  std::pair<uint32_t, bool> NextCqe() const {
    const uint32_t qpn = reader_->PeekQpn();
    return {qpn, qpn != 0 && reader_->PeekIsSend()};
  }
  /// Asks for the memory that the next completion of a send, or receive, of the QP needs. Each stage
  /// needs what the one before asks for, and NextOp() what the last does.
  void ForeseeCompletion(uint32_t qpn, bool is_send, size_t stage) const;
  static constexpr uint16_t kForeseeCompletionStages = 3;
  /// The op that it completes, if there is one.
  std::optional<OpId> NextOp(uint32_t qpn, bool is_send) const;

  /// The same of the next post on the channel.
  void ForeseePost(ChannelId channel, bool is_send, size_t stage) const;
  static constexpr uint16_t kForeseePostStages = 3;

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
    template <typename Request>
    explicit Slot(const Request& request)
        : op(request.op),
          block(request.block),
          bytes(static_cast<uint32_t>(request.memory.size())),
          memory(request.memory.data()) {}

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

    /// True: it is to be posted now; else when there is room.
    bool Add(const Slot& slot) {
      const bool is_next = held_back() == 0 && has_room();
      slots.push_back(slot);
      return is_next;
    }
    bool has_room() const { return posted - completed < in_flight_max; }
    uint32_t held_back() const { return static_cast<uint32_t>(slots.size()) - posted; }
  };
  /// A post needs its first cache line and that of its queue, a completion that of its queue.
  struct alignas(64) Link {
    explicit Link(std::pmr::memory_resource* memory) : sends(memory), receives(memory) {}

    Qp qp;
    Pair pair;
    alignas(64) Queue sends;
    bool is_freed = false;  ///< in freed_
    alignas(64) Queue receives;
  };

  DeviceEndpoint(Device& device, const Plan& plan, NodeId node, const DeviceEndpointConfig& config)
      : device_(device),
        links_(config.memory),
        config_(config),
        lease_(device),
        plan_(plan),
        node_(node) {}

  const Queue* QueueOf(uint32_t qpn, bool is_send) const;
  uint64_t EntriesOf(const Pairing& pairing) const;
  Status MakeQueues(const Pairing& pairing);
  Status MakeLink(const Pair& pair);
  void MapChannels(const Pairing& pairing);
  Link& LinkOf(ChannelId channel) { return links_[link_of_channel_[channel.index()]]; }
  void FillRing(Link& link);
  void FillFreedRings();
  void WriteSend(Link& link, const Slot& slot);
  void WriteReceive(Link& link, const Slot& slot);
  Result<size_t> Take(std::span<OpId> completed);
  Status CheckDevice();
  Result<OpId> Complete(const Cqe& cqe);
  Status Failed(const Link& link, bool is_send, const std::string& what) const;

  // What is used for each completion comes first: thousands of endpoints may take turns.
  Device& device_;
  std::optional<CqeReader> reader_;
  std::pmr::vector<Link> links_;           // sorted by (peer, lane)
  NumberIndex link_of_qp_;                 // by QPN
  std::vector<uint32_t> link_of_channel_;  // by plan channel; kNone: not ours
  uint64_t bytes_moved_ = 0;
  std::vector<uint32_t> freed_;  // scratch: links in whose rings there is room again
  ErrorPacer errors_;
  bool event_requested_ = false;  // and not come yet
  uint32_t lkey_ = 0;
  DeviceEndpointConfig config_;
  Cq cq_;
  DeviceLease lease_;
  const Plan& plan_;
  const NodeId node_;
  std::optional<NodeId> lost_peer_;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_DEVICE_ENDPOINT_H_
