// SPDX-License-Identifier: Apache-2.0
//
// What the TCP transport puts on its sockets, and the two system calls that move it. A socket
// carries records of 16 bytes; on a socket for blocks, each record but a start is followed by the
// block's bytes. In a group that seals its connections these bytes are sealed (sealed_stream.h).
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_TCP_WIRE_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_TCP_WIRE_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/ids.h"
#include "ir/plan.h"

namespace prepost {

/// One record. About a channel on which the reader receives, it is a block's header or a credit.
/// About a channel on which the reader sends, it is a delivery note for the oldest send on it that
/// waits for one. About kStartChannel, it is the start of a message, before all that a socket
/// carries of it in that direction.
///
///     offset  bytes  field, little-endian
///          0      4  channel: WireChannel()      or kStartChannel; of a call, StartChannelOf()
///          4      4  block; kNoBlock: a credit   number of the message
///          8      8  bytes of the block, or      bytes of the message, and in the upper 16
///                    of a piece of it, and in    bits which of the group's plans it is for
///                    the upper 16 bits which
struct Record {
  ChannelId channel;
  uint32_t block = 0;
  uint64_t bytes = 0;

  friend bool operator==(const Record&, const Record&) = default;
};
inline constexpr ChannelId kStartChannel(0xffffffff);
/// The start of a call of a collective, with its root: 2^20 numbers (kNodesMax).
inline constexpr uint32_t kCallStarts = 0x80000000;
constexpr ChannelId StartChannelOf(uint32_t root) { return ChannelId(kCallStarts | root); }
constexpr bool IsCallStart(ChannelId channel) { return channel.value >> 20 == kCallStarts >> 20; }
constexpr uint32_t RootOfStart(ChannelId channel) { return channel.value & (kNodesMax - 1); }
constexpr bool IsStart(ChannelId channel) {
  return channel == kStartChannel || IsCallStart(channel);
}
/// On a socket for credits and notes, between any two records: a sign of life. `bytes` is how many
/// in all have come to its writer on the reader's socket for blocks; `block` has flags.
inline constexpr ChannelId kLifeChannel(0xfffffffe);
inline constexpr uint32_t kLifeAsks = 1;   ///< the reader is to answer with one of its own
inline constexpr uint32_t kLifeWaits = 2;  ///< its writer leaves what comes for the time being
inline constexpr int kVariantShift = 48;
inline constexpr int kPieceShift = 48;
/// Blocks of this size and more are not on a socket whose reader copies from the writer's memory
/// (memory_window.h), but their records are.
inline constexpr size_t kReadBytesMin = 4096;
/// The same of calls. To find a block and to copy it takes its reader two system calls, which
/// relieve the writer: in a multicast the root, which is the bottleneck. In a call every member
/// reads and writes, so that only larger blocks gain (bench/calls_bench).
inline constexpr size_t kCallReadBytesMin = size_t{64} << 10;
/// Smaller blocks of calls have no delivery notes; both ends must know that (kProtocolVersion).
/// Those that are copied from the sender's memory must have them.
inline constexpr size_t kCallNotedBytesMin = size_t{64} << 10;
static_assert(kCallNotedBytesMin <= kCallReadBytesMin);
/// Of messages, whose numbers wrap around.
constexpr bool IsAfter(uint32_t number, uint32_t other) {
  return static_cast<int32_t>(number - other) > 0;
}

/// For people: "3>1 lane 0, block 7, 10 bytes", of a record that passes between `a` and `b`.
std::string Describe(const Record& record, NodeId a, NodeId b);
inline constexpr size_t kRecordBytes = 16;

/// What the connection of `node` to `peer` has brought was not sealed by `peer`, or not next.
std::string NotAuthentic(NodeId node, NodeId peer);

/// The number of a channel among those between its two nodes, which both know whatever else of the
/// plan they have.
constexpr ChannelId WireChannel(const Channel& channel) {
  return ChannelId(2 * NumberOf(channel.lane) + (channel.from > channel.to ? 1 : 0));
}

inline constexpr size_t kWireChannels = 4;

/// The channel of that number between `a` and `b`, in either order, if there can be one.
std::optional<Channel> ChannelOfWire(ChannelId wire, NodeId a, NodeId b);

/// Of a buffer of records.
inline std::span<std::byte, kRecordBytes> RecordAt(std::vector<std::byte>& bytes, size_t offset) {
  return std::span<std::byte, kRecordBytes>(bytes.data() + offset, kRecordBytes);
}
void EncodeRecord(const Record& record, std::span<std::byte, kRecordBytes> out);
Record DecodeRecord(std::span<const std::byte, kRecordBytes> in);

/// Of all parts together.
size_t BytesOf(std::span<const iovec> memory);

/// How one non-blocking send or receive ended.
struct Io {
  enum class Outcome : uint8_t {
    kMoved,       ///< `bytes` > 0 were moved
    kWouldBlock,  ///< not now
    kHeld,        ///< not now, as a hook wants it (tcp_hook.h): nothing will say when
    kPeerGone,    ///< the peer closed or reset the connection
    kForged,      ///< what came is not what the peer has sealed (sealed_stream.h)
    kBadMemory,   ///< EFAULT: the memory is gone, as when a mapped file was truncated
    kFailed       ///< anything else, in `error`
  };
  Outcome outcome = Outcome::kMoved;
  size_t bytes = 0;
  int error = 0;  ///< errno, for kFailed
};
Io SendSome(int fd, std::span<iovec> memory);
Io ReceiveSome(int fd, std::span<iovec> memory);
/// From the memory of another process of this machine, where `remote` says, one part after another;
/// kPeerGone: it has ended.
Io ReadSome(int process, std::span<const iovec> memory, std::span<const iovec> remote);
/// Whether the first and the last byte of this process's own `memory` can be read: none of its file
/// was cut off. True where that cannot be found out.
bool IsThere(const iovec& memory);
/// Whether the other end has closed the connection, or it is broken; there may still be bytes of
/// it.
bool HasEnded(int fd);
/// As ReceiveSome(), but the bytes stay with the kernel.
Io PeekSome(int fd, std::span<iovec> memory);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_TCP_WIRE_H_
