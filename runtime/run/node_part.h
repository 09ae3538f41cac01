// SPDX-License-Identifier: Apache-2.0
//
// NodePart: one node's part of a run with files: its memory or file is prepared, its program
// played, and what it has then summed. Who leads the run, and how, it does not know (run_member.h).
#ifndef PREPOST_RUNTIME_RUN_NODE_PART_H_
#define PREPOST_RUNTIME_RUN_NODE_PART_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"
#include "runtime/base/mapping.h"
#include "runtime/executor/playable.h"
#include "runtime/executor/player.h"
#include "runtime/executor/wait_policy.h"
#include "runtime/files/message_file.h"
#include "runtime/files/node_buffer.h"
#include "runtime/session/attention.h"
#include "runtime/trace/op_times.h"

namespace prepost {

/// Ops of a node that are named where nothing moves.
inline constexpr size_t kWaitingOpsMax = 2;

/// Pointers must outlive the part.
struct NodePartTask {
  Playable plan;  ///< verified
  NodeId node;
  const MappedInput* input = nullptr;  ///< the root's; elsewhere null unless it is at hand
  NodeBuffer* buffer = nullptr;        ///< everyone else's, open
  /// Of another collective than a multicast: the input has this node's from this byte on, and may
  /// be null where that is empty; `buffer` is its output, if it has any, and these are its scratch
  /// buffers, open.
  uint64_t input_offset = 0;
  NodeBuffer* scratch = nullptr;
  PlayerFactory make_player;  ///< called once, when the buffer is reserved
  /// The player touches the message itself, as a NIC does: then it is given memory that no file
  /// backs, read before the start and written to the file after the end.
  bool in_memory = false;
  WaitPolicy wait;
  RunTrace* trace = nullptr;  ///< null: none
};

/// Used by one thread.
class NodePart {
 public:
  explicit NodePart(NodePartTask task) : task_(std::move(task)) {}

  /// Reads, reserves and arms. `wake_fd`: ends waiting while it is readable. Calls `checkpoint` as
  /// long as that takes. Errors: those of files, of the player and of `checkpoint`.
  Status Prepare(int wake_fd, const Checkpoint& checkpoint);
  /// To the end of its program, which begins at `start_ns`. Waits at most `wait_max()` (negative:
  /// for ever) at a time, and calls `between` after each wait that was ended by `wake_fd`, or took
  /// that long. `attention`: is told of waits; null: nobody asks. Errors: those of the player and
  /// of `between`.
  Status Play(uint64_t start_ns, const std::function<std::chrono::milliseconds()>& wait_max,
              const std::function<Status()>& between, Attention* attention = nullptr);
  /// Of what it has in the end, which is in its file then.
  Result<MessageSum> Sum(const Checkpoint& checkpoint);
  /// After an error: ends what goes on. Whether that was only the loss of a peer.
  std::optional<NodeId> Stop();

  Player* player() const { return player_.get(); }  ///< null: not prepared yet
  const NodeReport& report() const { return report_; }
  const std::vector<QueueRearms>& queue_rearms() const { return queue_rearms_; }

 private:
  bool is_target() const { return task_.plan.header().roles().IsTarget(task_.node); }
  Result<NodeMemory> PrepareMemory(const Checkpoint& checkpoint);
  Result<NodeMemory> PrepareRooms(const Checkpoint& checkpoint);

  NodePartTask task_;
  Mapping message_;  ///< the root's, or the node's input, if it is to be in memory
  /// Of another collective than a multicast, in memory: what a device is told of besides.
  Mapping staging_;
  std::unique_ptr<const BlockPlaces> places_;
  std::unique_ptr<Player> player_;
  NodeReport report_;
  std::vector<QueueRearms> queue_rearms_;
};

/// The sooner of two timeouts, of which a negative one is for ever.
std::chrono::milliseconds Sooner(std::chrono::milliseconds a, std::chrono::milliseconds b);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_RUN_NODE_PART_H_
