// SPDX-License-Identifier: Apache-2.0
//
// value, replace and agree of collectives that combine: what a node's block is made of, found by
// running the plan on symbols, block by block. An op's effect is that of its place in the program:
// a send carries what its node's receives with smaller ids have left; causal and combine see to it
// that it does.
//
// A value is an expression over the members' contributions, with the set of those in it. Equal
// expressions have one number, whichever operand came first, so that agree compares numbers.
// Contributions come in runs of ranks in most schedules: sets are sorted runs. A helper, which
// contributes nothing, adds a mark of its own to what it is sent first: replace asks for a mark
// that only one send can have carried away.
//
// Example, reduce on a chain of 3, block 0: node 2 sends x2; node 1 combines it to x1+x2, {1-2},
// and sends that; node 0 has x0+(x1+x2), {0-2}: each contribution once.
#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/block_touches.h"
#include "ir/verify/rules.h"

namespace prepost {
namespace {

constexpr uint32_t kNone = MessageTable::kNone;
/// Of a value that a finding has left without meaning; what is made of it has none either.
constexpr uint32_t kSpoilt = kNone - 1;
/// Of all sets together: what a plan of real collectives needs, many times over.
constexpr size_t kRunsMax = size_t{1} << 26;

/// Ranks [begin, end).
struct Run {
  uint32_t begin;
  uint32_t end;
};
using Set = std::vector<Run>;

bool Contains(const Set& set, uint32_t rank) {
  const auto behind = std::ranges::upper_bound(set, rank, {}, &Run::begin);
  return behind != set.begin() && rank < std::prev(behind)->end;
}

/// The first rank below `end` that is missing in `set`; none: there is none.
std::optional<uint32_t> FirstMissing(const Set& set, uint32_t end) {
  uint32_t next = 0;
  for (const Run& run : set) {
    if (run.begin > next) break;
    next = run.end;
  }
  return next < end ? std::optional(next) : std::nullopt;
}

/// The union; `*twice`: the first rank that both have, unless there is none.
Set Union(const Set& a, const Set& b, std::optional<uint32_t>* twice) {
  Set all;
  all.reserve(a.size() + b.size());
  auto x = a.begin(), y = b.begin();
  while (x != a.end() || y != b.end()) {
    const bool is_x = y == b.end() || (x != a.end() && x->begin <= y->begin);
    const Run& run = is_x ? *x++ : *y++;
    if (all.empty() || all.back().end < run.begin) {
      all.push_back(run);
      continue;
    }
    if (all.back().end > run.begin && !*twice) *twice = run.begin;
    all.back().end = std::max(all.back().end, run.end);
  }
  return all;
}

class ValueRule {
 public:
  ValueRule(const MatchedPlan& matched, Findings* findings)
      : plan_(matched.plan),
        header_(matched.plan.header()),
        roles_(header_.roles()),
        messages_(matched.messages),
        findings_(findings),
        run_(plan_, messages_),
        leaves_(roles_.members()),
        next_expression_(leaves_),
        states_(header_.nodes),
        program_of_(header_.nodes) {
    for (uint32_t member = 0; member < leaves_; ++member)
      values_.push_back({.expression = member, .set = {{.begin = member, .end = member + 1}}});
    for (uint32_t node = 0; node < header_.nodes; ++node) ResetState(node);
    for (uint32_t p = 0; p < plan_.programs().size(); ++p)
      program_of_[plan_.programs()[p].node.index()] = p;
  }

  void Run() {
    for (uint32_t block = 0; block < header_.payload.blocks && runs_ <= kRunsMax; ++block) {
      if (TakeBlock(block)) CheckResult(block);
    }
    if (runs_ > kRunsMax) {
      findings_->Add(Place::Header("collective"), Rule::kValue, [] {
        return std::string("contributions are too scattered over the ranks to be told apart");
      });
    }
  }

 private:
  /// What a block is at a node.
  struct Value {
    uint32_t expression = kNone;  ///< the same for the same tree; not kNone
    Set set;
  };
  /// A node's part in a block.
  struct State {
    uint32_t value = kNone;  ///< number of the Value, kNone: it has none
    uint32_t sends = 0;      ///< of the block so far
    bool has_received = false;
  };

  /// Runs all ops on `block`. False: not to the end.
  bool TakeBlock(uint32_t block) {
    values_.resize(leaves_);
    memo_.clear();
    carried_.clear();
    for (const uint32_t node : run_.nodes()) ResetState(node);
    const std::optional<BlockTouch> stuck = run_.Run(block, [&](const BlockTouch& touch) {
      State& state = states_[touch.node];
      const uint32_t message = messages_.MessageOf(touch.op);
      if (!plan_.ops()[touch.op].is_send()) {
        Receive(block, touch.node, touch.op, carried_.find(message)->second);
        return runs_ <= kRunsMax;
      }
      ++state.sends;
      carried_[message] = state.value == kNone ? kSpoilt : state.value;  // causal says so
      return true;
    });
    if (stuck) {
      findings_->Add(PlaceOf(plan_, stuck->op, "block"), Rule::kValue, [&] {
        return fmt::format("what comes of block {} depends, in the order of ids, on itself", block);
      });
    }
    return !stuck && runs_ <= kRunsMax;
  }

  void ResetState(uint32_t node) { states_[node] = {.value = node < leaves_ ? node : kNone}; }

