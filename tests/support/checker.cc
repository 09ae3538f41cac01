// SPDX-License-Identifier: Apache-2.0
//
// Each rule is a function that says whether it holds; they come in the order of docs/plan.md. Two
// graphs are built as the text defines them: the local order of each node, with vertices 2 * op
// (start) and 2 * op + 1 (done), and the plan graph, with vertices 4 * message + {0: post,
// 1: start, 2: deliver, 3: combine} and one more for the barrier. Values are written out: which ranks,
// how often, and the expression as text.
#include "tests/support/checker.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace prepost::test {
namespace {

class Graph {
 public:
  explicit Graph(size_t vertices) : next_(vertices) {}

  void AddEdge(size_t from, size_t to) { next_[from].push_back(to); }

  bool Reaches(size_t from, size_t to) const {
    std::vector<bool> seen(next_.size());
    std::vector<size_t> open = {from};
    while (!open.empty()) {
      const size_t vertex = open.back();
      open.pop_back();
      if (vertex == to) return true;
      if (seen[vertex]) continue;
      seen[vertex] = true;
      open.insert(open.end(), next_[vertex].begin(), next_[vertex].end());
    }
    return false;
  }

  bool HasCycle() const {
    std::vector<size_t> before(next_.size());
    for (const std::vector<size_t>& targets : next_) {
      for (size_t target : targets) ++before[target];
    }
    std::vector<size_t> free;
    for (size_t vertex = 0; vertex < before.size(); ++vertex) {
      if (before[vertex] == 0) free.push_back(vertex);
    }
    size_t taken = 0;
    for (; !free.empty(); ++taken) {
      const size_t vertex = free.back();
      free.pop_back();
      for (size_t target : next_[vertex]) {
        if (--before[target] == 0) free.push_back(target);
      }
    }
    return taken < next_.size();
  }

 private:
  std::vector<std::vector<size_t>> next_;
};

/// An op that the checker knows the place of.
struct Site {
  const Op* op = nullptr;
  const Program* program = nullptr;
  size_t id = 0;
  size_t message = 0;  ///< dense number of its message
};

class Checker {
 public:
  Checker(const Plan& plan, Depths depths) : plan_(plan), header_(plan.header()), depths_(depths) {}

  std::set<Rule> Check() {
    if (!HeaderHolds() || !ChannelsHold() || !ProgramsHold()) return {Rule::kShape};
    Collect();
    if (!MatchHolds()) return {Rule::kMatch};
    combines_ = header_.combine.op != CombineOp::kNone;
    std::set<Rule> broken;
    const auto expect = [&](bool holds, Rule rule) {
      if (!holds) broken.insert(rule);
    };
    expect(combines_ ? true : ReceiptsHold(), Rule::kValue);
    expect(CausalHolds(), Rule::kCausal);
    if (combines_) {
      expect(CombineHolds(), Rule::kCombine);
      expect(ReplaceHolds(), Rule::kReplace);
      CheckValues(&broken);
    }
    expect(ScratchHolds(), Rule::kScratch);
    expect(!PlanGraph(false).HasCycle(), Rule::kAcyclic);
    // "It still has none": a question only for a plan graph without cycles.
    expect(broken.contains(Rule::kAcyclic) || !PlanGraph(true).HasCycle(), Rule::kOrder);
    expect(ReadyHolds(), Rule::kReady);
    expect(WindowHolds(), Rule::kWindow);
    expect(RoundsRise() && RoundsFitPorts() && RoundsOfCreditsHold() && RoundsOfHeaderHold(),
           Rule::kRounds);
    return broken;
  }

