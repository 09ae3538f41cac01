// SPDX-License-Identifier: Apache-2.0
//
// TcpEndpoint: the TCP transport of one node. Blocks go straight from and to their place in the
// message, one after another on each connection or, where that is of several streams, in pieces on
// whichever has room; credits and delivery notes have a connection of their own (tcp_mesh.h).
// Between two processes of one machine blocks are not written to the connection: their sender puts
// them, once for all receivers, into memory that these have mapped (block_stage.h), or their
// receiver copies them from the sender's own memory (memory_window.h). A send completes when the
// receiver's delivery note has come, because a returned write says nothing about the link; see
// IsNoted() for those that have none.
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_TCP_ENDPOINT_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_TCP_ENDPOINT_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/file_descriptor.h"
#include "runtime/base/sequence_ring.h"
#include "runtime/base/visit_ring.h"
#include "runtime/executor/completion_list.h"
#include "runtime/executor/message_endpoint.h"
#include "runtime/executor/playable.h"
#include "runtime/transport/sealing/bounce_buffer.h"
#include "runtime/transport/shm/block_stage.h"
#include "runtime/transport/tcp/tcp_hook.h"
#include "runtime/transport/tcp/tcp_mesh.h"
#include "runtime/transport/tcp/tcp_path.h"
#include "runtime/transport/tcp/tcp_stream.h"
#include "runtime/transport/tcp/tcp_watch.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {

/// See MessageEndpoint. Waits in epoll (edge-triggered); a link is visited only when something
/// happened on it or was posted to it, and moves at most one block per visit, so that none starves
/// another.
class TcpEndpoint final : public MessageEndpoint {
 public:
  /// `sockets` as MakeTcpMesh() gives them for `node`. While `wake_fd` (-1: none; not owned) is
  /// readable, Poll() does not wait and says so. Errors: kEnvironment.
  /// `ahead_max`: by how many messages a peer may be ahead, at most 2^31 - 1. In a group of so many
  /// members none can be more, as each message between waits for a member of its own; twice as many
  /// where sends may end early. A member whose calls send small blocks alone may be ahead by any
  /// number.
  static Result<std::unique_ptr<TcpEndpoint>> Make(NodeId node, std::vector<TcpSocket> sockets,
                                                   int wake_fd, uint32_t ahead_max);
  /// For one message, that of `plan`, which it begins.
  static Result<std::unique_ptr<TcpEndpoint>> Make(Playable plan, NodeId node,
                                                   std::vector<TcpSocket> sockets, int wake_fd);

  /// Further connections, at any time; with peers that there are none with so far. Of the message
  /// at hand they carry nothing. Errors: kEnvironment.
  Status Add(std::vector<TcpSocket> sockets);
  /// What its connections for blocks have been used for, by peer; of several streams the bytes of
  /// all and the time of the busiest.
  std::map<NodeId, TcpUse> Uses() const;
  /// From now on asked about all that is moved; null: nobody. Must outlive the endpoint.
  void set_hook(TcpHook* hook) { hook_ = hook; }
  /// How the kernel asks about peers from RestPeers() on. To be set before that.
  void set_rest_times(const KeepAliveTimes& times) { rest_times_ = times; }

