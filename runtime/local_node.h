// SPDX-License-Identifier: Apache-2.0
//
// The process of one node in a run on this machine: a Member led by the launcher (local_group.h),
// and what it does when the launcher is gone.
#ifndef PREPOST_RUNTIME_LOCAL_NODE_H_
#define PREPOST_RUNTIME_LOCAL_NODE_H_

#include "prepost/runtime/control_socket.h"
#include "prepost/runtime/local_transport.h"
#include "prepost/runtime/message_file.h"
#include "prepost/runtime/node_buffer.h"
#include "prepost/runtime/op_times.h"
#include "prepost/runtime/output_set.h"
#include "prepost/runtime/playable.h"
#include "prepost/runtime/wait_policy.h"

namespace prepost {

struct LocalNodeTask {
  Playable plan;
  NodeId node;
  const MappedInput& input;  ///< the root sends it; over shared memory others read it
  NodeBuffer& buffer;        ///< open; not used by the root
  OutputSet* outputs;        ///< null: receive into memory
  LocalTransport& transport;
  WaitPolicy wait;
  RunTrace* trace;  ///< null: none; shared with the launcher
  ControlSocket control;
  int last_word_fd;  ///< holds one byte: who reads it, speaks for all when the launcher is gone
};

/// The body of a node's process; never returns. Says nothing on stdout, and on stderr one line at
/// most, when the launcher is gone and this node has the last word.
[[noreturn]] void RunLocalNode(LocalNodeTask task);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_LOCAL_NODE_H_
