// SPDX-License-Identifier: Apache-2.0
//
// One node, in these walks (the first two in validate_read.cc):
//   1. ops: by peer and lane every op has a queue; its sends and its receives in id order are what
//      that queue must hold;
//   2. queues: every WQE is decoded, checked against its op and reduced to a step; signaled WQEs
//      and receives are counted, which gives each op the CQE that shows its completion;
//   3. order: every queue that runs by itself is walked from its start. WAITs say what is known to
//      have completed; at a send (inline) or at the SEND_EN that lets it run (managed), all that
//      its op comes after must be known. On the last queue the walk's end must know everything.
//   4. hazard: a block that is sent on must be known to have been received, whatever the op's
//      `after` says. What the queue has waited for says so of nearly every send. Of the others the
//      WAITs do that stand before what it has waited for (validate_order.h).
//
// Example, chain 0>1>2, node 1, inline: QP 1<>0 has one receive, so "recv 0>1:0" shows as CQE 0 of
// that QP's receive CQ, say 0x401 with producer base 7. QP 1<>2 has WAIT(0x401, 7), SEND_IMM: the
// walk knows 1 CQE of 0x401 when it comes to the send, which is what the op's `after` asks for.
#include "backends/nic/validate/validate_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/nic/program/queue_program.h"
#include "backends/nic/validate/validate_order.h"
#include "backends/nic/validate/validate_read.h"

namespace prepost::nic {
namespace {

constexpr uint32_t kNoIndex = NumberIndex::kNone;

std::string NameOf(const QueueObjects& objects, size_t qp) {
  const QpObject& it = objects.qps[qp];
  if (it.peer != objects.node) return NameOfQp(objects.node, it.peer, it.lane);
  const auto loopbacks =
      static_cast<size_t>(std::ranges::count(objects.qps, objects.node, &QpObject::peer));
  return NameOfLoopback(objects.node, qp + loopbacks - objects.qps.size(), loopbacks);
}

class NodeValidation : NodeCheck {
 public:
  NodeValidation(const Plan& plan, const QueueObjects& objects, ValidationFindings* findings)
      : NodeCheck(plan, objects, findings), read_(ReadNode(plan, objects, findings)) {}

  NodeSteps Run() {
    enabled_.assign(objects_.qps.size(), 0);
    master_of_.assign(objects_.qps.size(), kNoIndex);
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      if (!read_.steps.queues[i].managed) Walk(i);
    }
    CheckCompletions();
    CheckEnabled();
    CheckEnd();
    CheckUnsure();
    return std::move(read_.steps);
  }

 private:
  /// A send that WQE `at` of `queue` lets run, and whose block may not be there.
  struct Unsure {
    uint32_t queue = 0;
    uint32_t at = 0;
    OpId op;
  };

  /// A queue that runs by itself, from its start.
  void Walk(size_t i) {
    known_.assign(read_.cqes.size(), 0);
    const std::vector<QueueStep>& steps = read_.steps.queues[i].steps;
    size_t sent = 0;
    for (size_t at = 0; at < steps.size(); ++at) {
      const QueueStep& step = steps[at];
      switch (step.kind) {
        case QueueStep::Kind::kWait:
          WalkWait(i, at, step);
          break;
        case QueueStep::Kind::kEnable:
          WalkEnable(i, at, &read_.steps.queues[i].steps[at]);
          break;
        case QueueStep::Kind::kSend:
          if (sent < read_.sends[i].size()) CheckKnown(i, at, read_.sends[i][sent]);
          ++sent;
          break;
        case QueueStep::Kind::kNop:
          break;
      }
    }
  }

  void WalkWait(size_t i, size_t at, const QueueStep& step) {
    if (read_.sources[step.target] != 1) {
      FindLazily(i, at, "wait", [&] {
        return fmt::format("waits on {}, to which {} queues complete",
                           DescribeCq(objects_, step.target), read_.sources[step.target]);
      });
    } else if (step.value >= read_.cqes[step.target]) {
      FindLazily(i, at, "wait", [&] {
        return fmt::format("waits for CQE {} of {}, which gets {}", step.value,
                           DescribeCq(objects_, step.target), read_.cqes[step.target]);
      });
    } else {
      known_[step.target] = std::max(known_[step.target], step.value + 1);
    }
  }

