// SPDX-License-Identifier: Apache-2.0
//
// Endpoints: those of one node for one message, one for each end of a channel, and how peers learn
// where they are. The CPU drives them (runtime/device/queued_endpoint.h), or deferred work does
// (backends/triggered/).
#ifndef PREPOST_BACKENDS_FABRIC_ENDPOINTS_H_
#define PREPOST_BACKENDS_FABRIC_ENDPOINTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/fabric/domain.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/device/channel_ends.h"
#include "runtime/device/player_device.h"
#include "runtime/device/queued_endpoint.h"
#include "runtime/executor/executor.h"

namespace prepost::fabric {

struct EndpointsSpec {
  ChannelEnds ends;
  /// Registered, if the provider wants that; outlives them. Of another collective than a multicast
  /// with `staging`, if blocks lie apart.
  NodeMemory memory;
  /// Each end counts its completions, and sends make no entries in the queue.
  bool has_counters = false;
  /// The op of a request that is posted elsewhere, by its context, when it has failed. May be
  /// empty.
  std::function<std::optional<OpId>(const void* context)> find_op = {};
};

/// Used by the domain's thread. A send that the CPU posts completes when its bytes are in place
/// (FI_DELIVERY_COMPLETE).
///
/// Any program that finds an endpoint can send it messages. So each that receives has a random tag,
/// which the peer learns with its name: a message without it meets no receive.
class Endpoints final : public ChannelQueues {
 public:
  /// `domain` must outlive them. Errors (kEnvironment): the provider's.
  static Result<std::shared_ptr<Endpoints>> Make(const Domain& domain, EndpointsSpec spec);

  /// Peers learn where these are, and these where the peers' are. Errors: as ExchangeRecords().
  Status Connect(const PlayerDevice::Task& task);

  const ChannelEnds& ends() const override { return spec_.ends; }
  Result<bool> Post(OpId op) override;
  Result<size_t> Read(std::span<OpId> completed) override;
  bool MayWait() override;
  int file() const override { return queue_file_; }
  bool is_automatic() const override {
    return domain_.info()->domain_attr->data_progress == FI_PROGRESS_AUTO;
  }
  std::optional<NodeId> lost_peer() const override { return lost_peer_; }
  bool has_room_on_completion() const override { return false; }
  void Release() override { regions_ = {}; }
  Status Restart(const NodeMemory& memory) override;
  void Stop() override;

  fid_cntr* counter(uint32_t end) const { return parts_[end].counter.get(); }
  fid_ep* EndpointOf(OpId op) const { return parts_[spec_.ends.PlaceOf(op).end].endpoint.get(); }

  /// What the op moves: `message` fills in the message of its request, whose `piece` must live as
  /// long as that. Its context names the op. A send's data is its block's number.
  void FillMessage(OpId op, iovec* piece, void** key, fi_msg_tagged* message);

  /// An endpoint beside those of ends, for messages without bytes that make no entries in the
  /// queue; of those it receives `counter` counts the arrivals, null: it receives none. Errors
  /// (kEnvironment): the provider's.
  Result<Fid<fid_ep>> MakeQuiet(fid_cntr* counter) const;

 private:
  struct Part {
    Fid<fid_cntr> counter;
    Fid<fid_ep> endpoint;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    uint64_t tag = 0;
  };

  Endpoints(const Domain& domain, EndpointsSpec spec)
      : domain_(domain), spec_(std::move(spec)), contexts_(spec_.ends.ops()) {}
  enum class Entries : uint8_t { kAll, kReceives, kNone };  ///< in the queue
  Result<Fid<fid_ep>> MakeEndpoint(Entries entries, fid_cntr* receives) const;
  Status Register();
  Status MakeParts();
  Status Learn(uint32_t end, std::span<const std::byte> tag_and_name);
  Result<OpId> Completed(const fi_cq_data_entry& entry);
  Status Failed(OpId op, const std::string& why);
  Status ErrorOf(ssize_t error);

  const Domain& domain_;
  EndpointsSpec spec_;
  std::vector<fi_context2> contexts_;                         // by op
  std::array<Fid<fid_mr>, std::size(kMemoryRooms)> regions_;  // by room
  Fid<fid_cq> queue_;
  int queue_file_ = -1;
  std::vector<Part> parts_;  // by end
  std::optional<NodeId> lost_peer_;
};

}  // namespace prepost::fabric

#endif  // PREPOST_BACKENDS_FABRIC_ENDPOINTS_H_
