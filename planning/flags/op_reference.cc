// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/op_reference.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "planning/flags/values.h"

namespace prepost {
namespace {

constexpr size_t kReferenceBytesShownMax = 40;  ///< bytes of what a user wrote

/// The decimal numbers in `text`, wherever they stand; none if one is above 32 bits.
std::optional<std::vector<uint32_t>> NumbersIn(std::string_view text) {
  std::vector<uint32_t> numbers;
  for (size_t at = text.find_first_of("0123456789"); at != std::string_view::npos;
       at = text.find_first_of("0123456789", at)) {
    const auto [end, error] =
        std::from_chars(text.data() + at, text.data() + text.size(), numbers.emplace_back());
    if (error != std::errc()) return std::nullopt;
    at = static_cast<size_t>(end - text.data());
  }
  return numbers;
}

/// `numbers` in the form for so many; "" if there is none.
std::string InForm(const std::vector<uint32_t>& numbers) {
  switch (numbers.size()) {
    case 1:
      return fmt::format("{}", numbers[0]);
    case 2:
      return fmt::format("{}/{}", numbers[0], numbers[1]);
    case 3:
      return fmt::format("{}>{}:{}", numbers[0], numbers[1], numbers[2]);
    default:
      return "";
  }
}

Status CheckNode(uint32_t node, const PlanTables& tables) {
  const uint32_t nodes = tables.plan().header().nodes;
  if (node < nodes) return {};
  return Rejected(fmt::format("there is no node {}, the nodes are 0 to {}; did you mean '{}'?",
                              node, nodes - 1, nodes - 1));
}

Result<OpReference> FindOp(NodeId node, uint32_t op, const PlanTables& tables) {
  const uint32_t ops = tables.ProgramOf(node).op_count;
  if (op < ops) return OpReference(OpRef{.node = node, .op = OpId(op)});
  if (ops == 0) return Rejected(fmt::format("node {} has no ops", node.value));
  return Rejected(fmt::format("node {} has no op {}, its ops are 0 to {}; did you mean '{}/{}'?",
                              node.value, op, ops - 1, node.value, ops - 1));
}

/// The messages by which `node` gets `block`, in the order of its ops: one in multicasts, none at
/// their root.
std::vector<uint32_t> MessagesInto(NodeId node, uint32_t block, const PlanTables& tables) {
  const Program& program = tables.ProgramOf(node);
  std::vector<uint32_t> messages;
  for (uint32_t i = program.op_begin; i < program.op_begin + program.op_count; ++i) {
    const Op& op = tables.plan().ops()[i];
    const bool is_in =
        !op.is_send() && !op.is_credit() && op.block <= block && block - op.block < op.count;
    if (is_in) messages.push_back(tables.messages().MessageOf(i));
  }
  return messages;
}

Result<OpReference> FindBlock(uint32_t block, const PlanTables& tables) {
  const uint32_t blocks = tables.plan().header().payload.blocks;
  if (block < blocks) return OpReference(BlockReference{.block = block});
  return Rejected(fmt::format("there is no block {}, the blocks are 0 to {}; did you mean ':{}'?",
                              block, blocks - 1, blocks - 1));
}

Result<OpReference> FindMessage(NodeId from, NodeId to, uint32_t block, const PlanTables& tables) {
  const PlanHeader& header = tables.plan().header();
  if (block >= header.payload.blocks) {
    return Rejected(
        fmt::format("there is no block {}, the blocks are 0 to {}; did you mean '{}>{}:{}'?", block,
                    header.payload.blocks - 1, from.value, to.value, header.payload.blocks - 1));
  }
  const std::vector<uint32_t> messages = MessagesInto(to, block, tables);
  if (messages.empty()) {
    return Rejected(
        header.collective.kind == CollectiveKind::kMulticast
            ? fmt::format("node {} is the root, which has every block from the start", to.value)
            : fmt::format("node {} is sent nothing of block {}", to.value, block));
  }
  for (const uint32_t message : messages) {
    if (tables.ChannelOf(message).from == from)
      return OpReference(MessageReference{.message = message});
  }
  const NodeId sender = tables.ChannelOf(messages.front()).from;
  return Rejected(fmt::format("node {} gets block {} from node {}; did you mean '{}>{}:{}'?",
                              to.value, block, sender.value, sender.value, to.value, block));
}

/// ", did you mean ...?": what people may mean who write FROM>TO alone, or a credit's FROM>TO.
std::string Meant(const std::string& text, const std::vector<uint32_t>& numbers,
                  const PlanTables& tables) {
  const uint32_t nodes = tables.plan().header().nodes;
  const bool is_channel = numbers.size() == 2 && text.find('>') != std::string::npos;
  if (!is_channel) {
    const std::string form = InForm(numbers);
    return form.empty() ? "" : fmt::format(", did you mean '{}'?", form);
  }
  if (numbers[0] >= nodes || numbers[1] >= nodes) return "";
  const bool is_credit = text.find("credit") != std::string::npos;
  const Program& program = tables.ProgramOf(NodeId(numbers[0]));
  const std::span<const Op> ops = tables.plan().ops(program);
  for (uint32_t id = 0; id < ops.size(); ++id) {
    const Op& op = ops[id];
    const Channel& channel = tables.plan().channels()[op.channel.index()];
    if (!op.is_send() || op.is_credit() != is_credit || channel.to != NodeId(numbers[1])) continue;
    if (!is_credit)
      return fmt::format(", did you mean '{}>{}:{}'?", numbers[0], numbers[1], op.block);
    return fmt::format("; a credit is named by its op: the first of these is '{}/{}'", numbers[0],
                       id);
  }
  return fmt::format("; node {} sends no {} to node {}", numbers[0], is_credit ? "credit" : "block",
                     numbers[1]);
}

}  // namespace

Result<OpReference> ParseOpReference(const std::string& given, const PlanTables& tables) {
  // A message of several blocks is called 5>1:4-7, and found by its first.
  const size_t colon = given.find(':'), dash = given.find('-');
  const bool is_range = colon != std::string::npos && colon != 0 && dash != std::string::npos &&
                        dash > colon && NumberOf<uint32_t>(given.substr(dash + 1)).has_value();
  const std::string text = is_range ? given.substr(0, dash) : given;
  const std::optional<std::vector<uint32_t>> numbers = NumbersIn(text);
  if (numbers && numbers->size() == 1 && text == fmt::format(":{}", numbers->front()))
    return FindBlock(numbers->front(), tables);
  const std::string form = numbers ? InForm(*numbers) : "";
  if (form.empty() || text != form) {
    return Status(StatusCode::kUsage,
                  fmt::format("'{}' is no NODE, NODE/OP, FROM>TO:BLOCK or :BLOCK{}",
                              text.substr(0, kReferenceBytesShownMax),
                              numbers ? Meant(text, *numbers, tables) : ""));
  }
  PREPOST_RETURN_IF_ERROR(CheckNode(numbers->front(), tables));
  const NodeId node(numbers->front());
  if (numbers->size() == 1) return OpReference(node);
  if (numbers->size() == 2) return FindOp(node, (*numbers)[1], tables);
  PREPOST_RETURN_IF_ERROR(CheckNode((*numbers)[1], tables));
  return FindMessage(node, NodeId((*numbers)[1]), (*numbers)[2], tables);
}

}  // namespace prepost
