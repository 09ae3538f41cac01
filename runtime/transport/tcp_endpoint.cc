// SPDX-License-Identifier: Apache-2.0
//
// How it moves on: posting only notes what is to be done and queues the link. Poll() visits the
// queued links (writing what was posted, reading what has come), waits in epoll if nothing is left
// to do, and visits the links that epoll named. Records that a visit makes (delivery notes) leave
// with the next Poll(), together with the credits that the executor has posted in between: one
// system call for both.
#include "runtime/transport/tcp_endpoint.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace prepost {
namespace {

constexpr size_t kRecordsPerRead = 64;
constexpr uint32_t kTcpWakeToken = 0xffffffff;  ///< instead of a link's number in an epoll event

std::span<std::byte, kRecordBytes> RecordAt(std::vector<std::byte>& bytes, size_t offset) {
  return std::span<std::byte, kRecordBytes>(bytes.data() + offset, kRecordBytes);
}

/// What is left of `parts`, of which `done` bytes were moved.
struct Rest {
  std::array<iovec, 2> parts;
  size_t first = 0;

  std::span<iovec> span() { return std::span(parts).subspan(first); }
};
Rest RestOf(std::vector<std::byte>& record, const iovec& block, size_t done) {
  const size_t done_record = std::min(done, kRecordBytes);
  const size_t done_block = done - done_record;
  return {.parts = {iovec{record.data() + done_record, kRecordBytes - done_record},
                    iovec{static_cast<std::byte*>(block.iov_base) + done_block,
                          block.iov_len - done_block}},
          .first = done_record == kRecordBytes ? size_t{1} : size_t{0}};
}

}  // namespace

Result<std::unique_ptr<TcpEndpoint>> TcpEndpoint::Make(Playable plan, NodeId node,
                                                       std::vector<TcpSocket> sockets,
                                                       int wake_fd) {
  std::unique_ptr<TcpEndpoint> endpoint(new TcpEndpoint(plan, node));
  PREPOST_RETURN_IF_ERROR(endpoint->AddLinks(std::move(sockets), wake_fd));
  endpoint->AddLanes();
  return endpoint;
}

Status TcpEndpoint::AddLinks(std::vector<TcpSocket> sockets, int wake_fd) {
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  const auto watch = [this](int fd, uint32_t events, uint32_t token) {
    epoll_event event = {.events = events, .data = {.u32 = token}};
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  bool watched = epoll_.valid() && (wake_fd < 0 || watch(wake_fd, EPOLLIN, kTcpWakeToken));
  links_.reserve(sockets.size());
  for (TcpSocket& socket : sockets) {
    const uint32_t index = static_cast<uint32_t>(links_.size());
    watched = watched && watch(socket.fd.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, index);
    Link& link = links_.emplace_back();
    link.fd = std::move(socket.fd);
    link.peer = socket.peer;
    link.carries_blocks = socket.lane != kCreditLane;
    link.lane = socket.lane;
    if (link.carries_blocks) link.tx.resize(kRecordBytes);
    link.rx.resize(link.carries_blocks ? kRecordBytes : kRecordsPerRead * kRecordBytes);
  }
  active_.Resize(links_.size());
  if (watched) return {};
  return SystemError(StatusCode::kEnvironment, "cannot watch the connections of a node", errno);
}

void TcpEndpoint::AddLanes() {
  const size_t in_flight_max = plan_.look_ahead(node_);
  completed_.Reserve(in_flight_max);
  lane_of_channel_.assign(plan_.channels().size(), kNone);
  std::vector<size_t> records(links_.size(), 0);
  for (const ChannelOps& ops : plan_.ChannelOpsOf(node_)) {
    const auto index = static_cast<uint32_t>(lanes_.size());
    lane_of_channel_[ops.channel.index()] = index;
    const Channel& channel = plan_.channels()[ops.channel.index()];
    const NodeId peer = ops.outgoing ? channel.to : channel.from;
    Lane& lane = lanes_.emplace_back();
    lane.wire = WireChannel(channel);
    lane.link = FindLink(peer, channel.lane);
    lane.note_link = FindLink(peer, kCreditLane);
    lane.ops = ops.ops;
    lane.outgoing = ops.outgoing;
    lane.slots.Resize(std::min<size_t>(ops.ops, in_flight_max));
    links_[lane.note_link].noted.push_back(index);
    Link& link = links_[lane.link];
    if (link.carries_blocks) (ops.outgoing ? link.out : link.in) = index;
    if (!lane.outgoing || !link.carries_blocks) records[lane.note_link] += lane.ops;
  }
  // Unwritten are at most this node's credits in flight and the notes that the peer's ops in flight
  // wait for. As much again, so that they seldom have to be moved to the front.
  for (size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].carries_blocks) continue;
    links_[i].tx.reserve(std::min(records[i], 4 * in_flight_max) * kRecordBytes);
  }
}

