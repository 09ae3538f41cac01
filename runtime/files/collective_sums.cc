// SPDX-License-Identifier: Apache-2.0
//
// Block after block: its values, mostly one, then the sums of all that want it. A node's output has
// its blocks in the order of their numbers.
#include "runtime/files/collective_sums.h"

#include <map>
#include <tuple>
#include <utility>

#include "ir/analysis/expressions.h"
#include "ir/plan_tables.h"
#include "runtime/executor/block_places.h"
#include "runtime/executor/combine_blocks.h"

namespace prepost {
namespace {

using Bytes = std::vector<std::byte>;

/// Of one block.
class Evaluator {
 public:
  Evaluator(const PlanHeader& header, const Expressions& expressions,
            const std::vector<uint64_t>& offsets, const RowPlaces& all_parts,
            const ReadInputs& read, uint32_t block)
      : header_(header),
        expressions_(expressions),
        offsets_(offsets),
        read_(read),
        block_(block),
        all_parts_(all_parts) {
    if (!header.combine.is_none()) combine_ = CombineFunctionOf(header.combine);
  }

  /// Depth first, own before other, without recursion: expressions may be as deep as there are
  /// nodes.
  Result<Bytes> ValueOf(uint32_t expression) const {
    struct Frame {
      uint32_t other;
      Bytes own = {};
      bool has_own = false;
    };
    std::vector<Frame> frames;
    uint32_t next = expression;
    for (;;) {
      if (const auto pair = expressions_.PairOf(next)) {
        frames.push_back({.other = pair->second});
        next = pair->first;
        continue;
      }
      Result<Bytes> contribution = Contribution(next);
      if (!contribution.ok()) return contribution;
      Bytes value = *std::move(contribution);
      while (!frames.empty() && frames.back().has_own) {
        const Bytes& own = frames.back().own;
        combine_(value.data(), own.data(), value.data(),
                 value.size() / SizeOf(header_.combine.type));
        frames.pop_back();
      }
      if (frames.empty()) return value;
      frames.back().own = std::move(value);
      frames.back().has_own = true;
      next = frames.back().other;
    }
  }

 private:
  Result<Bytes> Contribution(uint32_t node) const {
    const Roles roles = header_.roles();
    // Parts to which a node contributes follow one another.
    const uint32_t first = roles.Contributed(NodeId(node)).first * roles.blocks_per_part();
    const uint64_t begin =
        offsets_[node] + all_parts_.OffsetOf(block_) - all_parts_.OffsetOf(first);
    Bytes bytes(header_.payload.BlockSize(block_));
    PREPOST_RETURN_IF_ERROR(read_(begin, bytes));
    return bytes;
  }

  const PlanHeader& header_;
  const Expressions& expressions_;
  const std::vector<uint64_t>& offsets_;
  const ReadInputs& read_;
  const uint32_t block_;
  const RowPlaces& all_parts_;
  CombineFunction combine_;
};

}  // namespace

std::vector<uint64_t> InputOffsets(const PlanHeader& header) {
  std::vector<uint64_t> offsets = {0};
  for (uint32_t node = 0; node < header.nodes; ++node)
    offsets.push_back(offsets.back() + NodeBytesOf(header, NodeId(node)).input);
  return offsets;
}

uint64_t InputBytesOf(const PlanHeader& header) {
  return header.collective.kind == CollectiveKind::kMulticast ? header.payload.bytes
                                                              : InputOffsets(header).back();
}

std::vector<NodeId> FirstsOfEqualOutputs(const PlanHeader& header) {
  const Roles roles = header.roles();
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, NodeId> firsts;
  std::vector<NodeId> all;
  for (uint32_t node = 0; node < header.nodes; ++node) {
    all.push_back(NodeId(node));
    if (!roles.IsTarget(NodeId(node))) continue;
    const PartRow row = roles.Wanted(NodeId(node));
    all.back() = firsts.try_emplace({row.first, row.step, row.count}, NodeId(node)).first->second;
  }
  return all;
}

Result<std::vector<std::optional<MessageSum>>> ExpectedSums(const VerifiedPlan& plan,
                                                            const ReadInputs& read,
                                                            const Checkpoint& checkpoint) {
  const PlanHeader& header = plan.header();
  const Roles roles = header.roles();
  const std::vector<uint64_t> offsets = InputOffsets(header);
  const PlanTables tables(plan);
  Expressions expressions(tables);
  std::vector<RunningSum> sums(header.nodes);
  const RowPlaces all_parts({.count = header.payload.parts}, header.payload);
  for (uint32_t block = 0; block < header.payload.blocks; ++block) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    if (header.payload.BlockSize(block) == 0) continue;
    const Expressions::OfBlock values = expressions.Of(block);
    const Evaluator evaluator(header, expressions, offsets, all_parts, read, block);
    std::map<uint32_t, Bytes> made;
    for (uint32_t node = 0; node < roles.members(); ++node) {
      if (!roles.Wants(NodeId(node), block)) continue;
      const auto [value, is_new] = made.try_emplace(values.at_end[node]);
      if (is_new) {
        Result<Bytes> bytes = evaluator.ValueOf(values.at_end[node]);
        if (!bytes.ok()) return bytes.status();
        value->second = *std::move(bytes);
      }
      sums[node].Add(value->second);
    }
  }
  std::vector<std::optional<MessageSum>> all(header.nodes);
  for (uint32_t node = 0; node < header.nodes; ++node)
    if (roles.IsTarget(NodeId(node))) all[node] = sums[node].Get();
  return all;
}

}  // namespace prepost
