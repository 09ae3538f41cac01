// SPDX-License-Identifier: Apache-2.0
//
// How it moves on: posting only notes what is to be done and queues the link. Poll() visits the
// queued links (writing what was posted, reading what has come), waits in epoll if nothing is left
// to do, and visits the links that epoll named. Records that a visit makes (delivery notes) leave
// with the next Poll(), together with the credits that the executor has posted in between: one
// system call for both.
//
// Between messages no node waits for another. The first thing that a connection carries of a
// message, in either direction, is its start. A node that reads the start of a message that is not
// its yet leaves what follows where it is until Begin(): blocks with the kernel, and of credits
// what has been read already in `rx`.
#include "runtime/transport/tcp/tcp_endpoint.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <tuple>
#include <utility>

#include "ir/base/count.h"

namespace prepost {
namespace {

constexpr size_t kRecordsPerRead = 64;
constexpr size_t kSigns =
    2;  ///< of life that may wait on a connection: one that asks, one that answers
constexpr uint32_t kTcpWakeToken = 0xffffffff;  ///< instead of a link's number in an epoll event

/// What is left of `parts`, of which `done` bytes were moved.
struct Rest {
  std::array<iovec, 2> parts;
  size_t first = 0;

  std::span<iovec> span() { return std::span(parts).subspan(first); }
};
Rest RestOf(std::vector<std::byte>& head, size_t head_bytes, const iovec& block, size_t done) {
  const size_t done_head = std::min(done, head_bytes);
  const size_t done_block = done - done_head;
  return {.parts = {iovec{head.data() + done_head, head_bytes - done_head},
                    iovec{static_cast<std::byte*>(block.iov_base) + done_block,
                          block.iov_len - done_block}},
          .first = done_head == head_bytes ? size_t{1} : size_t{0}};
}

}  // namespace

Result<std::unique_ptr<TcpEndpoint>> TcpEndpoint::Make(NodeId node, std::vector<TcpSocket> sockets,
                                                       int wake_fd, uint32_t ahead_max) {
  std::unique_ptr<TcpEndpoint> endpoint(new TcpEndpoint(node, ahead_max));
  PREPOST_RETURN_IF_ERROR(endpoint->Open(wake_fd));
  PREPOST_RETURN_IF_ERROR(endpoint->Add(std::move(sockets)));
  return endpoint;
}

Result<std::unique_ptr<TcpEndpoint>> TcpEndpoint::Make(Playable plan, NodeId node,
                                                       std::vector<TcpSocket> sockets,
                                                       int wake_fd) {
  auto endpoint = Make(node, std::move(sockets), wake_fd, /*ahead_max=*/0);
  if (endpoint.ok())
    PREPOST_RETURN_IF_ERROR((*endpoint)->Begin(plan, {.bytes = plan.header().payload.bytes}));
  return endpoint;
}

Status TcpEndpoint::Begin(Playable plan, const MessageStart& message) {
  PREPOST_CHECK(!is_in_message_ || !IsAfter(next_number_, message.number));
  PREPOST_CHECK(message.bytes == plan.header().payload.bytes &&
                message.bytes <= kGroupMessageBytesMax);
  is_in_message_ = true;
  has_ended_early_ = false;
  message_ = message;
  next_number_ = message.number + 1;
  read_bytes_min_ = message.call_root ? kCallReadBytesMin : kReadBytesMin;
  notes_all_ = !message.call_root || plan.header().send_window.has_value();
  AddChannels(plan);
  const bool has_credits = plan.header().ready.mode != ReadyMode::kBarrier;
  for (uint32_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    link.has_begun = link.peer_has_begun = false;
    link.rx_from = 0;
    if (link.carries_blocks) link.rx_head = 2 * kRecordBytes;
    link.announces =
        has_credits && link.out != kNone && link.stream == 0 && channels_[link.out].ops > 0;
    PREPOST_RETURN_IF_ERROR(BeginOn(link));
    active_.Push(i);  // which may have waited for this
  }
  return {};
}

/// What the peer has begun already.
Status TcpEndpoint::BeginOn(Link& link) {
  if (!link.next) return {};
  const bool is_later = IsAfter(link.next->number, message_.number);
  if (!is_later && *link.next != message_) {
    if (message_.call_root) return OtherCall(link, *link.next);
    return Unexpected(
        link, {.channel = kStartChannel, .block = link.next->number, .bytes = link.next->bytes},
        fmt::format("message {}, {}", message_.number, Count(message_.bytes, "byte")));
  }
  // Another stream may have brought them, or bring them still.
  if (is_later && link.streams == 1 && link.in != kNone && channels_[link.in].ops > 0) {
    if (message_.call_root) return OtherCall(link, *link.next);
    return Rejected(
        fmt::format("node {} got message {} from node {} without the blocks of message {}",
                    node_.value, link.next->number, link.peer.value, message_.number));
  }
  if (is_later) return {};
  link.next.reset();
  link.stalled = false;
  link.peer_has_begun = true;
  return {};
}

std::optional<MessageStart> TcpEndpoint::announced() const {
  std::optional<MessageStart> first;
  for (const Link& link : links_) {
    if (link.next && (!first || IsAfter(first->number, link.next->number))) first = link.next;
  }
  return first;
}

bool TcpEndpoint::Watch(int fd, uint32_t events, uint32_t token) const {
  epoll_event event = {.events = events, .data = {.u32 = token}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

bool TcpEndpoint::WatchLink(const Link& link, uint32_t index) const {
  constexpr uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  const ShmStream* const memory = link.socket.memory();
  return Watch(link.socket.fd(), kEvents, index) &&
         (memory == nullptr || Watch(memory->bell_fd(), kEvents, index));
}

Status TcpEndpoint::Open(int wake_fd) {
  epoll_ = FileDescriptor::Open([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (epoll_.valid() && (wake_fd < 0 || Watch(wake_fd, EPOLLIN, kTcpWakeToken))) return {};
  return SystemError(StatusCode::kEnvironment, "cannot watch the connections of a node", errno);
}

Status TcpEndpoint::Add(std::vector<TcpSocket> sockets) {
  const auto before = static_cast<uint32_t>(links_.size());
  bool watched = true;
  links_.reserve(links_.size() + sockets.size());
  std::ranges::stable_sort(
      sockets, {}, [](const TcpSocket& it) { return std::tuple(it.peer, it.lane, it.stream); });
  for (TcpSocket& socket : sockets) {
    const uint32_t index = static_cast<uint32_t>(links_.size());
    link_to_.try_emplace({socket.peer, socket.lane}, index);
    Link& link = links_.emplace_back();
    link.socket = TcpStream(std::move(socket.fd));
    if (socket.memory != nullptr) {
      link.socket.Use(std::move(socket.memory));
      in_memory_.push_back(index);
    }
    watched = watched && WatchLink(link, index);
    link.peer = socket.peer;
    link.carries_blocks = socket.lane != Lane::kCredits;
    link.lane = socket.lane;
    link.stream = socket.stream;
    link.streams = socket.streams;
    link.local = socket.local;
    link.window = std::move(socket.window);
    link.stage = std::move(socket.stage);
    link.peer_stage = std::move(socket.peer_stage);
    if (socket.seal != nullptr) PREPOST_RETURN_IF_ERROR(AddSeal(link, std::move(socket.seal)));
    if (link.local.can_read) link.seen = std::make_unique<MemoryWindow::Value>();
    link.rx_head = link.carries_blocks && is_in_message_ ? 2 * kRecordBytes : 0;
    if (link.carries_blocks) link.tx.resize(2 * kRecordBytes);
    link.rx.resize(link.carries_blocks ? 2 * kRecordBytes : kRecordsPerRead * kRecordBytes);
    if (!link.carries_blocks) link.tx.reserve(kSigns * kRecordBytes);
  }
  for (uint32_t i = before; i < links_.size(); ++i) {
    const auto blocks = link_to_.find({links_[i].peer, Lane::kBlocks});
    if (!links_[i].carries_blocks && blocks != link_to_.end()) links_[i].blocks = blocks->second;
  }
  active_.Grow(links_.size());
  if (watched) return {};
  return SystemError(StatusCode::kEnvironment, "cannot watch the connections of a node", errno);
}

/// Records of credits and notes are this endpoint's own, blocks its caller's.
Status TcpEndpoint::AddSeal(Link& link, std::unique_ptr<LinkSeal> seal) {
  PREPOST_CHECK(!link.local.can_read && !link.local.is_read);
  if (link.carries_blocks && bounce_ == nullptr) {
    Result<std::unique_ptr<BounceBuffer>> bounce =
        BounceBuffer::Make(SealedStream::kRecordBytesMax);
    if (!bounce.ok()) return bounce.status();
    bounce_ = *std::move(bounce);
  }
  link.socket.Seal(std::make_unique<SealedStream>(
      std::move(seal),
      link.carries_blocks ? SealedStream::kRecordBytesMax : kRecordsPerRead * kRecordBytes,
      link.carries_blocks ? bounce_.get() : nullptr));
  return {};
}

/// Of the message that is over.
void TcpEndpoint::KeepLateNotes() {
  for (const ChannelState& state : channels_) {
    if (state.ends_early)
      links_[state.note_link].late[state.wire.index()] += state.ops - state.noted;
  }
}

void TcpEndpoint::AddChannels(Playable plan) {
  KeepLateNotes();
  const size_t in_flight_max = plan.look_ahead(node_);
  completed_.Reserve(in_flight_max);
  channels_.clear();
  state_of_channel_.assign(plan.channels().size(), kNone);
  for (Link& link : links_) {
    link.out = link.in = kNone;
    link.noted.clear();
  }
  unstaged_ = 0;
  slowest_.reset();
  std::vector<size_t> records(links_.size(), 1);  // the start
  for (const ChannelOps& ops : plan.ChannelOpsOf(node_)) {
    const auto index = static_cast<uint32_t>(channels_.size());
    state_of_channel_[ops.channel.index()] = index;
    const Channel& channel = plan.channels()[ops.channel.index()];
    const NodeId peer = ops.outgoing ? channel.to : channel.from;
    ChannelState& state = channels_.emplace_back();
    state.wire = WireChannel(channel);
    state.link = FindLink(peer, channel.lane);
    state.note_link = FindLink(peer, Lane::kCredits);
    state.ops = ops.ops;
    state.outgoing = ops.outgoing;
    state.ends_early = ends_early_ && ops.outgoing && links_[state.link].streams > 1;
    state.slots.Resize(std::min<size_t>(ops.ops, in_flight_max));
    links_[state.note_link].noted.push_back(index);
    const bool carries_blocks = links_[state.link].carries_blocks;
    if (carries_blocks) {
      for (Link& link : StreamsFrom(state.link)) (ops.outgoing ? link.out : link.in) = index;
      if (ops.outgoing && ops.ops > 0 && links_[state.link].stage != nullptr) ++unstaged_;
    }
    if (!state.outgoing || !carries_blocks) records[state.note_link] += state.ops;
  }
  // Unwritten are at most this node's credits in flight and the notes that the peer's ops in flight
  // wait for. As much again, so that they seldom have to be moved to the front.
  for (size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].carries_blocks) continue;
    links_[i].tx.reserve((std::min(records[i], 4 * in_flight_max + 1) + kSigns) * kRecordBytes);
  }
}

uint32_t TcpEndpoint::FindLink(NodeId peer, Lane lane) const {
  const auto found = link_to_.find({peer, lane});
  PREPOST_CHECK(found != link_to_.end());
  return found->second;
}

void TcpEndpoint::PostRecv(const RecvRequest& request) {
  ChannelState& state = StateOf(request.channel);
  PREPOST_CHECK(!state.outgoing && state.posted < state.ops);
  const bool carries_blocks = links_[state.link].carries_blocks;
  state.slots[state.posted++] = {
      .op = request.op,
      .block = request.block,
      .memory = {request.memory.data(), request.memory.size()},
      .pieces = carries_blocks ? PiecesOf(state, request.memory.size()) : 0};
  if (!carries_blocks) return CompleteArrived(state);
  for (uint32_t i = state.link; i < state.link + links_[state.link].streams; ++i) {
    // Where a later message has begun, that is what waits.
    if (!links_[i].next && std::exchange(links_[i].stalled, false)) active_.Push(i);
  }
}

void TcpEndpoint::PostSend(const SendRequest& request) {
  ChannelState& state = StateOf(request.channel);
  PREPOST_CHECK(state.outgoing && state.posted < state.ops);
  const bool carries_blocks = links_[state.link].carries_blocks;
  state.slots[state.posted++] = {
      .op = request.op,
      .block = request.block,
      .memory = {const_cast<std::byte*>(request.memory.data()), request.memory.size()},
      .pieces = carries_blocks ? PiecesOf(state, request.memory.size()) : 0};
  if (carries_blocks) {
    if (links_[state.link].stage != nullptr)
      slowest_ = std::min(slowest_.value_or(state.completed), state.completed);
    PushStreams(state.link);
  } else {
    AppendRecord(state.link, RecordOf(state, state.moved++));
  }
}

void TcpEndpoint::PushStreams(uint32_t first) {
  for (uint32_t i = first; i < first + links_[first].streams; ++i) active_.Push(i);
}

Result<PollOutcome> TcpEndpoint::Poll(std::span<OpId> completed,
                                      std::chrono::milliseconds timeout) {
  constexpr uint32_t kLooksMax = 8;  // without a system call
  PREPOST_RETURN_IF_ERROR(Service());
  PollOutcome outcome;
  const bool has_looked = LookInMemory() && ++looks_ % kLooksMax != 0;
  if (!has_looked) {
    const bool busy = active_.size() > 0 || !completed_.empty();
    PREPOST_RETURN_IF_ERROR(Wait(busy ? std::chrono::milliseconds(0) : timeout, &outcome.woken));
  }
  PREPOST_RETURN_IF_ERROR(Service());
  outcome.completed = completed_.Take(completed);
  return outcome;
}

bool TcpEndpoint::quiet() const {
  return std::ranges::none_of(links_, [this](const Link& link) { return HasToWrite(link); });
}

Status TcpEndpoint::Wait(std::chrono::milliseconds timeout, bool* woken) {
  std::array<epoll_event, 64> events;
  int timeout_ms = timeout.count() < 0 ? -1 : static_cast<int>(timeout.count());
  const bool is_armed = timeout_ms != 0 && has_memory();
  if (is_armed) Arm();
  if (is_armed && HasArrivals()) timeout_ms = 0;
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  if (count < 0 && errno != EINTR) {
    return SystemError(StatusCode::kEnvironment, "cannot wait for connections", errno);
  }
  if (timeout_ms != 0) {
    ++counters_.wakeups;
    if (on_wakeup_) on_wakeup_();
  }
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.u32 == kTcpWakeToken) {
      *woken = true;
      continue;
    }
    Link& link = links_[event.data.u32];
    if ((event.events & EPOLLOUT) != 0) link.writable = true;
    if ((event.events & ~uint32_t{EPOLLOUT}) != 0) link.readable = true;
    if ((event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) link.is_ending = true;
    if (ShmStream* const memory = link.socket.memory(); memory != nullptr && !memory->HearBell())
      link.is_ending = link.readable = true;
    active_.Push(event.data.u32);
  }
  if (is_armed) Disarm();
  LookInMemory();
  return {};
}

/// Of a link through memory, which nobody may have heard of.
bool TcpEndpoint::CanMove(const Link& link) const {
  const ShmStream& memory = *link.socket.memory();
  const bool can_read = !link.stalled && memory.has_arrivals();
  return can_read || (!link.writable && HasToWrite(link) && memory.has_room());
}

bool TcpEndpoint::HasArrivals() const {
  return std::ranges::any_of(in_memory_, [this](uint32_t link) { return CanMove(links_[link]); });
}

/// Whether it has found anything.
bool TcpEndpoint::LookInMemory() {
  bool has_found = false;
  for (const uint32_t index : in_memory_) {
    Link& link = links_[index];
    if (!CanMove(link)) continue;
    has_found = link.readable = link.writable = true;
    active_.Push(index);
  }
  return has_found;
}

void TcpEndpoint::Arm() {
  for (const uint32_t link : in_memory_) links_[link].socket.memory()->Arm();
}

void TcpEndpoint::Disarm() {
  for (const uint32_t link : in_memory_) links_[link].socket.memory()->Disarm();
}

Status TcpEndpoint::Service() {
  for (size_t visits = active_.size(); visits > 0; --visits) {
    const uint32_t index = active_.Pop();
    Link& link = links_[index];
    PREPOST_RETURN_IF_ERROR(Visit(link));
    if ((link.writable && HasToWrite(link)) || HasToRead(link)) active_.Push(index);
  }
  return {};
}

bool TcpEndpoint::HasToWrite(const Link& link) const {
  if (link.socket.has_unsent()) return true;
  if (!link.carries_blocks) return link.tx_bytes < link.tx.size();
  if (link.out == kNone) return false;
  const ChannelState& state = channels_[link.out];
  return link.tx_head > 0 || link.announces || MayBegin(link, state);
}

/// There is a piece, and room for it where its receiver may be to find it.
bool TcpEndpoint::MayBegin(const Link& link, const ChannelState& state) const {
  if (state.next.index == state.posted) return false;
  const iovec& block = state.slots[state.next.index].memory;
  if (MayBeStaged(block, link.stage != nullptr)) return HasStageRoom(state);
  return !IsRead(block, link.local.is_read) ||
         state.next.index - state.completed < MemoryWindow::kSendsMax;
}

Status TcpEndpoint::Visit(Link& link) {
  if (link.writable && link.socket.has_unsent()) PREPOST_RETURN_IF_ERROR(WriteUnsent(link));
  if (link.writable && HasToWrite(link)) {
    PREPOST_RETURN_IF_ERROR(link.carries_blocks ? WriteBlock(link) : WriteRecords(link));
  }
  if (HasToRead(link)) {
    PREPOST_RETURN_IF_ERROR(link.carries_blocks ? ReadBlock(link) : ReadRecords(link));
  }
  return {};
}

/// What is sealed, and the socket does not take, goes as soon as it does. Memory outlives the
/// process at its other end, whose end the socket shows.
Io TcpEndpoint::Move(Link& link, bool is_send, std::span<iovec> memory) const {
  const TcpWay way = {node_, link.peer, link.lane, link.stream, is_send};
  Io io = link.socket.Move(way, memory, hook_);
  if (is_send && link.socket.has_unsent()) link.writable = false;
  const bool is_empty = !is_send && io.outcome == Io::Outcome::kWouldBlock;
  if (is_empty && link.is_ending && link.socket.memory() != nullptr)
    io.outcome = Io::Outcome::kPeerGone;
  return io;
}

Status TcpEndpoint::WriteUnsent(Link& link) {
  const Io io = link.socket.Flush();
  if (io.outcome == Io::Outcome::kWouldBlock) link.writable = false;
  return IoError(link, io, "send to", kNoBlock);
}

Status TcpEndpoint::WriteRecords(Link& link) {
  iovec rest = {link.tx.data() + link.tx_bytes, link.tx.size() - link.tx_bytes};
  const Io io = Move(link, /*is_send=*/true, std::span(&rest, 1));
  if (io.outcome == Io::Outcome::kWouldBlock) link.writable = false;
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "send to", kNoBlock);
  link.tx_bytes += io.bytes;
  if (link.tx_bytes == link.tx.size()) {
    link.tx.clear();
    link.tx_bytes = 0;
    link.signs = 0;
  }
  return {};
}

/// What stands before the channel's next piece, which the stream takes.
void TcpEndpoint::BeginPiece(Link& link, ChannelState& state) {
  const bool has_piece = MayBegin(link, state);
  if (has_piece) link.announces = false;  // it goes with a block
  const auto add = [&](const Record& record) {
    EncodeRecord(record, RecordAt(link.tx, link.tx_head));
    link.tx_head += kRecordBytes;
  };
  if (!std::exchange(link.has_begun, true)) add(StartRecord());
  if (!has_piece) return;
  link.tx_piece = state.next;
  Slot& slot = state.slots[state.next.index];
  ChooseWay(link, state, slot);
  Record record = RecordOf(state, link.tx_piece);
  if (slot.way == BlockWay::kStage) record.bytes |= uint64_t{slot.place + 1} << kPieceShift;
  add(record);
  if (++state.next.number == PiecesOf(state, slot.memory.iov_len))
    state.next = {state.next.index + 1, 0};
}

Status TcpEndpoint::WriteBlock(Link& link) {
  ChannelState& state = channels_[link.out];
  if (link.tx_head == 0) BeginPiece(link, state);  // else nothing of it has been sent, or not all
  iovec piece = link.announces ? iovec() : MemoryOf(state, link.tx_piece);
  const Slot* const slot = link.announces ? nullptr : &state.slots[link.tx_piece.index];
  const uint32_t block = slot == nullptr ? kNoBlock : slot->block;
  if (slot != nullptr && slot->way != BlockWay::kConnection) piece.iov_len = 0;
  Rest rest = RestOf(link.tx, link.tx_head, piece, link.tx_bytes);
  const Io io = Move(link, /*is_send=*/true, rest.span());
  if (io.outcome == Io::Outcome::kWouldBlock) link.writable = false;
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "send to", block);
  counters_.bytes_moved += io.bytes;
  link.tx_bytes += io.bytes;
  if (link.tx_bytes == link.tx_head + piece.iov_len) {
    link.tx_head = link.tx_bytes = 0;
    if (!std::exchange(link.announces, false)) FinishPiece(state, link.tx_piece);
    EndEarly(state);
    CompleteWritten(state);
  }
  return {};
}

