// SPDX-License-Identifier: Apache-2.0
//
// PlanTables: a valid plan with what analyses look up in it. Stats and reasons share one.
#ifndef PREPOST_IR_PLAN_TABLES_H_
#define PREPOST_IR_PLAN_TABLES_H_

#include <cstdint>
#include <vector>

#include "ir/credits.h"
#include "ir/messages.h"
#include "ir/plan.h"
#include "ir/plan_graph.h"

namespace prepost {

/// An op of a node, as people write it: "5/12".
struct OpRef {
  NodeId node;
  OpId op;

  friend bool operator==(const OpRef&, const OpRef&) = default;
};

/// Keeps a reference to the plan, which is valid (verify.h). Linear to make; immutable.
class PlanTables {
 public:
  explicit PlanTables(const Plan& plan)
      : plan_(plan),
        messages_(plan),
        credits_(plan, messages_),
        graph_(plan, messages_, credits_, {}),
        program_of_(plan.programs().size()) {
    for (uint32_t p = 0; p < plan.programs().size(); ++p) {
      program_of_[plan.programs()[p].node.index()] = p;
    }
  }
  PlanTables(const PlanTables&) = delete;
  PlanTables& operator=(const PlanTables&) = delete;

  const Plan& plan() const { return plan_; }
  const MessageTable& messages() const { return messages_; }
  const CreditTable& credits() const { return credits_; }
  const PlanGraph& graph() const { return graph_; }

  const Program& ProgramOf(NodeId node) const {
    return plan_.programs()[program_of_[node.index()]];
  }
  const Op& SendOf(uint32_t message) const { return plan_.ops()[messages_.send(message)]; }
  const Channel& ChannelOf(uint32_t message) const {
    return plan_.channels()[SendOf(message).channel.index()];
  }
  /// An op by its index into Plan::ops().
  OpRef RefOf(uint32_t op) const {
    const Op& it = plan_.ops()[op];
    const Channel& channel = plan_.channels()[it.channel.index()];
    const NodeId node = it.is_send() ? channel.from : channel.to;
    return {.node = node, .op = OpId(op - ProgramOf(node).op_begin)};
  }
  uint32_t IndexOf(OpRef ref) const { return ProgramOf(ref.node).op_begin + ref.op.value; }

 private:
  const Plan& plan_;
  MessageTable messages_;
  CreditTable credits_;
  PlanGraph graph_;
  std::vector<uint32_t> program_of_;  // by node
};

}  // namespace prepost

#endif  // PREPOST_IR_PLAN_TABLES_H_
