// SPDX-License-Identifier: Apache-2.0
#include "planning/report/explain_print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "ir/analysis/expressions.h"
#include "ir/base/count.h"
#include "planning/flags/op_reference.h"

namespace prepost {
namespace {

using Json = nlohmann::ordered_json;

// What a list in text shows at most; a long chain shows its two ends.
constexpr size_t kWaitsMax = 20;
constexpr size_t kPeersMax = 12;
constexpr size_t kChainHead = 20;
constexpr size_t kChainTail = 10;
constexpr size_t kExpressionBytesMax = 200;
constexpr size_t kExpressionBytesOfJsonMax = size_t{1} << 20;

const char* Name(WaitKind kind) {
  switch (kind) {
    case WaitKind::kTransfer:
      return "transfer";
    case WaitKind::kData:
      return "data";
    case WaitKind::kSendWindow:
      return "send_window";
    case WaitKind::kChannelOrder:
      return "channel_order";
    case WaitKind::kReceiveWindow:
      return "receive_window";
    case WaitKind::kCredit:
      return "credit";
    case WaitKind::kCombineOrder:
      return "combine_order";
    case WaitKind::kLeft:
      return "left";
    case WaitKind::kScratch:
      return "scratch";
    case WaitKind::kAfter:
      return "after";
    case WaitKind::kDeliveryOrder:
      return "delivery_order";
    case WaitKind::kGranted:
      return "granted";
    case WaitKind::kPosted:
      return "posted";
    case WaitKind::kArrived:
      return "arrived";
    case WaitKind::kPostOrder:
      return "post_order";
    case WaitKind::kBarrier:
      return "barrier";
  }
  PREPOST_CHECK(false);
  return "";
}

/// EventWords for one plan.
class EventWords {
 public:
  explicit EventWords(const PlanTables& tables)
      : tables_(tables), header_(tables.plan().header()) {}

  /// "node 5 op 7 (recv 1>5:3), round 3".
  std::string Of(OpRef ref) const {
    return fmt::format("{}, round {}",
                       Describe(tables_.plan(), tables_.ProgramOf(ref.node), ref.op),
                       OpAt(ref).round);
  }
  /// "1>5:3" or "credit 5>1".
  std::string OfMessage(uint32_t message) const {
    const Channel& channel = tables_.ChannelOf(message);
    const Op& send = tables_.SendOf(message);
    return send.is_credit()
               ? fmt::format("credit {}>{}", channel.from.value, channel.to.value)
               : fmt::format("{}>{}:{}{}", channel.from.value, channel.to.value, send.block,
                             send.count == 1
                                 ? ""
                                 : fmt::format("-{}", uint64_t{send.block} + send.count - 1));
  }

  /// What must happen before, as a sentence without its end.
  std::string Needed(WaitKind kind, const std::optional<OpRef>& on) const {
    switch (kind) {
      case WaitKind::kTransfer:
        return "its sender must have started";
      case WaitKind::kData:
        return fmt::format("{} must have {}", BlocksOf(OpAt(*on)),
                           OpAt(*on).is_combine() ? "been combined" : "arrived");
      case WaitKind::kCombineOrder:
        return "the one before it on the channel must have been combined";
      case WaitKind::kLeft:
      case WaitKind::kScratch:
        return fmt::format("{} must be with node {}", BlocksOf(OpAt(*on)), PeerAt(*on));
      case WaitKind::kSendWindow:
        return fmt::format("send window {}: {} must be with node {}", *header_.send_window,
                           BlocksOf(OpAt(*on)), PeerAt(*on));
      case WaitKind::kChannelOrder:
        return "the one before it on the channel must have left";
      case WaitKind::kReceiveWindow:
        return fmt::format("receive window {}: {} must have {}", header_.ready.window,
                           BlocksOf(OpAt(*on)),
                           OpAt(*on).is_combine() ? "been combined" : "arrived");
      case WaitKind::kCredit:
        return fmt::format("node {} must have posted the receive and said so", PeerAt(*on));
      case WaitKind::kAfter:
        return "the plan's `after` names it";
      case WaitKind::kDeliveryOrder:
        return "the one before it on the channel must have arrived";
      case WaitKind::kGranted:
        return "the receive that it grants must be posted";
      case WaitKind::kPosted:
        return "its receive must be posted";
      case WaitKind::kArrived:
        return "it must have arrived";
      case WaitKind::kPostOrder:
        return "the receive before it on the channel must be posted";
      case WaitKind::kBarrier:
        return "all receives everywhere must be posted";
    }
    PREPOST_CHECK(false);
    return "";
  }

