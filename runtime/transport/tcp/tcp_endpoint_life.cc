// SPDX-License-Identifier: Apache-2.0
//
// TcpEndpoint's signs of life: on the connection for credits and notes each end asks the other what
// it has read of the connection for blocks. A peer that stands in between and keeps both open, but
// carries nothing, answers neither; one that waits for its own program says so.
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <utility>

#include "runtime/transport/tcp/tcp_endpoint.h"

namespace prepost {

// A connection may lose packets again and again, or find no room in a queue of this machine, while
// another one shows that the peer is there. So a single one has one and three quarters times as
// long.
//
// A peer that has no room for blocks is asked seldom whether it has some now, after minutes only
// every two minutes (before Linux 6.15), but on the connection for credits and notes nothing is in
// the way of keepalive.
Status TcpEndpoint::CheckPeers(std::chrono::milliseconds silence) {
  constexpr int kQuestionsMax = 127;  // the kernel's maximum, as `silence` is what counts
  for (auto link = links_.begin(); link != links_.end();) {
    const NodeId peer = link->peer;
    bool is_silent = false, is_dead = false;
    std::chrono::milliseconds since_answer = std::chrono::milliseconds::max();
    for (; link != links_.end() && link->peer == peer; ++link) {
      if (!link->carries_blocks && !std::exchange(link->is_asked, true))
        KeepAlive(link->socket.fd(), {silence / 4, silence / 4, kQuestionsMax});
      is_silent |= link->watch.IsSilent(link->socket.fd(), silence);
      is_dead |= link->watch.IsSilent(link->socket.fd(), silence * 7 / 4);
      since_answer = std::min(since_answer, link->watch.since_answer());
    }
    if (!is_dead && (!is_silent || since_answer < silence)) continue;
    lost_peer_ = peer;
    return Rejected(fmt::format("node {} does not acknowledge what node {} has sent for {} ms",
                                peer.value, node_.value, silence.count()));
  }
  return {};
}

std::map<NodeId, TcpUse> TcpEndpoint::Uses() const {
  std::map<NodeId, TcpUse> uses;
  for (const Link& link : links_) {
    if (!link.carries_blocks || link.socket.memory() != nullptr) continue;
    const TcpUse use = UseOf(link.socket.fd());
    TcpUse& all = uses[link.peer];
    all.acknowledged_bytes += use.acknowledged_bytes;
    all.busy = std::max(all.busy, use.busy);
  }
  return uses;
}

// A peer that has begun a later message needs nothing of this end any more, and what it says waits.
std::optional<NodeId> TcpEndpoint::AskPeers(std::chrono::milliseconds silence) {
  const Clock::time_point now = Clock::now();
  const bool is_first = now - std::exchange(asked_at_, now) >= silence;  // for a while
  std::optional<NodeId> silent;
  const auto judge = [&](const Link& link, std::optional<Clock::time_point>& since, bool waits) {
    if (!waits) return since.reset();
    if (!since || is_first) since = now;
    if (now - *since >= silence && !silent) silent = link.peer;
  };
  for (uint32_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    if (link.carries_blocks) continue;
    judge(link, link.asked_since, !link.stalled);
    uint64_t written = 0;
    if (link.blocks != kNone) {
      for (const Link& stream : StreamsFrom(link.blocks)) written += stream.socket.written();
    }
    judge(link, link.unread_since,
          !link.stalled && link.blocks != kNone && written != link.read_there);
    AppendSign(i, /*asks=*/true);
  }
  return silent;
}

/// At most one of each kind waits, for which there is room (Add()).
void TcpEndpoint::AppendSign(uint32_t index, bool asks) {
  Link& link = links_[index];
  const uint32_t kind = asks ? 1 : 2;
  if ((link.signs & kind) != 0) return;
  link.signs |= kind;
  bool waits = false;
  uint64_t arrived = 0;
  if (link.blocks != kNone) {
    for (const Link& stream : StreamsFrom(link.blocks)) {
      waits |= stream.stalled || stream.is_copying;
      int unread = 0;  // has come, and waits for more to come (AwaitBytes())
      if (ioctl(stream.socket.fd(), FIONREAD, &unread) != 0) unread = 0;
      arrived += stream.socket.read() + uint64_t(unread);
    }
  }
  PutRecord(index, {.channel = kLifeChannel,
                    .block = (asks ? kLifeAsks : 0) | (waits ? kLifeWaits : 0),
                    .bytes = arrived});
}

void TcpEndpoint::TakeSign(Link& link, const Record& record) {
  if (record.bytes != link.read_there || (record.block & kLifeWaits) != 0)
    link.unread_since.reset();
  link.read_there = record.bytes;
  if ((record.block & kLifeAsks) != 0)
    AppendSign(static_cast<uint32_t>(&link - links_.data()), /*asks=*/false);
}

void TcpEndpoint::RestPeers() {
  PREPOST_CHECK(rest_times_.count > 0);
  for (Link& link : links_) {
    if (std::exchange(link.is_asked, false)) KeepAlive(link.socket.fd(), rest_times_);
  }
}

bool TcpEndpoint::IsAcknowledged() const {
  return std::ranges::all_of(links_, [](const Link& link) {
    return !link.socket.has_unsent() && IsTcpAcknowledged(link.socket.fd());
  });
}

}  // namespace prepost
