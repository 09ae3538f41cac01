// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/validate/validate_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include "backends/nic/program/decode.h"
#include "backends/nic/program/device_profile.h"
#include "ir/base/count.h"

namespace prepost::nic {
namespace {

constexpr uint32_t kAbsent = NumberIndex::kNone;

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

class NodeReader : NodeCheck {
 public:
  using NodeCheck::NodeCheck;

  NodeReading Run() {
    read_.steps.node = objects_.node;
    read_.steps.cqs = static_cast<uint32_t>(objects_.cqs.size());
    if (!cq_of_.Build(objects_.cqs)) Find(0, 0, "wqe", "two CQs of the node have one number");
    if (!qp_of_.Build(objects_.qps)) Find(0, 0, "wqe", "two QPs of the node have one number");
    MapOps();
    MakeQueues();
    for (size_t i = 0; i < objects_.qps.size(); ++i) ReadReceives(i);
    for (size_t i = 0; i < objects_.qps.size(); ++i) ReadSends(i);
    for (size_t i = 0; i < objects_.qps.size(); ++i) CheckParts(i);
    return std::move(read_);
  }

 private:
  void MapOps() {
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      const QpObject& qp = objects_.qps[i];
      if (qp.peer != objects_.node) pairs_.emplace_back(qp.peer, qp.lane, static_cast<uint32_t>(i));
    }
    std::ranges::sort(pairs_);
    read_.sends.resize(objects_.qps.size());
    receives_.resize(objects_.qps.size());
    read_.completions.resize(ops_.size());
    read_.received.resize(header_.payload.blocks);
    const auto queue_of = [&](const Op& op) {
      const Channel& channel = plan_.channels()[op.channel.index()];
      return QueueTo(op.is_send() ? channel.to : channel.from, channel.lane);
    };
    struct Recent {
      ChannelId channel{kAbsent};
      uint32_t queue = kAbsent;
    };
    std::array<Recent, 64> recent;  // a node has few channels, in turns
    for (size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      Recent& it = recent[op.channel.index() % recent.size()];
      if (it.channel != op.channel) it = {op.channel, queue_of(op)};
      const OpId id = OpId::FromIndex(i);
      if (it.queue == kAbsent) {
        FindLazily(0, 0, "op", [&] { return "no QP is there for " + OpText(id); });
        continue;
      }
      (op.is_send() ? read_.sends : receives_)[it.queue].push_back(id);
    }
  }

  /// Position of the QP to that peer; kAbsent: there is none.
  uint32_t QueueTo(NodeId peer, Lane lane) const {
    const auto at = std::ranges::lower_bound(pairs_, std::tuple(peer, lane, 0u));
    const bool is_there =
        at != pairs_.end() && std::get<0>(*at) == peer && std::get<1>(*at) == lane;
    return is_there ? std::get<2>(*at) : kAbsent;
  }

  void MakeQueues() {
    read_.cqes.assign(objects_.cqs.size(), 0);
    read_.sources.assign(objects_.cqs.size(), 0);
    for (size_t i = 0; i < objects_.qps.size(); ++i) {
      const QpObject& qp = objects_.qps[i];
      QueueSteps& queue = read_.steps.queues.emplace_back();
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
      if (queue.send_cq == kAbsent || queue.recv_cq == kAbsent) {
        Find(i, 0, "wqe", "the QP completes on a CQ that the node does not have");
        queue.send_cq = queue.recv_cq = 0;
        if (objects_.cqs.empty()) read_.cqes.resize(1), read_.sources.resize(1);
      }
    }
  }

  /// What data of a WQE must be for `op`: one piece, the block's bytes, or none.
  bool DataIs(const std::vector<DataPiece>& data, const Op& op) const {
    const uint64_t bytes = op.is_credit() ? 0 : header_.payload.BlockSize(op.block);
    if (bytes == 0) return data.empty();
    return data.size() == 1 && data[0].bytes == bytes && data[0].lkey == objects_.lkey &&
           data[0].address == objects_.message_address + header_.payload.BlockOffset(op.block);
  }
  std::string DataText(const std::vector<DataPiece>& data) const {
    if (data.empty()) return "no data";
    return fmt::format("{} at message offset {} with key {:#x}", Count(data[0].bytes, "byte"),
                       static_cast<int64_t>(data[0].address - objects_.message_address),
                       data[0].lkey);
  }

