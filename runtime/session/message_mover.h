// SPDX-License-Identifier: Apache-2.0
//
// MessageMover: what moves the messages of a group instead of a CPU executor over its connections,
// on a thread of its own. The engine has one per group that has one at all, and leads it with the
// keeper: of every message all members have the memory before any arms, are armed before any
// starts, and are done with it before it counts as complete anywhere, since only all NICs'
// completions together say that no copy is stale. A message may be armed while the one before it is
// moving.
#ifndef PREPOST_RUNTIME_SESSION_MESSAGE_MOVER_H_
#define PREPOST_RUNTIME_SESSION_MESSAGE_MOVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/executor/executor.h"
#include "runtime/transport/peer_links.h"

namespace prepost {

/// Functions are one thread's and do not wait, except Stop(). Messages are numbered from 0; at most
/// two are under way, from Begin() to Complete().
class MessageMover {
 public:
  struct Event {
    enum class Kind : uint8_t {
      kPlace,   ///< at the leader: `text`, which Join() gets elsewhere
      kOpened,  ///< messages can be armed
      kArmed,   ///< message `number`
      kMoved,   ///< this node's part of it is done, without an error
      kNoted,   ///< `text`, for who asks for the group's notes
      kFailed   ///< `status`; nothing else follows
    };
    Kind kind = Kind::kFailed;
    uint64_t number = 0;
    std::string text = {};
    Status status = {};
    std::optional<NodeId> lost_peer = {};  ///< kFailed: only because this one is gone
  };

  virtual ~MessageMover() = default;
  /// `links`: with this node's peers, not null. `pool`: where messages are received into, and stay
  /// until the mover has stopped; may be empty. Events are reported by the mover's thread.
  virtual void Open(std::unique_ptr<PeerLinks> links, std::span<std::byte> pool,
                    std::function<void(Event)> report) = 0;
  /// Not at the leader, after Open().
  virtual void Join(std::string place) = 0;
  /// The next message, of `bytes` bytes, in `memory`.
  virtual void Begin(NodeMemory memory, uint64_t bytes) = 0;
  virtual void Arm(uint64_t number) = 0;
  virtual void Start(uint64_t number) = 0;
  /// All members are done with it, and its memory is not used any more.
  virtual void Complete(uint64_t number) = 0;
  /// When it returns no memory of a message is touched and nothing is reported any more.
  virtual void Stop() = 0;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_SESSION_MESSAGE_MOVER_H_
