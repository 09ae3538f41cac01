// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/nic/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "prepost/backends/nic/node_lowering.h"
#include "prepost/ir/verify.h"

namespace prepost::nic {
namespace {

/// Does a lowered node fit its device?
class FitCheck {
 public:
  FitCheck(const PlanHeader& header, const NodeProgram& program, const DeviceProfile& profile)
      : header_(header), program_(program), profile_(profile) {}

  Status Run() const {
    PREPOST_RETURN_IF_ERROR(AtMost("node", program_.qps.size(), "QPs", profile_.qps));
    PREPOST_RETURN_IF_ERROR(AtMost("node", program_.cqs.size(), "CQs", profile_.cqs));
    for (size_t i = 0; i < program_.qps.size(); ++i) {
      PREPOST_RETURN_IF_ERROR(CheckQueuePair(QpId::FromIndex(i)));
    }
    for (size_t i = 0; i < program_.cqs.size(); ++i) {
      const CompletionQueue& cq = program_.cqs[i];
      const std::string name = "CQ of " + Describe(program_, CqId::FromIndex(i));
      PREPOST_RETURN_IF_ERROR(AtMost(name, cq.entries, "entries", profile_.cq_entries));
      PREPOST_RETURN_IF_ERROR(AtMost(name, cq.completions, "CQEs in a run", profile_.cq_ahead));
    }
    return {};
  }

 private:
  Status AtMost(const std::string& what, uint64_t needed, const char* unit, uint64_t limit) const {
    if (needed <= limit) return {};
    return Rejected(fmt::format("node {}: {} needs {} {}, the limit is {}", program_.node.value,
                                what, needed, unit, limit));
  }

  /// Queues longer than their rings are written in parts, but receives that are to be posted all at
  /// once must fit.
  Status CheckQueuePair(QpId id) const {
    const QueuePair& qp = program_.qps[id.index()];
    const std::string name = Describe(program_, id);
    if (qp.receives_in_parts() && header_.ready.mode == ReadyMode::kBarrier) {
      return Rejected(fmt::format(
          "node {}: receive queue of {} needs {} WQEs before any send starts (--ready barrier), "
          "the limit is {}; --ready window=1 needs fewer",
          program_.node.value, name, qp.receives.size(), qp.rq_wqes));
    }
    uint32_t granted = 0;
    for (const SendEntry& entry : qp.sends) {
      if (entry.opcode != Opcode::kSend || entry.count == 0) continue;
      const QueuePair& of = program_.qps[entry.qp.index()];
      const uint32_t grants = entry.count - std::exchange(granted, entry.count);
      if (grants <= of.rq_wqes) continue;
      return Rejected(fmt::format(
          "node {}: a credit of {} grants {} receives at once, the receive queue of {} holds {}; "
          "--ready window=1 needs fewer",
          program_.node.value, name, grants, Describe(program_, entry.qp), of.rq_wqes));
    }
    return {};
  }

  const PlanHeader& header_;
  const NodeProgram& program_;
  const DeviceProfile& profile_;
};

Status CheckProfile(const PlanHeader& header, const DeviceProfile& profile) {
  constexpr uint32_t kSmallestRing = 4;
  if (profile.sq_wqebbs < kSmallestRing || profile.rq_wqes < kSmallestRing) {
    return Rejected(fmt::format("device profile {}: rings of fewer than {} entries", profile.name,
                                kSmallestRing));
  }
  if (!profile.cross_channel || !profile.cq_ignore_overrun) {
    return Rejected(fmt::format("device profile {}: no capability {}", profile.name,
                                profile.cross_channel ? "cq_oi" : "cd"));
  }
  const uint64_t largest = header.message.BlockSize(0);
  if (largest <= profile.message_bytes) return {};
  return Rejected(fmt::format("block of {} bytes does not fit one RC message, the limit is {}",
                              largest, profile.message_bytes));
}

}  // namespace

Result<QueueProgram> Lower(const Plan& plan, const LowerOptions& options) {
  PREPOST_RETURN_IF_ERROR(VerifyStatus(plan));
  const PlanHeader& header = plan.header();
  PREPOST_RETURN_IF_ERROR(CheckProfile(header, options.profile));
  if (options.node && options.node->value >= header.nodes) {
    return Rejected(fmt::format("node {} does not exist, the plan has {} nodes",
                                options.node->value, header.nodes));
  }
  QueueProgram out{.message = header.message, .mode = options.mode};
  // With a barrier every receive is there before any send: one that is missing is a bug, not
  // something to wait for.
  out.rnr_retry = header.ready.mode == ReadyMode::kBarrier ? 0 : 7;
  for (const Program& program : plan.programs()) {
    if (options.node && program.node != *options.node) continue;
    NodeProgram lowered = LowerNode(plan, program, options);
    PREPOST_RETURN_IF_ERROR(FitCheck(header, lowered, options.profile).Run());
    out.nodes.push_back(std::move(lowered));
  }
  std::ranges::sort(out.nodes, {}, &NodeProgram::node);
  return out;
}

}  // namespace prepost::nic
