// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/eager_lane.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "ir/base/count.h"
#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

constexpr uint64_t kNoRoom = uint64_t{1} << 63;
/// Of states that have come together the last counts.
constexpr size_t kStatesPerRead = 16;

}  // namespace

Result<std::unique_ptr<EagerLane>> EagerLane::Make(const EagerLaneOptions& options,
                                                   std::vector<TcpSocket> sockets) {
  PREPOST_CHECK(sockets.size() < kEagerLinksMax);
  std::unique_ptr<EagerLane> lane(new EagerLane(options));
  std::ranges::stable_partition(
      sockets, [&](const TcpSocket& it) { return options.parent && it.peer == *options.parent; });
  for (TcpSocket& socket : sockets) {
    Link& link = lane->links_.emplace_back();
    link.socket = TcpStream(std::move(socket.fd));
    link.peer = socket.peer;
    if (socket.seal != nullptr) {
      link.socket.Seal(std::make_unique<SealedStream>(std::move(socket.seal),
                                                      SealedStream::kRecordBytesMax, nullptr));
    }
    if (socket.memory != nullptr) {
      lane->has_memory_ = true;
      link.socket.Use(std::move(socket.memory));
    }
    if (!lane->Watch(link, lane->links_.size() - 1))
      return SystemError(StatusCode::kEnvironment, "cannot watch a group", errno);
  }
  return lane;
}

bool EagerLane::Watch(const Link& link, size_t index) const {
  const auto watch = [&](int fd) {
    epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                         .data = {.u64 = options_.token + index}};
    return epoll_ctl(options_.epoll, EPOLL_CTL_ADD, fd, &event) == 0;
  };
  const ShmStream* const memory = link.socket.memory();
  return watch(link.socket.fd()) && (memory == nullptr || watch(memory->bell_fd()));
}

void EagerLane::Hear(size_t index, uint32_t events) {
  if (index >= links_.size()) return;
  Link& link = links_[index];
  if ((events & EPOLLOUT) != 0) link.writable = true;
  if ((events & ~uint32_t{EPOLLOUT}) != 0) link.readable = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) link.is_ending = true;
  if (ShmStream* const memory = link.socket.memory(); memory != nullptr && !memory->HearBell())
    link.is_ending = link.readable = true;
}

bool EagerLane::HasArrivals() const {
  return std::ranges::any_of(links_, [this](const Link& link) {
    const ShmStream* const memory = link.socket.memory();
    if (memory == nullptr) return false;
    const bool can_read = memory->has_arrivals() && (!IsParent(link) || log_.room() > 0);
    return can_read || (!link.writable && memory->has_room());
  });
}

void EagerLane::Arm() {
  for (const Link& link : links_) {
    if (ShmStream* const memory = link.socket.memory(); memory != nullptr) memory->Arm();
  }
}

void EagerLane::Disarm() {
  for (const Link& link : links_) {
    if (ShmStream* const memory = link.socket.memory(); memory != nullptr) memory->Disarm();
  }
}

Status EagerLane::Service() {
  for (Link& link : links_) {
    if (const ShmStream* const memory = link.socket.memory(); memory != nullptr) {
      link.readable |= memory->has_arrivals();
      link.writable |= memory->has_room();
    }
    if (link.readable)
      PREPOST_RETURN_IF_ERROR(IsParent(link) ? ReadStream(link) : ReadStates(link));
  }
  return Push();
}

Status EagerLane::Push() {
  for (Link& link : links_) {
    if (link.socket.has_unsent()) PREPOST_RETURN_IF_ERROR(Flush(link));
    if (!link.writable || !HasToWrite(link)) continue;
    PREPOST_RETURN_IF_ERROR(IsParent(link) ? WriteState(link) : WriteStream(link));
  }
  Trim();
  return {};
}

uint64_t EagerLane::unsent() const {
  uint64_t most = 0;
  for (const Link& link : links_) {
    if (!IsParent(link)) most = std::max(most, log_.end() - link.sent);
  }
  return most;
}

bool EagerLane::has_work() const {
  return std::ranges::any_of(links_, [this](const Link& link) {
    const bool can_read = link.readable && (!IsParent(link) || log_.room() > 0);
    return can_read || (link.writable && HasToWrite(link));
  });
}

bool EagerLane::HasToWrite(const Link& link) const {
  if (link.socket.has_unsent()) return true;
  return IsParent(link) ? link.state_bytes > 0 || HasToSayState() : link.sent < passable();
}

bool EagerLane::HasToSayState() const {
  const uint64_t have = std::min(have_, have_below());
  return says_read_ || (options_.counts_messages && have != said_have_);
}

