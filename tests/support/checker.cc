// SPDX-License-Identifier: Apache-2.0
//
// Each rule is a function that says whether it holds; they come in the order of docs/plan.md. Two
// graphs are built as the text defines them: the local order of each node, with vertices 2 * op
// (start) and 2 * op + 1 (done), and the plan graph, with vertices 3 * message + {0: post,
// 1: start, 2: deliver} and one more for the barrier.
#include "tests/support/checker.h"

#include <algorithm>
#include <map>
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
    std::set<Rule> broken;
    const auto expect = [&](bool holds, Rule rule) {
      if (!holds) broken.insert(rule);
    };
    expect(OnceHolds(), Rule::kOnce);
    expect(CausalHolds(), Rule::kCausal);
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
  bool ChannelsHold() const;
  bool ProgramsHold() const;
  bool OpHolds(const Program& program, size_t id) const;
  // match, once, causal
  bool MatchHolds();
  bool OnceHolds() const;
  static const Site* FindRecv(const std::vector<Site>& sites, uint32_t block);
  bool CausalHolds() const;
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
  void AddChannelOrder(size_t channel, Graph* graph) const;
  void AddProgramOrder(const Program& program, bool chain_sends, Graph* graph) const;

  const Channel& ChannelOf(const Op& op) const { return plan_.channels()[op.channel.index()]; }
  bool HasCredits() const {
    return header_.ready.mode == ReadyMode::kChannel || header_.ready.mode == ReadyMode::kWindow;
  }
  /// The index of channel (from, to, lane), or the number of channels.
  size_t Find(NodeId from, NodeId to, Lane lane) const {
    const auto all = plan_.channels();
    return static_cast<size_t>(
        std::ranges::find(all, Channel{.from = from, .to = to, .lane = lane}) - all.begin());
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
};

bool Checker::HeaderHolds() const {
  const Payload& message = header_.payload;
  if (header_.nodes < 1 || header_.collective.root.value >= header_.nodes) return false;
  if (header_.collective.kind != CollectiveKind::kMulticast || header_.nodes > 1u << 20)
    return false;
  constexpr uint64_t kBytesMax = uint64_t{1} << 62;
  if (message.bytes > kBytesMax || message.block_bytes > kBytesMax) return false;
  if (message.block_bytes < 1 || message.blocks > 1u << 24) return false;
  const uint64_t whole = message.bytes / message.block_bytes;
  const uint64_t blocks = whole + (message.bytes % message.block_bytes == 0 ? 0 : 1);
  if (message.blocks != std::max<uint64_t>(1, blocks)) return false;
  if (header_.ports < 1) return false;
  if ((header_.ready.mode == ReadyMode::kWindow) != (header_.ready.window >= 1)) return false;
  return header_.send_window != 0u;
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
  if (!op.is_credit() && op.block >= header_.payload.blocks) return false;
  if ((op.grants >= 1) != (op.is_credit() && op.is_send())) return false;
  const auto after = plan_.after(op);
  if (!op.is_send() && !after.empty()) return false;
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
    if (op.is_send()) graph.AddEdge(2 * id, 2 * id + 1);
    const auto previous = last.find({op.channel, op.kind});
    if (previous != last.end()) {
      if (op.is_send()) graph.AddEdge(2 * previous->second, 2 * id);
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
      if (send.op->block != recv.op->block) return false;
      send.message = recv.message = messages_++;
      message_of[send.op] = message_of[recv.op] = send.message;
    }
  }
  for (auto& [program, sites] : sites_) {
    for (Site& site : sites) site.message = message_of.at(site.op);
  }
  return true;
}

bool Checker::OnceHolds() const {
  for (const auto& [program, sites] : sites_) {
    std::map<uint32_t, size_t> count;
    for (const Site& site : sites) {
      if (!site.op->is_send() && !site.op->is_credit()) ++count[site.op->block];
    }
    if (program->node == header_.collective.root) {
      if (!count.empty()) return false;
      continue;
    }
    if (count.size() != header_.payload.blocks) return false;
    for (const auto& [block, times] : count) {
      if (times != 1) return false;
    }
  }
  // A program without ops is not among the sites.
  return std::ranges::all_of(plan_.programs(), [&](const Program& program) {
    return program.op_count > 0 || program.node == header_.collective.root;
  });
}

