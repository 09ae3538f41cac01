// SPDX-License-Identifier: Apache-2.0
//
// ControlSocket: one end of a connection that carries ControlMessages between a leader and a
// member, in one machine over a socket pair or between machines over TCP. It closes by itself when
// the process at the other end dies.
#ifndef PREPOST_RUNTIME_GROUP_CONTROL_SOCKET_H_
#define PREPOST_RUNTIME_GROUP_CONTROL_SOCKET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/group/control_message.h"
#include "runtime/transport/sealing/record_seal.h"

namespace prepost {

/// Behind each message stand 16 bytes: BLAKE2b of it and of its number on this connection and way.
/// So what was shifted, lost or said twice is no message. It is no proof of who says it. On a
/// sealed connection the 16 bytes are the tag of the seal of both, which is such a proof.
///
/// Used by one thread. Neither sending nor receiving waits; poll fd() for more.
class ControlSocket {
 public:
  /// Both ends. Errors: kEnvironment.
  static Result<std::pair<ControlSocket, ControlSocket>> MakePair();
  /// Takes over a connected stream socket. `seal`: of a sealed connection.
  explicit ControlSocket(FileDescriptor fd, std::unique_ptr<LinkSeal> seal = nullptr)
      : fd_(std::move(fd)), seal_(std::move(seal)) {}

  int fd() const { return fd_.get(); }
  /// The socket itself, which this end does not use any more.
  FileDescriptor TakeFile() { return std::move(fd_); }

  /// Nothing happens when the other end is gone. A connection holds far more than what is ever
  /// under way, so one that takes no whole message is as good as gone and becomes closed(); the
  /// caller has to query that.
  void Send(const ControlMessage& message);
  /// As Send(), but what the connection does not take waits for Flush(), which is due when
  /// has_unsent() and fd() is writable. When more than kUnsentMax messages wait, the other end is
  /// as good as gone: closed().
  void Queue(const ControlMessage& message);
  /// As Queue(), where `message` says all that those of its type, and of its gate if it has one,
  /// said before it: those that wait are not sent any more.
  void QueueLatest(const ControlMessage& message);
  void Flush();
  bool has_unsent() const { return !closed_ && !unsent_.empty(); }
  /// The next message; none if none is there in full yet, or if closed().
  std::optional<ControlMessage> Receive();
  /// The other end is gone, takes no more messages, or has sent nonsense; for good. Nonsense, and
  /// what is not authentic(), ends what is received: this end can still say so.
  bool closed() const { return closed_ || !is_authentic_ || !nonsense_.empty(); }
  /// What was wrong with its last bytes; empty if nothing was.
  const std::string& nonsense() const { return nonsense_; }
  /// False: something between the two has changed, kept or repeated what the other end has sealed.
  bool is_authentic() const { return is_authentic_; }

  static constexpr size_t kUnsentMax = 64;
  static constexpr size_t kCheckBytes = 16;

 private:
  using Bytes = std::array<std::byte, kControlMessageBytes + kCheckBytes>;
  struct Unsent {
    size_t subject = 0;  ///< by its type and, if it has one, its gate
    Bytes bytes = {};
  };

  static std::array<std::byte, kCheckBytes> CheckOf(const Bytes& bytes, uint64_t number);
  void Seal(Bytes& bytes);
  bool Open();

  FileDescriptor fd_;
  std::unique_ptr<LinkSeal> seal_;  ///< null: nothing is sealed
  Bytes partial_ = {};
  size_t partial_bytes_ = 0;
  uint64_t sent_ = 0;  ///< messages that are sealed
  uint64_t received_ = 0;
  std::deque<Unsent> unsent_;  ///< by Queue(); sealed when the first byte is sent
  size_t sent_bytes_ = 0;      ///< of the first of them
  bool is_sealed_ = false;     ///< the first of them
  bool closed_ = false;
  bool is_authentic_ = true;
  std::string nonsense_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_CONTROL_SOCKET_H_
