// SPDX-License-Identifier: Apache-2.0
//
// CpuExecutor: plays one node's program of a plan over an Endpoint. A send starts when the ops of
// its `after` have completed and the sends before it on its channel have started; a receive is
// posted when the program is armed or, where credits grant it, right before its credit. The
// executor reacts to completions and holds no order of its own.
#ifndef PREPOST_RUNTIME_EXECUTOR_H_
#define PREPOST_RUNTIME_EXECUTOR_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "prepost/ir/plan.h"
#include "prepost/ir/status.h"
#include "prepost/runtime/endpoint.h"
#include "prepost/runtime/op_event.h"
#include "prepost/runtime/report.h"

namespace prepost {

/// Where a node's blocks lie, each at its offset in the message: what sends read and what receives
/// write. At the root `target` is empty; elsewhere both are the same memory.
struct NodeMemory {
  std::span<const std::byte> source;
  std::span<std::byte> target;
};

/// Used by one thread: Prepare(), Arm(), then, when every node has armed, Start() and Poll() until
/// done() or an error.
class CpuExecutor {
 public:
  /// `plan` must be verified and outlive the executor, as must `endpoint`. `observer` may be empty;
  /// with it, the endpoint is asked about arrivals.
  CpuExecutor(const Plan& plan, NodeId node, Endpoint& endpoint, OpObserver observer = {});

  /// Builds the dependency counters and the ready ring, in time and memory linear in the node's ops
  /// and the plan's channels.
  void Prepare(const NodeMemory& memory);
  /// Posts the receives that no credit grants: with `ready` barrier and retry all, else those of
  /// the credits.
  void Arm();
  /// Starts the sends that wait for nothing.
  void Start();
  /// Waits for completions for up to `timeout` (negative: for ever) and starts what they make
  /// ready. Allocates nothing, takes no lock and makes no system call of its own. Errors: the
  /// endpoint's.
  Status Poll(std::chrono::milliseconds timeout);

  /// Every op has completed, and every peer has been told.
  bool done() const { return open_ops_ == 0 && endpoint_.quiet(); }
  /// The last Poll() was ended by the endpoint's wake-up source.
  bool woken() const { return woken_; }
  /// Counts so far; times are the caller's.
  NodeReport report() const;
  /// Rises whenever bytes have moved or ops have completed.
  uint64_t progress() const { return endpoint_.counters().bytes_moved + report_.host_completions; }
  /// For a run that stands still: up to `ops_max` open ops and what each waits for, as "op 4 (send
  /// 1>3:2) for ...; ...".
  std::string Waiting(size_t ops_max) const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  enum class State : uint8_t { kWaiting, kStarted, kCompleted };

  void LinkChannels();
  void LinkSuccessors();
  void LinkGrants();
  void Release(uint32_t op);
  void StartReady();
  void StartSend(uint32_t op);
  void PostRecv(uint32_t op);
  void PostGranted(uint32_t credit);
  void Complete(OpId op);
  void CountPost();
  void Observe(uint32_t op, OpEvent::Kind kind) const;
  std::string WaitsFor(uint32_t op) const;

  const Plan& plan_;
  const Program& program_;
  std::span<const Op> ops_;
  Endpoint& endpoint_;
  OpObserver observer_;
  NodeMemory memory_;

  std::vector<State> state_;
  /// Per send: open ops of `after`, + 1 for the channel's unstarted send before it.
  std::vector<uint32_t> pending_;
  /// Per op: the next op of its kind on its channel, or kNone.
  std::vector<uint32_t> next_on_channel_;
  std::vector<uint32_t> successor_begin_;  ///< CSR: the sends that name an op in their `after`
  std::vector<uint32_t> successors_;
  /// Per credit send: the first receive that it grants; else kNone.
  std::vector<uint32_t> first_granted_;
  /// Ring of sends to start; each send enters it once, so it never wraps.
  std::vector<uint32_t> ready_;
  size_t ready_begin_ = 0;
  std::array<OpId, 64> completed_;  ///< what one Poll() of the endpoint brought

  size_t open_ops_ = 0;
  bool started_ = false;
  bool woken_ = false;
  NodeReport report_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_EXECUTOR_H_
