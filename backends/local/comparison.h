// SPDX-License-Identifier: Apache-2.0
//
// Compare: one plan, credits included, on one device, two ways: CPU-driven, where each node's host
// reacts to completions and posts the next work requests, and preposted, where it rings its
// doorbells and waits for one completion. Knows no command and prints nothing; the raw samples are
// its result.
#ifndef PREPOST_BACKENDS_LOCAL_COMPARISON_H_
#define PREPOST_BACKENDS_LOCAL_COMPARISON_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "backends/emulated/engine.h"
#include "backends/nic/program/lower.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "ir/verify/verify.h"
#include "runtime/base/statistics.h"
#include "runtime/executor/wait_policy.h"

namespace prepost::local {

enum class Way : uint8_t { kCpuDriven, kPreposted };
inline constexpr std::array<std::string_view, 2> kWayNames = {"cpu-driven", "preposted"};
constexpr std::string_view Name(Way way) { return kWayNames[static_cast<size_t>(way)]; }

/// A thread per node, and the message's bytes per node.
inline constexpr uint32_t kCompareNodesMax = 256;

struct CompareOptions {
  uint32_t repetitions = 20;
  uint32_t stress_threads = 0;  ///< busy threads beside the hosts, the same for both ways
  WaitPolicy wait = {};         ///< of all hosts, both ways
  uint64_t seed = 1;            ///< of the message's bytes
  nic::LowerOptions lower = {};
  std::vector<emulated::QpFault> faults = {};  ///< QPs to break on the way, in every transfer
  /// A transfer in which nothing happens for so long is ended with an error.
  std::chrono::milliseconds no_progress_max{30000};
  int interrupt_fd = -1;  ///< interrupted when this is readable; -1: never. Not owned
  /// Called before each pair of transfers. May be empty.
  std::function<void(uint32_t repetition)> progress = {};
};

/// What hosts did, summed over nodes. All are counted where they happen.
struct HostCounts {
  uint64_t work_requests = 0;   ///< WQEs that hosts wrote: sends, receives and, preposted, WAITs
  uint64_t doorbells = 0;       ///< register writes that announced them to the NIC
  uint64_t event_requests = 0;  ///< register writes that asked for an event
  uint64_t wakeups = 0;         ///< returns from waiting, also those for nothing
  uint64_t cqes_read = 0;       ///< completions that hosts polled
  uint64_t rearms = 0;          ///< preposted: rings written to again

  HostCounts& operator+=(const HostCounts& other);
  friend HostCounts operator-(const HostCounts& a, const HostCounts& b);
  friend bool operator==(const HostCounts&, const HostCounts&) = default;
};

/// One transfer of the message to all nodes.
struct TransferSample {
  HostCounts before;    ///< while arming, before the common start
  HostCounts at_start;  ///< in each node's start: its first sends, or its doorbells
  HostCounts during;    ///< from there to each node's completion. Preposted: no posts, checked,
                        ///< but for re-arms, where a queue is longer than its ring
  /// By node: from the common start until its host has noticed its own last completion.
  std::vector<uint64_t> latency_ns;
  uint64_t completion_ns = 0;  ///< the last node's latency
  uint64_t skew_ns = 0;        ///< the last node's less the first one's
  uint64_t host_cpu_ns = 0;    ///< of all hosts' threads, from the start to each completion
  uint64_t arm_cpu_ns = 0;     ///< of making and arming all nodes' queues, before the start
  uint64_t engine_cpu_ns = 0;  ///< of the thread that all NICs run on, to the last completion
  uint64_t rnr_retries = 0;    ///< sends that found no receive and were tried again
};

/// By repetition: sample i of both ways is of the same pair. The order within pairs alternates: A B
/// B A ...; one pair before the first is not kept.
struct Comparison {
  std::array<std::vector<TransferSample>, 2> ways;  ///< by Way
  uint64_t rearms_max = 0;                          ///< preposted: of all nodes, in a transfer

  const std::vector<TransferSample>& of(Way way) const { return ways[static_cast<size_t>(way)]; }
};

/// Each transfer has fresh NICs and queues, is armed outside of the clock and starts at all nodes
/// at once; afterwards every node's bytes are compared with the root's. Both ways' hosts are
/// threads of the same kind, one per node, that wait by the same policy.
///
/// Errors: kRejected: a plan that is not valid, does not fit or has too many nodes, a transfer that
/// fails, stands still, leaves wrong bytes, or in which a preposted host posts; kEnvironment: not
/// enough memory, threads or files; kInterrupted. Nothing is left behind.
Result<Comparison> Compare(const VerifiedPlan& plan, const CompareOptions& options);

/// Completion times, CPU-driven over preposted, above 1 where preposted is faster.
struct CompareRatio {
  double of_medians = 0;
  Summary of_pairs;
};
CompareRatio RatioOf(const Comparison& comparison);

}  // namespace prepost::local

#endif  // PREPOST_BACKENDS_LOCAL_COMPARISON_H_
