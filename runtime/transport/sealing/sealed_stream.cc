// SPDX-License-Identifier: Apache-2.0
//
// One system call brings what a record lacks and the length of the next, so that full records that
// follow each other cost one each; where no record is begun it brings up to kReadAheadBytes, so
// that small ones do, too.
//
// Contents are opened into memory of this process and copied from there by the kernel, as the place
// in the message may be a file that shrinks. What the reader has not asked for yet stays in `in_`,
// in the place that the record had there.
#include "runtime/transport/sealing/sealed_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

constexpr size_t kReadAheadBytes = 1024;
constexpr size_t kPartsMax = 4;  ///< that a reader or writer has memory in

/// The first of `memory`, `bytes` at most.
struct Parts {
  std::array<iovec, kPartsMax> parts;
  size_t count = 0;

  std::span<const iovec> span() const { return std::span(parts).first(count); }
};
Parts FirstOf(std::span<const iovec> memory, size_t bytes) {
  PREPOST_CHECK(memory.size() <= kPartsMax);
  Parts first;
  for (const iovec& part : memory) {
    if (part.iov_len == 0 || bytes == 0) continue;
    const size_t taken = std::min(part.iov_len, bytes);
    first.parts[first.count++] = {part.iov_base, taken};
    bytes -= taken;
  }
  return first;
}

}  // namespace

SealedStream::SealedStream(std::unique_ptr<LinkSeal> seal, size_t record_bytes_max,
                           BounceBuffer* bounce)
    : seal_(std::move(seal)),
      record_bytes_max_(record_bytes_max),
      bounce_(bounce),
      scratch_(bounce == nullptr ? record_bytes_max : 0),
      in_size_(record_bytes_max + kOverheadBytes + kReadAheadBytes),
      out_(new std::byte[record_bytes_max + kOverheadBytes]),
      in_(new std::byte[in_size_]) {
  PREPOST_CHECK(seal_ != nullptr && record_bytes_max_ > 0 && scratch().size() >= record_bytes_max_);
}

Io SealedStream::Fill(std::span<const iovec> memory) {
  if (bounce_ != nullptr) return bounce_->Fill(memory);
  size_t done = 0;
  for (const iovec& part : memory) {
    std::memcpy(scratch_.data() + done, part.iov_base, part.iov_len);
    done += part.iov_len;
  }
  return {.bytes = done};
}

Io SealedStream::Drain(size_t offset, std::span<const iovec> memory) {
  if (bounce_ != nullptr) return bounce_->Drain(offset, memory);
  size_t done = 0;
  for (const iovec& part : memory) {
    std::memcpy(part.iov_base, scratch_.data() + offset + done, part.iov_len);
    done += part.iov_len;
  }
  return {.bytes = done};
}

Io SealedStream::Send(int fd, std::span<const iovec> memory) {
  if (has_unsent()) {
    const Io io = Flush(fd);
    if (io.outcome != Io::Outcome::kMoved) return io;
  }
  const Io filled = Fill(FirstOf(memory, record_bytes_max_).span());
  if (filled.outcome != Io::Outcome::kMoved) return filled;
  const std::span<std::byte> record = std::span(out_.get(), filled.bytes + kOverheadBytes);
  const std::span<std::byte> length = record.first(kLengthBytes);
  ByteWriter(length).Put(static_cast<uint32_t>(filled.bytes));
  if (!seal_->out().Seal(scratch().first(filled.bytes), length, record.subspan(kLengthBytes)))
    return {.outcome = Io::Outcome::kFailed, .error = EKEYEXPIRED};
  out_bytes_ = record.size();
  out_sent_ = 0;
  const Io sent = Flush(fd);
  const bool is_taken =
      sent.outcome == Io::Outcome::kMoved || sent.outcome == Io::Outcome::kWouldBlock;
  return is_taken ? Io{.bytes = filled.bytes} : sent;
}

Io SealedStream::Flush(int fd) {
  while (has_unsent()) {
    iovec rest = {out_.get() + out_sent_, out_bytes_ - out_sent_};
    const Io io = SendSome(fd, std::span(&rest, 1));
    if (io.outcome != Io::Outcome::kMoved) return io;
    out_sent_ += io.bytes;
    wire_written_ += io.bytes;
  }
  return {.bytes = 0};
}

/// The next record in full, whose contents are then in scratch().
Io SealedStream::ReadRecord(int fd, size_t* contents) {
  for (;;) {
    const size_t got = in_end_ - in_begin_;
    size_t wanted = kReadAheadBytes;
    if (got >= kLengthBytes) {
      const std::span<const std::byte> length = std::span(in_.get() + in_begin_, kLengthBytes);
      const auto bytes = ByteReader(length).Get<uint32_t>();
      if (bytes == 0 || bytes > record_bytes_max_) return {.outcome = Io::Outcome::kForged};
      const size_t record_bytes = bytes + kOverheadBytes;
      if (got >= record_bytes) {
        const std::span<const std::byte> sealed =
            std::span(in_.get() + in_begin_, record_bytes).subspan(kLengthBytes);
        *contents = bytes;
        if (seal_->in().Open(sealed, length, scratch().first(bytes))) return {.bytes = bytes};
        return {.outcome = Io::Outcome::kForged};
      }
      wanted = record_bytes + kLengthBytes;
    }
    if (in_begin_ > 0) {
      std::memmove(in_.get(), in_.get() + in_begin_, got);
      in_end_ -= std::exchange(in_begin_, 0);
    }
    iovec room = {in_.get() + in_end_, std::min(wanted, in_size_) - got};
    const Io io = ReceiveSome(fd, std::span(&room, 1));
    if (io.outcome != Io::Outcome::kMoved) return io;
    in_end_ += io.bytes;
    wire_read_ += io.bytes;
  }
}

Io SealedStream::Receive(int fd, std::span<const iovec> memory) {
  const size_t wanted = BytesOf(memory);
  PREPOST_CHECK(wanted > 0);
  if (plain_ > 0) {  // its place is that before what follows it
    const size_t bytes = std::min(wanted, plain_);
    std::memcpy(scratch().data(), in_.get() + in_begin_, bytes);
    const Io io = Drain(0, FirstOf(memory, bytes).span());
    if (io.outcome != Io::Outcome::kMoved) return io;
    plain_ -= io.bytes;
    in_begin_ += io.bytes;
    if (plain_ == 0) in_begin_ += kSealTagBytes;
    return io;
  }
  size_t contents = 0;
  const Io io = ReadRecord(fd, &contents);
  if (io.outcome != Io::Outcome::kMoved) return io;
  Io handed = Drain(0, FirstOf(memory, contents).span());
  const bool is_moved = handed.outcome == Io::Outcome::kMoved;
  const size_t left = contents - (is_moved ? handed.bytes : 0);
  in_begin_ += kLengthBytes + (contents - left);
  std::memcpy(in_.get() + in_begin_, scratch().data() + (contents - left), left);
  plain_ = left;
  if (plain_ == 0) in_begin_ += kSealTagBytes;
  return handed;
}

}  // namespace prepost
