// SPDX-License-Identifier: Apache-2.0
//
// An edge of the plan graph is a reason. What kind it is follows from its two events: of one
// message, of one channel, or of one node, where `after` says only that there is a reason and the
// ops say which: a block's send waits for the receive of the block (data), for a credit, or for a
// send of its own (window), a credit for a receive (window). What the thin pass took out of an
// `after` list since it follows from the rest is added again, marked as implied.
//
// Example, chain of 3 nodes, 2 blocks, window=1, send window 1: 1>2:1, node 1 op 7, waits for block
// 1 from node 0 (data, until 2), for its send of block 0 (send window, until 2), for node 2's
// credit (until 2), and on its channel for 1>2:0. Its chain: 1>2:1, for the data of 0>1:1, by the
// send window after 0>1:0: 3 blocks in 3 block times.
#include "ir/analysis/reasons.h"

#include <algorithm>

namespace prepost {
namespace {

using Event = PlanGraph::Event;
constexpr uint32_t kNoMessage = MessageTable::kNone;

bool HaveBlockInCommon(const Op& a, const Op& b) {
  return !a.is_credit() && !b.is_credit() && a.block < uint64_t{b.block} + b.count &&
         b.block < uint64_t{a.block} + a.count;
}

}  // namespace

Reasons::Reasons(const PlanTables& tables)
    : tables_(tables), times_(tables), cause_(tables.graph().size(), kNoMessage) {
  for (Vertex from = 0; from < cause_.size(); ++from) {
    const uint64_t done = times_.Earliest(from) + times_.CostOf(from);
    for (const Vertex to : tables.graph().Successors(from)) {
      if (done != times_.Earliest(to)) continue;
      Vertex& cause = cause_[to];
      if (cause == kNoMessage || KindOf(from, to) < KindOf(cause, to)) cause = from;
    }
  }
}

WaitKind Reasons::KindOf(Vertex from, Vertex to) const {
  const PlanGraph& graph = tables_.graph();
  const Event earlier = graph.EventOf(from);
  const Event later = graph.EventOf(to);
  if (earlier == Event::kBarrier || later == Event::kBarrier) return WaitKind::kBarrier;
  if (graph.MessageOf(from) == graph.MessageOf(to)) {
    if (later == Event::kCombine) return WaitKind::kArrived;
    return earlier == Event::kStart ? WaitKind::kTransfer : WaitKind::kPosted;
  }
  if (later == Event::kCombine)
    return KindOfCombineAfter(graph.MessageOf(from), graph.MessageOf(to));
  if (earlier == later) {
    switch (earlier) {
      case Event::kPost:
        return WaitKind::kPostOrder;
      case Event::kStart:
        return WaitKind::kChannelOrder;
      case Event::kDeliver:
        return WaitKind::kDeliveryOrder;
      case Event::kCombine:
      case Event::kBarrier:
        break;
    }
  }
  if (earlier == Event::kPost) return WaitKind::kGranted;
  return KindOfAfter(graph.MessageOf(from), graph.MessageOf(to));
}

/// Message `to` is combined at a node when `from`, which that node sends or receives, has
/// completed.
WaitKind Reasons::KindOfCombineAfter(uint32_t from, uint32_t to) const {
  if (tables_.SendOf(from).channel == tables_.SendOf(to).channel) return WaitKind::kCombineOrder;
  if (!HaveBlockInCommon(tables_.SendOf(from), tables_.SendOf(to))) return WaitKind::kAfter;
  const bool is_own_send = tables_.ChannelOf(from).from == tables_.ChannelOf(to).to;
  return is_own_send ? WaitKind::kLeft : WaitKind::kData;
}

/// Message `to` starts at a node when `from`, which that node sends or receives, is delivered.
WaitKind Reasons::KindOfAfter(uint32_t from, uint32_t to) const {
  const PlanHeader& header = tables_.plan().header();
  const Op& earlier = tables_.SendOf(from);
  const Op& later = tables_.SendOf(to);
  const bool is_own_send = tables_.ChannelOf(from).from == tables_.ChannelOf(to).from;
  if (is_own_send) {
    if (later.is_credit() && !earlier.is_credit()) return WaitKind::kScratch;
    const bool is_window = header.send_window && !earlier.is_credit() && !later.is_credit();
    return is_window ? WaitKind::kSendWindow : WaitKind::kAfter;
  }
  if (later.is_credit()) {
    const bool is_window = header.ready.mode == ReadyMode::kWindow && !earlier.is_credit();
    return is_window ? WaitKind::kReceiveWindow : WaitKind::kAfter;
  }
  if (earlier.is_credit()) {
    const bool is_granted = tables_.credits().Partner(later.channel) == earlier.channel.value;
    return is_granted ? WaitKind::kCredit : WaitKind::kAfter;
  }
  return HaveBlockInCommon(earlier, later) ? WaitKind::kData : WaitKind::kAfter;
}

/// When what `message` brings is there: combined, where its receive is a combine.
uint64_t Reasons::CompletionOf(uint32_t message) const {
  return times_.Earliest(tables_.graph().CompletionOf(tables_.messages().recv(message)));
}

/// The op of `message` at `node`, which is one of its two ends.
OpRef Reasons::RefAt(uint32_t message, NodeId node) const {
  const bool is_send = tables_.ChannelOf(message).from == node;
  const MessageTable& messages = tables_.messages();
  return tables_.RefOf(is_send ? messages.send(message) : messages.recv(message));
}

OpReasons Reasons::Explain(OpRef ref) const {
  const uint32_t message = tables_.messages().MessageOf(tables_.IndexOf(ref));
  OpReasons reasons = {.ref = ref, .message = message};
  reasons.earliest_start = times_.StartOf(message);
  reasons.earliest_delivery = times_.DeliveryOf(message);
  reasons.latest_start = reasons.earliest_start + times_.SlackOf(message);
  reasons.waits_for = WaitsFor(ref, message);
  reasons.waited_by = WaitedBy(ref, message);
  return reasons;
}

/// What a send's start, or a receive's delivery, and then its combining, waits for, the kinds in
/// order.
std::vector<Wait> Reasons::WaitsFor(OpRef ref, uint32_t message) const {
  const PlanGraph& graph = tables_.graph();
  const bool is_send = tables_.ChannelOf(message).from == ref.node;
  const Vertex begin = graph.At(message, is_send ? Event::kStart : Event::kDeliver);
  const Vertex end = is_send ? begin : graph.CompletionOf(tables_.IndexOf(ref));
  std::vector<Wait> waits;
  for (Vertex from = 0; from < graph.size(); ++from) {
    for (const Vertex to : graph.Successors(from)) {
      if (to != begin && to != end) continue;
      const WaitKind kind = KindOf(from, to);
      // Its own posting, and its own arrival.
      if (kind == WaitKind::kPosted || kind == WaitKind::kArrived) continue;
      Wait wait = {.kind = kind, .until = times_.Earliest(from) + times_.CostOf(from)};
      wait.is_cause = wait.until == times_.Earliest(end);
      if (kind == WaitKind::kTransfer) {
        wait.op = RefAt(message, tables_.ChannelOf(message).from);
      } else if (kind != WaitKind::kBarrier) {
        wait.op = RefAt(graph.MessageOf(from), ref.node);
      }
      waits.push_back(wait);
    }
  }
  if (is_send) AddImplied(message, &waits);
  std::ranges::stable_sort(waits, {}, &Wait::kind);
  return waits;
}

/// The block (what was received of it last before) and the credit that the send of `message` needs,
/// where nothing in `waits` names them.
void Reasons::AddImplied(uint32_t message, std::vector<Wait>* waits) const {
  const MessageTable& messages = tables_.messages();
  const Op& send = tables_.SendOf(message);
  if (send.is_credit()) return;
  const auto add = [&](WaitKind kind, uint32_t needed, NodeId node) {
    if (std::ranges::find(*waits, kind, &Wait::kind) != waits->end()) return;
    waits->push_back({.kind = kind,
                      .op = RefAt(needed, node),
                      .until = CompletionOf(needed),
                      .is_cause = CompletionOf(needed) == times_.StartOf(message),
                      .is_implied = true});
  };
  const NodeId node = tables_.ChannelOf(message).from;
  const Program& program = tables_.ProgramOf(node);
  for (uint32_t i = messages.send(message); i-- > program.op_begin;) {
    const Op& op = tables_.plan().ops()[i];
    if (op.is_send() || !HaveBlockInCommon(op, send)) continue;
    add(WaitKind::kData, messages.MessageOf(i), node);
    break;
  }
  const uint32_t credits = tables_.credits().Partner(send.channel);
  if (credits == CreditTable::kNone) return;
  const uint32_t position = message - messages.ChannelBegin(send.channel);
  const uint32_t credit = tables_.credits().CreditFor(ChannelId(credits), position);
  if (credit != CreditTable::kNone) add(WaitKind::kCredit, credit, node);
}

/// What waits for the start or the delivery of a send, or for the delivery or the posting of a
/// receive, at the same node; and the receive of a send.
std::vector<Wait> Reasons::WaitedBy(OpRef ref, uint32_t message) const {
  const PlanGraph& graph = tables_.graph();
  const bool is_send = tables_.ChannelOf(message).from == ref.node;
  std::vector<Wait> waits;
  const bool is_combine = tables_.plan().ops()[tables_.IndexOf(ref)].is_combine();
  for (const Event event : {Event::kPost, Event::kStart, Event::kDeliver, Event::kCombine}) {
    if (event == (is_send ? Event::kPost : Event::kStart)) continue;
    if (event == Event::kCombine && !is_combine) continue;
    const Vertex from = tables_.graph().At(message, event);
    for (const Vertex to : graph.Successors(from)) {
      const WaitKind kind = KindOf(from, to);
      if (kind == WaitKind::kTransfer) {
        waits.push_back({.kind = kind, .op = RefAt(message, tables_.ChannelOf(message).to)});
        continue;
      }
      const bool is_its_own =
          kind == WaitKind::kPosted || kind == WaitKind::kPostOrder || kind == WaitKind::kArrived;
      if (is_its_own || kind == WaitKind::kBarrier) continue;
      const Channel& channel = tables_.ChannelOf(graph.MessageOf(to));
      const bool is_at_receiver =
          kind == WaitKind::kDeliveryOrder || graph.EventOf(to) == Event::kCombine;
      const NodeId waiter = is_at_receiver ? channel.to : channel.from;
      if (waiter == ref.node) {
        waits.push_back({.kind = kind, .op = RefAt(graph.MessageOf(to), ref.node)});
      }
    }
  }
  std::ranges::stable_sort(waits, {}, &Wait::kind);
  return waits;
}

std::vector<ChainStep> Reasons::ChainOf(uint32_t message) const {
  const PlanGraph& graph = tables_.graph();
  std::vector<ChainStep> chain;
  for (;;) {
    ChainStep& step = chain.emplace_back(ChainStep{.message = message});
    const Vertex start = tables_.graph().At(message, Event::kStart);
    Vertex cause = cause_[start];
    if (cause == kNoMessage) return chain;
    step.cause = KindOf(cause, start);
    while (graph.EventOf(cause) == Event::kCombine) cause = cause_[cause];  // takes no time
    const Event event = graph.EventOf(cause);
    // Postings happen at once, so the chain ends there.
    if (event == Event::kBarrier || event == Event::kPost) return chain;
    message = graph.MessageOf(cause);
  }
}

}  // namespace prepost