void EagerLane::Append(uint32_t number, std::span<const std::byte> message) {
  std::array<std::byte, kHeaderBytes> header;
  ByteWriter writer(header);
  writer.Put(number);
  writer.Put(static_cast<uint32_t>(message.size()));
  log_.Append(header);
  log_.Append(message);
  parsed_ = taken_ = log_.end();
  if (links_.empty()) Trim();
}

std::optional<EagerLane::Front> EagerLane::front() const {
  if (taken_ == parsed_) return std::nullopt;
  std::array<std::byte, kHeaderBytes> header;
  log_.Copy(taken_, header);
  ByteReader reader(header);
  Front front = {.number = reader.Get<uint32_t>(), .bytes = reader.Get<uint32_t>()};
  front.is_whole = log_.end() - taken_ >= kHeaderBytes + front.bytes;
  return front;
}

void EagerLane::Take(std::span<std::byte> memory) {
  log_.Copy(taken_ + kHeaderBytes, memory);
  taken_ += kHeaderBytes + memory.size();
}

/// What all cursors have passed is room again.
void EagerLane::Trim() {
  uint64_t place = std::min(taken_, log_.end());
  for (const Link& link : links_) {
    if (!IsParent(link)) place = std::min(place, link.sent);
  }
  log_.Forget(place);
}

uint64_t EagerLane::have_below() const {
  uint64_t have = std::numeric_limits<uint64_t>::max();
  for (const Link& link : links_) {
    if (!IsParent(link)) have = std::min(have, link.have);
  }
  return have;
}

TcpUse EagerLane::Use() const {
  TcpUse all;
  for (const Link& link : links_) {
    if (IsParent(link) || link.socket.memory() != nullptr) continue;
    const TcpUse use = UseOf(link.socket.fd());
    all.acknowledged_bytes += use.acknowledged_bytes - link.use_before.acknowledged_bytes;
    all.busy = std::max(all.busy, use.busy - link.use_before.busy);
  }
  return all;
}

void EagerLane::CountUse() {
  for (Link& link : links_) link.use_before = UseOf(link.socket.fd());
}

std::chrono::microseconds EagerLane::round_trip() const {
  std::chrono::microseconds least{0};
  for (const Link& link : links_) {
    if (IsParent(link) || link.socket.memory() != nullptr) continue;
    const std::chrono::microseconds its = RoundTripOf(link.socket.fd());
    if (least.count() == 0 || its < least) least = its;
  }
  return least;
}

Io EagerLane::Move(Link& link, bool is_send, std::span<iovec> memory) {
  const TcpWay way = {
      .self = options_.self, .peer = link.peer, .is_send = is_send, .is_eager = true};
  Io io = link.socket.Move(way, memory, options_.hook);
  // Memory outlives the process at the other end, whose end the connection shows.
  const bool is_empty = !is_send && io.outcome == Io::Outcome::kWouldBlock;
  if (is_empty && link.is_ending && link.socket.memory() != nullptr)
    io.outcome = Io::Outcome::kPeerGone;
  bool& ready = is_send ? link.writable : link.readable;
  if (io.outcome == Io::Outcome::kWouldBlock || (is_send && link.socket.has_unsent()))
    ready = false;
  return io;
}

Status EagerLane::IoError(const Link& link, const Io& io, const char* verb) {
  if (io.outcome == Io::Outcome::kPeerGone) lost_peer_ = link.peer;
  return StatusOf(io, options_.self, link.peer, verb, /*block=*/0);
}

Status EagerLane::Flush(Link& link) {
  const Io io = link.socket.Flush();
  if (io.outcome == Io::Outcome::kWouldBlock) link.writable = false;
  return IoError(link, io, "send to");
}

/// Less than was asked for is all that there is; an end is to be read, too.
bool EagerLane::IsAll(const Link& link, size_t bytes, size_t asked) const {
  const bool is_plain = !link.socket.is_sealed() && options_.hook == nullptr && !link.is_ending;
  return is_plain && bytes < asked;
}

Status EagerLane::ReadStream(Link& link) {
  Trim();  // what was taken since
  while (link.readable && log_.room() > 0) {
    EagerLog::Parts room = log_.Room();
    const size_t asked = log_.room();
    const Io io = Move(link, /*is_send=*/false, room);
    if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from");
    log_.Grow(io.bytes);
    PREPOST_RETURN_IF_ERROR(ParseStream());
    if (IsAll(link, io.bytes, asked)) link.readable = false;
  }
  return {};
}

