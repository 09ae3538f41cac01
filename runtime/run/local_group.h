// SPDX-License-Identifier: Apache-2.0
//
// RunLocalGroup: the CPU executor on one machine: one process per node, connected by a local
// transport, started, watched and ended by this process, the launcher, which takes no part in the
// transfer.
#ifndef PREPOST_RUNTIME_RUN_LOCAL_GROUP_H_
#define PREPOST_RUNTIME_RUN_LOCAL_GROUP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/executor/playable.h"
#include "runtime/executor/player.h"
#include "runtime/executor/wait_policy.h"
#include "runtime/files/message_file.h"
#include "runtime/files/output_set.h"
#include "runtime/run/run_leader.h"
#include "runtime/trace/op_times.h"
#include "runtime/transport/local_transport.h"

namespace prepost {

struct LocalGroupOptions {
  TransportKind transport = TransportKind::kTcp;
  bool is_sealed = false;  ///< what kTcp carries is (record_seal.h); without make_player
  WaitPolicy wait = {};
  RunTrace* trace = nullptr;  ///< filled; also when the run fails. Not owned
  /// How long nothing may move anywhere in the group before the run ends with an error.
  std::chrono::milliseconds no_progress_max{30000};
  /// Within which a node that is gone, stopped or cut off has ended the run.
  std::chrono::milliseconds failure_max{2000};
  /// The run is interrupted when this is readable (InterruptSignals); -1: never. Not owned.
  int interrupt_fd = -1;
  /// Called about once a second with the bytes that all receivers have received together. May be
  /// empty.
  std::function<void(uint64_t bytes_received)> progress;
  /// Plays a node's part over a device, in the node's process; the node's links reach its
  /// peers. Empty: the CPU executor over the transport, which must be kTcp otherwise.
  ConnectedPlayerFactory make_player = {};
  /// With make_player: what plays, for the report.
  std::string executor = {};
  std::string detail = {};
};

/// Plays the verified `plan` with the bytes of `input`, whose size must be the plan's; of another
/// collective than a multicast, which is not rolled, the inputs of all nodes, one after the other
/// (InputOffsets()), and outputs are checked against ExpectedSums(). With `outputs`, every
/// receiver's copy is written there and committed when all copies have the root's sum; without
/// (null), copies are received into memory.
///
/// Errors: a node failed, died or is stopped, copies differ, nothing moved for too long, a file or
/// the disk (kRejected); out of descriptors or processes (kEnvironment); kInterrupted. The message
/// is one line that names the cause. Whatever the outcome, no node's process is left; on an error
/// no copy is committed, and `outputs` is to be removed by its owner.
///
/// Forks: to be called while the process has one thread.
Result<LocalRun> RunLocalGroup(Playable plan, const MappedInput& input, OutputSet* outputs,
                               const LocalGroupOptions& options = {});

}  // namespace prepost

#endif  // PREPOST_RUNTIME_RUN_LOCAL_GROUP_H_