  /// What waits, and for what of it.
  std::string Waiting(WaitKind kind, OpRef ref) const {
    switch (kind) {
      case WaitKind::kTransfer:
        return "its receive";
      case WaitKind::kData:
        return OpAt(ref).is_combine() ? "combines more with it"
                                      : fmt::format("passes the block on to node {}", PeerAt(ref));
      case WaitKind::kCombineOrder:
        return "the next combine of the channel";
      case WaitKind::kLeft:
        return "changes what has been sent";
      case WaitKind::kScratch:
        return "the credit for the scratch buffer";
      case WaitKind::kSendWindow:
        return fmt::format("send window {}: the next block", *header_.send_window);
      case WaitKind::kChannelOrder:
      case WaitKind::kDeliveryOrder:
        return "the next one on the channel";
      case WaitKind::kReceiveWindow:
        return fmt::format("receive window {}: the next credit", header_.ready.window);
      case WaitKind::kCredit:
        return "the block that it lets go";
      case WaitKind::kGranted:
        return "the credit that grants it";
      case WaitKind::kAfter:
      case WaitKind::kPosted:
      case WaitKind::kArrived:
      case WaitKind::kPostOrder:
      case WaitKind::kBarrier:
        return "its `after` names this op";
    }
    PREPOST_CHECK(false);
    return "";
  }

  const Op& OpAt(OpRef ref) const { return tables_.plan().ops()[tables_.IndexOf(ref)]; }

 private:
  static uint32_t LastOf(const Op& op) { return op.block + op.count - 1; }
  /// "block 3", "blocks 3 to 5".
  static std::string BlocksOf(const Op& op) {
    return op.count == 1 ? fmt::format("block {}", op.block)
                         : fmt::format("blocks {} to {}", op.block, LastOf(op));
  }
  uint32_t PeerAt(OpRef ref) const {
    const Op& op = OpAt(ref);
    const Channel& channel = tables_.plan().channels()[op.channel.index()];
    return op.is_send() ? channel.to.value : channel.from.value;
  }