/// Where a node receives a block; the first time, when it is more than once.
const Site* Checker::FindRecv(const std::vector<Site>& sites, uint32_t block) {
  const auto found = std::ranges::find_if(
      sites, [&](const Site& it) { return !it.op->is_send() && it.op->block == block; });
  return found == sites.end() ? nullptr : &*found;
}

bool Checker::CausalHolds() const {
  for (const auto& [program, sites] : sites_) {
    if (program->node == header_.collective.root) continue;
    for (const Site& send : sites) {
      if (!send.op->is_send() || send.op->is_credit()) continue;
      const Site* recv = FindRecv(sites, send.op->block);
      if (recv == nullptr || !IsAfter(send, *recv)) return false;
    }
  }
  return true;
}

Graph Checker::PlanGraph(bool chain_sends) const {
  const size_t barrier = 3 * messages_;
  Graph graph(3 * messages_ + 1);
  for (size_t message = 0; message < messages_; ++message) {
    graph.AddEdge(3 * message, 3 * message + 2);
    graph.AddEdge(3 * message + 1, 3 * message + 2);
    if (header_.ready.mode == ReadyMode::kBarrier) {
      graph.AddEdge(3 * message, barrier);
      graph.AddEdge(barrier, 3 * message + 1);
    }
  }
  for (size_t channel = 0; channel < sends_.size(); ++channel) AddChannelOrder(channel, &graph);
  for (const Program& program : plan_.programs()) AddProgramOrder(program, chain_sends, &graph);
  return graph;
}

void Checker::AddChannelOrder(size_t channel, Graph* graph) const {
  const std::vector<Site>& sends = sends_[channel];
  for (size_t i = 0; i < sends.size(); ++i) {
    const size_t message = 3 * sends[i].message;
    for (size_t event = 0; event < 3 && i + 1 < sends.size(); ++event) {
      graph->AddEdge(message + event, 3 * sends[i + 1].message + event);
    }
    if (depths_.send && i + *depths_.send < sends.size()) {
      graph->AddEdge(message + 2, 3 * sends[i + *depths_.send].message + 1);
    }
    if (depths_.recv && i + *depths_.recv < sends.size()) {
      graph->AddEdge(message + 2, 3 * sends[i + *depths_.recv].message);
    }
    for (const Site& recv : GrantedBy(sends[i])) graph->AddEdge(3 * recv.message, message + 1);
  }
}

void Checker::AddProgramOrder(const Program& program, bool chain_sends, Graph* graph) const {
  const auto found = sites_.find(&program);
  if (found == sites_.end()) return;
  const Site* previous = nullptr;
  for (const Site& site : found->second) {
    for (OpId before : plan_.after(*site.op)) {
      graph->AddEdge(3 * found->second[before.index()].message + 2, 3 * site.message + 1);
    }
    if (!site.op->is_send()) continue;
    if (chain_sends && previous != nullptr) {
      graph->AddEdge(3 * previous->message + 1, 3 * site.message + 1);
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
    if (program->node == header_.collective.root) continue;
    for (const Site& send : sites) {
      if (!send.op->is_send() || send.op->is_credit()) continue;
      const Site* recv = FindRecv(sites, send.op->block);
      if (recv != nullptr && send.op->round <= recv->op->round) return false;
    }
  }
  return true;
}

bool Checker::RoundsFitPorts() const {
  for (const auto& [program, sites] : sites_) {
    std::map<std::pair<OpKind, uint32_t>, size_t> count;
    for (const Site& site : sites) {
      if (site.op->is_credit()) continue;
      if (++count[{site.op->kind, site.op->round}] > header_.ports) return false;
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