 private:
  // shape
  bool HeaderHolds() const;
  bool OperationHolds() const;
  bool ChannelsHold() const;
  bool ProgramsHold() const;
  bool OpHolds(const Program& program, size_t id) const;
  // match, value, causal
  bool MatchHolds();
  bool ReceiptsHold() const;
  static const Site* FindRecv(const std::vector<Site>& sites, uint32_t block);
  bool CausalHolds() const;
  // where blocks are combined
  bool CombineHolds() const;
  bool ReplaceHolds() const;
  void CheckValues(std::set<Rule>* broken) const;
  void CheckValuesOf(uint32_t block, std::set<Rule>* broken) const;
  // scratch
  bool ScratchHolds() const;
  bool BuffersHold(const Program& program, const std::vector<Site>& sites) const;
  const Site* CreditFor(const Site& recv) const;
  // ready
  bool ReadyHolds() const;
  bool GrantsHold(size_t channel) const;
  bool CreditsAreInWindow() const;
  // window, rounds
  bool WindowHolds() const;
  bool RoundsRise() const;
  bool RoundsFitPorts() const;
  bool RoundsOfCreditsHold() const;
  bool RoundsOfHeaderHold() const;

  void Collect();
  Graph LocalOrder(const Program& program) const;
  Graph PlanGraph(bool chain_sends) const;
  /// When an op has completed.
  static size_t DoneOf(const Site& site) {
    return 4 * site.message + (site.op->kind == OpKind::kCombine ? 3 : 2);
  }
  void AddChannelOrder(size_t channel, Graph* graph) const;
  void AddProgramOrder(const Program& program, bool chain_sends, Graph* graph) const;

  const Channel& ChannelOf(const Op& op) const { return plan_.channels()[op.channel.index()]; }
  bool HasCredits() const {
    return header_.ready.mode == ReadyMode::kChannel || header_.ready.mode == ReadyMode::kWindow;
  }
  /// The index of channel (from, to, lane), or the number of channels.
  size_t Find(NodeId from, NodeId to, Lane lane) const {
    const auto all = plan_.channels();
    const auto found = std::ranges::find_if(
        all, [&](const Channel& it) { return it.from == from && it.to == to && it.lane == lane; });
    return static_cast<size_t>(found - all.begin());
  }
  bool Contributes(NodeId node, uint32_t block) const {
    const uint32_t n = header_.nodes - header_.collective.helpers;
    const uint32_t part = block / (header_.payload.blocks / header_.payload.parts);
    if (node.value >= n) return false;
    switch (header_.collective.kind) {
      case CollectiveKind::kMulticast:
      case CollectiveKind::kScatter:
        return node == header_.collective.root;
      case CollectiveKind::kAllgather:
      case CollectiveKind::kGather:
        return node.value == part;
      case CollectiveKind::kAlltoall:
        return node.value == part / n;
      default:
        return true;
    }
  }
  bool Wants(NodeId node, uint32_t block) const {
    const uint32_t n = header_.nodes - header_.collective.helpers;
    const uint32_t part = block / (header_.payload.blocks / header_.payload.parts);
    if (node.value >= n) return false;
    switch (header_.collective.kind) {
      case CollectiveKind::kReduce:
      case CollectiveKind::kGather:
        return node == header_.collective.root;
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kScatter:
        return node.value == part;
      case CollectiveKind::kAlltoall:
        return node.value == part % n;
      default:
        return true;
    }
  }
  bool IsEmpty(uint32_t block) const {
    const uint32_t per_part = header_.payload.blocks / header_.payload.parts;
    const uint64_t bytes = header_.payload.part_bytes.empty()
                               ? header_.payload.bytes
                               : header_.payload.part_bytes[block / per_part];
    return block % per_part * header_.payload.block_bytes >= bytes;
  }
  static bool Touches(const Op& op, uint32_t block) {
    return !op.is_credit() && op.block <= block && block < op.block + op.count;
  }
  /// The last receive of `block` in the program before `site`, or null.
  static const Site* LastReceive(const std::vector<Site>& sites, const Site& site, uint32_t block) {
    const Site* last = nullptr;
    for (const Site& it : sites) {
      if (it.id < site.id && it.op->kind != OpKind::kSend && Touches(*it.op, block)) last = &it;
    }
    return last;
  }
  /// The ops of a channel that may not exist.
  const std::vector<Site>& SitesOn(const std::vector<std::vector<Site>>& sites,
                                   size_t channel) const {
    return channel < sites.size() ? sites[channel] : none_;
  }
  /// The receives that the credit with this send grants, as far as they exist.
  std::vector<Site> GrantedBy(const Site& credit) const;
  /// "y is locally after x".
  bool IsAfter(const Site& y, const Site& x) const {
    return y.program == x.program && locals_.at(y.program).Reaches(2 * x.id + 1, 2 * y.id);
  }