/// The headers of what has come.
Status EagerLane::ParseStream() {
  while (parsed_ + kHeaderBytes <= log_.end()) {
    std::array<std::byte, kHeaderBytes> bytes;
    log_.Copy(parsed_, bytes);
    ByteReader reader(bytes);
    const auto number = reader.Get<uint32_t>();
    const auto length = reader.Get<uint32_t>();
    if (length > kEagerBytesMax || (last_ && !IsAfter(number, *last_))) {
      return Rejected(
          fmt::format("node {} got the header of a short message from node {} for "
                      "message {}, {}, which is none",
                      options_.self.value, options_.parent->value, number, Count(length, "byte")));
    }
    last_ = number;
    parsed_ += kHeaderBytes + length;
  }
  return {};
}

Status EagerLane::WriteStream(Link& link) {
  while (link.writable && link.sent < passable()) {
    EagerLog::Parts bytes = log_.Bytes(link.sent, passable());
    const Io io = Move(link, /*is_send=*/true, bytes);
    if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "send to");
    link.sent += io.bytes;
  }
  return {};
}

/// Once: a child that says more and more keeps nobody waiting.
Status EagerLane::ReadStates(Link& link) {
  std::array<std::byte, kStatesPerRead * kStateBytes> bytes;
  std::ranges::copy(link.state, bytes.begin());  // what has come of the next one
  const size_t asked = bytes.size() - link.state_bytes;
  iovec room = {bytes.data() + link.state_bytes, asked};
  const Io io = Move(link, /*is_send=*/false, std::span(&room, 1));
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from");
  const size_t there = link.state_bytes + io.bytes;
  size_t done = 0;
  for (; done + kStateBytes <= there; done += kStateBytes) {
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(done), kStateBytes, link.state.begin());
    PREPOST_RETURN_IF_ERROR(TakeState(link));
  }
  link.state_bytes = there - done;
  std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(done), link.state_bytes, link.state.begin());
  if (IsAll(link, io.bytes, asked)) link.readable = false;
  return {};
}

/// A child can have read no more than it was sent, and nothing goes back.
Status EagerLane::TakeState(Link& link) {
  ByteReader reader(link.state);
  const auto have = reader.Get<uint64_t>();
  const auto word = reader.Get<uint64_t>();
  const uint64_t read = word & ~kNoRoom;
  if (have < link.have || read < link.read_there || read > link.sent) {
    return Rejected(fmt::format(
        "node {} got a report from node {} for {} and {} that it cannot have got",
        options_.self.value, link.peer.value, Count(have, "message"), Count(read, "byte")));
  }
  if (read != link.read_there || (word & kNoRoom) != 0) link.unread_since.reset();
  link.have = have;
  link.read_there = read;
  return {};
}

Status EagerLane::WriteState(Link& link) {
  while (link.writable && (link.state_bytes > 0 || HasToSayState())) {
    if (link.state_bytes == 0) {
      says_read_ = false;
      said_have_ = std::min(have_, have_below());
      said_read_ = log_.end();
      ByteWriter writer(link.state);
      writer.Put(options_.counts_messages ? said_have_ : 0);
      writer.Put(said_read_ | (log_.room() == 0 ? kNoRoom : 0));
      link.state_bytes = kStateBytes;
    }
    iovec rest = {link.state.data() + kStateBytes - link.state_bytes, link.state_bytes};
    const Io io = Move(link, /*is_send=*/true, std::span(&rest, 1));
    if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "send to");
    link.state_bytes -= io.bytes;
  }
  return {};
}

// A single connection may lose packets again and again, as TcpEndpoint::CheckPeers() says.
Status EagerLane::CheckPeers(std::chrono::milliseconds silence) {
  for (Link& link : links_) {
    if (!link.watch.IsSilent(link.socket.fd(), silence * 7 / 4)) continue;
    lost_peer_ = link.peer;
    return Rejected(fmt::format("node {} does not acknowledge what node {} has sent for {} ms",
                                link.peer.value, options_.self.value, silence.count()));
  }
  return {};
}

std::optional<NodeId> EagerLane::Tick(std::chrono::milliseconds silence) {
  const Clock::time_point now = Clock::now();
  std::optional<NodeId> silent;
  for (Link& link : links_) {
    if (IsParent(link)) continue;
    if (link.sent == link.read_there) {
      link.unread_since.reset();
      continue;
    }
    if (!link.unread_since) link.unread_since = now;
    if (now - *link.unread_since >= silence && !silent) silent = link.peer;
  }
  says_read_ = options_.parent && (said_read_ != log_.end() || log_.room() == 0);
  return silent;
}

bool EagerLane::is_engaged() const {
  if (options_.parent && (said_read_ != log_.end() || log_.room() == 0)) return true;
  return std::ranges::any_of(
      links_, [this](const Link& link) { return !IsParent(link) && link.sent != link.read_there; });
}

bool EagerLane::AreOpen() const {
  return std::ranges::all_of(
      links_, [](const Link& link) { return fcntl(link.socket.fd(), F_GETFD) >= 0; });
}

}  // namespace prepost