uint32_t TcpEndpoint::FindLink(NodeId peer, uint32_t lane) const {
  const auto found = std::ranges::find_if(
      links_, [&](const Link& link) { return link.peer == peer && link.lane == lane; });
  PREPOST_CHECK(found != links_.end());
  return static_cast<uint32_t>(found - links_.begin());
}

void TcpEndpoint::PostRecv(const RecvRequest& request) {
  Lane& lane = LaneOf(request.channel);
  PREPOST_CHECK(!lane.outgoing && lane.posted < lane.ops);
  lane.slots[lane.posted++] = {.op = request.op,
                               .block = request.block,
                               .memory = {request.memory.data(), request.memory.size()}};
  Link& link = links_[lane.link];
  if (!link.carries_blocks) {
    CompleteArrived(lane);
  } else if (std::exchange(link.stalled, false)) {
    active_.Push(lane.link);
  }
}

void TcpEndpoint::PostSend(const SendRequest& request) {
  Lane& lane = LaneOf(request.channel);
  PREPOST_CHECK(lane.outgoing && lane.posted < lane.ops);
  lane.slots[lane.posted++] = {
      .op = request.op,
      .block = request.block,
      .memory = {const_cast<std::byte*>(request.memory.data()), request.memory.size()}};
  if (links_[lane.link].carries_blocks) {
    active_.Push(lane.link);
  } else {
    AppendRecord(lane.link, RecordOf(lane, lane.moved++));
  }
}

Result<PollOutcome> TcpEndpoint::Poll(std::span<OpId> completed,
                                      std::chrono::milliseconds timeout) {
  PREPOST_RETURN_IF_ERROR(Service());
  PollOutcome outcome;
  const bool busy = active_.size() > 0 || !completed_.empty();
  PREPOST_RETURN_IF_ERROR(Wait(busy ? std::chrono::milliseconds(0) : timeout, &outcome.woken));
  PREPOST_RETURN_IF_ERROR(Service());
  outcome.completed = completed_.Take(completed);
  return outcome;
}

bool TcpEndpoint::quiet() const {
  return std::ranges::none_of(links_, [this](const Link& link) { return HasToWrite(link); });
}

Status TcpEndpoint::Wait(std::chrono::milliseconds timeout, bool* woken) {
  std::array<epoll_event, 64> events;
  const int timeout_ms = timeout.count() < 0 ? -1 : static_cast<int>(timeout.count());
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  if (count < 0 && errno != EINTR) {
    return SystemError(StatusCode::kEnvironment, "cannot wait for connections", errno);
  }
  if (timeout_ms != 0) ++counters_.wakeups;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.u32 == kTcpWakeToken) {
      *woken = true;
      continue;
    }
    Link& link = links_[event.data.u32];
    if ((event.events & EPOLLOUT) != 0) link.writable = true;
    if ((event.events & ~uint32_t{EPOLLOUT}) != 0) link.readable = true;
    active_.Push(event.data.u32);
  }
  return {};
}

Status TcpEndpoint::Service() {
  for (size_t visits = active_.size(); visits > 0; --visits) {
    const uint32_t index = active_.Pop();
    Link& link = links_[index];
    PREPOST_RETURN_IF_ERROR(Visit(link));
    if ((link.writable && HasToWrite(link)) || (link.readable && !link.stalled))
      active_.Push(index);
  }
  return {};
}

bool TcpEndpoint::HasToWrite(const Link& link) const {
  if (!link.carries_blocks) return link.tx_bytes < link.tx.size();
  return link.out != kNone && lanes_[link.out].moved < lanes_[link.out].posted;
}