  void WalkEnable(size_t i, size_t at, QueueStep* step) {
    const size_t slave = step->target;
    const QpObject& qp = objects_.qps[slave];
    const uint32_t before = enabled_[slave];
    const auto ahead = static_cast<int16_t>(static_cast<uint16_t>(step->value - qp.sq_base) -
                                            static_cast<uint16_t>(before));
    step->value = before;
    if (!qp.managed) return Find(i, at, "enable", "enables a QP that is not managed");
    if (std::exchange(master_of_[slave], static_cast<uint32_t>(i)) != i && before != 0) {
      return Find(i, at, "enable", "enables a queue that another queue enables, too");
    }
    const size_t total = read_.steps.queues[slave].steps.size();
    if (ahead <= 0 || before + static_cast<uint32_t>(ahead) > total) {
      return FindLazily(i, at, "enable", [&] {
        return fmt::format("enables {} up to {} of {} WQEs, {} were before",
                           DescribeQp(objects_, slave), int64_t{before} + ahead, total, before);
      });
    }
    const uint32_t limit = before + static_cast<uint32_t>(ahead);
    const uint32_t half = std::max(qp.sq_wqebbs / 2, 1u);
    if (total > qp.sq_wqebbs && (limit - 1) / half != before / half) {
      Find(i, at, "enable", "enables WQEs of two parts: the second need not be written by then");
    }
    step->value = enabled_[slave] = limit;
    for (uint32_t k = before; k < limit; ++k) {  // managed queues hold sends only
      if (read_.steps.queues[slave].steps[k].kind != QueueStep::Kind::kSend) {
        Find(slave, k, "wqe", "a managed queue holds sends only");
      } else if (k < read_.sends[slave].size()) {
        CheckKnown(i, at, read_.sends[slave][k]);
      }
    }
  }

  /// May `op` start, given what is known?
  void CheckKnown(size_t i, size_t at, OpId op) {
    for (const OpId before : plan_.after(ops_[op.index()])) {
      const OpCompletion& completion = read_.completions[before.index()];
      if (completion.cq != kNoIndex && known_[completion.cq] > completion.index) continue;
      FindLazily(i, at, "order", [&] {
        return fmt::format("{} may start before {} has completed{}", OpText(op), OpText(before),
                           completion.cq == kNoIndex ? ", which makes no CQE" : "");
      });
    }
    CheckHazard(i, at, op);
  }

  /// What the host waits for and checks is what comes.
  void CheckCompletions() {
    for (size_t i = 0; i < objects_.cqs.size(); ++i) {
      const CqObject& cq = objects_.cqs[i];
      if (cq.completions == read_.cqes[i]) continue;
      Find(objects_.qps.size() - 1, 0, "final",
           fmt::format("the host expects {} CQEs of {}, {} come", cq.completions,
                       DescribeCq(objects_, i), read_.cqes[i]));
    }
  }

  void CheckEnabled() {
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      const size_t total = read_.steps.queues[i].steps.size();
      if (!read_.steps.queues[i].managed || enabled_[i] == total) continue;
      Find(i, enabled_[i], "enable",
           fmt::format("is never enabled, nor is what follows, {} in all", total - enabled_[i]));
    }
  }