  const PlanTables& tables_;
  const PlanHeader& header_;
};

void PrintWaits(const EventWords& words, const OpReasons& op, std::ostream& out) {
  const auto rest = [&](size_t count) {
    if (count > kWaitsMax) out << fmt::format("  ... and {} more\n", count - kWaitsMax);
  };
  out << "waits for" << (op.waits_for.empty() ? " nothing\n" : "\n");
  for (size_t i = 0; i < std::min(kWaitsMax, op.waits_for.size()); ++i) {
    const Wait& wait = op.waits_for[i];
    std::string line = fmt::format("  until {}: {}", wait.until, words.Needed(wait.kind, wait.op));
    if (wait.op) line += fmt::format(": {}", words.Of(*wait.op));
    if (wait.is_implied) line += " (follows from the rest)";
    if (wait.is_cause && wait.until != 0) line += "  <- nothing takes longer";
    out << line << "\n";
  }
  rest(op.waits_for.size());
  out << "what waits for it" << (op.waited_by.empty() ? ": nothing\n" : "\n");
  for (size_t i = 0; i < std::min(kWaitsMax, op.waited_by.size()); ++i) {
    const Wait& wait = op.waited_by[i];
    out << fmt::format("  {}: {}\n", words.Waiting(wait.kind, *wait.op), words.Of(*wait.op));
  }
  rest(op.waited_by.size());
}

/// What an op carries, or has left at its node, of the first of its blocks.
void PrintValue(const PlanTables& tables, const OpReasons& op, std::ostream& out) {
  const PlanHeader& header = tables.plan().header();
  const Op& it = tables.plan().ops()[tables.IndexOf(op.ref)];
  if (it.is_credit() || header.combine.is_none()) return;
  Expressions expressions(tables);
  const uint32_t value = expressions.Of(it.block).of_ops.at(tables.IndexOf(op.ref));
  out << fmt::format("block {} is then {}: {} of {} contributions\n", it.block,
                     expressions.TextOf(value, kExpressionBytesMax), expressions.OperandsOf(value),
                     header.roles().members());
}

void PrintOp(const PlanTables& tables, const OpReasons& op, std::ostream& out) {
  const EventWords words(tables);
  const Op& it = words.OpAt(op.ref);
  const std::string size =
      it.is_credit() ? "no bytes"
                     : Count(tables.plan().header().payload.RangeSize(it.block, it.count), "byte");
  out << fmt::format("{}, {}\n", words.Of(op.ref), size);
  out << fmt::format("starts at {}, arrives at {}; {}\n", op.earliest_start, op.earliest_delivery,
                     op.slack() == 0
                         ? "critical: no slack"
                         : fmt::format("slack {}: may start at {}", op.slack(), op.latest_start));
  PrintValue(tables, op, out);
  PrintWaits(words, op, out);
}

void PrintPeers(const char* label, const std::vector<PeerBlocks>& peers, std::ostream& out) {
  if (peers.empty()) return;
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(kPeersMax, peers.size()); ++i) {
    texts.push_back(fmt::format("{} ({})", peers[i].peer.value, Count(peers[i].blocks, "block")));
  }
  if (peers.size() > kPeersMax) {
    texts.push_back(fmt::format("and {} more", peers.size() - kPeersMax));
  }
  out << fmt::format("  {} nodes {}\n", label, fmt::join(texts, ", "));
}

void PrintNode(const PlanTables& tables, const EventTimes& times, const NodeSummary& node,
               std::ostream& out) {
  const EventWords words(tables);
  const PlanHeader& header = tables.plan().header();
  const bool is_root = header.collective.IsRoot(node.node);
  out << fmt::format("node {}{}: {}; {} in, {} out; {} in, {} out\n", node.node.value,
                     is_root ? ", the root" : "", Count(node.ops, "op"),
                     Count(node.blocks_in, "block"), node.blocks_out,
                     Count(node.credits_in, "credit"), node.credits_out);
  PrintPeers("receives from", node.from, out);
  PrintPeers("sends to", node.to, out);
  if (node.last_message) {
    out << fmt::format("  first block {} arrives at {}, last block {} at {}\n",
                       words.OfMessage(*node.first_message), times.DeliveryOf(*node.first_message),
                       words.OfMessage(*node.last_message), times.DeliveryOf(*node.last_message));
  }
  if (node.blocks_in + node.blocks_out == 0) return;
  std::vector<uint32_t> ids;
  for (const OpId op : node.critical) ids.push_back(op.value);
  ids.resize(std::min(ids.size(), kPeersMax));
  out << fmt::format("  slack of its blocks: {} to {}; {} of {} are critical{}{}{}\n",
                     node.slack_min, node.slack_max, node.critical.size(),
                     node.blocks_in + node.blocks_out, ids.empty() ? "" : ": ops ",
                     fmt::join(ids, ", "), node.critical.size() > ids.size() ? ", ..." : "");
}

void PrintChain(const PlanTables& tables, const EventTimes& times,
                const std::vector<ChainStep>& chain, std::ostream& out) {
  if (chain.empty()) return;
  const EventWords words(tables);
  const auto is_credit = [&](const ChainStep& step) {
    return tables.SendOf(step.message).is_credit();
  };
  const auto credits = static_cast<uint64_t>(std::ranges::count_if(chain, is_credit));
  const bool is_multicast = tables.plan().header().collective.kind == CollectiveKind::kMulticast;
  out << fmt::format("chain back to the {}: {}, {}\n", is_multicast ? "root" : "start",
                     Count(chain.size() - credits, "block"), Count(credits, "credit"));
  const size_t width = std::to_string(chain.size()).size();
  for (size_t i = 0; i < chain.size(); ++i) {
    if (i == kChainHead && chain.size() > kChainHead + kChainTail) {
      i = chain.size() - kChainTail;
      out << fmt::format("  ... {} more\n", i - kChainHead);
    }
    const ChainStep& step = chain[i];
    std::string why = "waits for nothing";
    if (step.cause) {
      std::optional<OpRef> on;
      if (i + 1 < chain.size()) {
        const NodeId node = tables.ChannelOf(step.message).from;
        const uint32_t next = chain[i + 1].message;
        const bool is_send = tables.ChannelOf(next).from == node;
        on = tables.RefOf(is_send ? tables.messages().send(next) : tables.messages().recv(next));
      }
      why = words.Needed(*step.cause, on);
    }
    out << fmt::format("  {:>{}}. {}, round {}, starts at {}: {}\n", i + 1, width,
                       words.OfMessage(step.message), tables.SendOf(step.message).round,
                       times.StartOf(step.message), why);
  }
}

Json RefJson(const EventWords& words, OpRef ref) {
  const Op& op = words.OpAt(ref);
  Json json = {{"node", ref.node.value}, {"op", ref.op.value}, {"kind", Name(op.kind)}};
  json["block"] = op.is_credit() ? Json() : Json(op.block);
  if (op.count != 1) json["count"] = op.count;
  json["round"] = op.round;
  return json;
}

Json MessageJson(const PlanTables& tables, const EventTimes& times, uint32_t message) {
  const Channel& channel = tables.ChannelOf(message);
  const Op& send = tables.SendOf(message);
  Json json = {
      {"from", channel.from.value}, {"to", channel.to.value}, {"lane", NumberOf(channel.lane)}};
  json["block"] = send.is_credit() ? Json() : Json(send.block);
  if (send.count != 1) json["count"] = send.count;
  json["round"] = send.round;
  json["start"] = times.StartOf(message);
  json["delivery"] = times.DeliveryOf(message);
  json["slack"] = times.SlackOf(message);
  return json;
}

Json ValueJson(const Expressions& expressions, uint32_t value) {
  return {{"expression", expressions.TextOf(value, kExpressionBytesOfJsonMax)},
          {"operands", expressions.OperandsOf(value)},
          {"fingerprint", fmt::format("{:016x}", expressions.FingerprintOf(value))}};
}

Json OpJson(const PlanTables& tables, const EventTimes& times, const OpReasons& op) {
  const EventWords words(tables);
  Json json = RefJson(words, op.ref);
  const Op& it = words.OpAt(op.ref);
  if (!it.is_credit() && !tables.plan().header().combine.is_none()) {
    Expressions expressions(tables);
    const uint32_t value = expressions.Of(it.block).of_ops.at(tables.IndexOf(op.ref));
    json["value"] = ValueJson(expressions, value);
  }
  json["message"] = MessageJson(tables, times, op.message);
  json["critical"] = op.slack() == 0;
  json["waits_for"] = Json::array();
  for (const Wait& wait : op.waits_for) {
    Json entry = {{"reason", Name(wait.kind)}, {"until", wait.until}};
    entry["is_cause"] = wait.is_cause;
    entry["is_implied"] = wait.is_implied;
    entry["op"] = wait.op ? RefJson(words, *wait.op) : Json();
    json["waits_for"].push_back(std::move(entry));
  }
  json["waited_by"] = Json::array();
  for (const Wait& wait : op.waited_by) {
    json["waited_by"].push_back({{"reason", Name(wait.kind)}, {"op", RefJson(words, *wait.op)}});
  }
  return json;
}

Json PeersJson(const std::vector<PeerBlocks>& peers) {
  Json json = Json::array();
  for (const PeerBlocks& it : peers) {
    json.push_back({{"node", it.peer.value}, {"blocks", it.blocks}});
  }
  return json;
}

Json NodeJson(const PlanTables& tables, const EventTimes& times, const NodeSummary& node) {
  const auto message_or_null = [&](const std::optional<uint32_t>& message) {
    return message ? MessageJson(tables, times, *message) : Json();
  };
  Json critical = Json::array();
  for (const OpId op : node.critical) critical.push_back(op.value);
  return {{"node", node.node.value},
          {"root", tables.plan().header().collective.IsRoot(node.node)},
          {"ops", node.ops},
          {"blocks_in", node.blocks_in},
          {"blocks_out", node.blocks_out},
          {"credits_in", node.credits_in},
          {"credits_out", node.credits_out},
          {"from", PeersJson(node.from)},
          {"to", PeersJson(node.to)},
          {"first", message_or_null(node.first_message)},
          {"last", message_or_null(node.last_message)},
          {"slack", {{"min", node.slack_min}, {"max", node.slack_max}}},
          {"critical_ops", std::move(critical)}};
}

/// A block: whose it is, and what becomes of it. Of those who want it, by value.
struct BlockFate {
  explicit BlockFate(const PlanTables& tables, uint32_t number)
      : block(number), expressions(tables) {
    const PlanHeader& header = tables.plan().header();
    const Roles roles = header.roles();
    const Expressions::OfBlock values = expressions.Of(block);
    for (uint32_t node = 0; node < header.nodes; ++node) {
      if (roles.Contributes(NodeId(node), block)) contributors.push_back(node);
      if (!roles.Wants(NodeId(node), block)) continue;
      wanted.push_back(node);
      const uint32_t value = values.at_end[node];
      const auto same = std::ranges::find_if(by_value, [&](const auto& it) {
        return expressions.FingerprintOf(it.first) == expressions.FingerprintOf(value);
      });
      if (same == by_value.end()) {
        by_value.push_back({value, {node}});
      } else {
        same->second.push_back(node);
      }
    }
    for (uint32_t m = 0; m < tables.messages().size(); ++m) {
      const Op& send = tables.SendOf(m);
      if (send.is_credit() || block < send.block || block - send.block >= send.count) continue;
      ++messages;
      first_round = std::min(first_round.value_or(send.round), send.round);
      last_round = std::max(last_round, send.round);
    }
  }

