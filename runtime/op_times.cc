// SPDX-License-Identifier: Apache-2.0
#include "runtime/op_times.h"

#include <algorithm>

#include "runtime/clock.h"

namespace prepost {

Result<RunTrace> RunTrace::Make(const Plan& plan) {
  Result<Mapping> table = Mapping::Shared(plan.ops().size() * sizeof(OpTimes));
  if (!table.ok()) return table.status();
  return RunTrace(plan, std::move(*table));
}

RunTrace::RunTrace(const Plan& plan, Mapping table)
    : programs_(plan.programs().begin(), plan.programs().end()), table_(std::move(table)) {
  std::ranges::sort(programs_, {}, &Program::node);
}

std::span<OpTimes> RunTrace::times(NodeId node) {
  const Program& program = programs_[node.index()];
  PREPOST_CHECK(program.node == node);
  auto* const all = reinterpret_cast<OpTimes*>(table_.bytes().data());
  return {all + program.op_begin, program.op_count};
}

std::span<const OpTimes> RunTrace::times(NodeId node) const {
  return const_cast<RunTrace*>(this)->times(node);
}

OpObserver RunTrace::Observer() {
  return [this](const OpEvent& event) { Record(event, MonotonicNs()); };
}

void RunTrace::Record(const OpEvent& event, uint64_t time_ns) {
  OpTimes& op = times(event.node)[event.op.index()];
  switch (event.kind) {
    case OpEvent::Kind::kPost:
      op.posted_ns = time_ns;
      return;
    case OpEvent::Kind::kStart:
      op.started_ns = time_ns;
      return;
    case OpEvent::Kind::kComplete:
      op.completed_ns = time_ns;
      return;
  }
}

}  // namespace prepost