  /// The last queue runs by itself and was walked last, so that what is known is what is known at
  /// its end.
  void CheckEnd() {
    const size_t last = objects_.qps.size() - 1;
    if (objects_.qps.empty() || !read_.steps.queues[last].loopback ||
        read_.steps.queues[last].managed || read_.steps.queues[last].steps.empty()) {
      return Find(0, 0, "final", "the node has no loopback queue that runs by itself and ends it");
    }
    const QueueSteps& queue = read_.steps.queues[last];
    const size_t end = queue.steps.size() - 1;
    const QueueStep& nop = queue.steps[end];
    if (nop.kind != QueueStep::Kind::kNop || !nop.signaled) {
      Find(last, end, "final", "the last WQE is not a signaled NOP");
    }
    if (objects_.cqs[queue.send_cq].number != objects_.final_cqn ||
        read_.sources[queue.send_cq] != 1) {
      Find(last, end, "final", "the final CQ is not this queue's alone");
    }
    CheckFinalCqes(last);
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      const QueueSteps& it = read_.steps.queues[i];
      const bool sends_known =
          i == last || it.steps.empty() || known_[it.send_cq] >= read_.cqes[it.send_cq];
      const bool receives_known = it.receives == 0 || known_[it.recv_cq] >= read_.cqes[it.recv_cq];
      if (sends_known && receives_known) continue;
      FindLazily(last, end, "final", [&] {
        return fmt::format("does not follow the last {} of {}", sends_known ? "receive" : "send",
                           DescribeQp(objects_, i));
      });
    }
  }

  /// Before its end the last queue gives CQEs at the ends of half rings only: the host counts them.
  void CheckFinalCqes(size_t last) {
    const std::vector<QueueStep>& steps = read_.steps.queues[last].steps;
    const size_t ring = objects_.qps[last].sq_wqebbs;
    const size_t part = steps.size() > ring ? std::max<size_t>(ring / 2, 1) : steps.size();
    for (size_t at = 0; at + 1 < steps.size(); ++at) {
      if (steps[at].signaled && (at + 1) % part != 0) {
        Find(last, at, "final", "makes a CQE before the end");
      }
    }
  }

  /// WQE `at` of queue `i` runs `op`, a send: is its block known to be there?
  void CheckHazard(size_t i, size_t at, OpId op) {
    const uint32_t block = ops_[op.index()].block;
    if (ops_[op.index()].is_credit() || header_.roles().Contributes(objects_.node, block)) return;
    const OpCompletion& received = read_.received[block];
    if (received.cq != kNoIndex && known_[received.cq] > received.index) return;
    unsure_.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(at), op});
  }

  /// Those sends whose block was not known to be there by their queue's own WAITs, in the order of
  /// the walks. What is found out about one send holds for all behind it in its queue. Queues of
  /// which something else is wrong have no order to go by.
  void CheckUnsure() {
    if (unsure_.empty() || !findings_.empty()) return;
    WqeOrder order(read_.steps);
    uint32_t queue = kNoIndex;
    size_t failures = 0;  // each takes a search of all WQEs
    for (const Unsure& it : unsure_) {
      if (std::exchange(queue, it.queue) != it.queue) known_.assign(read_.cqes.size(), 0);
      const OpCompletion& received = read_.received[ops_[it.op.index()].block];
      if (received.cq != kNoIndex) {
        uint32_t& known = known_[received.cq];
        if (known > received.index) continue;
        const auto found = order.Follows(it.queue, it.at, received.cq, received.index);
        if (found) known = *found + 1;
        if (found) continue;
      }
      FindLazily(it.queue, it.at, "hazard", [&] {
        return fmt::format("{} may read block {} before it is received", OpText(it.op),
                           ops_[it.op.index()].block);
      });
      if (++failures == kValidationFindingsMax) return;
    }
  }

  NodeReading read_;
  std::vector<uint32_t> enabled_;    // by QP: WQEs so far
  std::vector<uint32_t> master_of_;  // by QP
  std::vector<uint32_t> known_;      // by CQ: CQEs that must be there, in this walk
  std::vector<Unsure> unsure_;       // in the order of the walks
};

}  // namespace

std::string DescribeQp(const QueueObjects& objects, size_t qp) {
  if (qp >= objects.qps.size()) return "no QP";
  const QpObject& it = objects.qps[qp];
  return fmt::format("{} ({:#x})", NameOf(objects, qp), it.number);
}

std::string DescribeCq(const QueueObjects& objects, size_t cq) {
  const uint32_t number = objects.cqs[cq].number;
  std::string name = "idle";
  size_t users = 0;
  for (size_t i = 0; i < objects.qps.size(); ++i) {
    const QpObject& qp = objects.qps[i];
    for (const bool is_out : {true, false}) {
      if ((is_out ? qp.send_cqn : qp.recv_cqn) != number || (is_out ? qp.sq : qp.rq).empty())
        continue;
      ++users;
      const NodeId from = is_out ? objects.node : qp.peer;
      const NodeId to = is_out ? qp.peer : objects.node;
      name =
          fmt::format("{} {}", is_out ? "sends" : "receives",
                      from == to ? "of " + NameOf(objects, i) : NameOfDirection(from, to, qp.lane));
    }
  }
  if (number == objects.final_cqn) name = "final";
  if (users > 1) name = "of several queues";
  return fmt::format("CQ {} ({:#x})", name, number);
}

std::string DescribeQp(const NodeSteps& node, size_t position) {
  const QueueSteps& it = node.queues[position];
  const auto loopbacks =
      static_cast<size_t>(std::ranges::count(node.queues, true, &QueueSteps::loopback));
  const std::string name =
      it.loopback ? NameOfLoopback(node.node, position + loopbacks - node.queues.size(), loopbacks)
                  : NameOfQp(node.node, it.peer, it.lane);
  return fmt::format("{} ({:#x})", name, it.number);
}

NodeSteps ValidateNode(const Plan& plan, const QueueObjects& objects,
                       ValidationFindings* findings) {
  return NodeValidation(plan, objects, findings).Run();
}

}  // namespace prepost::nic
