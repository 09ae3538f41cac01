// SPDX-License-Identifier: Apache-2.0
//
// One node, in these walks:
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
// Example, chain 0>1>2, node 1, inline: QP 1>0 has one receive, so "recv 0>1:0" shows as CQE 0 of
// that QP's receive CQ, say 0x401 with producer base 7. QP 1>2 has WAIT(0x401, 7), SEND_IMM: the
// walk knows 1 CQE of 0x401 when it comes to the send, which is what the op's `after` asks for.
#include "prepost/backends/nic/validate_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <tuple>
#include <utility>

#include "prepost/backends/nic/decode.h"
#include "prepost/backends/nic/device_profile.h"
#include "prepost/backends/nic/number_index.h"
#include "prepost/backends/nic/validate_order.h"
#include "prepost/runtime/program.h"

namespace prepost::nic {
namespace {

constexpr uint32_t kNone = NumberIndex::kNone;

/// The bytes of a send WQE that must be zero whatever it is: signature, stream channel, and the
/// unused bits of the flags.
bool ReservedBytesAreZero(const std::byte* wqe) {
  const auto zero = [&](size_t at) { return wqe[at] == std::byte{0}; };
  constexpr std::byte kUnusedFlags{0x13};  // bits 4, 1 (solicited) and 0
  constexpr std::byte kUnusedSize{0xc0};   // above the segment count
  return zero(8) && zero(9) && zero(10) && (wqe[control::kFlags] & kUnusedFlags) == std::byte{0} &&
         (wqe[control::kSegments] & kUnusedSize) == std::byte{0};
}

bool CoordinationIsPlain(const std::byte* wqe) {
  return std::all_of(wqe + kSegmentBytes, wqe + kSegmentBytes + coordination::kIndex,
                     [](std::byte byte) { return byte == std::byte{0}; });
}

class NodeValidation {
 public:
  NodeValidation(const Plan& plan, const QueueObjects& objects, ValidationFindings* findings)
      : plan_(plan),
        header_(plan.header()),
        ops_(plan.ops(ProgramOf(plan, objects.node))),
        objects_(objects),
        findings_(*findings) {}

  NodeSteps Run() {
    out_.node = objects_.node;
    out_.cqs = static_cast<uint32_t>(objects_.cqs.size());
    if (!cq_of_.Build(objects_.cqs)) Find(0, 0, "wqe", "two CQs of the node have one number");
    if (!qp_of_.Build(objects_.qps)) Find(0, 0, "wqe", "two QPs of the node have one number");
    MapOps();
    MakeQueues();
    for (size_t i = 0; i < objects_.qps.size(); ++i) ReadReceives(i);
    for (size_t i = 0; i < objects_.qps.size(); ++i) ReadSends(i);
    for (size_t i = 0; i < objects_.qps.size(); ++i) CheckParts(i);
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      if (!out_.queues[i].managed) Walk(i);
    }
    CheckCompletions();
    CheckEnabled();
    CheckEnd();
    CheckUnsure();
    return std::move(out_);
  }

 private:
  /// CQE `index` of the CQ at `cq`.
  struct Completion {
    uint32_t cq = kNone;
    uint32_t index = 0;
  };
  /// A send that WQE `at` of `queue` lets run, and whose block may not be there.
  struct Unsure {
    uint32_t queue = 0;
    uint32_t at = 0;
    OpId op;
  };

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

  void MapOps() {
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      const QpObject& qp = objects_.qps[i];
      if (qp.peer != objects_.node) pairs_.emplace_back(qp.peer, qp.lane, static_cast<uint32_t>(i));
    }
    std::ranges::sort(pairs_);
    sends_.resize(objects_.qps.size());
    receives_.resize(objects_.qps.size());
    completions_.resize(ops_.size());
    received_.resize(header_.message.blocks);
    const auto queue_of = [&](const Op& op) {
      const Channel& channel = plan_.channels()[op.channel.index()];
      return QueueTo(op.is_send() ? channel.to : channel.from, channel.lane);
    };
    struct Recent {
      ChannelId channel{kNone};
      uint32_t queue = kNone;
    };
    std::array<Recent, 64> recent;  // a node has few channels, in turns
    for (size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      Recent& it = recent[op.channel.index() % recent.size()];
      if (it.channel != op.channel) it = {op.channel, queue_of(op)};
      const OpId id = OpId::FromIndex(i);
      if (it.queue == kNone) {
        FindLazily(0, 0, "op", [&] { return "no QP is there for " + OpText(id); });
        continue;
      }
      (op.is_send() ? sends_ : receives_)[it.queue].push_back(id);
    }
  }

