// SPDX-License-Identifier: Apache-2.0
//
// Example, reduce on a chain of 3: node 1 has x1+x2 when it has combined what node 2 sent, and node
// 0 then x0+(x1+x2).
#include "ir/analysis/expressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace prepost {
namespace {

/// Finalizer of SplitMix64.
uint64_t Mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Between two operands; "": the operation is written as a function.
std::string_view SignOf(CombineOp op) {
  switch (op) {
    case CombineOp::kSum:
      return "+";
    case CombineOp::kProd:
      return "*";
    case CombineOp::kAnd:
      return "&";
    case CombineOp::kOr:
      return "|";
    case CombineOp::kXor:
      return "^";
    default:
      return "";
  }
}

}  // namespace

Expressions::Expressions(const PlanTables& tables)
    : tables_(tables),
      roles_(tables.plan().header().roles()),
      run_(tables.plan(), tables.messages()) {
  for (uint32_t member = 0; member < roles_.members(); ++member)
    trees_.push_back({.fingerprint = Mixed(member)});
}

uint32_t Expressions::Join(uint32_t own, uint32_t other) {
  const auto [known, is_new] = joined_.try_emplace(uint64_t{own} << 32 | other, trees_.size());
  if (!is_new) return known->second;
  const Tree &a = trees_[own], &b = trees_[other];
  uint64_t first = a.fingerprint, second = b.fingerprint;
  if (!tables_.plan().header().combine.is_ordered() && second < first) std::swap(first, second);
  const uint64_t operands = a.operands + std::min(b.operands, UINT64_MAX - a.operands);
  trees_.push_back({.own = own,
                    .other = other,
                    .operands = operands,
                    .fingerprint = Mixed(Mixed(first) ^ (second << 1 | second >> 63))});
  return known->second;
}

Expressions::OfBlock Expressions::Of(uint32_t block) {
  const Plan& plan = tables_.plan();
  OfBlock result{.at_end = std::vector<uint32_t>(plan.header().nodes, kNone), .of_ops = {}};
  for (uint32_t node = 0; node < roles_.members(); ++node)
    if (roles_.Contributes(NodeId(node), block)) result.at_end[node] = node;
  run_.Run(block, [&](const BlockTouch& touch) {
    const Op& op = plan.ops()[touch.op];
    uint32_t& own = result.at_end[touch.node];
    if (!op.is_send()) {
      const uint32_t send = tables_.messages().send(tables_.messages().MessageOf(touch.op));
      const uint32_t brought = result.of_ops.at(send);
      own = op.is_combine() ? Join(own, brought) : brought;
    }
    result.of_ops[touch.op] = own;
    return true;
  });
  return result;
}

Expressions::Count Expressions::CountWanted() {
  std::unordered_set<uint64_t> different;
  Count count;
  for (uint32_t block = 0; block < tables_.plan().header().payload.blocks; ++block) {
    const std::vector<uint32_t> has = Of(block).at_end;
    for (uint32_t node = 0; node < roles_.members(); ++node) {
      if (!roles_.Wants(NodeId(node), block)) continue;
      if (count.first == kNone) count.first = has[node];
      different.insert(trees_[has[node]].fingerprint);
    }
  }
  count.different = different.size();
  return count;
}

Expressions::Way Expressions::WayOf(uint32_t block, NodeId node) {
  /// What a node has after a receive; first of all its contribution.
  struct Version {
    uint32_t node;
    uint32_t own = kNone;      // the version before, if this is combined
    uint32_t brought = kNone;  // the version that came
    uint32_t message = 0;
  };
  const Plan& plan = tables_.plan();
  std::vector<Version> versions;
  std::vector<uint32_t> has(plan.header().nodes, kNone);
  for (uint32_t member = 0; member < roles_.members(); ++member) {
    if (!roles_.Contributes(NodeId(member), block)) continue;
    has[member] = static_cast<uint32_t>(versions.size());
    versions.push_back({.node = member});
  }
  std::unordered_map<uint32_t, uint32_t> carried;  // by message
  run_.Run(block, [&](const BlockTouch& touch) {
    const Op& op = plan.ops()[touch.op];
    const uint32_t message = tables_.messages().MessageOf(touch.op);
    uint32_t& own = has[touch.node];
    if (op.is_send()) {
      carried[message] = own;
      return true;
    }
    versions.push_back({.node = touch.node,
                        .own = op.is_combine() ? own : kNone,
                        .brought = carried.at(message),
                        .message = message});
    own = static_cast<uint32_t>(versions.size()) - 1;
    return true;
  });
  uint32_t top = has[node.index()];
  while (versions[top].own == kNone && versions[top].brought != kNone) top = versions[top].brought;
  Way way{.made_at = NodeId(versions[top].node), .steps = {}};
  std::vector<bool> is_seen(has.size());
  is_seen[versions[top].node] = true;
  std::vector<uint32_t> open = {top};
  while (!open.empty()) {
    uint32_t version = open.back();
    open.pop_back();
    for (; version != kNone; version = versions[version].own) {
      const Version& it = versions[version];
      if (it.brought == kNone) break;
      const uint32_t from = versions[it.brought].node;
      if (is_seen[from]) continue;  // what is counted twice does no harm
      is_seen[from] = true;
      way.steps.push_back({.from = NodeId(from), .into = NodeId(it.node), .message = it.message});
      open.push_back(it.brought);
    }
  }
  return way;
}

std::string Expressions::TextOf(uint32_t expression, size_t bytes_max) const {
  const std::string_view sign = SignOf(tables_.plan().header().combine.op);
  const std::string function =
      sign.empty() ? std::string(Name(tables_.plan().header().combine.op)) + "(" : "";
  struct Part {
    uint32_t tree = kNone;  // kNone: `text`
    std::string_view text;
    bool is_inner = false;
  };
  std::vector<Part> todo = {{.tree = expression}};
  std::string text;
  while (!todo.empty()) {
    if (text.size() >= bytes_max) return text + "...";
    const Part part = todo.back();
    todo.pop_back();
    if (part.tree == kNone) {
      text += part.text;
      continue;
    }
    const Tree& tree = trees_[part.tree];
    if (tree.own == kNone) {
      text += fmt::format("x{}", part.tree);
      continue;
    }
    const bool has_parentheses = !sign.empty() && part.is_inner;
    if (has_parentheses || sign.empty()) todo.push_back({.text = ")"});
    todo.push_back({.tree = tree.other, .is_inner = true});
    todo.push_back({.text = sign.empty() ? ", " : sign});
    todo.push_back({.tree = tree.own, .is_inner = true});
    if (has_parentheses) todo.push_back({.text = "("});
    if (sign.empty()) todo.push_back({.text = function});
  }
  return text;
}

}  // namespace prepost
