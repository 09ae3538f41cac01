// SPDX-License-Identifier: Apache-2.0
//
// The process of one node in a run on this machine: a member of the run's group, which the launcher
// leads (local_group.h), and what it does when the launcher is gone.
#ifndef PREPOST_RUNTIME_RUN_LOCAL_NODE_H_
#define PREPOST_RUNTIME_RUN_LOCAL_NODE_H_

#include <chrono>
#include <vector>

#include "runtime/base/file_descriptor.h"
#include "runtime/executor/playable.h"
#include "runtime/executor/player.h"
#include "runtime/executor/wait_policy.h"
#include "runtime/files/message_file.h"
#include "runtime/files/node_buffer.h"
#include "runtime/files/output_set.h"
#include "runtime/session/keeper.h"
#include "runtime/trace/op_times.h"
#include "runtime/transport/local_transport.h"

namespace prepost {

struct LocalNodeTask {
  Playable plan;
  NodeId node;
  const MappedInput& input;  ///< the root sends it; over shared memory others read it
  NodeBuffer& buffer;        ///< open; not used by the root
  NodeBuffer* scratch;       ///< of another collective than a multicast; else null
  OutputSet* outputs;        ///< null: receive into memory
  LocalTransport& transport;
  /// As LocalGroupOptions's; may be empty.
  ConnectedPlayerFactory make_player;
  WaitPolicy wait;
  RunTrace* trace;  ///< null: none; shared with the launcher
  std::chrono::milliseconds failure_max;
  FileDescriptor control;         ///< to the launcher
  std::vector<GateSocket> gates;  ///< to others, as LocalRunGroup()'s GateTree has them
  int last_word_fd;  ///< holds one byte: who reads it, speaks for all when the launcher is gone
};

/// The group of a run on one machine, as process `self` of it knows it: its nodes and, as one more,
/// the launcher, which leads and plays no part. Without connections and names.
KeptGroup LocalRunGroup(const PlanHeader& header, NodeId self);

/// The body of a node's process; never returns. Says nothing on stdout, and on stderr one line at
/// most, when the launcher is gone and this node has the last word.
[[noreturn]] void RunLocalNode(LocalNodeTask task);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_RUN_LOCAL_NODE_H_
