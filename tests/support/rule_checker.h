// SPDX-License-Identifier: Apache-2.0
//
// The class behind IndependentCheck (checker.h), for its two sources: checker.cc has the rules of
// what ops there are and in which order, checker_values.cc those of what blocks are where. Each
// rule is a function that says whether it holds. Two graphs are built as docs/plan.md defines them:
// the local order of each node, with vertices 2 * op (start) and 2 * op + 1 (done), and the plan
// graph, with vertices 4 * message + {0: post, 1: start, 2: deliver, 3: combine} and one more for
// the barrier.
#ifndef PREPOST_TESTS_SUPPORT_RULE_CHECKER_H_
#define PREPOST_TESTS_SUPPORT_RULE_CHECKER_H_

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/plan.h"
#include "tests/support/depths.h"

namespace prepost::test::checker {

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
  /// Whether `holds` of each block of each op of this kind, credits aside.
  template <typename Holds>
  bool AllBlocks(OpKind kind, const Holds& holds) const {
    for (const auto& [program, sites] : sites_) {
      for (const Site& site : sites) {
        if (site.op->kind != kind || site.op->is_credit()) continue;
        for (uint32_t block = site.op->block; block < site.op->block + site.op->count; ++block)
          if (!holds(sites, site, block)) return false;
      }
    }
    return true;
  }
  bool Contributes(NodeId node, uint32_t block) const;
  bool Wants(NodeId node, uint32_t block) const;
  bool IsEmpty(uint32_t block) const;
  static bool IsFloat(ElementType type) {
    return std::set{ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat32,
                    ElementType::kFloat64}
        .contains(type);
  }
  static bool Touches(const Op& op, uint32_t block) {
    return !op.is_credit() && op.block <= block && block < op.block + op.count;
  }
  /// The last receive of `block` in the program before `site`, or null.
  static const Site* LastReceive(const std::vector<Site>& sites, const Site& site, uint32_t block);
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

}  // namespace prepost::test::checker

#endif  // PREPOST_TESTS_SUPPORT_RULE_CHECKER_H_
