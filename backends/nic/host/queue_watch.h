// SPDX-License-Identifier: Apache-2.0
//
// QueueWatch: whether a node's queues move, asked of its device. That is the only progress there is
// to see of a preposted node between its doorbells and its final completion.
#ifndef PREPOST_BACKENDS_NIC_HOST_QUEUE_WATCH_H_
#define PREPOST_BACKENDS_NIC_HOST_QUEUE_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace prepost::nic {

class ArmedNode;

/// Used by the device's thread.
class QueueWatch {
 public:
  /// Whether a counter or the state of any queue of `node`, always the same, has changed since the
  /// last call, which may not have queried all of them: of two calls that see nothing move,
  /// the second is sure. Cost: a command to the device while a queue moves that moved before,
  /// otherwise one per QP and CQ. A queue that cannot be asked does not move.
  bool HasMoved(const ArmedNode& node);

 private:
  bool HasMoved(const ArmedNode& node, size_t queue);

  std::vector<uint64_t> seen_;  // by queue: QPs, then CQs
  size_t moved_last_ = 0;
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_HOST_QUEUE_WATCH_H_
