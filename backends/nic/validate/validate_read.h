// SPDX-License-Identifier: Apache-2.0
//
// The first half of one node's validation: its WQEs and receives, each by itself. What they turn
// out to be is what the second half, their order (validate_node.cc), goes by.
#ifndef PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_READ_H_
#define PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_READ_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/nic/host/queue_objects.h"
#include "backends/nic/validate/number_index.h"
#include "backends/nic/validate/validate_node.h"
#include "ir/plan.h"
#include "runtime/executor/program.h"

namespace prepost::nic {

/// CQE `index` of the CQ at `cq`.
struct OpCompletion {
  uint32_t cq = NumberIndex::kNone;  ///< kNone: the op makes none
  uint32_t index = 0;
};

/// What the queues of a node hold.
struct NodeReading {
  NodeSteps steps;
  std::vector<std::vector<OpId>> sends;   ///< by QP, in the order of its channel
  std::vector<OpCompletion> completions;  ///< by op
  std::vector<OpCompletion> received;     ///< by block
  std::vector<uint32_t> cqes;             ///< by CQ: that it gets
  std::vector<uint32_t> sources;          ///< by CQ: queues and directions that complete to it
};

/// What both halves need: the node and where findings go. Everything must outlive it.
class NodeCheck {
 public:
  NodeCheck(const Plan& plan, const QueueObjects& objects, ValidationFindings* findings)
      : plan_(plan),
        header_(plan.header()),
        ops_(plan.ops(ProgramOf(plan, objects.node))),
        objects_(objects),
        findings_(*findings) {}

 protected:
  void Find(size_t qp, size_t position, const char* rule, const std::string& what) {
    findings_.Add(objects_, qp, position, rule, what);
  }
  /// `what` is called only when its text is kept.
  template <typename What>
  void FindLazily(size_t qp, size_t position, const char* rule, What what) {
    if (findings_.is_full()) {
      findings_.Count();
    } else {
      Find(qp, position, rule, what());
    }
  }
  std::string OpText(OpId op) const { return Describe(plan_, ProgramOf(plan_, objects_.node), op); }

  const Plan& plan_;
  const PlanHeader& header_;
  std::span<const Op> ops_;
  const QueueObjects& objects_;
  ValidationFindings& findings_;
};

/// Every WQE is of the form that its opcode has, every op has its WQE or receive, with the block,
/// key and numbers that it must have, and queues can be written in parts.
NodeReading ReadNode(const Plan& plan, const QueueObjects& objects, ValidationFindings* findings);

}  // namespace prepost::nic

#endif  // PREPOST_BACKENDS_NIC_VALIDATE_VALIDATE_READ_H_