  const uint32_t block;
  Expressions expressions;
  std::vector<uint32_t> contributors;
  std::vector<uint32_t> wanted;
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> by_value;  // value, nodes
  uint64_t messages = 0;
  std::optional<uint32_t> first_round;
  uint32_t last_round = 0;
};

/// "nodes 0 to 7", "nodes 0, 3, 6", "node 2".
std::string NodesText(const std::vector<uint32_t>& nodes) {
  if (nodes.empty()) return "no node";
  if (nodes.size() == 1) return fmt::format("node {}", nodes[0]);
  if (nodes.back() - nodes.front() + 1 == nodes.size())
    return fmt::format("nodes {} to {}", nodes.front(), nodes.back());
  const size_t shown = std::min(kPeersMax, nodes.size());
  std::string text = fmt::format(
      "nodes {}", fmt::join(nodes.begin(), nodes.begin() + static_cast<long>(shown), ", "));
  if (shown < nodes.size()) text += fmt::format(" and {} more", nodes.size() - shown);
  return text;
}

void PrintBlock(const PlanTables& tables, const BlockFate& fate, std::ostream& out) {
  const PlanHeader& header = tables.plan().header();
  const uint32_t per_part = header.payload.blocks / header.payload.parts;
  const uint64_t begin = header.payload.BlockOffset(fate.block);
  const uint64_t size = header.payload.BlockSize(fate.block);
  out << fmt::format("block {}: {}", fate.block, Count(size, "byte"));
  if (size != 0) out << fmt::format(", {} to {}", begin, begin + size - 1);
  out << (header.payload.parts == 1 ? " of the message\n"
                                    : fmt::format(" of part {}\n", fate.block / per_part));
  out << fmt::format("  from {}, for {}; {}", NodesText(fate.contributors), NodesText(fate.wanted),
                     Count(fate.messages, "message"));
  if (fate.first_round)
    out << fmt::format(" in rounds {} to {}", *fate.first_round, fate.last_round);
  out << "\n";
  if (header.combine.is_none()) return;
  for (const auto& [value, nodes] : fate.by_value) {
    out << fmt::format("  at {}: {}\n  fingerprint {:016x}, of {}\n", NodesText(nodes),
                       fate.expressions.TextOf(value, kExpressionBytesMax),
                       fate.expressions.FingerprintOf(value),
                       Count(fate.expressions.OperandsOf(value), "contribution"));
  }
  if (header.combine.is_exact()) {
    out << ToString(header.combine) << " is exact: every order gives the same bytes.\n";
  } else {
    out << "One fingerprint means the same bytes: own := own " << Name(header.combine.op)
        << " received, in this order.\n";
  }
}

Json BlockJson(const PlanTables& tables, const BlockFate& fate) {
  const PlanHeader& header = tables.plan().header();
  Json json = {{"block", fate.block},
               {"part", fate.block / (header.payload.blocks / header.payload.parts)},
               {"offset", header.payload.BlockOffset(fate.block)},
               {"bytes", header.payload.BlockSize(fate.block)},
               {"contributed_by", fate.contributors},
               {"wanted_by", fate.wanted},
               {"messages", fate.messages},
               {"first_round", fate.first_round ? Json(*fate.first_round) : Json()},
               {"last_round", fate.first_round ? Json(fate.last_round) : Json()}};
  if (header.combine.is_none()) return json;
  json["values"] = Json::array();
  for (const auto& [value, nodes] : fate.by_value) {
    Json entry = ValueJson(fate.expressions, value);
    entry["at"] = nodes;
    json["values"].push_back(std::move(entry));
  }
  return json;
}

Explanation ExplainOp(const Reasons& reasons, OpRef ref) {
  const OpReasons op = reasons.Explain(ref);
  return {.block = {}, .node = {}, .ops = {op}, .chain = reasons.ChainOf(op.message)};
}

Explanation ExplainMessage(const PlanTables& tables, const Reasons& reasons, uint32_t message) {
  Explanation explanation = ExplainOp(reasons, tables.RefOf(tables.messages().send(message)));
  explanation.ops.push_back(reasons.Explain(tables.RefOf(tables.messages().recv(message))));
  return explanation;
}

Explanation ExplainNode(const PlanTables& tables, const Reasons& reasons, NodeId node) {
  Explanation explanation = {.block = {}, .node = Summarise(tables, reasons.times(), node)};
  if (explanation.node->last_message) {
    explanation.chain = reasons.ChainOf(*explanation.node->last_message);
  }
  return explanation;
}

}  // namespace

