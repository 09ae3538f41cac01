// SPDX-License-Identifier: Apache-2.0
//
// TcpEndpoint's blocks that their receiver copies from the sender's memory, behind the sender's
// MemoryWindow.
#include <fmt/format.h>

#include <algorithm>
#include <array>

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
  const Result<const MemoryWindow::Entry*> sent = FindSent(link, state);
  if (!sent.ok() || *sent == nullptr) return sent.status();
  const Io io = CopyPiece(link, state.moved, MemoryWindow::Entry(**sent), done, piece);
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "copy from", slot.block);
  counters_.bytes_moved += io.bytes;
  link.rx_bytes += io.bytes;
  if (link.rx_bytes < link.rx_head + slot.memory.iov_len) return {};
  link.is_copying = false;
  FinishBlock(link, state);
  return {};
}

}  // namespace prepost
