// SPDX-License-Identifier: Apache-2.0
//
// SealedStream: the bytes that an endpoint moves over one connection, in sealed records, in place
// of SendSome() and ReceiveSome() (tcp_wire.h). Nothing of a record is handed out before all of it
// has come and proved authentic.
#ifndef PREPOST_RUNTIME_TRANSPORT_SEALING_SEALED_STREAM_H_
#define PREPOST_RUNTIME_TRANSPORT_SEALING_SEALED_STREAM_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/transport/sealing/bounce_buffer.h"
#include "runtime/transport/sealing/record_seal.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {

/// On the wire a record is
///
///     contents' bytes, n: 4, little-endian, from 1 on | contents, sealed n | tag 16
///
/// of which the first four are authenticated, too. Memory is bounded: a record each way.
class SealedStream {
 public:
  static constexpr size_t kLengthBytes = 4;
  static constexpr size_t kRecordBytesMax = size_t{64} << 10;  ///< of contents
  /// What a record is longer than its contents, on the wire.
  static constexpr size_t kOverheadBytes = kLengthBytes + kSealTagBytes;

  /// `seal` is not null. Contents have `record_bytes_max` at most, the same at both ends. `bounce`:
  /// of as many bytes, shared with others, where the memory may vanish; it must outlive this. Null:
  /// it is the endpoint's own.
  SealedStream(std::unique_ptr<LinkSeal> seal, size_t record_bytes_max, BounceBuffer* bounce);

  /// As SendSome(): what was moved is sealed, and the socket has it or it waits for Flush().
  /// kWouldBlock: what waits has to go first.
  Io Send(int fd, std::span<const iovec> memory);
  /// When that waits and the socket is writable. kMoved with 0 bytes: nothing waits any more.
  Io Flush(int fd);
  bool has_unsent() const { return out_sent_ < out_bytes_; }
  /// As ReceiveSome(). kForged: what came is not what the other end has sealed.
  Io Receive(int fd, std::span<const iovec> memory);
  /// What is here already, of a record that has come in part or was handed out in part.
  size_t received() const { return in_end_ - in_begin_; }

  /// On the wire, in all.
  uint64_t wire_written() const { return wire_written_; }
  uint64_t wire_read() const { return wire_read_; }

 private:
  std::span<std::byte> scratch() {
    return bounce_ != nullptr ? bounce_->bytes() : std::span<std::byte>(scratch_);
  }
  Io Fill(std::span<const iovec> memory);
  Io Drain(size_t offset, std::span<const iovec> memory);
  Io ReadRecord(int fd, size_t* contents);

  const std::unique_ptr<LinkSeal> seal_;
  const size_t record_bytes_max_;
  BounceBuffer* const bounce_;
  std::vector<std::byte> scratch_;  ///< without a bounce buffer
  const size_t in_size_;
  const std::unique_ptr<std::byte[]> out_;  ///< one record; not touched before it is used
  size_t out_bytes_ = 0;
  size_t out_sent_ = 0;
  /// From in_begin_ to in_end_: what has come and is not opened, or, before it, what is left of the
  /// contents of the record that was opened last, plain_ bytes.
  const std::unique_ptr<std::byte[]> in_;
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  size_t plain_ = 0;
  uint64_t wire_written_ = 0;
  uint64_t wire_read_ = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_SEALING_SEALED_STREAM_H_
