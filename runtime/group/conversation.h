// SPDX-License-Identifier: Apache-2.0
//
// Conversation: a socket on which a hello is under way, at either end, with a deadline and a bound
// for what the other end may say.
#ifndef PREPOST_RUNTIME_GROUP_CONVERSATION_H_
#define PREPOST_RUNTIME_GROUP_CONVERSATION_H_

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <vector>

#include "runtime/base/file_descriptor.h"
#include "runtime/group/hello.h"

namespace prepost {

/// And what of the next message has come.
struct Conversation {
  using Clock = std::chrono::steady_clock;
  enum class Read : uint8_t { kNotYet, kAll, kGone };
  static constexpr size_t kDiscardMax = size_t{64} << 10;  ///< of what a refused guest says

  /// Until `wanted` bytes are there; they stand in `in`, until the next call.
  Read Receive(size_t wanted) {
    while (got < wanted) {
      const ssize_t bytes = recv(fd.get(), in.data() + got, wanted - got, MSG_DONTWAIT);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0 && errno == EAGAIN) return Read::kNotYet;
      if (bytes <= 0) return Read::kGone;
      got += static_cast<size_t>(bytes);
    }
    got = 0;
    return Read::kAll;
  }
  /// A new socket has room for all that a hello says.
  bool Send(const std::vector<std::byte>& bytes) const {
    return send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(bytes.size());
  }
  /// Throws away what is there, up to a bound. False when there is no more to come, or too much
  /// came.
  bool Discard() {
    std::array<std::byte, 4096> scratch;
    const ssize_t bytes = recv(fd.get(), scratch.data(), scratch.size(), MSG_DONTWAIT);
    if (bytes < 0) return errno == EAGAIN || errno == EINTR;
    got += static_cast<size_t>(bytes);
    return bytes > 0 && got <= kDiscardMax;
  }
  /// The other end is there, and has said nothing.
  bool IsQuiet() const {
    std::byte byte;
    return recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 &&
           (errno == EAGAIN || errno == EINTR);
  }
  bool expired() const { return Clock::now() >= due; }

  FileDescriptor fd;
  Clock::time_point due;
  std::array<std::byte, kHelloBytes> in = {};
  size_t got = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_CONVERSATION_H_
