// SPDX-License-Identifier: Apache-2.0
//
// What blocks are where: receipts, what is sent, combined and replaced, values, and scratch
// buffers. Values are written out: which ranks, how often, and the expression as text.
#include <string>

#include "tests/support/rule_checker.h"

namespace prepost::test::checker {
namespace {

/// What a block is at a node, written out.
struct WrittenValue {
  std::map<uint32_t, size_t> ranks;  ///< how often; helpers' marks are ranks of their own
  std::string text;  ///< operands sorted, or as they are where they must be in order
  bool is_there = false;
  bool is_spoilt = false;     ///< by what broke a rule
  bool has_received = false;  ///< so that it is not in the input any more
};

/// Into `own`, and which rules that breaks.
void CombineValues(const WrittenValue& came, bool is_ordered, bool may_repeat, WrittenValue& own,
                   std::set<Rule>* broken) {
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
  own.text = "(" + (swaps ? came.text + "," + own.text : own.text + "," + came.text) + ")";
  own.has_received = true;
}

}  // namespace

bool Checker::Contributes(NodeId node, uint32_t block) const {
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

bool Checker::Wants(NodeId node, uint32_t block) const {
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

bool Checker::IsEmpty(uint32_t block) const {
  const uint32_t per_part = header_.payload.blocks / header_.payload.parts;
  const uint64_t bytes = header_.payload.part_bytes.empty()
                             ? header_.payload.bytes
                             : header_.payload.part_bytes[block / per_part];
  return block % per_part * header_.payload.block_bytes >= bytes;
}

const Site* Checker::LastReceive(const std::vector<Site>& sites, const Site& site, uint32_t block) {
  const Site* last = nullptr;
  for (const Site& it : sites) {
    if (it.id < site.id && it.op->kind != OpKind::kSend && Touches(*it.op, block)) last = &it;
  }
  return last;
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
  return AllBlocks(OpKind::kSend, [&](const auto& sites, const Site& send, uint32_t block) {
    const bool has_it = Contributes(send.program->node, block);
    const Site* recv = combines_ ? LastReceive(sites, send, block) : FindRecv(sites, block);
    if (has_it && (!combines_ || recv == nullptr)) return true;
    return recv != nullptr && IsAfter(send, *recv);
  });
}

bool Checker::CombineHolds() const {
  return AllBlocks(OpKind::kCombine, [&](const auto& sites, const Site& site, uint32_t block) {
    const Site* recv = LastReceive(sites, site, block);
    if (recv == nullptr) return Contributes(site.program->node, block);  // in the input
    if (!IsAfter(site, *recv)) return false;
    return IsEmpty(block) || std::ranges::all_of(sites, [&](const Site& send) {
             const bool is_since = send.op->is_send() && Touches(*send.op, block) &&
                                   send.id < site.id && send.id > recv->id;
             return !is_since || IsAfter(site, send);
           });
  });
}

/// The part that the program shows: one send before, since the last receive.
bool Checker::ReplaceHolds() const {
  return AllBlocks(OpKind::kRecv, [&](const auto& sites, const Site& site, uint32_t block) {
    const Site* recv = LastReceive(sites, site, block);
    if (recv == nullptr) return true;  // it is in the input, or nowhere
    size_t sends = 0;
    for (const Site& send : sites) {
      if (!send.op->is_send() || !Touches(*send.op, block) || send.id > site.id) continue;
      ++sends;
      if (send.id < recv->id) return false;
    }
    return sends == 1;
  });
}

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
            CombineValues(came, is_ordered, may_repeat, own, broken);
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
  const bool must_agree =
      own_ops.contains(header_.combine.op) ||
      (IsFloat(header_.combine.type) && !exact_on_floats.contains(header_.combine.op));
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

}  // namespace prepost::test::checker