  const Plan& plan_;
  const PlanHeader& header_;
  const Depths depths_;
  const std::vector<Site> none_;
  std::vector<std::vector<Site>> sends_;  // [channel], in id order
  std::vector<std::vector<Site>> recvs_;
  std::map<const Program*, std::vector<Site>> sites_;  // [program], in id order
  std::map<const Program*, Graph> locals_;
  size_t messages_ = 0;
  bool combines_ = false;
};

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
  const std::set<ElementType> floats = {ElementType::kFloat16, ElementType::kBfloat16,
                                        ElementType::kFloat32, ElementType::kFloat64};
  const std::set<CombineOp> of_bits = {CombineOp::kAnd, CombineOp::kOr, CombineOp::kXor};
  if (floats.contains(type) && of_bits.contains(op)) return false;
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

bool Checker::ReceiptsHold() const {
  for (const Program& program : plan_.programs()) {
    std::map<uint32_t, size_t> times;
    for (const Op& op : plan_.ops(program)) {
      for (uint32_t i = 0; op.kind == OpKind::kRecv && !op.is_credit() && i < op.count; ++i)
        ++times[op.block + i];
    }
    for (uint32_t block = 0; block < header_.payload.blocks; ++block) {
      const size_t received = times.contains(block) ? times.at(block) : 0;
      const bool has_it = Contributes(program.node, block);
      if (received > (has_it ? 0u : 1u)) return false;
      if (!has_it && received == 0 && Wants(program.node, block)) return false;
    }
  }
  return true;
}

/// Where a node receives a block; the first time, when it is more than once.
const Site* Checker::FindRecv(const std::vector<Site>& sites, uint32_t block) {
  const auto found = std::ranges::find_if(
      sites, [&](const Site& it) { return !it.op->is_send() && Touches(*it.op, block); });
  return found == sites.end() ? nullptr : &*found;
}

bool Checker::CausalHolds() const {
  for (const auto& [program, sites] : sites_) {
    for (const Site& send : sites) {
      if (!send.op->is_send() || send.op->is_credit()) continue;
      for (uint32_t block = send.op->block; block < send.op->block + send.op->count; ++block) {
        const bool has_it = Contributes(program->node, block);
        const Site* recv = combines_ ? LastReceive(sites, send, block) : FindRecv(sites, block);
        if (has_it && (!combines_ || recv == nullptr)) continue;
        if (recv == nullptr || !IsAfter(send, *recv)) return false;
      }
    }
  }
  return true;
}

bool Checker::CombineHolds() const {
  for (const auto& [program, sites] : sites_) {
    for (const Site& site : sites) {
      if (site.op->kind != OpKind::kCombine) continue;
      for (uint32_t block = site.op->block; block < site.op->block + site.op->count; ++block) {
        const Site* recv = LastReceive(sites, site, block);
        if (recv == nullptr && !Contributes(program->node, block)) return false;
        if (recv == nullptr) continue;  // or it is in the input
        if (!IsAfter(site, *recv)) return false;
        if (IsEmpty(block)) continue;
        for (const Site& send : sites) {
          const bool is_since = send.op->is_send() && Touches(*send.op, block) &&
                                send.id < site.id && send.id > recv->id;
          if (is_since && !IsAfter(site, send)) return false;
        }
      }
    }
  }
  return true;
}

/// The part that the program shows: one send before, since the last receive.
bool Checker::ReplaceHolds() const {
  for (const auto& [program, sites] : sites_) {
    for (const Site& site : sites) {
      if (site.op->kind != OpKind::kRecv || site.op->is_credit()) continue;
      for (uint32_t block = site.op->block; block < site.op->block + site.op->count; ++block) {
        const Site* recv = LastReceive(sites, site, block);
        if (recv == nullptr) continue;  // it is in the input, or nowhere
        size_t sends = 0;
        for (const Site& send : sites) {
          if (!send.op->is_send() || !Touches(*send.op, block) || send.id > site.id) continue;
          ++sends;
          if (send.id < recv->id) return false;
        }
        if (sends != 1) return false;
      }
    }
  }
  return true;
}

/// What a block is at a node, written out.
struct WrittenValue {
  std::map<uint32_t, size_t> ranks;  ///< how often; helpers' marks are ranks of their own
  std::string text;  ///< operands sorted, or as they are where they must be in order
  bool is_there = false;
  bool is_spoilt = false;     ///< by what broke a rule
  bool has_received = false;  ///< so that it is not in the input any more
};

void Checker::CheckValues(std::set<Rule>* broken) const {
  for (uint32_t block = 0; block < header_.payload.blocks; ++block) CheckValuesOf(block, broken);
}

void Checker::CheckValuesOf(uint32_t block, std::set<Rule>* broken) const {
  const bool is_ordered = header_.combine.op == CombineOp::kUserOrdered;
  const std::set<CombineOp> repeatable = {CombineOp::kMin, CombineOp::kMax, CombineOp::kAnd,
                                          CombineOp::kOr};
  const bool may_repeat = repeatable.contains(header_.combine.op);
  std::map<NodeId, WrittenValue> values;
  std::map<NodeId, std::vector<Site>> rest;  // of the block's ops, the last first
  std::map<NodeId, size_t> sends;
  for (const auto& [program, sites] : sites_) {
    for (const Site& site : sites) {
      if (Touches(*site.op, block)) rest[program->node].insert(rest[program->node].begin(), site);
    }
  }
  for (uint32_t node = 0; node < header_.nodes; ++node) {
    if (Contributes(NodeId(node), block))
      values[NodeId(node)] = {
          .ranks = {{node, 1}}, .text = "x" + std::to_string(node), .is_there = true};
  }
  std::map<size_t, WrittenValue> carried;  // message
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (auto& [node, ops] : rest) {
      while (!ops.empty()) {
        const Site site = ops.back();
        WrittenValue& own = values[node];
        if (site.op->is_send()) {
          carried[site.message] = own;
          carried[site.message].is_spoilt |= !own.is_there;  // causal
          ++sends[node];
        } else {
          if (!carried.contains(site.message)) break;
          const WrittenValue& came = carried.at(site.message);
          const bool is_combine = site.op->kind == OpKind::kCombine;
          if (came.is_spoilt || own.is_spoilt || (is_combine && !own.is_there)) {
            own.is_there = own.is_spoilt = true;
          } else if (is_combine) {
            if (is_ordered) {
              const auto is_run = [](const WrittenValue& it) {
                return it.ranks.rbegin()->first - it.ranks.begin()->first + 1 == it.ranks.size();
              };
              if (!is_run(own) || !is_run(came) ||
                  own.ranks.rbegin()->first + 1 != came.ranks.begin()->first) {
                const bool is_twice = std::ranges::any_of(
                    came.ranks, [&](const auto& it) { return own.ranks.contains(it.first); });
                broken->insert(is_twice ? Rule::kValue : Rule::kAgree);
                own.is_spoilt = true;
              }
            }
            for (const auto& [rank, times] : came.ranks) {
              own.ranks[rank] += times;
              if (own.ranks[rank] > 1 && !may_repeat) {
                broken->insert(Rule::kValue);
                own.is_spoilt = true;
              }
            }
            const bool swaps = !is_ordered && came.text < own.text;
            own.text =
                "(" + (swaps ? came.text + "," + own.text : own.text + "," + came.text) + ")";
            own.has_received = true;
          } else {
            if (own.has_received && sends[node] == 1 && !came.ranks.contains(node.value)) {
              broken->insert(Rule::kReplace);
              own.is_spoilt = true;
              ops.pop_back();
              goes_on = true;
              continue;
            }
            const bool is_helpers_first =
                !own.is_there && node.value >= header_.nodes - header_.collective.helpers;
            own = came;
            own.has_received = true;
            if (is_helpers_first) ++own.ranks[node.value];
          }
        }
        ops.pop_back();
        goes_on = true;
      }
    }
  }
  for (const auto& [node, ops] : rest) {
    if (ops.empty()) continue;
    broken->insert(Rule::kValue);
    return;
  }
  const std::set<CombineOp> exact_on_floats = {CombineOp::kMin, CombineOp::kMax};
  const std::set<CombineOp> own_ops = {CombineOp::kUser, CombineOp::kUserOrdered};
  const std::set<ElementType> floats = {ElementType::kFloat16, ElementType::kBfloat16,
                                        ElementType::kFloat32, ElementType::kFloat64};
  const bool must_agree =
      own_ops.contains(header_.combine.op) ||
      (floats.contains(header_.combine.type) && !exact_on_floats.contains(header_.combine.op));
  std::set<std::string> texts;
  for (uint32_t node = 0; node < header_.nodes; ++node) {
    if (!Wants(NodeId(node), block)) continue;
    const WrittenValue& value = values[NodeId(node)];
    if (value.is_spoilt) continue;
    for (uint32_t rank = 0; rank < header_.nodes - header_.collective.helpers; ++rank) {
      if (value.ranks.contains(rank)) continue;
      broken->insert(Rule::kValue);
      return;
    }
    texts.insert(value.text);
    if (must_agree && texts.size() > 1) {
      broken->insert(Rule::kAgree);
      return;
    }
  }
}