Status TcpEndpoint::Visit(Link& link) {
  if (link.writable && HasToWrite(link)) {
    PREPOST_RETURN_IF_ERROR(link.carries_blocks ? WriteBlock(link) : WriteRecords(link));
  }
  if (link.readable && !link.stalled) {
    PREPOST_RETURN_IF_ERROR(link.carries_blocks ? ReadBlock(link) : ReadRecords(link));
  }
  return {};
}

Status TcpEndpoint::WriteRecords(Link& link) {
  iovec rest = {link.tx.data() + link.tx_bytes, link.tx.size() - link.tx_bytes};
  const Io io = SendSome(link.fd.get(), std::span(&rest, 1));
  if (io.outcome == Io::Outcome::kWouldBlock) link.writable = false;
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "send to", kNoBlock);
  counters_.bytes_moved += io.bytes;
  link.tx_bytes += io.bytes;
  if (link.tx_bytes == link.tx.size()) {
    link.tx.clear();
    link.tx_bytes = 0;
  }
  return {};
}

Status TcpEndpoint::WriteBlock(Link& link) {
  Lane& lane = lanes_[link.out];
  const Slot& slot = lane.slots[lane.moved];
  if (link.tx_bytes == 0) EncodeRecord(RecordOf(lane, lane.moved), RecordAt(link.tx, 0));
  Rest rest = RestOf(link.tx, slot.memory, link.tx_bytes);
  const Io io = SendSome(link.fd.get(), rest.span());
  if (io.outcome == Io::Outcome::kWouldBlock) link.writable = false;
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "send to", slot.block);
  counters_.bytes_moved += io.bytes;
  link.tx_bytes += io.bytes;
  if (link.tx_bytes == kRecordBytes + slot.memory.iov_len) {
    link.tx_bytes = 0;
    ++lane.moved;
  }
  return {};
}

Status TcpEndpoint::ReadBlock(Link& link) {
  const bool expected = link.in != kNone && lanes_[link.in].moved < lanes_[link.in].ops;
  if (!expected || lanes_[link.in].moved == lanes_[link.in].posted) {
    return ReadUnposted(link, expected);
  }
  Lane& lane = lanes_[link.in];
  const Slot& slot = lane.slots[lane.moved];
  Rest rest = RestOf(link.rx, slot.memory, link.rx_bytes);
  const Io io = ReceiveSome(link.fd.get(), rest.span());
  if (io.outcome == Io::Outcome::kWouldBlock) link.readable = false;
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from", slot.block);
  counters_.bytes_moved += io.bytes;
  const bool had_record = link.rx_bytes >= kRecordBytes;
  if (link.rx_bytes == 0 && on_arrival_) on_arrival_(slot.op);
  link.rx_bytes += io.bytes;
  if (!had_record && link.rx_bytes >= kRecordBytes) {
    const Record record = DecodeRecord(RecordAt(link.rx, 0));
    const Record wanted = RecordOf(lane, lane.moved);
    if (record != wanted) {
      return Unexpected(link, record, Describe(wanted, node_, link.peer));
    }
  }
  if (link.rx_bytes == kRecordBytes + slot.memory.iov_len) {
    link.rx_bytes = 0;
    ++lane.moved;
    CompleteArrived(lane);
  }
  return {};
}

/// Something happened on a link from which nothing may be read now. Only peeks: the bytes stay with
/// the kernel.
Status TcpEndpoint::ReadUnposted(Link& link, bool more_to_come) {
  std::byte byte;
  iovec one = {&byte, 1};
  const Io io = PeekSome(link.fd.get(), std::span(&one, 1));
  if (io.outcome == Io::Outcome::kWouldBlock) link.readable = false;
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from", kNoBlock);
  if (!more_to_come) {
    return Rejected(fmt::format("node {} got bytes from node {} beyond the plan's last block",
                                node_.value, link.peer.value));
  }
  link.stalled = true;
  ++counters_.early;
  return {};
}