  /// Position of the QP to that peer; kNone: there is none.
  uint32_t QueueTo(NodeId peer, uint32_t lane) const {
    const auto at = std::ranges::lower_bound(pairs_, std::tuple(peer, lane, 0u));
    const bool is_there =
        at != pairs_.end() && std::get<0>(*at) == peer && std::get<1>(*at) == lane;
    return is_there ? std::get<2>(*at) : kNone;
  }

  void MakeQueues() {
    cqes_.assign(objects_.cqs.size(), 0);
    sources_.assign(objects_.cqs.size(), 0);
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      const QpObject& qp = objects_.qps[i];
      QueueSteps& queue = out_.queues.emplace_back();
      queue.peer = qp.peer;
      queue.lane = qp.lane;
      queue.number = qp.number;
      queue.peer_qpn = qp.peer_qpn;
      queue.loopback = qp.peer == objects_.node;
      queue.managed = qp.managed;
      queue.send_ring = qp.sq_wqebbs;
      queue.receive_ring = qp.rq_wqes;
      queue.send_cq = cq_of_.Find(qp.send_cqn);
      queue.recv_cq = cq_of_.Find(qp.recv_cqn);
      if (queue.send_cq == kNone || queue.recv_cq == kNone) {
        Find(i, 0, "wqe", "the QP completes on a CQ that the node does not have");
        queue.send_cq = queue.recv_cq = 0;
        if (objects_.cqs.empty()) cqes_.resize(1), sources_.resize(1);
      }
    }
    enabled_.assign(objects_.qps.size(), 0);
    master_of_.assign(objects_.qps.size(), kNone);
  }

  /// What data of a WQE must be for `op`: one piece, the block's bytes, or none.
  bool DataIs(const std::vector<DataPiece>& data, const Op& op) const {
    const uint64_t bytes = op.is_credit() ? 0 : header_.message.BlockSize(op.block);
    if (bytes == 0) return data.empty();
    return data.size() == 1 && data[0].bytes == bytes && data[0].lkey == objects_.lkey &&
           data[0].address == objects_.message_address + header_.message.BlockOffset(op.block);
  }
  std::string DataText(const std::vector<DataPiece>& data) const {
    if (data.empty()) return "no data";
    return fmt::format("{} bytes at message offset {} with key {:#x}", data[0].bytes,
                       static_cast<int64_t>(data[0].address - objects_.message_address),
                       data[0].lkey);
  }

  void ReadReceives(size_t i) {
    const QpObject& qp = objects_.qps[i];
    QueueSteps& queue = out_.queues[i];
    queue.receives = static_cast<uint32_t>(qp.rq.size() / kReceiveStrideBytes);
    if (queue.receives != receives_[i].size() || qp.rq.size() % kReceiveStrideBytes != 0) {
      Find(i, 0, "op",
           fmt::format("{} bytes of receives, {} ops receive", qp.rq.size(), receives_[i].size()));
      queue.receives = static_cast<uint32_t>(std::min<size_t>(queue.receives, receives_[i].size()));
    }
    for (uint32_t at = 0; at < queue.receives; ++at) {
      const OpId op = receives_[i][at];
      completions_[op.index()] = {queue.recv_cq, at};
      if (!ops_[op.index()].is_credit()) received_[ops_[op.index()].block] = {queue.recv_cq, at};
      DecodeReceive(qp.rq, at, kReceiveStrideBytes, &data_);
      if (DataIs(data_, ops_[op.index()])) continue;
      FindLazily(i, at, "op", [&] {
        return fmt::format("receive into {} for {}", DataText(data_), OpText(op));
      });
    }
    if (queue.receives == 0) return;
    cqes_[queue.recv_cq] += queue.receives;
    ++sources_[queue.recv_cq];
    CheckWindow(i, "receives", queue.receives, qp.rq_wqes, queue.recv_cq);
    if (queue.receives > qp.rq_wqes && qp.rq_wqes < 2) {
      Find(i, 0, "part", "the ring of receives cannot be written in halves");
    }
  }

  /// `wqes` are written to a ring of `ring`, and complete to the CQ at `cq`.
  ///
  /// Indices are compared cyclically: a NIC takes the producer index as ahead of its own when their
  /// difference, as int16_t, is positive. So 2^15 ahead is behind, and at most 2^15 - 1 may be
  /// written at once: all of a queue that fits its ring, and a whole ring of one that is written in
  /// parts, which as a power of two is 2^14 at most. CQs have 24 bits, and of them 2^23 - 1.
  ///
  /// When a queue breaks, each WQE in its ring gives a CQE, signaled or not, and the first, which
  /// says why, must not be overwritten.
  void CheckWindow(size_t i, const char* what, size_t wqes, uint32_t ring, uint32_t cq) {
    const size_t at_once = std::min<size_t>(wqes, ring);
    if (at_once > kWqIndexAhead || ring > kRingEntriesMax) {
      Find(
          i, 0, "window",
          fmt::format("{} {} at once in a ring of {}: 16-bit indices tell {} apart, and of a queue "
                      "in parts a ring of {}",
                      at_once, what, ring, kWqIndexAhead, std::bit_floor(kWqIndexAhead)));
    }
    if (objects_.cqs.empty() || at_once == 0) return;
    const CqObject& it = objects_.cqs[cq];
    if (it.entries > kCqIndexAhead || cqes_[cq] > kCqIndexAhead) {
      Find(i, 0, "window",
           fmt::format(
               "its CQ of {} has a ring of {} and gets {} CQEs: 24-bit indices tell {} apart", what,
               it.entries, cqes_[cq], kCqIndexAhead));
    }
    if (it.entries >= at_once) return;
    Find(i, 0, "part",
         fmt::format("its CQ of {} holds {} of {} CQEs: the others are lost", what, it.entries,
                     at_once));
  }

  void ReadSends(size_t i) {
    const QpObject& qp = objects_.qps[i];
    QueueSteps& queue = out_.queues[i];
    const size_t wqes = qp.sq.size() / kWqebbBytes;
    if (qp.sq.size() % kWqebbBytes != 0) Find(i, wqes, "wqe", "the queue ends within a WQE");
    queue.steps.reserve(wqes);
    size_t sent = 0;
    uint32_t signals = 0;
    auto first = qp.posted_first.begin();
    granted_ = 0;
    for (size_t at = 0; at < wqes; ++at) {
      const auto bytes = std::span(qp.sq).subspan(at * kWqebbBytes, kWqebbBytes);
      DecodeSend(bytes, 0, &wqe_);
      CheckForm(i, at, bytes.data());
      QueueStep step = StepOf(i, at, bytes.data());
      if (step.kind == QueueStep::Kind::kSend) {
        while (first != qp.posted_first.end() && first->wqe < at) ++first;
        if (first != qp.posted_first.end() && first->wqe == at) ReadPostedFirst(i, *first, &step);
        if (sent < sends_[i].size()) {
          const OpId op = sends_[i][sent];
          CheckSendOp(i, at, op);
          if (ops_[op.index()].is_credit()) CheckGranted(i, at, op, step);
          if (step.signaled) completions_[op.index()] = {queue.send_cq, signals};
        }
        ++sent;
      }
      signals += step.signaled ? 1 : 0;
      queue.steps.push_back(step);
    }
    if (sent != sends_[i].size()) {
      Find(i, wqes, "op", fmt::format("{} sends, {} ops send", sent, sends_[i].size()));
    }
    if (signals == 0) return;
    cqes_[queue.send_cq] += signals;
    ++sources_[queue.send_cq];
    CheckWindow(i, "sends", wqes, qp.sq_wqebbs, queue.send_cq);
  }

  void ReadPostedFirst(size_t i, const PostedFirst& first, QueueStep* step) {
    if (first.qp >= objects_.qps.size() || first.receives > receives_[first.qp].size()) {
      return FindLazily(i, first.wqe, "post", [&] {
        return fmt::format("waits for {} receives of {}, which it does not have", first.receives,
                           DescribeQp(objects_, first.qp));
      });
    }
    step->target = first.qp;
    step->value = first.receives;
  }

  /// A credit is not sent before the receives that it grants are posted. Those of a queue that fits
  /// its ring all are before anything is sent.
  void CheckGranted(size_t i, size_t at, OpId id, const QueueStep& step) {
    granted_ += ops_[id.index()].grants;
    const uint32_t blocks = QueueTo(objects_.qps[i].peer, kBlockLane);
    if (blocks == kNone || receives_[blocks].size() <= objects_.qps[blocks].rq_wqes) return;
    if (step.value >= granted_ && step.target == blocks) return;
    FindLazily(i, at, "post", [&] {
      return fmt::format("{} may start before the {} receives that are granted by then are posted",
                         OpText(id), granted_);
    });
  }

  void CheckForm(size_t i, size_t at, const std::byte* bytes) {
    const QpObject& qp = objects_.qps[i];
    const auto index = static_cast<uint16_t>(qp.sq_base + at);
    if (wqe_.wqe_index != index) {
      FindLazily(i, at, "wqe", [&] {
        return fmt::format("names index {}, it stands at {}", wqe_.wqe_index, index);
      });
    }
    if (wqe_.qpn != qp.number) {
      FindLazily(i, at, "wqe", [&] {
        return fmt::format("names QP {:#x}, the queue is {:#x}'s", wqe_.qpn, qp.number);
      });
    }
    const bool has_mode =
        wqe_.completion == CompletionMode::kOnError || wqe_.completion == CompletionMode::kAlways;
    if (wqe_.op_mod != 0 || wqe_.fence != kFenceNone || !has_mode || !ReservedBytesAreZero(bytes)) {
      Find(i, at, "wqe", "op_mod, fence, completion mode or reserved bytes are not what we write");
    }
  }

  QueueStep StepOf(size_t i, size_t at, const std::byte* bytes) {
    QueueStep step{.signaled = wqe_.signaled()};
    const auto need_segments = [&](uint8_t segments) {
      if (wqe_.segments == segments) return;
      FindLazily(i, at, "wqe", [&] {
        return fmt::format("has {} segments, {} needs {}", wqe_.segments, Name(wqe_.opcode),
                           segments);
      });
    };
    switch (wqe_.opcode) {
      case Opcode::kWait:
      case Opcode::kSendEnable:
        need_segments(2);
        if (!objects_.qps[i].cd_master || objects_.qps[i].managed) {
          Find(i, at, "wqe", "WAIT or SEND_EN on a QP without cd_master, or a managed one");
        }
        if (!CoordinationIsPlain(bytes) || wqe_.immediate != 0) {
          Find(i, at, "wqe", "reserved bytes of the coordination segment are not zero");
        }
        ReadCoordination(i, at, &step);
        return step;
      case Opcode::kNop:
        need_segments(1);
        return step;
      case Opcode::kSend:
      case Opcode::kSendImm:
        step.kind = QueueStep::Kind::kSend;
        return step;
      default:
        FindLazily(i, at, "wqe", [&] {
          return fmt::format("opcode {:#04x} is none that a plan needs",
                             static_cast<uint8_t>(wqe_.opcode));
        });
        return step;
    }
  }

  void ReadCoordination(size_t i, size_t at, QueueStep* step) {
    const bool is_wait = wqe_.opcode == Opcode::kWait;
    step->target = (is_wait ? cq_of_ : qp_of_).Find(wqe_.number);
    if (step->target == kNone) {
      FindLazily(i, at, is_wait ? "wait" : "enable", [&] {
        return fmt::format("names {} {:#x}, which the node does not have", is_wait ? "CQ" : "QP",
                           wqe_.number);
      });
      return;  // a step that does nothing
    }
    const uint32_t mask = is_wait ? kCqIndexMask : kWqIndexMask;
    if ((wqe_.index & ~mask) != 0) Find(i, at, is_wait ? "wait" : "enable", "index is too wide");
    if (is_wait) {
      step->kind = QueueStep::Kind::kWait;
      step->value = (wqe_.index - objects_.cqs[step->target].base) & kCqIndexMask;
    } else {
      step->kind = QueueStep::Kind::kEnable;
      step->value = wqe_.index;  // 16 bits; the walk makes it absolute
    }
  }

  void CheckSendOp(size_t i, size_t at, OpId id) {
    const Op& op = ops_[id.index()];
    const Opcode opcode = op.is_credit() ? Opcode::kSend : Opcode::kSendImm;
    const uint32_t immediate =
        op.is_credit() ? 0 : uint32_t{objects_.epoch} << 24 | (op.block & 0xffffff);
    const auto segments = static_cast<uint8_t>(1 + wqe_.data.size());
    if (wqe_.opcode == opcode && wqe_.immediate == immediate && wqe_.segments == segments &&
        DataIs(wqe_.data, op)) {
      return;
    }
    FindLazily(i, at, "op", [&] {
      return fmt::format("immediate {:08x}, {}, {} segments for {}", wqe_.immediate,
                         DataText(wqe_.data), wqe_.segments, OpText(id));
    });
  }

  void CheckParts(size_t i) {
    const std::vector<QueueStep>& steps = out_.queues[i].steps;
    const uint32_t ring = objects_.qps[i].sq_wqebbs;
    if (steps.empty()) return;
    if (!steps.back().signaled) Find(i, steps.size() - 1, "part", "the last WQE makes no CQE");
    if (steps.size() <= ring) return;
    if (ring < 2) return Find(i, 0, "part", "the ring cannot be written in halves");
    for (size_t end = ring / 2; end <= steps.size(); end += ring / 2) {
      if (steps[end - 1].signaled) continue;
      FindLazily(i, end - 1, "part", [&] {
        return fmt::format("ends half a ring of {} and makes no CQE: its slots are never free",
                           ring);
      });
    }
  }

  /// A queue that runs by itself, from its start.
  void Walk(size_t i) {
    known_.assign(cqes_.size(), 0);
    const std::vector<QueueStep>& steps = out_.queues[i].steps;
    size_t sent = 0;
    for (size_t at = 0; at < steps.size(); ++at) {
      const QueueStep& step = steps[at];
      switch (step.kind) {
        case QueueStep::Kind::kWait:
          WalkWait(i, at, step);
          break;
        case QueueStep::Kind::kEnable:
          WalkEnable(i, at, &out_.queues[i].steps[at]);
          break;
        case QueueStep::Kind::kSend:
          if (sent < sends_[i].size()) CheckKnown(i, at, sends_[i][sent]);
          ++sent;
          break;
        case QueueStep::Kind::kNop:
          break;
      }
    }
  }

  void WalkWait(size_t i, size_t at, const QueueStep& step) {
    if (sources_[step.target] != 1) {
      FindLazily(i, at, "wait", [&] {
        return fmt::format("waits on CQ {:#x}, to which {} queues complete",
                           objects_.cqs[step.target].number, sources_[step.target]);
      });
    } else if (step.value >= cqes_[step.target]) {
      FindLazily(i, at, "wait", [&] {
        return fmt::format("waits for CQE {} of CQ {:#x}, which gets {}", step.value,
                           objects_.cqs[step.target].number, cqes_[step.target]);
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
    const size_t total = out_.queues[slave].steps.size();
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
      if (out_.queues[slave].steps[k].kind != QueueStep::Kind::kSend) {
        Find(slave, k, "wqe", "a managed queue holds sends only");
      } else if (k < sends_[slave].size()) {
        CheckKnown(i, at, sends_[slave][k]);
      }
    }
  }

  /// May `op` start, given what is known?
  void CheckKnown(size_t i, size_t at, OpId op) {
    for (const OpId before : plan_.after(ops_[op.index()])) {
      const Completion& completion = completions_[before.index()];
      if (completion.cq != kNone && known_[completion.cq] > completion.index) continue;
      FindLazily(i, at, "order", [&] {
        return fmt::format("{} may start before {} has completed{}", OpText(op), OpText(before),
                           completion.cq == kNone ? ", which makes no CQE" : "");
      });
    }
    CheckHazard(i, at, op);
  }

  /// What the host waits for and checks is what comes.
  void CheckCompletions() {
    for (size_t i = 0; i < objects_.cqs.size(); ++i) {
      const CqObject& cq = objects_.cqs[i];
      if (cq.completions == cqes_[i]) continue;
      Find(objects_.qps.size() - 1, 0, "final",
           fmt::format("the host expects {} CQEs of CQ {:#x}, {} come", cq.completions, cq.number,
                       cqes_[i]));
    }
  }

  void CheckEnabled() {
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      const size_t total = out_.queues[i].steps.size();
      if (!out_.queues[i].managed || enabled_[i] == total) continue;
      Find(i, enabled_[i], "enable",
           fmt::format("is never enabled, nor is what follows, {} in all", total - enabled_[i]));
    }
  }

  /// The last queue runs by itself and was walked last, so that what is known is what is known at
  /// its end.
  void CheckEnd() {
    const size_t last = objects_.qps.size() - 1;
    if (objects_.qps.empty() || !out_.queues[last].loopback || out_.queues[last].managed ||
        out_.queues[last].steps.empty()) {
      return Find(0, 0, "final", "the node has no loopback queue that runs by itself and ends it");
    }
    const QueueSteps& queue = out_.queues[last];
    const size_t end = queue.steps.size() - 1;
    const QueueStep& nop = queue.steps[end];
    if (nop.kind != QueueStep::Kind::kNop || !nop.signaled) {
      Find(last, end, "final", "the last WQE is not a signaled NOP");
    }
    if (objects_.cqs[queue.send_cq].number != objects_.final_cqn || sources_[queue.send_cq] != 1) {
      Find(last, end, "final", "the final CQ is not this queue's alone");
    }
    CheckFinalCqes(last);
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      const QueueSteps& it = out_.queues[i];
      const bool sends_known =
          i == last || it.steps.empty() || known_[it.send_cq] >= cqes_[it.send_cq];
      const bool receives_known = it.receives == 0 || known_[it.recv_cq] >= cqes_[it.recv_cq];
      if (sends_known && receives_known) continue;
      FindLazily(last, end, "final", [&] {
        return fmt::format("does not follow the last {} of {}", sends_known ? "receive" : "send",
                           DescribeQp(objects_, i));
      });
    }
  }

  /// Before its end the last queue gives CQEs at the ends of half rings only: the host counts them.
  void CheckFinalCqes(size_t last) {
    const std::vector<QueueStep>& steps = out_.queues[last].steps;
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
    if (ops_[op.index()].is_credit() || objects_.node == header_.root) return;
    const Completion& received = received_[block];
    if (received.cq != kNone && known_[received.cq] > received.index) return;
    unsure_.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(at), op});
  }

  /// Those sends whose block was not known to be there by their queue's own WAITs, in the order of
  /// the walks. What is found out about one send holds for all behind it in its queue. Queues of
  /// which something else is wrong have no order to go by.
  void CheckUnsure() {
    if (unsure_.empty() || !findings_.empty()) return;
    WqeOrder order(out_);
    uint32_t queue = kNone;
    size_t failures = 0;  // each takes a search of all WQEs
    for (const Unsure& it : unsure_) {
      if (std::exchange(queue, it.queue) != it.queue) known_.assign(cqes_.size(), 0);
      const Completion& received = received_[ops_[it.op.index()].block];
      if (received.cq != kNone) {
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

  const Plan& plan_;
  const PlanHeader& header_;
  std::span<const Op> ops_;
  const QueueObjects& objects_;
  ValidationFindings& findings_;
  NodeSteps out_;

  std::vector<std::tuple<NodeId, uint32_t, uint32_t>> pairs_;  // (peer, lane, QP), sorted
  uint64_t granted_ = 0;  // receives, by the credits so far of the queue that is read
  NumberIndex cq_of_;
  NumberIndex qp_of_;
  std::vector<std::vector<OpId>> sends_;     // by QP, in the order of its channel
  std::vector<std::vector<OpId>> receives_;  // by QP
  std::vector<Completion> completions_;      // by op
  std::vector<Completion> received_;         // by block
  std::vector<uint32_t> cqes_;               // by CQ: that it gets
  std::vector<uint32_t> sources_;            // by CQ: queues and directions that complete to it
  std::vector<uint32_t> enabled_;            // by QP: WQEs so far
  std::vector<uint32_t> master_of_;          // by QP
  std::vector<uint32_t> known_;              // by CQ: CQEs that must be there, in this walk
  SendWqe wqe_;                              // scratch
  std::vector<Unsure> unsure_;               // in the order of the walks
  std::vector<DataPiece> data_;              // scratch
};

}  // namespace

std::string DescribeQp(const QueueObjects& objects, size_t qp) {
  if (qp >= objects.qps.size()) return "no QP";
  const QpObject& it = objects.qps[qp];
  if (it.peer == objects.node) return fmt::format("QP {:#x} loopback", it.number);
  return fmt::format("QP {:#x} ({}>{} lane {})", it.number, objects.node.value, it.peer.value,
                     it.lane);
}

NodeSteps ValidateNode(const Plan& plan, const QueueObjects& objects,
                       ValidationFindings* findings) {
  return NodeValidation(plan, objects, findings).Run();
}

}  // namespace prepost::nic
