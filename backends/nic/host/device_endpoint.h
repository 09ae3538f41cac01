// SPDX-License-Identifier: Apache-2.0
//
// DeviceEndpoint: a NIC as the transport of the CPU executor: plain work requests, posted one by
// one as the executor asks, and completions that it reads. The queue pairs are those of a preposted
// plan; there are no WAITs, and the host does what those would do.
#ifndef PREPOST_BACKENDS_NIC_HOST_DEVICE_ENDPOINT_H_
#define PREPOST_BACKENDS_NIC_HOST_DEVICE_ENDPOINT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/nic/device.h"
#include "backends/nic/host/cqe_reader.h"
#include "backends/nic/host/device_lease.h"
#include "backends/nic/host/request_queue.h"
#include "backends/nic/program/pairing.h"
#include "backends/nic/validate/number_index.h"
#include "runtime/executor/endpoint.h"

namespace prepost::nic {

struct DeviceEndpointConfig {
  /// Of a multicast, the node's message buffer, in which all blocks lie, each at its offset, and
  /// nothing else that is asked for: read at the root, written elsewhere.
  std::span<const std::byte> message;
  bool writable = false;
  /// Of another collective: memory in which all lies that is asked for, each span in one of them;
  /// they do not overlap. `message` is not used then.
  struct Room {
    std::span<const std::byte> bytes;
    bool writable = false;
  };
  std::span<const Room> rooms = {};  ///< read by Make() alone
  uint8_t epoch = 0;                 ///< in every block's immediate
  /// A power of two, at most 32768. What does not fit a ring waits in memory until there is room.
  uint32_t ring_wqes_max = 32768;
  uint32_t cq_entries_max = 1u << 22;  ///< a power of two; rings are shorter where it is too small
  bool may_sleep = true;               ///< false: Poll() is called without a timeout only
  int wake_fd = -1;  ///< while it is readable, Poll() does not sleep; -1: none. Not owned
  /// Where the endpoint's queues stand. Not owned
  std::pmr::memory_resource* memory = std::pmr::new_delete_resource();
};

/// See Endpoint. One RC QP per peer and lane, and one CQ for all, as a host wants it that polls and
/// sleeps in one place. Every send is signaled and has a doorbell of its own. Completions come in
/// the order of each queue; their bytes and immediates are checked against what was posted.
/// A NIC does not report when the first bytes of a block arrive, so arrivals are not observed; nor
/// how often a peer had to wait for a receive. Used by the device's thread. With it its DeviceLease
/// ends: then the message buffer may go.
class alignas(64) DeviceEndpoint final : public Endpoint {
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
  void ObserveWakeups(std::function<void()> observer) override { on_wakeup_ = std::move(observer); }

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  /// A post needs its first cache line and that of its queue, a completion that of its queue.
  struct alignas(64) Link {
    Qp qp;
    NodeId peer;
    bool is_freed = false;  ///< in freed_
    Lane lane = Lane::kBlocks;
    RequestQueue sends;
    RequestQueue receives;
  };

  DeviceEndpoint(Device& device, const Plan& plan, NodeId node, const DeviceEndpointConfig& config)
      : device_(device),
        links_(config.memory),
        payload_(plan.header().payload),
        config_(config),
        lease_(device),
        plan_(plan),
        node_(node) {}

  uint64_t EntriesOf(const Pairing& pairing) const;
  Status MakeQueues(const Pairing& pairing);
  Status MakeLink(const Pair& pair);
  void MapChannels(const Pairing& pairing);
  Link& LinkOf(ChannelId channel) { return links_[link_of_channel_[channel.index()]]; }
  void FillRing(Link& link);
  void FillFreedRings();
  Status RegisterRooms(std::span<const DeviceEndpointConfig::Room> rooms);
  std::span<const std::byte> MemoryOf(const RequestQueue::Request& request) const;
  uint32_t KeyOf(std::span<const std::byte> memory) const;
  void Note(const RequestQueue::Request& request, std::span<const std::byte> memory);
  uint32_t OutstandingOf(const Pair& pair, bool is_send) const;
  void WriteSend(Link& link);
  void WriteReceive(Link& link);
  Result<size_t> Take(std::span<OpId> completed);
  Status CheckDevice();
  Result<OpId> Complete(const Cqe& cqe);
  Status Failed(const Link& link, bool is_send, const std::string& what) const;

  // What is used for each completion comes first, and what is used together stands in a cache line:
  // thousands of endpoints may take turns.
  Device& device_;
  std::pmr::vector<Link> links_;  // sorted by (peer, lane)
  NumberIndex link_of_qp_;        // by QPN

  CqeReader reader_;
  std::vector<uint32_t> freed_;  // scratch: links in whose rings there is room again
  ErrorPacer errors_;
  bool event_requested_ = false;  // and not come yet

  // Blocks and posts need these.
  const Payload payload_;
  std::unique_ptr<uint32_t[]> link_of_channel_;  // by plan channel; kNone: not ours
  uint64_t bytes_moved_ = 0;
  uint32_t lkey_ = 0;
  std::vector<std::span<const std::byte>> memory_of_op_;  // of another collective; else empty
  struct Room {
    std::span<const std::byte> bytes;
    uint32_t lkey = 0;
  };
  std::vector<Room> rooms_;
  DeviceEndpointConfig config_;
  Cq cq_;
  DeviceLease lease_;
  const Plan& plan_;
  const NodeId node_;
  std::optional<NodeId> lost_peer_;
  std::function<void()> on_wakeup_;  // may be empty
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_DEVICE_ENDPOINT_H_