Status TcpEndpoint::ReadBlock(Link& link) {
  if (link.streams > 1) return ReadPiece(link);
  if (link.in == kNone || channels_[link.in].moved == channels_[link.in].ops)
    return ReadStart(link);
  ChannelState& state = channels_[link.in];
  if (state.moved == state.posted) return ReadUnposted(link);
  if (link.is_copying) return CopyBlock(link, state);
  const Slot& slot = state.slots[state.moved];
  iovec block = slot.memory;
  const bool had_head = link.rx_bytes >= link.rx_head;
  // Whether it comes over the connection, its record may have to say.
  const bool may_be_elsewhere =
      IsRead(block, link.local.can_read) || MayBeStaged(block, link.peer_stage != nullptr);
  if (!had_head && may_be_elsewhere) block.iov_len = 0;
  Rest rest = RestOf(link.rx, link.rx_head, block, link.rx_bytes);
  const Io io = Move(link, /*is_send=*/false, rest.span());
  if (io.outcome == Io::Outcome::kWouldBlock) {
    // What stands before the block is judged as soon as it is there.
    const size_t there = link.socket.received();
    const size_t left = link.rx_head + block.iov_len - link.rx_bytes;
    AwaitBytes(link, had_head && left > there ? left - there : 1);
  }
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from", slot.block);
  counters_.bytes_moved += io.bytes;
  link.rx_bytes += io.bytes;
  if (!link.peer_has_begun && link.rx_bytes >= kRecordBytes) {
    PREPOST_RETURN_IF_ERROR(TakeStart(link, DecodeRecord(RecordAt(link.rx, 0))));
    if (!link.peer_has_begun) return BeginOn(link);  // a later one: an error
  }
  if (!had_head && link.rx_bytes >= link.rx_head) PREPOST_RETURN_IF_ERROR(TakeHead(link, state));
  const bool is_whole = link.rx_bytes == link.rx_head + slot.memory.iov_len;
  if (is_whole && !link.is_copying) FinishBlock(link, state);
  return {};
}

