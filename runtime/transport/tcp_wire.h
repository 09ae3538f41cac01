// SPDX-License-Identifier: Apache-2.0
//
// What the TCP transport puts on its sockets, and the two system calls that move it. A socket
// carries records of 16 bytes; on a socket for blocks, each record is followed by the block's
// bytes.
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_WIRE_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_WIRE_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ir/ids.h"
#include "ir/plan.h"

namespace prepost {

/// One record. About a channel on which the reader receives, it is a message: a block's header or a
/// credit. About a channel on which the reader sends, it is a delivery note for the oldest
/// undelivered send on it.
///
///     offset  bytes  field, little-endian
///          0      4  channel: WireChannel()
///          4      4  block, or kNoBlock for a credit
///          8      8  bytes of the block
struct Record {
  ChannelId channel;
  uint32_t block = 0;
  uint64_t bytes = 0;

  friend bool operator==(const Record&, const Record&) = default;
};
/// For people: "3>1 lane 0, block 7, 10 bytes", of a record that passes between `a` and `b`.
std::string Describe(const Record& record, NodeId a, NodeId b);
inline constexpr size_t kRecordBytes = 16;

/// The number of a channel among those between its two nodes, which both know whatever else of the
/// plan they have. A valid plan's lanes are below 2^16.
constexpr ChannelId WireChannel(const Channel& channel) {
  return ChannelId(2 * channel.lane + (channel.from > channel.to ? 1 : 0));
}

/// The channel of that number between `a` and `b`, in either order.
Channel ChannelOfWire(ChannelId wire, NodeId a, NodeId b);

void EncodeRecord(const Record& record, std::span<std::byte, kRecordBytes> out);
Record DecodeRecord(std::span<const std::byte, kRecordBytes> in);

/// How one non-blocking send or receive ended.
struct Io {
  enum class Outcome : uint8_t {
    kMoved,       ///< `bytes` > 0 were moved
    kWouldBlock,  ///< not now
    kPeerGone,    ///< the peer closed or reset the connection
    kBadMemory,   ///< EFAULT: the memory is gone, as when a mapped file was truncated
    kFailed       ///< anything else, in `error`
  };
  Outcome outcome = Outcome::kMoved;
  size_t bytes = 0;
  int error = 0;  ///< errno, for kFailed
};
Io SendSome(int fd, std::span<iovec> memory);
Io ReceiveSome(int fd, std::span<iovec> memory);
/// As ReceiveSome(), but the bytes stay with the kernel.
Io PeekSome(int fd, std::span<iovec> memory);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_WIRE_H_
