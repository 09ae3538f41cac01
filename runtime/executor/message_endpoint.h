// SPDX-License-Identifier: Apache-2.0
//
// MessageEndpoint: an endpoint whose connections outlive a transfer: one message after another goes
// over them, each with a plan of its own. A session's groups use it (session/); a run of one plan
// begins one message.
#ifndef PREPOST_RUNTIME_EXECUTOR_MESSAGE_ENDPOINT_H_
#define PREPOST_RUNTIME_EXECUTOR_MESSAGE_ENDPOINT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ir/base/status.h"
#include "runtime/executor/endpoint.h"
#include "runtime/executor/playable.h"

namespace prepost {

/// Of a group's message: 256 TiB.
inline constexpr uint64_t kGroupMessageBytesMax = (uint64_t{1} << 48) - 1;

/// A message as its sender begins it.
struct MessageStart {
  /// Messages of a group count from 0, modulo 2^32; every member plays all of them.
  uint32_t number = 0;
  uint64_t bytes = 0;    ///< at most kGroupMessageBytesMax
  uint16_t variant = 0;  ///< which of the group's plans its root has chosen for it
  /// Of a call of a collective: its root, a node; then `variant` says the rest of it
  /// (session/group_call.h), and all that a node begins differently from another is an error.
  std::optional<uint32_t> call_root = {};

  friend bool operator==(const MessageStart&, const MessageStart&) = default;
};

/// "message 3, 100 bytes", "allreduce sum:float32 of 400 bytes", "reduce max:int8 of 20 bytes to
/// node 2".
std::string Describe(const MessageStart& start);

/// A peer may be ahead by a message or more: what it sends for that waits in the transport. Posting
/// and polling allocate nothing between Begin() and the next; Begin() does where the plan is larger
/// than those before.
class MessageEndpoint : public Endpoint {
 public:
  /// From now on ops are those of `plan`, which is verified and must outlive the message, and move
  /// `message`, of the plan's size, whose number rises. The message before it is over, or never
  /// began. Errors: a peer has begun this message otherwise, or a later one without what the plan
  /// has it send (kRejected).
  virtual Status Begin(Playable plan, const MessageStart& message) = 0;
  /// Whether, from the next message on, sends over long paths complete when they are written,
  /// instead of a round trip later, when they are known to have arrived: the next message follows
  /// at once, when all notes of the one before have come.
  virtual void set_ends_early(bool ends_early) = 0;
  /// Whether, from the next message on, receivers on this machine are kept close to each other, so
  /// that a block is in a cache for all of them. Only where none of them waits for another.
  virtual void set_in_step(bool in_step) = 0;
  /// Whether a send of the message at hand has: its time says nothing about the path.
  virtual bool has_ended_early() const = 0;
  /// This node's part of the message is over: the memory of its sends is its caller's again when
  /// this returns, and no peer copies from it any more.
  virtual void End() = 0;
  /// The first message that a peer has begun and this end has not; Poll() hears of it.
  virtual std::optional<MessageStart> announced() const = 0;
  /// Readable when Poll() has something to do that comes from outside. Not owned by the caller.
  virtual int wait_fd() const = 0;
  /// Before waiting for wait_fd() anywhere but in Poll(): false if Poll() has something to do
  /// already.
  virtual bool PrepareToWait() = 0;
  /// CheckPeers() is not called for a while: peers may be asked as seldom whether they are there.
  virtual void RestPeers() = 0;
  /// Whether all that was sent is acknowledged: whether CheckPeers() is still of use between
  /// messages.
  virtual bool IsAcknowledged() const = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_MESSAGE_ENDPOINT_H_
