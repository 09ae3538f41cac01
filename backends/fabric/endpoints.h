// SPDX-License-Identifier: Apache-2.0
//
// Endpoints: those of one node for one message, one for each end of a channel, and how peers learn
// where they are. The CPU drives them (fabric_endpoint.h), or deferred work does
// (backends/triggered/).
#ifndef PREPOST_BACKENDS_FABRIC_ENDPOINTS_H_
#define PREPOST_BACKENDS_FABRIC_ENDPOINTS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/fabric/channel_end.h"
#include "backends/fabric/domain.h"
#include "ir/plan.h"
#include "ir/status.h"
#include "runtime/checkpoint.h"
#include "runtime/executor.h"
#include "runtime/transport/tcp_mesh.h"

namespace prepost::fabric {

struct EndpointsSpec {
  const Plan& plan;  ///< must outlive them
  NodeId node;
  std::vector<ChannelEnd> ends;
  NodeMemory memory;  ///< registered, if the provider wants that; outlives them
  /// Each end counts its completions, and sends make no entries in the queue.
  bool has_counters = false;
};

/// Used by the domain's thread. When they are gone nothing touches the memory.
class Endpoints {
 public:
  /// `domain` must outlive them. Errors (kEnvironment): the provider's.
  static Result<std::unique_ptr<Endpoints>> Make(const Domain& domain, EndpointsSpec spec);

  /// Peers learn where these are, and these where the peers' are. Errors: as ExchangeRecords().
  Status Connect(std::span<const TcpSocket> sockets, const Checkpoint& checkpoint,
                 std::chrono::milliseconds interval, std::chrono::milliseconds answer_max);

  std::span<const ChannelEnd> ends() const { return spec_.ends; }
  fid_cntr* counter(uint32_t end) const { return parts_[end].counter.get(); }
  /// The end of an op, and its position there.
  struct Place {
    uint32_t end = 0;
    uint32_t position = 0;
  };
  /// Of the op's block; 0 for a credit.
  uint64_t BytesOf(OpId op) const;
  fid_ep* EndpointOf(OpId op) const { return parts_[PlaceOf(op).end].endpoint.get(); }
  Place PlaceOf(OpId op) const { return place_of_[op.index()]; }

  /// What the op moves: `message` fills in the message of its request, whose `piece` must live as
  /// long as that. Its context names the op. A send's data is its block's number.
  void Describe(OpId op, iovec* piece, void** key, fi_msg* message);

  /// An endpoint beside those of ends, for messages without bytes that make no entries in the queue;
  /// of those it receives `counter` counts the arrivals, null: it receives none. Errors
  /// (kEnvironment): the provider's.
  Result<Fid<fid_ep>> MakeQuiet(fid_cntr* counter) const;

  /// Takes up to `max` completions and gives each to `take`; how many. Errors (kRejected): the
  /// provider reports one, or a receive is not what the plan has; then lost_peer() may be known.
  template <typename Take>
  Result<size_t> Read(size_t max, Take take) {
    size_t count = 0;
    while (count < max) {
      fi_cq_data_entry entries[kBatch];
      const ssize_t got = fi_cq_read(queue_.get(), entries, std::min(kBatch, max - count));
      if (got == -FI_EAGAIN || got == 0) break;
      if (got < 0) return ErrorOf(got);
      for (ssize_t i = 0; i < got; ++i) {
        const Result<OpId> op = Completed(entries[i]);
        if (!op.ok()) return op.status();
        take(*op);
      }
      count += static_cast<size_t>(got);
    }
    return count;
  }
  /// Whether waiting for queue_file() makes sense now: nothing is there to be read.
  bool MayWait() const;
  /// Whether the provider makes progress by itself, and not only when it is asked.
  bool is_automatic() const {
    return domain_.info()->domain_attr->data_progress == FI_PROGRESS_AUTO;
  }
  /// -1: the provider has none.
  int queue_file() const { return queue_file_; }
  std::optional<NodeId> lost_peer() const { return lost_peer_; }
  /// "node 2 cannot send block 3 to node 4: WHY".
  Status Failed(OpId op, const std::string& why);

 private:
  static constexpr size_t kBatch = 16;
  struct Part {
    Fid<fid_cntr> counter;
    Fid<fid_ep> endpoint;
    fi_addr_t peer = FI_ADDR_UNSPEC;
  };

  Endpoints(const Domain& domain, EndpointsSpec spec)
      : domain_(domain), spec_(std::move(spec)), ops_(OpsOf(spec_.plan, spec_.node)) {}
  static std::span<const Op> OpsOf(const Plan& plan, NodeId node);
  enum class Entries : uint8_t { kAll, kReceives, kNone };  ///< in the queue
  Result<Fid<fid_ep>> MakeEndpoint(Entries entries, fid_cntr* receives) const;
  Status MakeParts();
  Result<std::vector<std::byte>> RecordFor(NodeId peer) const;
  Status Learn(NodeId peer, std::span<const std::byte> record, std::string* why);
  Result<OpId> Completed(const fi_cq_data_entry& entry);
  Status ErrorOf(ssize_t error);

  const Domain& domain_;
  const EndpointsSpec spec_;
  const std::span<const Op> ops_;
  std::vector<Place> place_of_;        // by op
  std::vector<fi_context2> contexts_;  // by op
  Fid<fid_mr> region_;
  Fid<fid_cq> queue_;
  int queue_file_ = -1;
  std::vector<Part> parts_;  // by end
  std::optional<NodeId> lost_peer_;
};

}  // namespace prepost::fabric

#endif  // PREPOST_BACKENDS_FABRIC_ENDPOINTS_H_
