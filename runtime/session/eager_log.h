// SPDX-License-Identifier: Apache-2.0
//
// EagerLog: the last bytes of a stream, in a ring. What is written at its end is read at several
// places behind, by whoever has them; room is what all have passed.
#ifndef PREPOST_RUNTIME_SESSION_EAGER_LOG_H_
#define PREPOST_RUNTIME_SESSION_EAGER_LOG_H_

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "ir/base/status.h"

namespace prepost {

/// Places are counted in bytes from the stream's beginning. Used by one thread.
class EagerLog {
 public:
  using Parts = std::array<iovec, 2>;

  /// Memory is touched as far as it is written.
  explicit EagerLog(size_t bytes)
      : size_(bytes), bytes_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  size_t room() const { return size_ - static_cast<size_t>(end_ - begin_); }

  /// From `from` up to `to`, both between begin() and end(). The second part may be empty.
  Parts Bytes(uint64_t from, uint64_t to) const {
    PREPOST_CHECK(begin_ <= from && from <= to && to <= end_);
    return PartsOf(from, static_cast<size_t>(to - from));
  }
  /// What may be written next.
  Parts Room() const { return PartsOf(end_, room()); }
  /// So many of these bytes were.
  void Grow(size_t bytes) {
    PREPOST_CHECK(bytes <= room());
    end_ += bytes;
  }
  /// Needs the room.
  void Append(std::span<const std::byte> bytes) {
    size_t done = 0;
    for (const iovec& part : PartsOf(end_, bytes.size())) {
      if (part.iov_len > 0) std::memcpy(part.iov_base, bytes.data() + done, part.iov_len);
      done += part.iov_len;
    }
    Grow(bytes.size());
  }
  /// From `from` on, which are there.
  void Copy(uint64_t from, std::span<std::byte> out) const {
    size_t done = 0;
    for (const iovec& part : Bytes(from, from + out.size())) {
      if (part.iov_len > 0) std::memcpy(out.data() + done, part.iov_base, part.iov_len);
      done += part.iov_len;
    }
  }
  /// Nothing before `place` is read any more. An empty log begins its ring again, so that short
  /// streams stay in the same few pages.
  void Forget(uint64_t place) {
    PREPOST_CHECK(begin_ <= place && place <= end_);
    begin_ = place;
    if (begin_ == end_) origin_ = end_;
  }

 private:
  Parts PartsOf(uint64_t from, size_t bytes) const {
    const size_t offset = static_cast<size_t>((from - origin_) % size_);
    const size_t first = std::min(bytes, size_ - offset);
    return {iovec{bytes_.get() + offset, first}, iovec{bytes_.get(), bytes - first}};
  }

  const size_t size_;
  const std::unique_ptr<std::byte[]> bytes_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t origin_ = 0;  ///< the place that is at the ring's beginning
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_EAGER_LOG_H_