Status TcpEndpoint::ReadRecords(Link& link) {
  iovec rest = {link.rx.data() + link.rx_bytes, link.rx.size() - link.rx_bytes};
  const Io io = ReceiveSome(link.fd.get(), std::span(&rest, 1));
  if (io.outcome == Io::Outcome::kWouldBlock) link.readable = false;
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from", kNoBlock);
  counters_.bytes_moved += io.bytes;
  link.rx_bytes += io.bytes;
  size_t offset = 0;
  for (; offset + kRecordBytes <= link.rx_bytes; offset += kRecordBytes) {
    PREPOST_RETURN_IF_ERROR(TakeRecord(link, DecodeRecord(RecordAt(link.rx, offset))));
  }
  link.rx_bytes -= offset;
  std::memmove(link.rx.data(), link.rx.data() + offset, link.rx_bytes);
  return {};
}

TcpEndpoint::Lane* TcpEndpoint::FindLane(const Link& link, ChannelId wire) {
  const auto found =
      std::ranges::find_if(link.noted, [&](uint32_t lane) { return lanes_[lane].wire == wire; });
  return found == link.noted.end() ? nullptr : &lanes_[*found];
}

Status TcpEndpoint::TakeRecord(Link& link, const Record& record) {
  Lane* const found = FindLane(link, record.channel);
  if (found == nullptr) return Unexpected(link, record, "a channel between the two");
  Lane& lane = *found;
  if (lane.outgoing) return TakeNote(link, lane, record);
  const Record credit = {.channel = record.channel, .block = kNoBlock, .bytes = 0};
  if (links_[lane.link].carries_blocks || record != credit || lane.moved == lane.ops) {
    return Unexpected(link, record, "a credit that the plan has");
  }
  ++lane.moved;
  CompleteArrived(lane);
  return {};
}

Status TcpEndpoint::TakeNote(Link& link, Lane& lane, const Record& record) {
  if (lane.completed == lane.moved || record != RecordOf(lane, lane.completed)) {
    return Unexpected(link, record, "the note of the oldest undelivered send");
  }
  completed_.Add(lane.slots[lane.completed++].op);
  return {};
}

/// Completes receives that are posted and have arrived, and notifies the sender.
void TcpEndpoint::CompleteArrived(Lane& lane) {
  while (lane.completed < std::min(lane.moved, lane.posted)) {
    AppendRecord(lane.note_link, RecordOf(lane, lane.completed));
    completed_.Add(lane.slots[lane.completed++].op);
  }
}

void TcpEndpoint::AppendRecord(uint32_t index, const Record& record) {
  Link& link = links_[index];
  if (link.tx.size() + kRecordBytes > link.tx.capacity()) {
    link.tx.erase(link.tx.begin(), link.tx.begin() + static_cast<ptrdiff_t>(link.tx_bytes));
    link.tx_bytes = 0;
  }
  const size_t offset = link.tx.size();
  link.tx.resize(offset + kRecordBytes);  // within what AddLanes() reserved
  EncodeRecord(record, RecordAt(link.tx, offset));
  active_.Push(index);
}

Record TcpEndpoint::RecordOf(const Lane& lane, uint32_t index) const {
  const Slot& slot = lane.slots[index];
  return {.channel = lane.wire, .block = slot.block, .bytes = slot.memory.iov_len};
}

Status TcpEndpoint::Unexpected(const Link& link, const Record& record,
                               const std::string& expected) const {
  return Rejected(fmt::format("node {} got a record from node {} for {}; expected {}", node_.value,
                              link.peer.value, Describe(record, node_, link.peer), expected));
}

Status TcpEndpoint::IoError(const Link& link, const Io& io, const char* verb, uint32_t block) {
  const auto what = [&] {  // made only for an error: most calls find that there is none
    return fmt::format("node {} cannot {} node {}", node_.value, verb, link.peer.value);
  };
  switch (io.outcome) {
    case Io::Outcome::kMoved:
    case Io::Outcome::kWouldBlock:
      return {};
    case Io::Outcome::kPeerGone:
      lost_peer_ = link.peer;
      return Rejected(
          fmt::format("node {} lost its connection to node {}", node_.value, link.peer.value));
    case Io::Outcome::kBadMemory:
      return Rejected(
          fmt::format("{}: the memory of block {} is gone; was its file truncated "
                      "meanwhile?",
                      what(), block));
    case Io::Outcome::kFailed:
      return SystemError(StatusCode::kRejected, what(), io.error);
  }
  PREPOST_CHECK(false);
  return {};
}

}  // namespace prepost
