// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/program/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/nic/program/node_lowering.h"

namespace prepost::nic {

std::string Misfit::ToString() const {
  return node ? fmt::format("node {}: {}", node->value, message) : message;
}

FitCheck::FitCheck(const PlanHeader& header, const LowerOptions& options)
    : header_(header), profile_(options.profile) {
  fit_.mode = options.mode;
  const auto set_limit = [this](Resource resource, uint64_t limit) {
    fit_.uses[static_cast<size_t>(resource)].limit = limit;
  };
  set_limit(Resource::kQps, profile_.qps);
  set_limit(Resource::kCqs, profile_.cqs);
  set_limit(Resource::kSendQueue, profile_.sq_at_once());
  set_limit(Resource::kReceiveQueue, profile_.rq_at_once());
  set_limit(Resource::kCompletionQueue, profile_.cq_entries);
  set_limit(Resource::kBlock, profile_.message_bytes);
  CheckDevice();
  const uint64_t block = header.payload.LargestBlock();
  AddUse(Resource::kBlock, block, header.payload.bytes);
  if (block > profile_.message_bytes) {
    Refuse({.where = "/message/block_bytes",
            .node = {},
            .what = "block",
            .needed = block,
            .limit = profile_.message_bytes,
            .message = fmt::format("block of {} bytes does not fit one RC message, the limit is {}",
                                   block, profile_.message_bytes)});
  }
}

void FitCheck::CheckDevice() {
  const auto refuse = [this](const char* what, uint64_t needed, uint64_t limit,
                             const std::string& message) {
    is_usable_ = false;
    Refuse({.where = "",
            .node = {},
            .what = what,
            .needed = needed,
            .limit = limit,
            .message = fmt::format("device profile {}: {}", profile_.name, message)});
  };
  const uint32_t at_once = std::min(profile_.sq_at_once(), profile_.rq_at_once());
  if (at_once < kRingEntriesMin) {
    refuse("rings", kRingEntriesMin, at_once,
           fmt::format("rings of fewer than {} entries", kRingEntriesMin));
  }
  if (!profile_.cross_channel) refuse("capability cd", 0, 0, "no capability cd");
  if (!profile_.cq_ignore_overrun) refuse("capability cq_oi", 0, 0, "no capability cq_oi");
}

void FitCheck::Add(const NodeProgram& program, size_t position) {
  PREPOST_CHECK(is_usable_);
  fit_.is_counted = true;
  program_ = &program;
  position_ = position;
  AddUse(Resource::kQps, program.qps.size(), program.qps.size());
  AddUse(Resource::kCqs, program.cqs.size(), program.cqs.size());
  AtMost("node", program.qps.size(), "QPs", profile_.qps);
  AtMost("node", program.cqs.size(), "CQs", profile_.cqs);
  for (size_t i = 0; i < program.qps.size(); ++i) AddQueuePair(QpId::FromIndex(i));
  for (size_t i = 0; i < program.cqs.size(); ++i) {
    const CompletionQueue& cq = program.cqs[i];
    const std::string name = "CQ of " + Describe(program, CqId::FromIndex(i));
    AddUse(Resource::kCompletionQueue, cq.entries, cq.entries);
    AtMost(name, cq.entries, "entries", profile_.cq_entries);
    AtMost(name, cq.completions, "CQEs in a run", profile_.cq_ahead);
  }
}

/// Queues longer than their rings are written in parts, but receives that are to be posted all at
/// once must fit.
void FitCheck::AddQueuePair(QpId id) {
  const QueuePair& qp = program_->qps[id.index()];
  AddUse(Resource::kSendQueue, qp.sends.size(), qp.sends.size());
  AddUse(Resource::kReceiveQueue, qp.receives.size(), qp.receives.size());
  if (qp.sends_in_parts()) AddParts(id, "send", qp.sends.size(), qp.sq_wqebbs);
  if (qp.receives_in_parts() && header_.ready.mode == ReadyMode::kBarrier) {
    const std::string what = "receive queue of " + Describe(*program_, id);
    const uint32_t limit = profile_.rq_at_once();  // more than the ring that was chosen for parts
    RefuseAtNode(what, qp.receives.size(), limit,
                 fmt::format("{} needs {} WQEs before any send starts (--ready barrier), the limit "
                             "is {}; --ready window=1 needs fewer",
                             what, qp.receives.size(), limit));
  } else if (qp.receives_in_parts()) {
    AddParts(id, "receive", qp.receives.size(), qp.rq_wqes);
  }
  CheckCredits(id);
}

/// What one credit grants is posted before it is sent. Of a queue in parts that must fit its ring;
/// when it is all of the queue, it must be a queue that is not in parts.
void FitCheck::CheckCredits(QpId id) {
  uint32_t granted = 0;
  for (const SendEntry& entry : program_->qps[id.index()].sends) {
    if (entry.opcode != Opcode::kSend || entry.count == 0) continue;
    const QueuePair& of = program_->qps[entry.qp.index()];
    const uint32_t grants = entry.count - std::exchange(granted, entry.count);
    if (grants <= of.rq_wqes) continue;
    const std::string what = "receive queue of " + Describe(*program_, entry.qp);
    const uint32_t limit = grants == of.receives.size() ? profile_.rq_at_once() : of.rq_wqes;
    RefuseAtNode(what, grants, limit,
                 fmt::format("a credit of {} grants {} receives at once, the {} holds {}; --ready "
                             "window=1 needs fewer",
                             Describe(*program_, id), grants, what, limit));
  }
}

void FitCheck::RefuseAtNode(const std::string& what, uint64_t needed, uint64_t limit,
                            std::string message) {
  Refuse({.where = fmt::format("/programs/{}", position_),
          .node = program_->node,
          .what = what,
          .needed = needed,
          .limit = limit,
          .message = std::move(message)});
}

void FitCheck::AtMost(const std::string& what, uint64_t needed, const char* unit, uint64_t limit) {
  if (needed <= limit) return;
  RefuseAtNode(what, needed, limit,
               fmt::format("{} needs {} {}, the limit is {}", what, needed, unit, limit));
}

void FitCheck::AddParts(QpId id, const char* kind, uint64_t wqes, uint32_t ring) {
  const uint64_t rearms = Rearms(wqes, ring);
  fit_.rearms += rearms;
  if (fit_.parted++ >= Fit::kListedMax) return;
  fit_.first_parted.push_back({.node = program_->node,
                               .what = fmt::format("{} queue of {}", kind, Describe(*program_, id)),
                               .wqes = wqes,
                               .ring = ring,
                               .rearms = rearms});
}

void FitCheck::AddUse(Resource resource, uint64_t most, uint64_t total) {
  ResourceUse& use = fit_.uses[static_cast<size_t>(resource)];
  use.total += total;
  if (most <= use.most) return;
  use.most = most;
  if (program_ != nullptr) use.node = program_->node;
}

void FitCheck::Refuse(Misfit misfit) {
  if (fit_.misfits++ < Fit::kListedMax) fit_.first_misfits.push_back(std::move(misfit));
}

Status FitCheck::status() const {
  return fit_.ok() ? Status() : Rejected(fit_.first_misfits.front().ToString());
}

Fit CheckFit(const Plan& plan, const LowerOptions& options) {
  FitCheck check(plan.header(), options);
  if (!check.is_usable()) return check.fit();
  for (size_t i = 0; i < plan.programs().size(); ++i) {
    check.Add(LowerNode(plan, plan.programs()[i], options), i);
  }
  return check.fit();
}

}  // namespace prepost::nic