  void ReadReceives(size_t i) {
    const QpObject& qp = objects_.qps[i];
    QueueSteps& queue = read_.steps.queues[i];
    queue.receives = static_cast<uint32_t>(qp.rq.size() / kReceiveStrideBytes);
    if (queue.receives != receives_[i].size() || qp.rq.size() % kReceiveStrideBytes != 0) {
      Find(i, 0, "op",
           fmt::format("{} of receives for {}", Count(qp.rq.size(), "byte"),
                       Count(receives_[i].size(), "receiving op")));
      queue.receives = static_cast<uint32_t>(std::min<size_t>(queue.receives, receives_[i].size()));
    }
    for (uint32_t at = 0; at < queue.receives; ++at) {
      const OpId op = receives_[i][at];
      read_.completions[op.index()] = {queue.recv_cq, at};
      if (!ops_[op.index()].is_credit())
        read_.received[ops_[op.index()].block] = {queue.recv_cq, at};
      DecodeReceive(qp.rq, at, kReceiveStrideBytes, &data_);
      if (DataIs(data_, ops_[op.index()])) continue;
      FindLazily(i, at, "op", [&] {
        return fmt::format("receive into {} for {}", DataText(data_), OpText(op));
      });
    }
    if (queue.receives == 0) return;
    read_.cqes[queue.recv_cq] += queue.receives;
    ++read_.sources[queue.recv_cq];
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
    if (it.entries > kCqIndexAhead || read_.cqes[cq] > kCqIndexAhead) {
      Find(i, 0, "window",
           fmt::format(
               "its CQ of {} has a ring of {} and gets {} CQEs: 24-bit indices tell {} apart", what,
               it.entries, read_.cqes[cq], kCqIndexAhead));
    }
    if (it.entries >= at_once) return;
    Find(i, 0, "part",
         fmt::format("its CQ of {} holds {} of {} CQEs: the others are lost", what, it.entries,
                     at_once));
  }

  void ReadSends(size_t i) {
    const QpObject& qp = objects_.qps[i];
    QueueSteps& queue = read_.steps.queues[i];
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
        if (sent < read_.sends[i].size()) {
          const OpId op = read_.sends[i][sent];
          CheckSendOp(i, at, op);
          if (ops_[op.index()].is_credit()) CheckGranted(i, at, op, step);
          if (step.signaled) read_.completions[op.index()] = {queue.send_cq, signals};
        }
        ++sent;
      }
      signals += step.signaled ? 1 : 0;
      queue.steps.push_back(step);
    }
    if (sent != read_.sends[i].size()) {
      Find(i, wqes, "op",
           fmt::format("{} for {}", Count(sent, "send"),
                       Count(read_.sends[i].size(), "sending op")));
    }
    if (signals == 0) return;
    read_.cqes[queue.send_cq] += signals;
    ++read_.sources[queue.send_cq];
    CheckWindow(i, "sends", wqes, qp.sq_wqebbs, queue.send_cq);
  }

  void ReadPostedFirst(size_t i, const PostedFirst& first, QueueStep* step) {
    if (first.qp >= objects_.qps.size() || first.receives > receives_[first.qp].size()) {
      return FindLazily(i, first.wqe, "post", [&] {
        return fmt::format("waits for {} of {}, which it does not have",
                           Count(first.receives, "receive"), DescribeQp(objects_, first.qp));
      });
    }
    step->target = first.qp;
    step->value = first.receives;
  }

  /// A credit is not sent before the receives that it grants are posted. Those of a queue that fits
  /// its ring all are before anything is sent.
  void CheckGranted(size_t i, size_t at, OpId id, const QueueStep& step) {
    granted_ += ops_[id.index()].grants;
    const uint32_t blocks = QueueTo(objects_.qps[i].peer, Lane::kBlocks);
    if (blocks == kAbsent || receives_[blocks].size() <= objects_.qps[blocks].rq_wqes) return;
    if (step.value >= granted_ && step.target == blocks) return;
    FindLazily(i, at, "post", [&] {
      return fmt::format(
          "{} may start before the receives that are granted by then, {}, are posted", OpText(id),
          granted_);
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
        return fmt::format("has {}, {} needs {}", Count(wqe_.segments, "segment"),
                           Name(wqe_.opcode), segments);
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
    if (step->target == kAbsent) {
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
      return fmt::format("immediate {:08x}, {}, {} for {}", wqe_.immediate, DataText(wqe_.data),
                         Count(wqe_.segments, "segment"), OpText(id));
    });
  }

  void CheckParts(size_t i) {
    const std::vector<QueueStep>& steps = read_.steps.queues[i].steps;
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

  NodeReading read_;
  std::vector<std::tuple<NodeId, Lane, uint32_t>> pairs_;  // (peer, lane, QP), sorted
  uint64_t granted_ = 0;  // receives, by the credits so far of the queue that is read
  NumberIndex cq_of_;
  NumberIndex qp_of_;
  std::vector<std::vector<OpId>> receives_;  // by QP
  SendWqe wqe_;                              // scratch
  std::vector<DataPiece> data_;              // scratch
};

}  // namespace

NodeReading ReadNode(const Plan& plan, const QueueObjects& objects, ValidationFindings* findings) {
  return NodeReader(plan, objects, findings).Run();
}

}  // namespace prepost::nic
