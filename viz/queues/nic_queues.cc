// SPDX-License-Identifier: Apache-2.0
//
// Receive queues come first, then the masters of managed queues, then send queues, last the
// loopback queue of the end, so that most arrows run to the right. A WAIT names a CQ and a CQE; its
// box says whose completion that is, and waits for that. The end waits for the last CQE of every
// CQ: its WAITs get no arrows. A SEND_EN's arrow, dashed, goes to the last WQE that it enables.
//
// A selection also shows those WAITs and SEND_ENs that its sends depend on, whichever op
// they were made for: without them a block would seem to go on before it has come.
//
// A queue that is longer than its ring is written in parts: above each but the first a note says
// the CQE of which WQE it follows, whose slots it takes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "backends/nic/program/listing.h"
#include "runtime/executor/program.h"
#include "viz/queues/queue_contents.h"

namespace prepost::viz {
namespace {

using nic::CompletionQueue;
using nic::NodeProgram;
using nic::Opcode;
using nic::QueuePair;
using nic::SendEntry;

class NicQueues {
 public:
  NicQueues(const Plan& plan, const Selection& selection, const NodeProgram& program)
      : plan_(plan),
        shown_ops_(plan, program.node, selection),
        program_(program),
        ops_(plan.ops(ProgramOf(plan, program.node))),
        send_queue_(program.qps.size()),
        receive_queue_(program.qps.size()),
        signaled_(program.qps.size()) {}

  std::vector<DrawnQueue> Make(bool has_fields) {
    MakeQueues();
    for (size_t i = 0; i < program_.qps.size(); ++i) FillQueues(i);
    if (!shown_ops_.all()) {
      FindCompletions();
      for (size_t i = 0; i < program_.qps.size(); ++i) ShowNeeded(i);
    }
    if (has_fields) AddFields();
    return std::move(queues_);
  }

 private:
  void MakeQueues();
  void MakeReceiveQueue(size_t qp);
  void MakeSendQueue(size_t qp);
  void FillQueues(size_t qp);
  void AddFields();
  void FindCompletions();
  void ShowNeeded(size_t qp);
  DrawnEntry MakeEntry(const SendEntry& send, size_t qp, uint32_t cqe) const;
  bool IsShown(OpId op) const { return shown_ops_.Has(op); }
  std::string NameOf(OpId op) const { return shown_ops_.Name(op); }
  std::optional<QueuePlace> SourceOf(const SendEntry& wait) const;
  OpId OpAt(const SendEntry& wait) const;