Result<Explanation> Explain(const PlanTables& tables, const Reasons& reasons,
                            const std::string& what) {
  const Result<OpReference> found = ParseOpReference(what, tables);
  if (!found.ok()) return found.status();
  if (const auto* block = std::get_if<BlockReference>(&*found))
    return Explanation{.block = block->block};
  if (const auto* node = std::get_if<NodeId>(&*found)) return ExplainNode(tables, reasons, *node);
  if (const auto* ref = std::get_if<OpRef>(&*found)) return ExplainOp(reasons, *ref);
  return ExplainMessage(tables, reasons, std::get<MessageReference>(*found).message);
}

void PrintExplanation(const PlanTables& tables, const EventTimes& times,
                      const Explanation& explanation, std::ostream& out) {
  if (explanation.block) return PrintBlock(tables, BlockFate(tables, *explanation.block), out);
  if (explanation.node) PrintNode(tables, times, *explanation.node, out);
  for (const OpReasons& op : explanation.ops) {
    PrintOp(tables, op, out);
    out << "\n";
  }
  PrintChain(tables, times, explanation.chain, out);
  out << fmt::format(
      "Times are in blocks: each takes 1 from its start, and credits none; the last arrives at "
      "{}.\n"
      "What the plan does not order may happen at once.\n",
      times.length());
}

Json ExplanationJson(const PlanTables& tables, const EventTimes& times,
                     const Explanation& explanation) {
  Json json = {{"length", times.length()}};
  if (explanation.block) json["block"] = BlockJson(tables, BlockFate(tables, *explanation.block));
  if (explanation.node) json["summary"] = NodeJson(tables, times, *explanation.node);
  json["ops"] = Json::array();
  for (const OpReasons& op : explanation.ops) json["ops"].push_back(OpJson(tables, times, op));
  json["chain"] = Json::array();
  for (const ChainStep& step : explanation.chain) {
    Json entry = MessageJson(tables, times, step.message);
    entry["reason"] = step.cause ? Json(Name(*step.cause)) : Json();
    json["chain"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace prepost
