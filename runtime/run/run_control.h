// SPDX-License-Identifier: Apache-2.0
//
// RunControl: what a process that takes part in a run, or leads one, has of its keeper
// (session/keeper.h): it is opened here, its events are waited for and handed on, and a failure is
// reported to it, for which it finds the cause.
#ifndef PREPOST_RUNTIME_RUN_RUN_CONTROL_H_
#define PREPOST_RUNTIME_RUN_RUN_CONTROL_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "ir/base/status.h"
#include "ir/ids.h"
#include "runtime/base/event_fd.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/session/keeper.h"

namespace prepost {

/// Used by one thread.
class RunControl {
 public:
  static constexpr GroupSerial kSerial = 1;  ///< of the one group

  /// Starts the keeper; its notices are this object's. `take` is called with each event but the
  /// last ones, by TakeEvents(). Errors: those of Keeper::Start(); kEnvironment.
  Status Open(KeeperOptions options, int interrupt_fd, std::function<Status(KeeperEvent&)> take);
  /// From then on Wait() ends when `fd` is readable, too. Not owned. Errors: kEnvironment.
  Status Watch(int fd);

  Keeper& keeper() { return *keeper_; }
  /// Readable while there is anything to wait for; for those that wait for more.
  int wake_fd() const { return wake_.get(); }

  /// Errors: the group has failed, or `take` has.
  Status TakeEvents();
  /// For up to `timeout`. Errors: besides, the interrupt.
  Status Wait(std::chrono::milliseconds timeout);
  /// Reports `failure`, of a part that had lost `lost_peer` or nobody, unless the group has failed
  /// already. The cause: `failure` or, if that is only a lost peer, what the group finds in `due`.
  Status EndFailed(const Status& failure, std::optional<NodeId> lost_peer,
                   std::chrono::milliseconds due);

  bool is_closed() const { return is_closed_; }
  /// The cause, when the group has failed.
  const std::optional<Status>& ended() const { return ended_; }
  /// The failure is this process's own finding, and is that of this node.
  bool has_lost(NodeId node) const { return lost_ == node; }

 private:
  std::function<Status(KeeperEvent&)> take_;
  int interrupt_fd_ = -1;
  EventFd event_;
  FileDescriptor wake_;  ///< epoll: all that Wait() waits for
  bool is_closed_ = false;
  bool is_ending_ =
      false;  ///< after a failure of this part: only how the group ends is of interest
  std::optional<Status> ended_;  ///< the group has failed
  std::optional<NodeId> lost_;
  std::unique_ptr<Keeper> keeper_;  ///< goes first: its thread calls back
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_RUN_RUN_CONTROL_H_