/// Until so many bytes are there to be read, or about: the rest of a block wakes its receiver once
/// and not with every packet. Never for more than a small part of the socket's buffer: the kernel
/// enlarges the buffer of a receiver that takes more in a round trip than in those before, and one
/// that sleeps until most of the window is full takes a window each time. Over a long path that is
/// all that is ever sent.
void TcpEndpoint::AwaitBytes(Link& link, size_t bytes) {
  constexpr size_t kAwaitedMax = size_t{128} << 10;
  constexpr int kBufferPart = 8;  // with a quarter, jumbo frames do not enlarge it
  link.readable = false;
  if (link.socket.memory() != nullptr) return;
  bytes = std::min(bytes, kAwaitedMax);
  if (bytes > link.awaited_max) {
    int buffer = 0;
    socklen_t length = sizeof(buffer);
    getsockopt(link.socket.fd(), SOL_SOCKET, SO_RCVBUF, &buffer, &length);
    link.awaited_max = static_cast<size_t>(std::max(buffer / kBufferPart, 1));
    bytes = std::min(bytes, link.awaited_max);
  }
  const int wanted = static_cast<int>(bytes);
  if (std::exchange(link.awaited_bytes, wanted) == wanted) return;
  // Where it does not help it does no harm.
  setsockopt(link.socket.fd(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted));
}

