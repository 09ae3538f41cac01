// SPDX-License-Identifier: Apache-2.0
//
// ControlSocket: how the launcher and one node process of the same program and machine talk: whole
// messages, over a socket pair that closes by itself when either of them dies.
#ifndef PREPOST_RUNTIME_CONTROL_SOCKET_H_
#define PREPOST_RUNTIME_CONTROL_SOCKET_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "prepost/ir/ids.h"
#include "prepost/ir/status.h"
#include "prepost/runtime/file_descriptor.h"
#include "prepost/runtime/message_sum.h"
#include "prepost/runtime/report.h"

namespace prepost {

/// The steps of a run, in order, each taken by all nodes before the next begins; and what may come
/// at any time.
///
///     node -> launcher                          launcher -> node
///     kReady      receives posted, file ready   kStart    all are ready: go
///     kDelivered  program done: `report`        kSum      all have delivered: sum your copy
///     kSummed     `sum`                         kRelease  all is well and committed: exit
///     kProgress   answer to kQuery              kQuery    how far are you?
///     kFailed     `text`; waits to be ended
struct ControlMessage {
  enum class Kind : uint8_t {
    kReady,
    kStart,
    kDelivered,
    kSum,
    kSummed,
    kRelease,
    kQuery,
    kProgress,
    kFailed
  };
  Kind kind = Kind::kReady;
  bool lost_peer = false;             ///< kFailed: only because a peer is gone
  StatusCode code = StatusCode::kOk;  ///< kFailed
  uint64_t start_ns = 0;              ///< kStart: when, by MonotonicNs()
  uint64_t progress = 0;              ///< kProgress: rises whenever there is some
  NodeReport report = {};             ///< kDelivered; kProgress: so far
  MessageSum sum = {};                ///< kSummed
  std::array<char, 512> text = {};    ///< kFailed: the message; kProgress: what the node waits for

  void SetText(const std::string& value);
  std::string Text() const { return text.data(); }
};
static_assert(std::is_trivially_copyable_v<ControlMessage>);

class ControlSocket {
 public:
  /// Both ends. Errors: kEnvironment.
  static Result<std::pair<ControlSocket, ControlSocket>> MakePair();

  int fd() const { return fd_.get(); }

  /// Does not wait: a message that finds no room is dropped with false, as when the other end is
  /// gone.
  bool Send(const ControlMessage& message);
  /// The next message; none if there is none yet (`wait` false) or the other end is gone (then
  /// closed()).
  std::optional<ControlMessage> Receive(bool wait);
  bool closed() const { return closed_; }

 private:
  explicit ControlSocket(int fd) : fd_(fd) {}

  FileDescriptor fd_;
  bool closed_ = false;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_CONTROL_SOCKET_H_
