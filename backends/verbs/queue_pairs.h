// SPDX-License-Identifier: Apache-2.0
//
// QueuePairs: those of one node for one message, a reliably connected one for each end of a
// channel, for the CPU to drive (runtime/device/queued_endpoint.h).
#ifndef PREPOST_BACKENDS_VERBS_QUEUE_PAIRS_H_
#define PREPOST_BACKENDS_VERBS_QUEUE_PAIRS_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/verbs/rdma_device.h"
#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/device/channel_ends.h"
#include "runtime/device/player_device.h"
#include "runtime/device/queued_endpoint.h"
#include "runtime/executor/executor.h"

namespace prepost::verbs {

/// Receives are posted into place. A block is a send with an immediate (BlockImmediate()), whose
/// epoch is of the connection and the message; a credit is one without. A receiver that has none
/// posted makes the sender's NIC try again (RNR). A send completes when the peer's NIC has
/// acknowledged it.
class QueuePairs final : public ChannelQueues {
 public:
  /// `device` must outlive them. Queues and the CQ are as long as the plan needs and the device
  /// allows; at any length all of the plan goes through. Errors: kEnvironment, the device's;
  /// kRejected, a block is larger than a message of it, or ends are more than entries of a CQ.
  static Result<std::shared_ptr<QueuePairs>> Make(Device& device, ChannelEnds ends,
                                                  const NodeMemory& memory);

  /// With those of the peers. Errors: as ExchangeRecords(), and the device's.
  Status Connect(const PlayerDevice::Task& task);

  const ChannelEnds& ends() const override { return ends_; }
  Result<bool> Post(OpId op) override;
  Result<size_t> Read(std::span<OpId> completed) override;
  bool MayWait() override;
  Status TakeEvents() override;
  int file() const override { return either_.get(); }
  bool is_automatic() const override { return true; }
  bool has_room_on_completion() const override { return true; }
  std::optional<NodeId> lost_peer() const override { return lost_peer_; }
  void Release() override;
  Status Restart(const NodeMemory& memory) override;
  void Stop() override;

 private:
  struct Part {
    QueuePair pair;
    uint32_t first_packet = 0;  ///< the number of the first that is sent
    uint32_t room = 0;          ///< for requests
    uint8_t epoch = 0;          ///< of blocks
  };

  QueuePairs(Device& device, ChannelEnds ends, const NodeMemory& memory)
      : device_(device), ends_(std::move(ends)), memory_(memory) {}
  bool is_multicast() const { return !ends_.Uses(MemoryRoom::kOutput); }
  Status MakeParts();
  Status Register();
  Status Register(MemoryRoom room);
  Status MakePart(const ChannelEnd& end, uint32_t entries);
  Status Learn(uint32_t end, std::span<const std::byte> name);
  std::vector<std::byte> NameOf(const Part& part) const;
  Result<OpId> Completed(const ibv_wc& completion);
  Status Failed(OpId op, ibv_wc_status status);

  Device& device_;
  const ChannelEnds ends_;
  std::map<NodeId, std::chrono::microseconds> round_trips_;  ///< to peers
  NodeMemory memory_;
  std::unique_ptr<std::byte[]> copy_;  ///< of the input, where its own memory cannot be registered
  Status failure_;                     ///< which a QP or the CQ has reported (Device::TakeEvents())
  struct Key {
    Region region;  ///< null: the device keeps the memory, or there is none
    uint32_t value = 0;
  };
  std::array<Key, std::size(kMemoryRooms)> keys_;  ///< by room
  EventChannel events_;
  FileDescriptor either_;  ///< readable while there are events, of the CQ or of the device
  CompletionQueue queue_;
  std::vector<Part> parts_;  // by end
  bool is_armed_ = false;    // the next completion makes an event
  std::optional<NodeId> lost_peer_;
};

}  // namespace prepost::verbs

#endif  // PREPOST_BACKENDS_VERBS_QUEUE_PAIRS_H_
