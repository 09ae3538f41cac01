// SPDX-License-Identifier: Apache-2.0
//
// ShmEndpoint: the transport of one node whose peers are processes of the same machine. A send is a
// counter that rises in shared memory; the receiver copies the block straight from the sender's
// memory or file to its own, so each byte is copied once. docs/running.md has the design.
#ifndef PREPOST_RUNTIME_TRANSPORT_SHM_SHM_ENDPOINT_H_
#define PREPOST_RUNTIME_TRANSPORT_SHM_SHM_ENDPOINT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/checkpoint.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/sequence_ring.h"
#include "runtime/base/visit_ring.h"
#include "runtime/executor/block_places.h"
#include "runtime/executor/completion_list.h"
#include "runtime/executor/endpoint.h"
#include "runtime/executor/playable.h"
#include "runtime/transport/local_transport.h"
#include "runtime/transport/shm/shm_board.h"
#include "runtime/transport/shm/shm_source.h"

namespace prepost {

/// See Endpoint. Sends from, and receives to, the memory that LocalMemory names for the node. A
/// channel is visited only when something happened on it; a visit copies a bounded piece of a
/// block, so that no channel and no question of the launcher waits for a long copy. That a peer is
/// gone is not noticed here but by the launcher, so lost_peer() is none.
class ShmEndpoint final : public Endpoint {
 public:
  /// `plan` and `board` must outlive it, as must what `memory` names. While `wake_fd` (-1: none;
  /// not owned) is readable, Poll() does not wait and says so. Errors: kEnvironment; those of
  /// `checkpoint`.
  static Result<std::unique_ptr<ShmEndpoint>> Make(Playable plan, NodeId node, ShmBoard& board,
                                                   const LocalMemory& memory, int wake_fd,
                                                   const Checkpoint& checkpoint);
  /// The files that Make() needs open: bells, and the memory or files of those it receives from.
  static std::vector<int> FilesOf(Playable plan, NodeId node, const ShmBoard& board,
                                  const LocalMemory& memory);

  void PostRecv(const RecvRequest& request) override;
  void PostSend(const SendRequest& request) override;
  Result<PollOutcome> Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) override;
  /// Nothing is left to flush: posting an op notifies its peer.
  Status Flush() override { return {}; }
  bool quiet() const override { return true; }
  std::optional<NodeId> lost_peer() const override { return std::nullopt; }
  EndpointCounters counters() const override { return counters_; }
  void ObserveArrivals(std::function<void(OpId)> observer) override {
    on_arrival_ = std::move(observer);
  }
  void ObserveWakeups(std::function<void()> observer) override { on_wakeup_ = std::move(observer); }

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  /// A receive as posted; of a send only `op` and the size count.
  struct Slot {
    OpId op;
    uint32_t block = kNoBlock;
    std::span<std::byte> memory;
  };

  /// Where a piece of a message lies at its sender.
  struct Piece {
    MemoryRoom room = MemoryRoom::kInput;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  /// One channel that starts or ends here. Its slots stand in channel order. `mine` counts what
  /// this end has done, and `theirs` what the other end had done when this one polled last:
  ///
  ///                 the sender's counter    the receiver's counter
  ///     blocks      sends posted            blocks in place
  ///     credits     sends posted            receives posted
  ///
  /// A credit has no bytes, so it is delivered as soon as both are posted, and its sender sees that
  /// without being woken.
  struct ChannelState {
    ShmBoard::Counter mine;
    ShmBoard::Counter theirs;
    bool outgoing = false;
    bool carries_credits = false;
    uint32_t ops = 0;         ///< in the whole plan
    uint32_t source = kNone;  ///< in sources_: blocks that come in; the first of kRooms
    uint32_t heard = 0;       ///< the value of `theirs`
    uint32_t posted = 0;
    uint32_t completed = 0;
    size_t copied_bytes = 0;  ///< of the oldest block that is not in place
    /// Of blocks that come in, of another collective than a multicast: where each message lies.
    std::vector<std::vector<Piece>> pieces;
    SequenceRing<Slot> slots;  ///< those that are posted and not complete
  };

  ShmEndpoint(Playable plan, NodeId node, ShmBoard& board)
      : plan_(plan), node_(node), board_(board) {}
  void AddChannels();
  Status AddSources(const LocalMemory& memory, const Checkpoint& checkpoint);
  Status AddRooms(const LocalMemory& memory, const Checkpoint& checkpoint);
  void AddPieces(ChannelState& state, uint64_t input_offset);
  std::pair<const ShmSource*, uint64_t> PlaceOf(const ChannelState& state, size_t* bytes) const;
  Status Watch(int wake_fd);

  ChannelState& StateOf(ChannelId channel) { return channels_[state_of_channel_[channel.index()]]; }
  void Post(ChannelState& state, const Slot& slot);
  void Hear(ChannelState& state);
  void Complete(ChannelState& state);
  bool HasToCopy(const ChannelState& state) const;
  Status Work();
  Status CopySome(ChannelState& state);
  Status LookUp(std::chrono::milliseconds timeout, bool* woken);

  const Playable plan_;
  const NodeId node_;
  ShmBoard& board_;
  FileDescriptor epoll_;
  std::vector<ShmSource> sources_;
  std::vector<ChannelState> channels_;
  std::vector<uint32_t> state_of_channel_;  ///< by plan channel; kNone: not ours
  VisitRing active_;                        ///< channels with a block to copy
  CompletionList completed_;
  std::function<void(OpId)> on_arrival_;  ///< may be empty
  std::function<void()> on_wakeup_;       ///< may be empty
  uint64_t looked_up_ns_ = 0;             ///< when wake_fd was polled last
  EndpointCounters counters_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_SHM_SHM_ENDPOINT_H_
