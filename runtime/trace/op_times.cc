// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/op_times.h"

#include <algorithm>

#include "runtime/base/clock.h"

namespace prepost {

Result<RunTrace> RunTrace::Make(const Plan& plan) {
  Result<Mapping> table = Mapping::Shared(plan.ops().size() * sizeof(OpTimes));
  if (!table.ok()) return table.status();
  const size_t nodes = plan.programs().size();
  Result<Mapping> wakeups = Mapping::Shared(nodes * (1 + WakeupsMax(nodes)) * sizeof(uint64_t));
  if (!wakeups.ok()) return wakeups.status();
  return RunTrace(plan, std::move(*table), std::move(*wakeups));
}

RunTrace::RunTrace(const Plan& plan, Mapping table, Mapping wakeups)
    : programs_(plan.programs().begin(), plan.programs().end()),
      table_(std::move(table)),
      wakeups_(std::move(wakeups)) {
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

size_t RunTrace::WakeupsMax(size_t nodes) {
  return std::max(kWakeupTimesMax / std::max<size_t>(1, nodes), kWakeupTimesLeast);
}

std::span<uint64_t> RunTrace::WakeupRow(NodeId node) const {
  PREPOST_CHECK(node.index() < programs_.size());
  const size_t row = 1 + WakeupsMax(programs_.size());
  auto* const all = reinterpret_cast<uint64_t*>(wakeups_.bytes().data());
  return {all + node.index() * row, row};
}

std::span<const uint64_t> RunTrace::wakeups(NodeId node) const {
  const std::span<const uint64_t> row = WakeupRow(node);
  return row.subspan(1, row[0]);
}

OpObserver RunTrace::Observer() {
  return [this](const OpEvent& event) { Record(event, MonotonicNs()); };
}

void RunTrace::Record(const OpEvent& event, uint64_t time_ns) {
  const auto op = [&]() -> OpTimes& { return times(event.node)[event.op.index()]; };
  switch (event.kind) {
    case OpEvent::Kind::kPost:
      op().posted_ns = time_ns;
      return;
    case OpEvent::Kind::kStart:
      op().started_ns = time_ns;
      return;
    case OpEvent::Kind::kComplete:
      op().completed_ns = time_ns;
      return;
    case OpEvent::Kind::kWakeup:
      RecordWakeup(event.node, time_ns);
      return;
  }
}

void RunTrace::RecordWakeup(NodeId node, uint64_t time_ns) {
  const std::span<uint64_t> row = WakeupRow(node);
  if (row[0] + 1 == row.size()) return;
  row[row[0] + 1] = time_ns;
  ++row[0];
}

}  // namespace prepost
