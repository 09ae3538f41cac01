// SPDX-License-Identifier: Apache-2.0
//
// RunNode: one node of a group whose nodes run on several machines, as this process: a member of a
// group as sessions have them (session/keeper.h), which plays one plan once, with files.
#ifndef PREPOST_RUNTIME_RUN_NODE_GROUP_H_
#define PREPOST_RUNTIME_RUN_NODE_GROUP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/executor/playable.h"
#include "runtime/executor/player.h"
#include "runtime/executor/wait_policy.h"
#include "runtime/files/message_file.h"
#include "runtime/files/output_set.h"
#include "runtime/group/bootstrap.h"
#include "runtime/run/run_leader.h"
#include "runtime/trace/op_times.h"

namespace prepost {

struct NodeRunOptions {
  BootstrapOptions bootstrap;  ///< its node is the one to run
  /// Where to listen. Empty: at the node's own address of the bootstrap's peers or, if that is a
  /// name (which may mean something else on this machine than on others), at all addresses.
  std::string bind = {};
  std::optional<PortRange> ports =
      {};                 ///< instead of those of the peers; the first free one is taken
  int interrupt_fd = -1;  ///< the run is interrupted when it is readable; -1: never. Not owned
  WaitPolicy wait = {};
  RunTrace* trace =
      nullptr;  ///< filled with what this node does; also when the run fails. Not owned
  /// How long nothing may move anywhere in the group: at the leader.
  std::chrono::milliseconds no_progress_max{30000};
  /// Within which all nodes hear that one is gone, stopped, or cut off.
  std::chrono::milliseconds failure_max{2000};
  /// All connections are sealed (record_seal.h); of all nodes or of none. Not with make_player.
  bool is_sealed = false;
  /// Plays this node's part over a NIC, from and to memory that no file backs; `links` reach
  /// each peer, for whatever is to be agreed on before. Empty: the CPU executor over the same
  /// connections. Sets the carrier that the bootstrap names.
  ConnectedPlayerFactory make_player = {};
  std::string executor = "cpu";  ///< what plays, for the report
  std::string detail = "tcp";
  /// At the root, as in LocalGroupOptions. May be empty.
  std::function<void(uint64_t bytes_received)> progress;
  /// Called with what the user may want to know of the paths to other nodes (path_notes.h). May be
  /// empty.
  std::function<void(const std::string& text)> note = {};
};

/// Plays its node of the verified `plan` over TCP or a NIC, with all others. The root sends
/// `input`, which has the plan's size; elsewhere it is null. Others write their copy to `outputs`,
/// which has it only, or receive it into memory (null). Copies get their names when the root has
/// found all to be equal. The report has all nodes at the root, and this one elsewhere.
///
/// Of another collective than a multicast `input` is what the node contributes, of its
/// NodeBytesOf(), null if that is nothing, and `outputs` is what it wants. Outputs get their names
/// when those that are equal by the plan (FirstsOfEqualOutputs()) have been found to be; others are
/// complete, and no node has what they could be compared with. The result has the sums of those
/// that the report has.
///
/// Errors: those of Keeper::Start(); this node's own, those of other nodes as the root reports
/// them, and the loss of the root (kRejected); kInterrupted. After an error there is no copy.
///
/// To be called while the process has one thread, with signals held (InterruptSignals).
Result<LocalRun> RunNode(Playable plan, const MappedInput* input, OutputSet* outputs,
                         NodeRunOptions options);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_RUN_NODE_GROUP_H_