  /// What `op`, of `node`, brings of `block`.
  void Receive(uint32_t block, uint32_t node, uint32_t op, uint32_t brought) {
    State& state = states_[node];
    const bool combines = plan_.ops()[op].is_combine();
    if (brought == kSpoilt || state.value == kSpoilt) {
      state.value = kSpoilt;
    } else if (combines) {
      // With nothing there, the rule combine says so.
      state.value = state.value == kNone ? kSpoilt : Combined(block, op, state.value, brought);
    } else if (state.value == kNone) {
      state.value = node < leaves_ ? brought : Marked(brought, node);
    } else if (state.has_received && state.sends == 1 && !Contains(values_[brought].set, node)) {
      // How often it was sent, local_order_rules.cc counts.
      state.value = kSpoilt;
      findings_->Add(PlaceOf(plan_, op, "block"), Rule::kReplace, [&] {
        return fmt::format(
            "what comes of block {} is without what node {} has sent of it, which may "
            "not have left yet",
            block, node);
      });
    } else {
      state.value = brought;
    }
    state.has_received = true;
  }

  uint32_t Combined(uint32_t block, uint32_t op, uint32_t own_value, uint32_t brought) {
    const auto [known, is_new] = memo_.try_emplace({own_value, brought}, kSpoilt);
    if (!is_new && known->second != kSpoilt) return known->second;
    const Value& own = values_[own_value];
    const Value& other = values_[brought];
    std::optional<uint32_t> twice;
    Value value = {.expression = ExpressionOf(own.expression, other.expression),
                   .set = Union(own.set, other.set, &twice)};
    if (twice && !header_.combine.is_idempotent()) {
      findings_->Add(PlaceOf(plan_, op, "block"), Rule::kValue, [&] {
        return fmt::format(
            "block {}, made of {}, is combined with one that is made of {}: node {}'s contribution "
            "is in both",
            block, ToString(own.set), ToString(other.set), *twice);
      });
      return kSpoilt;
    }
    const bool is_in_order =
        own.set.size() == 1 && other.set.size() == 1 && own.set[0].end == other.set[0].begin;
    if (header_.combine.is_ordered() && !is_in_order) {
      findings_->Add(PlaceOf(plan_, op, "block"), Rule::kAgree, [&] {
        return fmt::format(
            "block {}: operands of {} are in the order of ranks, and {} op {} are not", block,
            Name(header_.combine.op), ToString(own.set), ToString(other.set));
      });
      return kSpoilt;
    }
    runs_ += value.set.size();
    values_.push_back(std::move(value));
    return known->second = static_cast<uint32_t>(values_.size()) - 1;
  }

  uint32_t ExpressionOf(uint32_t own, uint32_t other) {
    if (!header_.combine.is_ordered() && other < own) std::swap(own, other);
    const auto [known, is_new] = expressions_.try_emplace({own, other}, next_expression_);
    if (is_new) ++next_expression_;
    return known->second;
  }

  uint32_t Marked(uint32_t brought, uint32_t helper) {
    Value value = values_[brought];
    std::optional<uint32_t> twice;
    value.set = Union(value.set, {{.begin = helper, .end = helper + 1}}, &twice);
    runs_ += value.set.size();
    values_.push_back(std::move(value));
    return static_cast<uint32_t>(values_.size()) - 1;
  }

  static std::string ToString(const Set& set) {
    std::string text;
    for (size_t i = 0; i < set.size() && i < 4; ++i) {
      text += text.empty() ? "" : ",";
      text += set[i].end - set[i].begin == 1 ? fmt::to_string(set[i].begin)
                                             : fmt::format("{}-{}", set[i].begin, set[i].end - 1);
    }
    return "{" + text + (set.size() > 4 ? ",..." : "") + "}";
  }

  /// Whoever wants the block has every contribution in it, and all the same. The first that has not
  /// is a finding.
  void CheckResult(uint32_t block) {
    uint32_t first = kNone;  // node
    const PartRow wanting = roles_.NodesWanting(roles_.PartOf(block));
    for (uint32_t i = 0; i < wanting.count; ++i) {
      const uint32_t node = wanting.At(i);
      if (states_[node].value == kSpoilt) continue;
      const Value& value = values_[states_[node].value];
      if (const auto missing = FirstMissing(value.set, roles_.members())) {
        findings_->Add(Place::ProgramAt(program_of_[node]), Rule::kValue, [&] {
          return fmt::format("block {} at node {} is made of {}, node {}'s contribution is missing",
                             block, node, ToString(value.set), *missing);
        });
        return;
      }
      if (first == kNone) {
        first = node;
      } else if (!header_.combine.is_exact() &&
                 value.expression != values_[states_[first].value].expression) {
        findings_->Add(Place::ProgramAt(program_of_[node]), Rule::kAgree, [&] {
          return fmt::format(
              "block {} at node {} is combined in another order than at node {}, and "
              "{} depends on it",
              block, node, first, prepost::ToString(header_.combine));
        });
        return;
      }
    }
  }

  const Plan& plan_;
  const PlanHeader& header_;
  const Roles roles_;
  const MessageTable& messages_;
  Findings* findings_;
  BlockRun run_;
  std::vector<Value> values_;  // of the block in hand; first the members' contributions
  const uint32_t leaves_;      // how many of these
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> memo_;  // (own, other) -> value
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> expressions_;
  uint32_t next_expression_;
  llvm::DenseMap<uint32_t, uint32_t> carried_;  // message -> value, of the block in hand
  std::vector<State> states_;                   // by node
  std::vector<uint32_t> program_of_;            // by node
  size_t runs_ = 0;
};

}  // namespace

void CheckValues(const MatchedPlan& matched, Findings* findings) {
  ValueRule(matched, findings).Run();
}

}  // namespace prepost
