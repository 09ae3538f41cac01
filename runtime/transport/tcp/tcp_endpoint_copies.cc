// SPDX-License-Identifier: Apache-2.0
//
// TcpEndpoint's blocks that their receiver copies from memory: out of the sender's BlockStage, or
// from the sender's own memory, behind its MemoryWindow.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "runtime/transport/tcp/tcp_endpoint.h"

namespace prepost {
namespace {

iovec RemoteAt(uint64_t address, size_t bytes) {
  return {.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
}

}  // namespace

// All that was sent has been copied, by notes that are believed; a peer that has not will find
// nothing.
void TcpEndpoint::End() {
  for (Link& link : links_) {
    if (link.local.is_read) link.window->RemoveAll();
  }
}

/// For one more block of `state`: so few are under way that they stay in a cache. In step, nobody
/// is further than that ahead of another one who has not got all that was posted for it.
bool TcpEndpoint::HasStageRoom(const ChannelState& state) const {
  constexpr uint32_t kStagedMax = 8;
  static_assert(kStagedMax <= MemoryWindow::kSendsMax);
  if (state.next.index - state.completed >= kStagedMax) return false;
  return !in_step_ || !slowest_ || state.next.index < *slowest_ + kStagedMax;
}

/// And others may have waited for it.
void TcpEndpoint::FindSlowest() {
  const std::optional<uint32_t> before = std::exchange(slowest_, std::nullopt);
  for (const ChannelState& state : channels_) {
    const bool is_staged = state.outgoing && links_[state.link].stage != nullptr;
    if (!is_staged || state.completed == state.posted) continue;
    slowest_ = std::min(slowest_.value_or(state.completed), state.completed);
  }
  if (slowest_ == before) return;
  for (const ChannelState& state : channels_) {
    if (state.outgoing && links_[state.link].stage != nullptr && HasToWrite(links_[state.link]))
      active_.Push(state.link);
  }
}

/// Of the next block, whose record is to be written. The stage has it where that leaves a place to
/// each channel that has none there: no channel waits for others, whose receivers may wait for this
/// block.
void TcpEndpoint::ChooseWay(Link& link, ChannelState& state, Slot& slot) {
  const std::span<const std::byte> block(static_cast<const std::byte*>(slot.memory.iov_base),
                                         slot.memory.iov_len);
  slot.way = BlockWay::kConnection;
  if (MayBeStaged(slot.memory, link.stage != nullptr)) {
    const uint32_t others = unstaged_ - (state.staged == 0 ? 1 : 0);
    const bool has_room = link.stage->Has(block) || link.stage->free_places() > others;
    if (const auto place = has_room ? link.stage->Add(block) : std::nullopt) {
      if (state.staged++ == 0) --unstaged_;
      slot.way = BlockWay::kStage;
      slot.place = *place;
      return;
    }
  }
  if (!IsRead(slot.memory, link.local.is_read)) return;
  slot.way = BlockWay::kWindow;
  link.window->Add(message_.number, state.next.index, block);
}

/// The oldest send of `state` is over.
void TcpEndpoint::Release(Link& link, ChannelState& state) {
  const Slot& over = state.slots[state.completed];
  if (over.way == BlockWay::kWindow) link.window->Remove(state.completed);
  if (over.way != BlockWay::kStage) return;
  link.stage->Remove(over.place);
  if (--state.staged == 0 && state.next.index < state.ops) ++unstaged_;
}

/// The next block of `state` in the peer's window, which is read unless that is known already;
/// null: the reading was interrupted. Errors: the window is gone; what the connection brought is
/// not what the peer has sent.
Result<const MemoryWindow::Entry*> TcpEndpoint::FindSent(Link& link, const ChannelState& state) {
  const Slot& slot = state.slots[state.moved];
  const MemoryWindow::Entry* sent = link.seen->Find(message_.number, state.moved);
  if (sent == nullptr) {
    const iovec memory = {.iov_base = link.seen.get(), .iov_len = sizeof(*link.seen)};
    const iovec remote = RemoteAt(link.local.window, sizeof(*link.seen));
    const Io io = ReadSome(link.local.process, std::span(&memory, 1), std::span(&remote, 1));
    if (io.outcome == Io::Outcome::kWouldBlock) return nullptr;
    if (io.outcome != Io::Outcome::kMoved || io.bytes != sizeof(*link.seen) ||
        link.seen->sign != link.local.sign)
      return IoError(link, {.outcome = Io::Outcome::kPeerGone}, "copy from", kNoBlock);
    sent = link.seen->Find(message_.number, state.moved);
  }
  if (sent != nullptr && sent->bytes == slot.memory.iov_len) return sent;
  return Rejected(
      fmt::format("the connection of node {} to node {} announces block {} of message {}, which "
                  "node {} has not sent",
                  node_.value, link.peer.value, slot.block, message_.number, link.peer.value));
}

/// From byte `offset` of `sent`, send `index` of the message. The memory is its caller's again, or
/// the plan's for something else, once the entry is gone, so that a piece counts only if that is
/// there after its last byte: it is read behind it.
Io TcpEndpoint::CopyPiece(Link& link, uint32_t index, const MemoryWindow::Entry& sent,
                          uint64_t offset, iovec piece) {
  MemoryWindow::Value after;
  const std::array<iovec, 2> memory = {piece, {.iov_base = &after, .iov_len = sizeof(after)}};
  const std::array<iovec, 2> remote = {RemoteAt(sent.place + offset, piece.iov_len),
                                       RemoteAt(link.local.window, sizeof(after))};
  Io io = ReadSome(link.local.process, memory, remote);
  if (io.outcome == Io::Outcome::kWouldBlock) return io;
  const bool is_whole =
      io.outcome == Io::Outcome::kMoved && io.bytes == piece.iov_len + sizeof(after);
  if (!is_whole) {  // where the peer's memory ends, its window is read by itself
    const std::span<const iovec> own = std::span(memory).last(1), there = std::span(remote).last(1);
    const Io again = ReadSome(link.local.process, own, there);
    if (again.outcome != Io::Outcome::kMoved || again.bytes != sizeof(after)) after = {};
  }
  const MemoryWindow::Entry* const still = after.Find(message_.number, index);
  if (after.sign != link.local.sign || still == nullptr || *still != sent)
    return {.outcome = Io::Outcome::kPeerGone};
  if (io.outcome == Io::Outcome::kMoved) io.bytes = std::min(io.bytes, piece.iov_len);
  *link.seen = after;
  return io;
}

/// A piece, so that no other link waits long.
Status TcpEndpoint::CopyBlock(Link& link, ChannelState& state) {
  constexpr size_t kPieceMax = size_t{1} << 20;
  const Slot& slot = state.slots[state.moved];
  const size_t done = link.rx_bytes - link.rx_head;
  iovec piece = {static_cast<std::byte*>(slot.memory.iov_base) + done,
                 std::min(slot.memory.iov_len - done, kPieceMax)};
  if (hook_ != nullptr) {
    const TcpWay way = {node_,       link.peer,         link.lane,
                        link.stream, /*is_send=*/false, /*is_copy=*/true};
    const size_t left = hook_->Limit(way, piece.iov_len);
    if (left == 0) return {};  // for now
    if (left == TcpHook::kCut)
      return IoError(link, {.outcome = Io::Outcome::kPeerGone}, "copy from", slot.block);
    piece.iov_len = std::min(piece.iov_len, left);
  }
  Io io = {.bytes = piece.iov_len};
  if (link.rx_place) {
    const std::span<const std::byte> staged = link.peer_stage->At(*link.rx_place);
    std::memcpy(piece.iov_base, staged.data() + done, piece.iov_len);
  } else {
    const Result<const MemoryWindow::Entry*> sent = FindSent(link, state);
    if (!sent.ok() || *sent == nullptr) return sent.status();
    io = CopyPiece(link, state.moved, MemoryWindow::Entry(**sent), done, piece);
  }
  if (io.outcome == Io::Outcome::kBadMemory && IsThere(piece)) {
    failed_peer_ = link.peer;
    return MemoryGone(node_, link.peer, "copy from", slot.block, link.peer);
  }
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "copy from", slot.block);
  counters_.bytes_moved += io.bytes;
  link.rx_bytes += io.bytes;
  if (link.rx_bytes < link.rx_head + slot.memory.iov_len) return {};
  link.is_copying = false;
  FinishBlock(link, state);
  return {};
}

}  // namespace prepost
