// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/nic/queue_program.h"

#include <fmt/format.h>

#include <algorithm>

namespace prepost::nic {

uint64_t NodeProgram::wqes() const {
  uint64_t count = 0;
  for (const QueuePair& qp : qps) count += qp.sends.size() + qp.receives.size();
  return count;
}

uint64_t NodeProgram::waits() const {
  uint64_t count = 0;
  for (const QueuePair& qp : qps) {
    count += static_cast<uint64_t>(std::ranges::count(qp.sends, Opcode::kWait, &SendEntry::opcode));
  }
  return count;
}

uint64_t NodeProgram::doorbells() const {
  return static_cast<uint64_t>(
      std::ranges::count_if(qps, [](const QueuePair& qp) { return !qp.sends.empty(); }));
}

const char* Name(CompletionQueue::Role role) {
  switch (role) {
    case CompletionQueue::Role::kSends:
      return "sends";
    case CompletionQueue::Role::kReceives:
      return "receives";
    case CompletionQueue::Role::kFinal:
      return "final";
    case CompletionQueue::Role::kIdle:
      return "idle";
  }
  PREPOST_CHECK(false);
  return "";
}

std::string Describe(const NodeProgram& program, QpId qp) {
  const QueuePair& it = program.qps[qp.index()];
  if (it.loopback) return fmt::format("QP {} loopback", program.node.value);
  std::string lane = it.lane == kBlockLane    ? "blocks"
                     : it.lane == kCreditLane ? "credits"
                                              : fmt::format("lane {}", it.lane);
  return fmt::format("QP {}>{} {}", program.node.value, it.peer.value, lane);
}

std::string Describe(const NodeProgram& program, CqId cq) {
  using Role = CompletionQueue::Role;
  const CompletionQueue& it = program.cqs[cq.index()];
  const bool is_of_one_direction = it.role == Role::kSends || it.role == Role::kReceives;
  if (!is_of_one_direction) return Name(it.role);
  return fmt::format("{} of {}", Name(it.role), Describe(program, it.qp));
}

}  // namespace prepost::nic
