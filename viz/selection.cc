// SPDX-License-Identifier: Apache-2.0
#include "viz/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ir/base/count.h"

namespace prepost::viz {
namespace {

bool ParseNumber(std::string_view text, uint32_t* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

template <typename T>
void SortUnique(std::vector<T>* values) {
  std::ranges::sort(*values);
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

/// "4 MiB" where that is exact, else "4194305 bytes".
std::string Bytes(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", bytes, bytes == 1 && unit == 0 ? "byte" : kUnits[unit]);
}

}  // namespace

bool Selection::HasNode(NodeId node) const {
  return nodes.empty() || std::ranges::binary_search(nodes, node);
}

bool Selection::HasBlock(uint32_t block) const {
  return blocks.empty() || std::ranges::binary_search(blocks, block);
}

bool Selection::HasSome(const Op& op) const {
  if (blocks.empty()) return true;
  const auto first = std::ranges::lower_bound(blocks, op.block);
  return first != blocks.end() && *first - op.block < op.count;
}

Result<Rounds> ParseRounds(const std::string& text) {
  const std::string_view view = text;
  const size_t colon = view.find(':');
  Rounds rounds;
  if (colon == std::string_view::npos || !ParseNumber(view.substr(0, colon), &rounds.first) ||
      !ParseNumber(view.substr(colon + 1), &rounds.last)) {
    return Status(StatusCode::kUsage,
                  fmt::format("rounds '{}' are not of the form first:last, e.g. 2:5", text));
  }
  if (rounds.first > rounds.last) {
    return Status(StatusCode::kUsage, fmt::format("rounds '{}' end before they begin", text));
  }
  return rounds;
}

Result<Selection> CheckSelection(const Plan& plan, Selection selection) {
  const PlanHeader& header = plan.header();
  SortUnique(&selection.nodes);
  SortUnique(&selection.blocks);
  if (!selection.nodes.empty() && selection.nodes.back().value >= header.nodes) {
    return Rejected(fmt::format("no node {}: the plan has nodes 0 to {}",
                                selection.nodes.back().value, header.nodes - 1));
  }
  if (!selection.blocks.empty() && selection.blocks.back() >= header.payload.blocks) {
    return Rejected(fmt::format("no block {}: the plan has blocks 0 to {}", selection.blocks.back(),
                                header.payload.blocks - 1));
  }
  if (selection.rounds && selection.rounds->first > selection.rounds->last) {
    return Rejected(fmt::format("rounds {} to {} end before they begin", selection.rounds->first,
                                selection.rounds->last));
  }
  if (selection.rounds && selection.rounds->last >= header.rounds) {
    const std::string has =
        header.rounds == 0 ? "no rounds" : fmt::format("rounds 0 to {}", header.rounds - 1);
    return Rejected(fmt::format("no round {}: the plan has {}", selection.rounds->last, has));
  }
  return selection;
}

std::string Shortened(const std::string& name) {
  constexpr size_t kNameMax = 48;
  return name.size() <= kNameMax ? name : name.substr(0, kNameMax) + "...";
}

std::string Headline(const PlanHeader& header) {
  std::string text;
  if (header.collective.kind != CollectiveKind::kMulticast) {
    text = Name(header.collective.kind);
    if (!header.combine.is_none()) text += " " + ToString(header.combine);
    text += ", ";
  }
  return text + fmt::format("{}: {}, {}, {}", Shortened(header.algorithm),
                            Count(header.nodes, "node"), Count(header.payload.blocks, "block"),
                            Count(header.rounds, "round"));
}

std::string Subline(const PlanHeader& header) {
  const Payload& payload = header.payload;
  return fmt::format(
      "{} of {} in blocks of {}{}, ready {}, send window {}",
      payload.parts == 1 ? "message" : Count(payload.parts, "part"),
      (payload.is_uneven() ? "at most " : "") + Bytes(payload.bytes), Bytes(payload.block_bytes),
      HasRoot(header.collective.kind) ? fmt::format(", root {}", header.collective.root.value) : "",
      ToString(header.ready), header.send_window ? fmt::to_string(*header.send_window) : "none");
}

std::string NamesOf(std::string_view noun, const std::vector<uint32_t>& values) {
  constexpr size_t kShown = 8;
  const size_t shown = std::min(values.size(), kShown);
  std::string out =
      fmt::format("{}{} {}", noun, values.size() == 1 ? "" : "s",
                  fmt::join(values.begin(), values.begin() + static_cast<long>(shown), ", "));
  if (shown < values.size()) out += fmt::format(", ... ({} in all)", values.size());
  return out;
}

std::string Describe(const Selection& selection) {
  std::vector<std::string> parts;
  if (!selection.nodes.empty()) {
    std::vector<uint32_t> nodes;
    for (NodeId node : selection.nodes) nodes.push_back(node.value);
    parts.push_back(NamesOf("only node", nodes));
  }
  if (!selection.blocks.empty()) parts.push_back(NamesOf("only block", selection.blocks));
  if (selection.rounds) {
    parts.push_back(
        fmt::format("only rounds {} to {}", selection.rounds->first, selection.rounds->last));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace prepost::viz
