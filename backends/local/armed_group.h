// SPDX-License-Identifier: Apache-2.0
//
// ArmedGroup: a whole queue program on a fabric, every node with its queues, and what became of it
// in the end. How its hosts arm, start and wait is its users' business (offload_run.h,
// comparison.h).
#ifndef PREPOST_BACKENDS_LOCAL_ARMED_GROUP_H_
#define PREPOST_BACKENDS_LOCAL_ARMED_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backends/emulated/fabric.h"
#include "backends/nic/host/armed_node.h"
#include "backends/nic/host/group_failure.h"
#include "backends/nic/host/queue_objects.h"
#include "backends/nic/program/pairing.h"
#include "backends/nic/program/queue_program.h"
#include "ir/base/status.h"
#include "ir/plan.h"
#include "runtime/base/checkpoint.h"

namespace prepost::local {

/// One message of a sequence. `node_buffers[v]` is node v's, of the message's size; the root's is
/// not used. Not owned.
struct MessageBuffers {
  std::span<const std::byte> message;
  std::span<const std::span<std::byte>> node_buffers;
};

/// What counting starts from: see ArmConfig.
struct FirstNumbers {
  uint8_t epoch = 0;
  uint16_t sq_index = 0;
  uint32_t cq_index = 0;
};

/// `program` has all nodes of `plan`, in the order of ids. Errors: kRejected.
Status CheckProgram(const Plan& plan, const nic::QueueProgram& program);

/// Move only.
class ArmedGroup {
 public:
  /// Makes and connects all nodes of `plan`. To arm them all before any starts is its user's
  /// business: that is the barrier, after which every receive is posted everywhere. All arguments
  /// must outlive the group. `program` has all nodes in the order of ids, as have the buffers and
  /// `hosts`: which NIC of the fabric is whose; empty: node i has NIC i. Errors: those of
  /// ArmedNode.
  static Result<ArmedGroup> Make(emulated::Fabric& fabric, const Plan& plan,
                                 const nic::QueueProgram& program,
                                 std::span<const MessageBuffers> transfers,
                                 const FirstNumbers& first, bool keeps_cqes = true,
                                 std::span<const NodeId> hosts = {});

  std::span<nic::ArmedNode> nodes() { return nodes_; }
  std::span<const nic::ArmedNode> nodes() const { return nodes_; }

  /// What a node's NIC is about to read, and what its QPs are connected to. When it is armed and
  /// has not started.
  nic::QueueObjects Objects(NodeId node) const;
  /// When all are armed and none has started: the bytes in all rings, and how QPs are connected,
  /// against the plan. Rings nothing. Errors: the findings (kRejected); those of `checkpoint`,
  /// which is called for each node.
  Status Validate(const Checkpoint& checkpoint) const;
  /// After the end, when the fabric is stopped: every CQE came and is right, and nobody misused a
  /// NIC.
  Status Check();
  /// `why`: how it shows that it does not go on. What is wrong or who waits for whom; an error
  /// always. Stops all nodes.
  Status Stuck(std::string_view why = "nothing can happen any more");
  /// When something is wrong: see nic::FailGroup().
  Status Fail() { return nic::FailGroup(nodes_); }

 private:
  ArmedGroup(emulated::Fabric& fabric, const Plan& plan) : fabric_(&fabric), plan_(&plan) {}

  emulated::Fabric* fabric_;
  const Plan* plan_;
  std::vector<nic::ArmedNode> nodes_;  // in the order of node ids
  std::vector<nic::OpenNode> open_;    // by node: what its QPs are connected to
};

/// An error with the first misuse, if there was one. When the fabric is stopped.
Status CheckMisuses(const emulated::Fabric& fabric);

}  // namespace prepost::local

#endif  // PREPOST_BACKENDS_LOCAL_ARMED_GROUP_H_
