// SPDX-License-Identifier: Apache-2.0
//
// ArmedNode: one node's queue program on a device: objects made, connected, queues filled, and
// started. It is all that the host does, and it knows no device in particular.
#ifndef PREPOST_BACKENDS_NIC_ARMED_NODE_H_
#define PREPOST_BACKENDS_NIC_ARMED_NODE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prepost/backends/nic/cqe_reader.h"
#include "prepost/backends/nic/device.h"
#include "prepost/backends/nic/pairing.h"
#include "prepost/backends/nic/queue_program.h"
#include "prepost/ir/status.h"

namespace prepost::nic {

/// The QP towards `peer` on `lane`. Every node that this one has a QP to has one back.
Result<QpId> FindQp(const NodeProgram& program, NodeId peer, uint32_t lane);

struct ArmConfig {
  /// The node's message buffer: read at the root, written elsewhere.
  std::span<const std::byte> message;
  bool writable = false;
  uint8_t rnr_retry = 0;
  uint8_t epoch = 0;  ///< tells this run's blocks from others'
};

/// `device` and `program` must outlive it. Steps: Make at every node, ConnectAll, Arm at every
/// node, RequestEvent if the host will sleep, Start, Poll until that is true, CheckAll. A host of
/// several nodes that waits for all their devices at once calls TakeEvent instead of Poll.
class ArmedNode {
 public:
  /// Makes CQs and QPs, with rings as large as the program needs, and registers the message buffer.
  static Result<ArmedNode> Make(Device& device, const NodeProgram& program,
                                const ArmConfig& config);

  const NodeProgram& program() const { return *program_; }
  const Qp& qp(QpId id) const { return qps_[id.index()]; }
  const Cq& cq(CqId id) const { return cqs_[id.index()]; }
  /// In Arm(): sends, WAITs and receives.
  uint64_t wqes_written() const { return wqes_written_; }
  const Cq& final_cq() const { return cq(program_->final_cq); }

  /// What ConnectAll() connects: all QPs but the loopback one.
  OpenNode open_node() const;
  /// Links and writes all receives and sends. Rings nothing.
  Status Arm();
  /// Asks for the event of the final CQE, unless that is done.
  Status RequestEvent();
  /// Rings one doorbell per send queue that has work. The host has nothing to do from here to the
  /// final CQE.
  void Start();

  /// Takes what the final CQ has; true when that is all. Otherwise waits as WaitForEvent() does and
  /// looks once more; with timeout 0 it only looks. Errors (kRejected): a CQE that is an error;
  /// those of WaitForEvent().
  Result<bool> Poll(std::chrono::milliseconds timeout, int wake_fd);
  /// After a return from waiting for the device's events: acknowledges them and takes what the
  /// final CQ has. True when that is all; otherwise another event has been asked for. Errors: as
  /// Poll().
  Result<bool> TakeEvent();
  /// All CQEs: none is missing, none is an error, and the receives are the blocks of this epoch in
  /// the program's order. An error here means that stale bytes may have been forwarded: flushed
  /// receives satisfy WAITs too.
  Status CheckAll() const { return CheckQueues(Expect::kAll); }
  /// The same for the CQEs that there are, when a run has ended early.
  Status CheckSoFar() const { return CheckQueues(Expect::kSome); }

 private:
  ArmedNode(Device& device, const NodeProgram& program, const ArmConfig& config)
      : device_(&device), program_(&program), config_(config) {}

  Status MakeObjects();
  enum class Expect : uint8_t { kAll, kSome };
  Status CheckQueues(Expect expect) const;
  Status CheckQueue(CqId id, Expect expect) const;
  Result<bool> TakeFinal();
  Result<bool> TakeFinalOrAsk();

  Device* device_;
  const NodeProgram* program_;
  ArmConfig config_;
  uint32_t lkey_ = 0;
  uint64_t wqes_written_ = 0;
  std::vector<Cq> cqs_;  // by CqId
  std::vector<Qp> qps_;  // by QpId
  std::optional<CqeReader> final_reader_;
  uint32_t final_left_ = 0;       // CQEs still to come on the final CQ
  bool event_requested_ = false;  // and not come yet
};

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_ARMED_NODE_H_