bool Checker::ScratchHolds() const {
  return std::ranges::all_of(sites_,
                             [&](const auto& it) { return BuffersHold(*it.first, it.second); });
}

bool Checker::BuffersHold(const Program& program, const std::vector<Site>& sites) const {
  struct Holder {
    const Site* site;
    uint32_t block;
    bool is_place;
  };
  std::map<uint32_t, Holder> holders;  // buffer
  std::set<uint32_t> placed;           // blocks
  for (const Site& site : sites) {
    const Op& op = *site.op;
    if (op.is_send() || op.is_credit()) continue;
    for (uint32_t i = 0; i < op.count; ++i) {
      const uint32_t block = op.block + i;
      const bool is_wanted = Wants(program.node, block);
      const bool is_place = placed.insert(block).second && !is_wanted;
      if (op.scratch == 0xffff || (is_wanted && op.kind == OpKind::kRecv)) continue;
      const uint32_t buffer = op.scratch + i;
      const auto used = holders.find(buffer);
      if (used != holders.end()) {
        if (header_.ready.mode != ReadyMode::kWindow) return false;
        const Site* credit = CreditFor(site);
        for (const Site& use : sites) {
          const bool needs_it = use.id == used->second.site->id ||
                                (used->second.is_place && use.id > used->second.site->id &&
                                 Touches(*use.op, used->second.block));
          if (needs_it && credit != nullptr && !IsAfter(*credit, use)) return false;
        }
      }
      holders[buffer] = {&site, block, is_place};
    }
  }
  return true;
}

/// The send of the credit that grants a receive, or null.
const Site* Checker::CreditFor(const Site& recv) const {
  const Channel& channel = ChannelOf(*recv.op);
  for (const Site& credit : SitesOn(sends_, Find(channel.to, channel.from, Lane::kCredits))) {
    for (const Site& granted : GrantedBy(credit)) {
      if (granted.program == recv.program && granted.id == recv.id) return &credit;
    }
  }
  return nullptr;
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
  for (const auto& [program, sites] : sites_) {
    for (const Site& send : sites) {
      if (!send.op->is_send() || send.op->is_credit()) continue;
      for (uint32_t block = send.op->block; block < send.op->block + send.op->count; ++block) {
        if (!combines_ && Contributes(program->node, block)) continue;
        const Site* recv = combines_ ? LastReceive(sites, send, block) : FindRecv(sites, block);
        if (recv != nullptr && send.op->round <= recv->op->round) return false;
      }
    }
  }
  return true;
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

}  // namespace

std::set<Rule> IndependentCheck(const Plan& plan, Depths depths) {
  return Checker(plan, depths).Check();
}

}  // namespace prepost::test
