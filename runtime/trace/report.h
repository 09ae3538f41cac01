// SPDX-License-Identifier: Apache-2.0
//
// RunReport: what one transfer of one plan did, in counts and times, whichever executor played it.
// The command prints it. "Host" means the CPU side of a node: what the application's threads did,
// not what a NIC did.
#ifndef PREPOST_RUNTIME_TRACE_REPORT_H_
#define PREPOST_RUNTIME_TRACE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ids.h"

namespace prepost {

struct NodeReport {
  NodeId node;
  /// Times the host handed work over: sends and receives posted, or doorbells rung.
  uint64_t host_posts = 0;
  /// Those of host_posts after the transfer had started at this node (preposted: must be 0).
  uint64_t host_posts_during = 0;
  /// Offloaded: requests for events after the start. On hardware each is a write of a register, as
  /// a doorbell is.
  uint64_t host_event_requests_during = 0;
  /// Times the host came back from waiting, between start and completion.
  uint64_t host_wakeups = 0;
  uint64_t host_completions = 0;  ///< completions the host polled
  /// Times a block was held back because no receive was posted for it (RNR retries).
  uint64_t retries = 0;
  /// Offloaded: times a queue's ring was written to again, and how often that is at most.
  uint64_t rearms = 0;
  uint64_t rearms_max = 0;
  uint64_t cpu_ns = 0;  ///< processor time of the host's thread, between start and completion
  uint64_t bytes_received = 0;
  /// From the start of the transfer to this node's completion, monotonic clock.
  uint64_t elapsed_ns = 0;
};

/// Offloaded: a queue that is longer than its ring, and how often that was written to again.
struct QueueRearms {
  NodeId node;
  std::string queue;  ///< "send queue of QP 1>2 blocks"
  uint64_t rearms = 0;
  uint64_t bound = 0;
};

struct RunReport {
  std::string executor;           ///< "cpu" or "offload"
  std::string detail;             ///< transport or device, e.g. "tcp", "emulated"
  std::string wait;               ///< how hosts waited: a WaitMode's name
  uint64_t elapsed_ns = 0;        ///< from the start to the last node's completion
  std::vector<NodeReport> nodes;  ///< sorted by node
  /// By node; of the queues whose hosts are in this process.
  std::vector<QueueRearms> queue_rearms;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRACE_REPORT_H_
