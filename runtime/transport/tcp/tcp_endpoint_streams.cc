// SPDX-License-Identifier: Apache-2.0
//
// TcpEndpoint's connections of several streams. A sender gives the next piece to whichever stream
// has room, so that one that has lost a packet holds up its own pieces and no others; each piece is
// preceded by its record and goes straight to its place in the block. Pieces of a channel may
// arrive in any order, but those of one stream do in that of the channel; blocks complete in order.
#include <algorithm>

#include "runtime/transport/tcp/tcp_endpoint.h"

namespace prepost {
namespace {

/// Small enough that the last pieces of a message end at about the same time on all streams, large
/// enough that their records and system calls do not show.
constexpr size_t kPieceBytesMin = size_t{32} << 10;
constexpr size_t kPiecesMax = 64;  ///< of a block: as many as Slot::coming has bits

}  // namespace

size_t TcpEndpoint::PieceBytes(const ChannelState& state, size_t block_bytes) const {
  if (links_[state.link].streams == 1 || block_bytes == 0) return std::max<size_t>(block_bytes, 1);
  return std::max(kPieceBytesMin, (block_bytes - 1) / kPiecesMax + 1);
}

/// One, of no bytes, of a block of none.
uint32_t TcpEndpoint::PiecesOf(const ChannelState& state, size_t block_bytes) const {
  if (block_bytes == 0) return 1;
  return static_cast<uint32_t>((block_bytes - 1) / PieceBytes(state, block_bytes) + 1);
}

iovec TcpEndpoint::MemoryOf(const ChannelState& state, const Piece& piece) const {
  const iovec& block = state.slots[piece.index].memory;
  const size_t size = PieceBytes(state, block.iov_len);
  const size_t offset = piece.number * size;
  return {.iov_base = static_cast<std::byte*>(block.iov_base) + offset,
          .iov_len = std::min(size, block.iov_len - offset)};
}

Record TcpEndpoint::RecordOf(const ChannelState& state, const Piece& piece) const {
  Record record = RecordOf(state, piece.index);
  record.bytes = MemoryOf(state, piece).iov_len | uint64_t{piece.number} << kPieceShift;
  return record;
}

Status TcpEndpoint::ReadPiece(Link& link) {
  if (link.rx_bytes < kRecordBytes) return ReadStreamRecord(link);
  if (!link.rx_piece) return JudgePiece(link);
  ChannelState& state = channels_[link.in];
  const Piece piece = *link.rx_piece;
  const iovec memory = MemoryOf(state, piece);
  const size_t done = link.rx_bytes - kRecordBytes;
  iovec rest = {static_cast<std::byte*>(memory.iov_base) + done, memory.iov_len - done};
  if (rest.iov_len > 0) {
    const Io io = Move(link, /*is_send=*/false, std::span(&rest, 1));
    if (io.outcome == Io::Outcome::kWouldBlock) link.readable = false;
    if (io.outcome != Io::Outcome::kMoved)
      return IoError(link, io, "receive from", state.slots[piece.index].block);
    counters_.bytes_moved += io.bytes;
    link.rx_bytes += io.bytes;
  }
  if (link.rx_bytes < kRecordBytes + memory.iov_len) return {};
  link.rx_bytes = 0;
  link.rx_piece.reset();
  FinishPiece(state, piece);
  CompleteArrived(state);
  return {};
}

/// A start, or what stands before a piece.
Status TcpEndpoint::ReadStreamRecord(Link& link) {
  iovec rest = {link.rx.data() + link.rx_bytes, kRecordBytes - link.rx_bytes};
  const Io io = Move(link, /*is_send=*/false, std::span(&rest, 1));
  if (io.outcome == Io::Outcome::kWouldBlock) link.readable = false;
  if (io.outcome != Io::Outcome::kMoved) return IoError(link, io, "receive from", kNoBlock);
  counters_.bytes_moved += io.bytes;
  link.rx_bytes += io.bytes;
  if (link.rx_bytes < kRecordBytes) return {};
  const Record record = DecodeRecord(std::span(link.rx).first<kRecordBytes>());
  if (!IsStart(record.channel) && link.peer_has_begun) return JudgePiece(link);
  link.rx_bytes = 0;
  // The other streams may have carried all of a message before this one has said that it begins; in
  // a call, a stream that begins has a piece.
  const bool is_over = is_in_message_ && IsAfter(message_.number, record.block);
  if (record.channel == kStartChannel && is_over) return {};
  return TakeStart(link, record);
}

/// Whose record has been read; until its receive is posted the stream waits.
Status TcpEndpoint::JudgePiece(Link& link) {
  const Record record = DecodeRecord(std::span(link.rx).first<kRecordBytes>());
  if (link.in == kNone) return Unexpected(link, record, "no block");
  ChannelState& state = channels_[link.in];
  Piece piece = {.index = std::max(link.rx_from, state.moved),
                 .number = static_cast<uint32_t>(record.bytes >> kPieceShift)};
  while (piece.index < state.posted && state.slots[piece.index].block != record.block)
    ++piece.index;
  if (piece.index == state.posted && state.posted < state.ops) {
    link.stalled = true;
    ++counters_.early;
    return {};
  }
  const bool is_known = piece.index < state.posted && state.slots[piece.index].pieces > 0;
  const size_t block_bytes = is_known ? state.slots[piece.index].memory.iov_len : 0;
  const uint32_t pieces = is_known ? PiecesOf(state, block_bytes) : 0;
  // Each piece once: so a block whose pieces have all been moved is no stream's any more.
  const uint64_t bit = piece.number < pieces ? uint64_t{1} << piece.number : 0;
  if (bit == 0 || (state.slots[piece.index].coming & bit) != 0 || record != RecordOf(state, piece))
    return Unexpected(link, record, "a piece of a block that is to come");
  Slot& slot = state.slots[piece.index];
  if (slot.coming == 0 && on_arrival_) on_arrival_(slot.op);
  slot.coming |= bit;
  link.rx_from = piece.index;
  link.rx_piece = piece;
  return {};
}

}  // namespace prepost
