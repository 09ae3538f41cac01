// SPDX-License-Identifier: Apache-2.0
//
// What ops there are and in which order: shape, match, the graphs, credits, windows and rounds. The
// rules come in the order of docs/plan.md.
#include "tests/support/checker.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/rule_checker.h"

namespace prepost::test::checker {

bool Checker::HeaderHolds() const {
  const Payload& message = header_.payload;
  if (header_.nodes < 1 || header_.nodes > 1u << 20) return false;
  if (header_.collective.helpers >= header_.nodes) return false;
  const uint64_t members = header_.nodes - header_.collective.helpers;
  if (header_.collective.root.value >= members) return false;
  constexpr uint64_t kBytesMax = uint64_t{1} << 62;
  if (message.bytes > kBytesMax || message.block_bytes > kBytesMax) return false;
  if (message.block_bytes < 1 || message.blocks > 1u << 24) return false;
  uint64_t parts = 1;
  switch (header_.collective.kind) {
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllgather:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      parts = members;
      break;
    case CollectiveKind::kAlltoall:
      parts = members * members;
      break;
    default:
      break;
  }
  if (message.parts != parts) return false;
  const uint64_t whole = message.bytes / message.block_bytes;
  const uint64_t blocks = whole + (message.bytes % message.block_bytes == 0 ? 0 : 1);
  if (message.blocks % parts != 0 || message.blocks / parts != std::max<uint64_t>(1, blocks))
    return false;
  if (!message.part_bytes.empty()) {
    const std::set<uint64_t> sizes(message.part_bytes.begin(), message.part_bytes.end());
    if (message.part_bytes.size() != parts || sizes.size() < 2) return false;
    if (*sizes.rbegin() != message.bytes) return false;
  }
  const bool is_other = header_.collective.kind != CollectiveKind::kMulticast;
  const auto fit = [](uint64_t count, uint64_t bytes) {
    return count == 0 || bytes <= kBytesMax / count;
  };
  if (is_other && !fit(std::max<uint64_t>(parts, header_.nodes), message.bytes)) return false;
  if (is_other && !fit(header_.scratch, message.block_bytes)) return false;
  if (header_.collective.kind == CollectiveKind::kBarrier && message.bytes != 0) return false;
  if (!OperationHolds() || header_.scratch > 65535) return false;
  if (header_.ports < 1) return false;
  if ((header_.ready.mode == ReadyMode::kWindow) != (header_.ready.window >= 1)) return false;
  return header_.send_window != 0u;
}

/// One where the collective combines, and none elsewhere; that the type has; on whole elements.
bool Checker::OperationHolds() const {
  const auto [op, type] = header_.combine;
  const std::set<CollectiveKind> kinds = {CollectiveKind::kReduce, CollectiveKind::kAllreduce,
                                          CollectiveKind::kReduceScatter, CollectiveKind::kBarrier};
  if (!kinds.contains(header_.collective.kind))
    return op == CombineOp::kNone && type == ElementType::kNone;
  if (op == CombineOp::kNone || type == ElementType::kNone) return false;
  const std::set<CombineOp> of_bits = {CombineOp::kAnd, CombineOp::kOr, CombineOp::kXor};
  if (IsFloat(type) && of_bits.contains(op)) return false;
  const std::map<ElementType, uint64_t> sizes = {
      {ElementType::kInt8, 1},     {ElementType::kUint8, 1},   {ElementType::kInt16, 2},
      {ElementType::kUint16, 2},   {ElementType::kInt32, 4},   {ElementType::kUint32, 4},
      {ElementType::kInt64, 8},    {ElementType::kUint64, 8},  {ElementType::kFloat16, 2},
      {ElementType::kBfloat16, 2}, {ElementType::kFloat32, 4}, {ElementType::kFloat64, 8}};
  const uint64_t size = sizes.at(type);
  const Payload& message = header_.payload;
  if (message.bytes % size != 0) return false;
  for (const uint64_t bytes : message.part_bytes)
    if (bytes % size != 0) return false;
  return message.bytes <= message.block_bytes || message.block_bytes % size == 0;
}

bool Checker::ChannelsHold() const {
  std::set<std::tuple<NodeId, NodeId, Lane>> seen;
  for (const Channel& channel : plan_.channels()) {
    if (channel.from.value >= header_.nodes || channel.to.value >= header_.nodes) return false;
    if (channel.from == channel.to) return false;
    if (!seen.insert({channel.from, channel.to, channel.lane}).second) return false;
  }
  return true;
}

bool Checker::ProgramsHold() const {
  std::set<NodeId> nodes;
  for (const Program& program : plan_.programs()) {
    if (program.node.value >= header_.nodes || !nodes.insert(program.node).second) return false;
    for (size_t id = 0; id < program.op_count; ++id) {
      if (!OpHolds(program, id)) return false;
    }
  }
  return nodes.size() == header_.nodes;
}

bool Checker::OpHolds(const Program& program, size_t id) const {
  const Op& op = plan_.ops(program)[id];
  if (op.channel.index() >= plan_.channels().size()) return false;
  const Channel& channel = ChannelOf(op);
  if ((op.is_send() ? channel.from : channel.to) != program.node) return false;
  if (op.is_credit() != channel.carries_credits()) return false;
  if (op.is_credit() ? op.count != 1
                     : op.block >= header_.payload.blocks || op.count < 1 ||
                           op.count > header_.payload.blocks - op.block)
    return false;
  if (op.kind == OpKind::kCombine && (header_.combine.op == CombineOp::kNone || op.is_credit()))
    return false;
  bool fills = op.kind == OpKind::kCombine;
  for (uint32_t i = 0; op.kind == OpKind::kRecv && !op.is_credit() && i < op.count; ++i)
    fills = fills || !Wants(program.node, op.block + i);
  if (op.is_credit() && op.kind != OpKind::kSend) fills = false;
  if (op.scratch == 0xffff) {
    if (fills && header_.payload.bytes > 0) return false;
  } else if (!fills || op.scratch + op.count > header_.scratch) {
    return false;
  }
  if ((op.grants >= 1) != (op.is_credit() && op.is_send())) return false;
  const auto after = plan_.after(op);
  if (op.kind == OpKind::kRecv && !after.empty()) return false;
  for (size_t entry = 0; entry < after.size(); ++entry) {
    if (after[entry].index() >= id) return false;
    if (entry > 0 && after[entry] <= after[entry - 1]) return false;
  }
  return true;
}

/// Gathers the ops of every channel and program, and the local orders.
void Checker::Collect() {
  sends_.resize(plan_.channels().size());
  recvs_.resize(plan_.channels().size());
  for (const Program& program : plan_.programs()) {
    for (size_t id = 0; id < program.op_count; ++id) {
      const Op& op = plan_.ops(program)[id];
      const Site site{.op = &op, .program = &program, .id = id};
      (op.is_send() ? sends_ : recvs_)[op.channel.index()].push_back(site);
      sites_[&program].push_back(site);
    }
    locals_.emplace(&program, LocalOrder(program));
  }
}

Graph Checker::LocalOrder(const Program& program) const {
  Graph graph(2 * size_t{program.op_count});
  std::map<std::pair<ChannelId, OpKind>, size_t> last;
  for (size_t id = 0; id < program.op_count; ++id) {
    const Op& op = plan_.ops(program)[id];
    for (OpId before : plan_.after(op)) graph.AddEdge(2 * before.index() + 1, 2 * id);
    if (op.kind != OpKind::kRecv) graph.AddEdge(2 * id, 2 * id + 1);
    const auto previous = last.find({op.channel, op.kind});
    if (previous != last.end()) {
      if (op.is_send()) graph.AddEdge(2 * previous->second, 2 * id);
      if (op.kind == OpKind::kCombine) graph.AddEdge(2 * previous->second + 1, 2 * id);
      graph.AddEdge(2 * previous->second + 1, 2 * id + 1);
    }
    last[{op.channel, op.kind}] = id;
  }
  return graph;
}

bool Checker::MatchHolds() {
  std::map<const Op*, size_t> message_of;
  for (size_t channel = 0; channel < sends_.size(); ++channel) {
    if (sends_[channel].size() != recvs_[channel].size()) return false;
    for (size_t i = 0; i < sends_[channel].size(); ++i) {
      Site& send = sends_[channel][i];
      Site& recv = recvs_[channel][i];
      if (send.op->block != recv.op->block || send.op->count != recv.op->count) return false;
      send.message = recv.message = messages_++;
      message_of[send.op] = message_of[recv.op] = send.message;
    }
  }
  for (auto& [program, sites] : sites_) {
    for (Site& site : sites) site.message = message_of.at(site.op);
  }
  return true;
}

Graph Checker::PlanGraph(bool chain_sends) const {
  const size_t barrier = 4 * messages_;
  Graph graph(4 * messages_ + 1);
  for (size_t message = 0; message < messages_; ++message) {
    graph.AddEdge(4 * message, 4 * message + 2);
    graph.AddEdge(4 * message + 1, 4 * message + 2);
    if (header_.ready.mode == ReadyMode::kBarrier) {
      graph.AddEdge(4 * message, barrier);
      graph.AddEdge(barrier, 4 * message + 1);
    }
  }
  for (size_t channel = 0; channel < sends_.size(); ++channel) AddChannelOrder(channel, &graph);
  for (const Program& program : plan_.programs()) AddProgramOrder(program, chain_sends, &graph);
  return graph;
}

void Checker::AddChannelOrder(size_t channel, Graph* graph) const {
  const std::vector<Site>& sends = sends_[channel];
  const std::vector<Site>& recvs = recvs_[channel];
  const Site* last_combine = nullptr;
  for (size_t i = 0; i < sends.size(); ++i) {
    const size_t message = 4 * sends[i].message;
    for (size_t event = 0; event < 3 && i + 1 < sends.size(); ++event) {
      graph->AddEdge(message + event, 4 * sends[i + 1].message + event);
    }
    if (recvs[i].op->kind == OpKind::kCombine) {
      graph->AddEdge(message + 2, message + 3);
      if (last_combine != nullptr) graph->AddEdge(4 * last_combine->message + 3, message + 3);
      last_combine = &recvs[i];
    }
    if (depths_.send && i + *depths_.send < sends.size()) {
      graph->AddEdge(message + 2, 4 * sends[i + *depths_.send].message + 1);
    }
    if (depths_.recv && i + *depths_.recv < sends.size()) {
      graph->AddEdge(DoneOf(recvs[i]), 4 * sends[i + *depths_.recv].message);
    }
    for (const Site& recv : GrantedBy(sends[i])) graph->AddEdge(4 * recv.message, message + 1);
  }
}

void Checker::AddProgramOrder(const Program& program, bool chain_sends, Graph* graph) const {
  const auto found = sites_.find(&program);
  if (found == sites_.end()) return;
  const Site* previous = nullptr;
  for (const Site& site : found->second) {
    const size_t begins = 4 * site.message + (site.op->is_send() ? 1 : 3);
    for (OpId before : plan_.after(*site.op))
      graph->AddEdge(DoneOf(found->second[before.index()]), begins);
    if (!site.op->is_send()) continue;
    if (chain_sends && previous != nullptr) {
      graph->AddEdge(4 * previous->message + 1, 4 * site.message + 1);
    }
    previous = &site;
  }
}

std::vector<Site> Checker::GrantedBy(const Site& credit) const {
  if (!credit.op->is_credit()) return {};
  const Channel& channel = ChannelOf(*credit.op);
  const std::vector<Site>& recvs = SitesOn(recvs_, Find(channel.to, channel.from, Lane::kBlocks));
  uint64_t begin = 0;
  for (const Site& earlier : sends_[credit.op->channel.index()]) {
    if (earlier.id == credit.id) break;
    begin += earlier.op->grants;
  }
  std::vector<Site> granted;
  for (uint64_t i = begin; i < recvs.size() && i < begin + credit.op->grants; ++i) {
    granted.push_back(recvs[i]);
  }
  return granted;
}

bool Checker::ReadyHolds() const {
  const auto channels = plan_.channels();
  for (size_t channel = 0; channel < channels.size(); ++channel) {
    const bool has_ops = !sends_[channel].empty();
    if (!HasCredits()) {
      if (has_ops && channels[channel].carries_credits()) return false;
      if (header_.ready.mode == ReadyMode::kBarrier && depths_.recv &&
          recvs_[channel].size() > *depths_.recv) {
        return false;
      }
      continue;
    }
    if (!channels[channel].carries_credits() && !GrantsHold(channel)) return false;
    // Credits of a channel that does not exist grant nothing.
    if (has_ops && channels[channel].carries_credits() &&
        Find(channels[channel].to, channels[channel].from, Lane::kBlocks) == channels.size()) {
      return false;
    }
  }
  return header_.ready.mode != ReadyMode::kWindow || CreditsAreInWindow();
}

/// The credits of a channel of blocks are its receives, and its sends wait for them.
bool Checker::GrantsHold(size_t channel) const {
  const Channel& it = plan_.channels()[channel];
  const size_t credit_channel = Find(it.to, it.from, Lane::kCredits);
  const std::vector<Site>& credit_sends = SitesOn(sends_, credit_channel);
  const std::vector<Site>& credit_recvs = SitesOn(recvs_, credit_channel);
  const std::vector<Site>& sends = sends_[channel];
  if (header_.ready.mode == ReadyMode::kChannel) {
    if (credit_sends.size() != (sends.empty() ? 0u : 1u)) return false;
    for (const Site& credit : credit_sends) {
      if (!plan_.after(*credit.op).empty()) return false;
    }
  }
  uint64_t granted = 0;
  for (size_t credit = 0; credit < credit_sends.size(); ++credit) {
    if (header_.ready.mode == ReadyMode::kWindow && credit_sends[credit].op->grants != 1) {
      return false;
    }
    for (uint64_t end = granted + credit_sends[credit].op->grants; granted < end; ++granted) {
      if (granted >= sends.size()) return false;
      if (!IsAfter(sends[granted], credit_recvs[credit])) return false;
    }
  }
  return granted == sends.size();
}

/// A node's i-th credit comes after the receive that its (i - W)-th grants.
bool Checker::CreditsAreInWindow() const {
  for (const auto& [program, sites] : sites_) {
    std::vector<Site> credits;
    for (const Site& site : sites) {
      if (site.op->is_send() && site.op->is_credit()) credits.push_back(site);
    }
    for (size_t i = header_.ready.window; i < credits.size(); ++i) {
      for (const Site& recv : GrantedBy(credits[i - header_.ready.window])) {
        if (!IsAfter(credits[i], recv)) return false;
      }
    }
  }
  return true;
}

bool Checker::WindowHolds() const {
  if (!header_.send_window) return true;
  for (const auto& [program, sites] : sites_) {
    std::vector<Site> sends;
    for (const Site& site : sites) {
      if (site.op->is_send() && !site.op->is_credit()) sends.push_back(site);
    }
    for (size_t j = *header_.send_window; j < sends.size(); ++j) {
      if (!IsAfter(sends[j], sends[j - *header_.send_window])) return false;
    }
  }
  return true;
}

/// Equal at both ends, rising from a receive to its sends, never falling along a channel.
bool Checker::RoundsRise() const {
  for (size_t channel = 0; channel < sends_.size(); ++channel) {
    for (size_t i = 0; i < sends_[channel].size(); ++i) {
      const uint32_t round = sends_[channel][i].op->round;
      if (recvs_[channel][i].op->round != round) return false;
      if (i > 0 && round < sends_[channel][i - 1].op->round) return false;
    }
  }
  return AllBlocks(OpKind::kSend, [&](const auto& sites, const Site& send, uint32_t block) {
    if (!combines_ && Contributes(send.program->node, block)) return true;
    const Site* recv = combines_ ? LastReceive(sites, send, block) : FindRecv(sites, block);
    return recv == nullptr || send.op->round > recv->op->round;
  });
}

bool Checker::RoundsFitPorts() const {
  for (const auto& [program, sites] : sites_) {
    std::map<std::tuple<bool, uint32_t, uint32_t>, size_t> count;
    for (const Site& site : sites) {
      if (site.op->is_credit()) continue;
      const uint32_t fabric = ChannelOf(*site.op).fabric;
      if (++count[{site.op->is_send(), fabric, site.op->round}] > header_.ports) return false;
    }
  }
  return true;
}

bool Checker::RoundsOfCreditsHold() const {
  for (const std::vector<Site>& sends : sends_) {
    for (const Site& credit : sends) {
      const std::vector<Site> granted = GrantedBy(credit);
      if (!granted.empty() && granted[0].op->round != credit.op->round) return false;
    }
  }
  return true;
}

bool Checker::RoundsOfHeaderHold() const {
  uint64_t rounds = 0;
  for (const Op& op : plan_.ops()) rounds = std::max(rounds, uint64_t{op.round} + 1);
  return header_.rounds == rounds;
}

}  // namespace prepost::test::checker

namespace prepost::test {

std::set<Rule> IndependentCheck(const Plan& plan, Depths depths) {
  return checker::Checker(plan, depths).Check();
}

}  // namespace prepost::test