  const Plan& plan_;
  const ShownOps shown_ops_;
  const NodeProgram& program_;
  std::span<const Op> ops_;
  std::vector<size_t> send_queue_;             ///< by QP; meaningless for a queue without entries
  std::vector<size_t> receive_queue_;          ///< as above
  std::vector<std::vector<size_t>> signaled_;  ///< by QP: the entries of its SQ that give CQEs
  struct Completion {
    nic::CqId cq{nic::kNoOp.value};
    uint32_t index = 0;
  };
  std::vector<Completion> completions_;  ///< by op; of a selection only
  std::vector<DrawnQueue> queues_;
};

/// ", a ring of 16": of a queue that is written in parts.
std::string RingNote(bool in_parts, uint32_t ring) {
  return in_parts ? fmt::format(", a ring of {}", ring) : "";
}

void NicQueues::MakeReceiveQueue(size_t index) {
  const QueuePair& qp = program_.qps[index];
  if (qp.receives.empty()) return;
  receive_queue_[index] = queues_.size();
  queues_.push_back({.title = nic::Describe(program_, nic::QpId::FromIndex(index)),
                     .detail = fmt::format("receive queue, CQ {}{}", qp.recv_cq.value,
                                           RingNote(qp.receives_in_parts(), qp.rq_wqes)),
                     .entries = {},
                     .stack = DrawnQueue::Stack::kReceives,
                     .ring = qp.receives_in_parts() ? qp.rq_wqes : 0});
}

void NicQueues::MakeSendQueue(size_t index) {
  const QueuePair& qp = program_.qps[index];
  if (qp.sends.empty()) return;
  const bool is_master = std::ranges::count(qp.sends, Opcode::kSendEnable, &SendEntry::opcode) != 0;
  send_queue_[index] = queues_.size();
  queues_.push_back(
      {.title = nic::Describe(program_, nic::QpId::FromIndex(index)),
       .detail = fmt::format("{} queue, CQ {}{}",
                             is_master    ? "master"
                             : qp.managed ? "managed send"
                                          : "send",
                             qp.send_cq.value, RingNote(qp.sends_in_parts(), qp.sq_wqebbs)),
       .entries = {},
       .stack = qp.managed ? DrawnQueue::Stack::kManaged : DrawnQueue::Stack::kNone,
       .ring = qp.sends_in_parts() ? qp.sq_wqebbs : 0});
  for (size_t entry = 0; entry < qp.sends.size(); ++entry) {
    if (qp.sends[entry].signaled) signaled_[index].push_back(entry);
  }
}

void NicQueues::MakeQueues() {
  const size_t count = program_.qps.size();
  const bool is_managed = program_.enables() > 0;
  for (size_t i = 0; i < count; ++i) MakeReceiveQueue(i);
  const auto is_early = [&](size_t i) {  // a master, of which the only one is the end, too
    const bool is_end = i + 1 == count && i > 0 && program_.qps[i - 1].loopback;
    return is_managed && program_.qps[i].loopback && !is_end;
  };
  for (size_t i = 0; i < count; ++i) {
    if (is_early(i)) MakeSendQueue(i);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!is_early(i)) MakeSendQueue(i);
  }
}

/// The entry whose CQE `wait` waits for.
std::optional<QueuePlace> NicQueues::SourceOf(const SendEntry& wait) const {
  const CompletionQueue& cq = program_.cqs[wait.cq.index()];
  const size_t qp = cq.qp.index();
  switch (cq.role) {
    case CompletionQueue::Role::kReceives:
      return QueuePlace{.queue = receive_queue_[qp], .index = wait.cqe_index};
    case CompletionQueue::Role::kSends:
    case CompletionQueue::Role::kFinal:
      if (wait.cqe_index >= signaled_[qp].size()) return std::nullopt;
      return QueuePlace{.queue = send_queue_[qp], .index = signaled_[qp][wait.cqe_index]};
    case CompletionQueue::Role::kIdle:
      return std::nullopt;
  }
  return std::nullopt;
}

/// The op whose completion `wait` waits for.
OpId NicQueues::OpAt(const SendEntry& wait) const {
  const CompletionQueue& cq = program_.cqs[wait.cq.index()];
  const QueuePair& qp = program_.qps[cq.qp.index()];
  if (cq.role == CompletionQueue::Role::kReceives) return qp.receives[wait.cqe_index].op;
  const std::optional<QueuePlace> source = SourceOf(wait);
  return source ? qp.sends[source->index].op : nic::kNoOp;
}

DrawnEntry NicQueues::MakeEntry(const SendEntry& send, size_t qp, uint32_t cqe) const {
  DrawnEntry entry;
  entry.shown = IsShown(send.op);
  if (send.op != nic::kNoOp) entry.op = send.op;
  const std::string gives =
      fmt::format("gives CQE {} of CQ {}", cqe, program_.qps[qp].send_cq.value);
  const std::string also = send.signaled ? ", " + gives : "";
  if (send.opcode == Opcode::kWait) {
    entry.css_class = "wait";
    entry.what = fmt::format("WAIT CQ {} until CQE {}", send.cq.value, send.cqe_index);
    entry.detail = fmt::format("for {}{}", NameOf(OpAt(send)), also);
    if (send.op != nic::kNoOp) entry.waits_for = SourceOf(send);
    return entry;
  }
  if (send.opcode == Opcode::kSendEnable) {
    entry.css_class = "enable";
    entry.what = fmt::format("SEND_EN {}", nic::Describe(program_, send.qp));
    entry.enables = QueuePlace{.queue = send_queue_[send.qp.index()], .index = send.count - 1};
    entry.detail =
        fmt::format("up to WQE {}: {}{}", send.count - 1,
                    NameOf(program_.qps[send.qp.index()].sends[send.count - 1].op), also);
    return entry;
  }
  entry.css_class = send.op == nic::kNoOp ? "nop" : program_.qps[qp].managed ? "held" : "send";
  entry.what = send.op == nic::kNoOp ? std::string(Name(send.opcode))
                                     : fmt::format("{} (op {})", NameOf(send.op), send.op.value);
  entry.detail = send.signaled ? gives : "not signaled";
  return entry;
}

void NicQueues::FillQueues(size_t index) {
  const QueuePair& qp = program_.qps[index];
  uint32_t cqe = 0;
  for (const SendEntry& send : qp.sends) {
    queues_[send_queue_[index]].entries.push_back(MakeEntry(send, index, cqe));
    if (send.signaled) ++cqe;
  }
  for (size_t i = 0; i < qp.receives.size(); ++i) {
    const OpId op = qp.receives[i].op;
    DrawnEntry entry;
    entry.css_class = "recv";
    entry.op = op;
    entry.what = fmt::format("{} (op {})", NameOf(op), op.value);
    entry.detail = fmt::format("gives CQE {} of CQ {}", i, qp.recv_cq.value);
    entry.shown = IsShown(op);
    queues_[receive_queue_[index]].entries.push_back(std::move(entry));
  }
}

void NicQueues::AddFields() {
  const std::vector<nic::QueueTexts> texts = nic::TextsOf(program_);
  for (size_t qp = 0; qp < texts.size(); ++qp) {
    for (size_t i = 0; i < texts[qp].receives.size(); ++i)
      queues_[receive_queue_[qp]].entries[i].fields = texts[qp].receives[i];
    for (size_t i = 0; i < texts[qp].sends.size(); ++i)
      queues_[send_queue_[qp]].entries[i].fields = texts[qp].sends[i];
  }
}

void NicQueues::FindCompletions() {
  completions_.resize(ops_.size());
  for (const QueuePair& qp : program_.qps) {
    uint32_t index = 0;
    for (const SendEntry& send : qp.sends) {
      if (!send.signaled) continue;
      if (nic::IsSend(send.opcode)) completions_[send.op.index()] = {qp.send_cq, index};
      ++index;
    }
    index = 0;
    for (const nic::ReceiveEntry& receive : qp.receives) {
      completions_[receive.op.index()] = {qp.recv_cq, index++};
    }
  }
}

/// Shows the WAITs and SEND_ENs of the queue that let a send run which is shown. Of WAITs on one CQ
/// each is for a later CQE than those before it, so the first that is for late enough is the one.
void NicQueues::ShowNeeded(size_t index) {
  if (program_.qps[index].sends.empty()) return;
  std::vector<DrawnEntry>& entries = queues_[send_queue_[index]].entries;
  std::map<uint32_t, std::vector<std::pair<uint32_t, size_t>>> waits;  // by CQ: CQE, position
  const auto show_waits = [&](OpId op) {
    for (const OpId before : plan_.after(ops_[op.index()])) {
      const Completion& it = completions_[before.index()];
      const auto on_cq = waits.find(it.cq.value);
      if (on_cq == waits.end()) continue;
      const auto wait = std::ranges::lower_bound(on_cq->second, std::pair(it.index, size_t{0}));
      if (wait != on_cq->second.end()) entries[wait->second].shown = true;
    }
  };
  std::map<uint32_t, uint32_t> enabled;  // by QP
  for (size_t i = 0; i < entries.size(); ++i) {
    const SendEntry& send = program_.qps[index].sends[i];
    if (send.opcode == Opcode::kWait) waits[send.cq.value].emplace_back(send.cqe_index, i);
    if (nic::IsSend(send.opcode) && IsShown(send.op)) show_waits(send.op);
    if (send.opcode != Opcode::kSendEnable) continue;
    for (uint32_t& at = enabled[send.qp.value]; at < send.count; ++at) {
      const OpId op = program_.qps[send.qp.index()].sends[at].op;
      if (!IsShown(op)) continue;
      entries[i].shown = true;
      show_waits(op);
    }
  }
}

}  // namespace

std::vector<DrawnQueue> QueuesOfNic(const Plan& plan, const Selection& selection,
                                    const NodeProgram& program, bool has_fields) {
  return NicQueues(plan, selection, program).Make(has_fields);
}

}  // namespace prepost::viz