  /// Between two messages: message `number` was the next, and is over without this endpoint.
  void Skip(uint32_t number) {
    constexpr uint32_t kNumbersLate = uint32_t{1} << 30;  // nothing comes so late
    next_number_ = number + 1;
    if (number - message_.number > kNumbersLate) message_.number = number - kNumbersLate;
  }
  Status Begin(Playable plan, const MessageStart& message) override;
  void set_ends_early(bool ends_early) override { ends_early_ = ends_early; }
  void set_in_step(bool in_step) override { in_step_ = in_step; }
  bool has_ended_early() const override { return has_ended_early_; }
  void End() override;
  std::optional<MessageStart> announced() const override;
  int wait_fd() const override { return epoll_.get(); }
  Status CheckPeers(std::chrono::milliseconds silence) override;
  std::optional<NodeId> AskPeers(std::chrono::milliseconds silence) override;
  void RestPeers() override;
  bool IsAcknowledged() const override;
  bool PrepareToWait() override { return active_.size() == 0 && completed_.empty(); }
  /// Whether some connections go through memory (TcpSocket::memory), of which wait_fd() hears only
  /// between Arm() and Disarm().
  bool has_memory() const { return !in_memory_.empty(); }
  /// Of those: whether Poll() has something to do.
  bool HasArrivals() const;
  /// From now on wait_fd() says so. Then HasArrivals() is to be asked.
  void Arm();
  void Disarm();
  void PostRecv(const RecvRequest& request) override;
  void PostSend(const SendRequest& request) override;
  Result<PollOutcome> Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) override;
  Status Flush() override { return Service(); }
  bool quiet() const override;
  std::optional<NodeId> lost_peer() const override { return lost_peer_; }
  /// What failed is memory of this peer's, which says nothing of it.
  std::optional<NodeId> failed_peer() const { return failed_peer_; }
  /// What failed is that this node and a peer call different things: either may be wrong.
  bool differs() const { return differs_; }
  /// That is because of a call that is over at this node: the peer, and what it has called.
  const std::optional<std::pair<NodeId, MessageStart>>& late_call() const { return late_call_; }
  EndpointCounters counters() const override { return counters_; }
  void ObserveArrivals(std::function<void(OpId)> observer) override {
    on_arrival_ = std::move(observer);
  }
  void ObserveWakeups(std::function<void()> observer) override { on_wakeup_ = std::move(observer); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr uint32_t kNone = 0xffffffff;

  /// How a block gets to its receiver, which its record says.
  enum class BlockWay : uint8_t {
    kConnection,
    kWindow,  ///< its receiver copies it from its sender's memory
    kStage    ///< or from the sender's stage
  };

  /// An op as posted. A send's memory is only read.
  struct Slot {
    OpId op;
    uint32_t block = kNoBlock;
    iovec memory = {};
    uint32_t pieces = 0;  ///< that were not moved yet
    uint64_t coming = 0;  ///< of a receive: a bit for each piece whose record has been read
    /// Of a send that is under way: where the receiver finds the block.
    BlockWay way = BlockWay::kConnection;
    uint32_t place = 0;  ///< in the stage
  };
  /// What one stream carries of a block: all of it, where the connection has no other.
  struct Piece {
    uint32_t index = 0;   ///< of the block, in its channel
    uint32_t number = 0;  ///< in the block
  };

  /// One channel that starts or ends here. Its slots stand in channel order; `moved` counts those
  /// from the first on whose bytes were written out (sends) or have arrived (receives; credits may
  /// arrive before they are posted).
  struct ChannelState {
    ChannelId wire;              ///< its number in records: WireChannel()
    uint32_t link = kNone;       ///< that carries the messages, the first of its streams
    uint32_t note_link = kNone;  ///< that carries the delivery notes
    uint32_t ops = 0;            ///< in the whole plan
    bool outgoing = false;
    bool ends_early = false;   ///< sends complete when they are written
    uint32_t noted = 0;        ///< of those, by the peer
    SequenceRing<Slot> slots;  ///< those that are posted and not complete
    uint32_t posted = 0;
    Piece next;  ///< to be given to a stream
    uint32_t moved = 0;
    uint32_t completed = 0;
    uint32_t staged = 0;  ///< sends under way whose blocks are in the stage
  };

  /// One connection, or one of its streams, which are neighbours. On one that carries blocks, `tx`
  /// and `rx` hold what stands before the piece that is being moved, `tx_head` and `rx_head` bytes:
  /// its record and, before a message's first, the message's start; `tx_bytes` and `rx_bytes` count
  /// into that and, beyond it, into the piece. While tx_head is 0, no piece is at hand.
  /// On the other, `tx` holds all records that wait, and `rx` those that are being read.
  struct Link {
    TcpStream socket;
    NodeId peer;
    Lane lane = Lane::kBlocks;
    uint16_t stream = 0;
    uint16_t streams = 1;  ///< of the connection
    bool carries_blocks = false;
    bool is_asked = false;  ///< the kernel asks often whether the peer is there
    TcpWatch watch;
    bool readable = false;   ///< until a read finds nothing
    bool writable = true;    ///< until a write finds no room
    bool stalled = false;    ///< a block waits for its receive, or a message for its turn
    bool has_begun = false;  ///< the message at hand, by what it has written
    bool announces =
        false;  ///< the message's start goes alone: a peer that gives credits waits for it
    bool peer_has_begun = false;                ///< the message at hand, by what was read
    bool is_ending = false;                     ///< its socket or its peer's end of memory is gone
    bool is_copying = false;                    ///< the block at hand, from memory
    std::optional<uint32_t> rx_place;           ///< in the peer's stage; none: from its own memory
    LocalPeer local;                            ///< the peer, if it is on this machine
    std::unique_ptr<MemoryWindow> window;       ///< this end's, until this endpoint ends
    std::unique_ptr<MemoryWindow::Value> seen;  ///< the peer's, as it was read last, if it may be
    std::shared_ptr<BlockStage> stage;          ///< this end's, if the peer has mapped it
    std::unique_ptr<PeerStage> peer_stage;      ///< the peer's, if there is one
    std::optional<MessageStart> next;           ///< a later message, whose start was read
    uint32_t out = kNone;                       ///< channel, if it carries blocks that way
    uint32_t in = kNone;
    std::vector<uint32_t> noted;  ///< channels whose delivery notes it carries
    /// By number in records: of channels of messages that are over, delivery notes that are to
    /// come.
    std::array<uint32_t, kWireChannels> late = {};
    std::vector<std::byte> tx;
    std::vector<std::byte> rx;
    size_t tx_head = 0;
    size_t rx_head = 0;
    size_t tx_bytes = 0;
    size_t rx_bytes = 0;
    Piece tx_piece;
    std::optional<Piece> rx_piece;  ///< one of several streams: when its record was judged
    uint32_t rx_from = 0;           ///< the place of its last block: no later one is before it
    size_t rx_left = 0;             ///< of records, which a message's turn is awaited for
    int awaited_bytes = 1;          ///< that make the socket readable
    size_t awaited_max = 1;         ///< as much as its buffer, which grows, allows
    // Signs of life; on the connection for credits and notes.
    uint32_t blocks = kNone;  ///< the peer's connection for blocks, its first stream
    uint32_t signs = 0;       ///< that wait in `tx`: 1 that asks, 2 that answers
    std::optional<Clock::time_point> asked_since;  ///< nothing has come since
    uint64_t read_there = 0;                       ///< of what was written on `blocks`, by the peer
    std::optional<Clock::time_point> unread_since;  ///< there is more, and it does not change
  };

  TcpEndpoint(NodeId node, uint32_t ahead_max) : node_(node), ahead_max_(ahead_max) {}
  Status Open(int wake_fd);
  bool Watch(int fd, uint32_t events, uint32_t token) const;
  bool WatchLink(const Link& link, uint32_t index) const;
  Status AddSeal(Link& link, std::unique_ptr<LinkSeal> seal);
  void AddChannels(Playable plan);
  void KeepLateNotes();
  bool TakeLate(Link& link, const Record& record);
  void EndEarly(ChannelState& state);
  void CompleteWritten(ChannelState& state);
  Status BeginOn(Link& link);
  uint32_t FindLink(NodeId peer, Lane lane) const;
  std::span<Link> StreamsFrom(uint32_t first) {
    return std::span(links_).subspan(first, links_[first].streams);
  }
  void PushStreams(uint32_t first);

  ChannelState& StateOf(ChannelId channel) { return channels_[state_of_channel_[channel.index()]]; }
  Status Wait(std::chrono::milliseconds timeout, bool* woken);
  bool CanMove(const Link& link) const;
  bool LookInMemory();
  Status Service();
  bool HasToWrite(const Link& link) const;
  bool MayBegin(const Link& link, const ChannelState& state) const;
  bool HasStageRoom(const ChannelState& state) const;
  void FindSlowest();
  static bool HasToRead(const Link& link) {
    return !link.stalled && (link.readable || link.rx_left > 0 || link.is_copying);
  }
  Status Visit(Link& link);
  Io Move(Link& link, bool is_send, std::span<iovec> memory) const;
  Status WriteUnsent(Link& link);
  Status WriteRecords(Link& link);
  void BeginPiece(Link& link, ChannelState& state);
  Status WriteBlock(Link& link);
  Status ReadRecords(Link& link);
  Status ReadBlock(Link& link);
  Status ReadStreamRecord(Link& link);
  Status JudgePiece(Link& link);
  Status ReadPiece(Link& link);
  Status ReadUnposted(Link& link);
  Status ReadStart(Link& link);
  static void AwaitBytes(Link& link, size_t bytes);
  void ChooseWay(Link& link, ChannelState& state, Slot& slot);
  void Release(Link& link, ChannelState& state);
  Status CopyBlock(Link& link, ChannelState& state);
  Result<const MemoryWindow::Entry*> FindSent(Link& link, const ChannelState& state);
  Io CopyPiece(Link& link, uint32_t index, const MemoryWindow::Entry& sent, uint64_t offset,
               iovec piece);
  /// Whether a block's receiver copies it itself.
  bool IsRead(const iovec& block, bool may_read) const {
    return may_read && block.iov_len >= read_bytes_min_;
  }
  /// Whether a block may be in a stage, if there is one.
  bool MayBeStaged(const iovec& block, bool has_stage) const {
    return has_stage && !message_.call_root && block.iov_len >= kReadBytesMin &&
           block.iov_len <= BlockStage::kBlockBytesMax;
  }
  /// Whether the block's receiver sends a delivery note, with which its send completes. Not of a
  /// call's small blocks: their sends complete when they are written, and several of them may wait
  /// in the kernel, unless a window counts those that have not arrived.
  bool IsNoted(const ChannelState& state, const Slot& slot) const {
    return notes_all_ || !links_[state.link].carries_blocks ||
           slot.memory.iov_len >= kCallNotedBytesMin;
  }
  static void FinishPiece(ChannelState& state, const Piece& piece);
  void FinishBlock(Link& link, ChannelState& state);
  Status TakeHead(Link& link, const ChannelState& state);
  Status TakeStart(Link& link, const Record& record);
  Status TakeRecords(Link& link);
  ChannelState* FindChannel(const Link& link, ChannelId wire);
  Status TakeRecord(Link& link, const Record& record);
  Status TakeNote(Link& link, ChannelState& state, const Record& record);
  void CompleteArrived(ChannelState& state);
  void AppendRecord(uint32_t link, const Record& record);
  void PutRecord(uint32_t link, const Record& record);
  void AppendSign(uint32_t link, bool asks);
  void TakeSign(Link& link, const Record& record);
  Record RecordOf(const ChannelState& state, uint32_t index) const;
  Record RecordOf(const ChannelState& state, const Piece& piece) const;
  iovec MemoryOf(const ChannelState& state, const Piece& piece) const;
  size_t PieceBytes(const ChannelState& state, size_t block_bytes) const;
  uint32_t PiecesOf(const ChannelState& state, size_t block_bytes) const;
  /// Of a start.
  static std::optional<uint32_t> RootOf(const Record& record) {
    return IsCallStart(record.channel) ? std::optional(RootOfStart(record.channel)) : std::nullopt;
  }
  Record StartRecord() const {
    return {.channel = message_.call_root ? StartChannelOf(*message_.call_root) : kStartChannel,
            .block = message_.number,
            .bytes = message_.bytes | uint64_t{message_.variant} << kVariantShift};
  }
  Status Unexpected(const Link& link, const Record& record, const std::string& expected) const;
  Status OtherCall(const Link& link, const MessageStart& start);
  Status LateCall(const Link& link, const MessageStart& start);
  Status OtherSize(const Link& link, uint64_t sent, uint64_t expected);
  Status IoError(const Link& link, const Io& io, const char* verb, uint32_t block);

  const NodeId node_;
  const uint32_t ahead_max_;
  Clock::time_point asked_at_;  ///< by AskPeers(), last
  bool is_in_message_ = false;
  bool ends_early_ = false;
  bool in_step_ = false;
  bool has_ended_early_ = false;
  std::optional<std::pair<NodeId, MessageStart>> late_call_;
  bool notes_all_ = true;      ///< of the message at hand; else see IsNoted()
  size_t read_bytes_min_ = 0;  ///< of the blocks of the message at hand
  MessageStart message_;       ///< the one at hand, or before the first one nothing
  uint32_t next_number_ = 0;   ///< no earlier message may begin
  FileDescriptor epoll_;
  std::unique_ptr<BounceBuffer> bounce_;  ///< of all links that are sealed and carry blocks
  std::vector<Link> links_;
  std::vector<uint32_t> in_memory_;                      ///< links
  uint32_t looks_ = 0;                                   ///< in memory, that brought something
  std::map<std::pair<NodeId, Lane>, uint32_t> link_to_;  ///< the first of its streams
  std::vector<ChannelState> channels_;
  std::vector<uint32_t> state_of_channel_;  ///< by plan channel; kNone: not ours
  VisitRing active_;                        ///< links
  CompletionList completed_;
  /// In step: how many sends of the staged channel that is waited for and has least are complete;
  /// none: nobody is waited for.
  std::optional<uint32_t> slowest_;
  uint32_t unstaged_ = 0;                 ///< channels that may use a stage, and do not at present
  std::function<void(OpId)> on_arrival_;  ///< may be empty
  std::function<void()> on_wakeup_;       ///< may be empty
  std::optional<NodeId> lost_peer_;
  std::optional<NodeId> failed_peer_;
  bool differs_ = false;
  EndpointCounters counters_;
  TcpHook* hook_ = nullptr;
  KeepAliveTimes rest_times_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_TCP_ENDPOINT_H_