/// What stands before the block, and whether that is elsewhere.
Status TcpEndpoint::TakeHead(Link& link, const ChannelState& state) {
  const Slot& slot = state.slots[state.moved];
  if (on_arrival_) on_arrival_(slot.op);
  Record record = DecodeRecord(RecordAt(link.rx, link.rx_head - kRecordBytes));
  const uint64_t place = record.bytes >> kPieceShift;
  link.rx_place.reset();
  if (place > 0 && place <= BlockStage::kPlaces &&
      MayBeStaged(slot.memory, link.peer_stage != nullptr)) {
    link.rx_place = static_cast<uint32_t>(place - 1);
    record.bytes -= place << kPieceShift;
  }
  link.is_copying = link.rx_place || IsRead(slot.memory, link.local.can_read);
  const Record wanted = RecordOf(state, state.moved);
  if (record == wanted) return {};
  const bool is_other_size = record.channel == wanted.channel && record.block == wanted.block;
  if (message_.call_root && is_other_size) return OtherSize(link, record.bytes, wanted.bytes);
  return Unexpected(link, record, Describe(wanted, node_, link.peer));
}

void TcpEndpoint::FinishPiece(ChannelState& state, const Piece& piece) {
  --state.slots[piece.index].pieces;
  while (state.moved < state.posted && state.slots[state.moved].pieces == 0) ++state.moved;
}

/// The one that is next, of a connection of one stream.
void TcpEndpoint::FinishBlock(Link& link, ChannelState& state) {
  link.rx_bytes = 0;
  link.rx_head = kRecordBytes;
  FinishPiece(state, {.index = state.moved});
  CompleteArrived(state);
}

/// A block is expected, but its receive is not posted. Only peeks: the bytes stay with the kernel.
Status TcpEndpoint::ReadUnposted(Link& link) {
  std::byte byte;
  iovec one = {&byte, 1};
  const ShmStream* const memory = link.socket.memory();
  const bool is_there = memory == nullptr ? link.socket.received() > 0 : memory->has_arrivals();
  const Io io = is_there ? Io{.bytes = 1} : PeekSome(link.socket.fd(), std::span(&one, 1));
  if (io.outcome == Io::Outcome::kWouldBlock) AwaitBytes(link, 1);
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from", kNoBlock);
  link.stalled = true;
  ++counters_.early;
  return {};
}

Status TcpEndpoint::IoError(const Link& link, const Io& io, const char* verb, uint32_t block) {
  if (io.outcome == Io::Outcome::kPeerGone) lost_peer_ = link.peer;
  return StatusOf(io, node_, link.peer, verb, block);
}

}  // namespace prepost
