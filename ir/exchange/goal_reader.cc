// SPDX-License-Identifier: Apache-2.0
//
// GOAL says which messages go where and what waits for what, but not what is in them. The steps to
// a plan:
//
// 1. Each rank's ops are put in an order that its requirements allow, the file's where possible.
// 2. Messages: the i-th send from s to d with a tag is taken by the i-th recv of that tag.
//    Synchronisation carries nothing: messages of 0 bytes, and those that goal_writer.h writes for
//    credits. It is left out; what it waited for at its rank still counts for what waits for it.
// 3. Blocks. By tag, if every rank but the root receives each tag once: a tag is a block. Else by
//    flow: a send forwards the receive that it requires, directly or through calcs; if that is none
//    or several, the one receive behind all that it requires; else, if the rank sends as many
//    messages to that peer as it receives in all, the i-th forwards the i-th. So each message of
//    the root starts a tree. The trees are dealt, in order, each to the first block of its size that
//    none of its ranks has yet.
// 4. What a send waits for: its requirements, seen through calcs, synchronisation, receives
//    (a plan's receives wait for nothing) and irequires (what started had its requirements met), as
//    the last op of each channel, since channels keep their order.
// 5. Rounds: the longest chain of messages that wait for each other, where each rank sends, and
//    receives, one at a time in its order of step 1. If those orders block each other, an order
//    that all requirements allow takes their place. Ops are numbered by round.
//
// Steps 1, 2, 4 and 5 are in goal_messages.cc, step 3 in goal_blocks.cc, which comes last.
//
// Example, rank 1 of a chain of 3, two blocks, all tags 0:
//   l1: recv 10b from 0 tag 0        l3: send 10b to 2 tag 0   l3 requires l1: forwards l1's
//   l2: recv 10b from 0 tag 0        l4: send 10b to 2 tag 0   l4 requires l2: forwards l2's
// The root's two sends reach ranks 1 and 2 both, so they are blocks 0 and 1.
#include "ir/exchange/goal_reader.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <span>

#include "ir/exchange/goal_blocks.h"
#include "ir/exchange/goal_messages.h"
#include "ir/exchange/goal_text.h"
#include "ir/place.h"
#include "ir/version.h"

namespace prepost {
namespace {

/// The one rank that receives nothing, or what the user says.
Result<uint32_t> FindRoot(const GoalFile& file, const std::vector<GoalMessage>& messages,
                          std::optional<uint32_t> wanted) {
  const auto ranks = static_cast<uint32_t>(file.ranks.size());
  if (wanted) {
    if (*wanted < ranks) return *wanted;
    return Rejected(
        fmt::format("root {} is out of range, the ranks are 0 to {}", *wanted, ranks - 1),
        file.name);
  }
  std::vector<bool> receives(ranks);
  for (const GoalMessage& m : messages) receives[file.ops[m.recv].rank] = true;
  std::vector<uint32_t> roots;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (!receives[rank]) roots.push_back(rank);
  }
  if (roots.size() == 1) return roots.front();
  if (roots.empty()) {
    return Rejected(
        "every rank receives, so this is no broadcast; if it is one, --root names its root",
        file.name);
  }
  return Rejected(fmt::format("ranks {} and {} both receive nothing: which is the root of a "
                              "broadcast? --root names it",
                              roots[0], roots[1]),
                  file.name);
}

/// Writes messages and their blocks down as a plan.
class GoalPlanBuilder {
 public:
  GoalPlanBuilder(const GoalFile& file, const GoalMessages& given, const GoalBlocks& blocks,
                  uint32_t root)
      : file_(file),
        given_(given),
        messages_(given.messages),
        blocks_(blocks),
        root_(NodeId(root)) {}

  GoalPlan Build() {
    GoalPlan result{.plan = {}, .name = file_.name, .notes = given_.notes};
    PlanBuilder builder({.generator = kGenerator,
                         .algorithm = "goal",
                         .nodes = static_cast<uint32_t>(file_.ranks.size()),
                         .root = root_,
                         .message = blocks_.message});
    std::vector<std::pair<uint32_t, uint32_t>> channels;
    std::vector<Numbered> ops;
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      const uint32_t from = op(messages_[m].send).rank;
      const uint32_t to = op(messages_[m].recv).rank;
      const uint32_t round = messages_[m].round;
      builder.header().rounds = std::max(builder.header().rounds, round + 1);
      channels.emplace_back(from, to);
      ops.push_back({from, round, from, to, m, true});
      ops.push_back({to, round, from, to, m, false});
    }
    std::ranges::sort(channels);
    channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
    for (const auto& [from, to] : channels)
      builder.AddChannel({.from = NodeId(from), .to = NodeId(to), .lane = kBlockLane});
    std::ranges::sort(ops);
    auto next = ops.cbegin();
    for (uint32_t rank = 0; rank < file_.ranks.size(); ++rank) {
      builder.BeginProgram(NodeId(rank));
      result.rank_lines.push_back(file_.ranks[rank].line);
      const auto end =
          std::find_if(next, ops.cend(), [&](const Numbered& it) { return it.rank != rank; });
      AddOps(std::span(next, end), channels, &builder, &result.op_lines);
      next = end;
    }
    result.plan = std::move(builder).Build();
    return result;
  }

 private:
  /// An op on its way into the plan: its place in the plan's order of messages, and what it is of.
  struct Numbered {
    uint32_t rank;
    uint32_t round;
    uint32_t from;
    uint32_t to;
    uint32_t message;
    bool is_send;

    friend auto operator<=>(const Numbered&, const Numbered&) = default;
  };

  void AddOps(std::span<const Numbered> ops,
              const std::vector<std::pair<uint32_t, uint32_t>>& channels, PlanBuilder* builder,
              std::vector<uint32_t>* lines) const {
    llvm::DenseMap<uint32_t, OpId> id_of;  // message -> op; no message has both ends at one rank
    std::vector<OpId> after;
    for (const Numbered& it : ops) {
      const GoalMessage& m = messages_[it.message];
      const auto channel = std::ranges::lower_bound(channels, std::pair(it.from, it.to));
      after.clear();
      if (it.is_send) {
        for (const uint32_t before : given_.waits[it.message])
          after.push_back(id_of.lookup(before));
        std::ranges::sort(after);
      }
      id_of[it.message] = builder->AddOp(
          {.channel = ChannelId::FromIndex(static_cast<size_t>(channel - channels.begin())),
           .block = blocks_.block_of[it.message],
           .round = m.round,
           .kind = it.is_send ? OpKind::kSend : OpKind::kRecv},
          after);
      lines->push_back(op(it.is_send ? m.send : m.recv).line);
    }
  }

  const GoalOp& op(uint32_t index) const { return file_.ops[index]; }

  const GoalFile& file_;
  const GoalMessages& given_;
  const std::vector<GoalMessage>& messages_;
  const GoalBlocks& blocks_;
  const NodeId root_;
};

}  // namespace

Diagnostic GoalPlan::AtLine(Diagnostic diagnostic) const {
  const Place& place = diagnostic.place;
  if (place.section != Place::Section::kPrograms || place.index >= rank_lines.size())
    return diagnostic;
  uint32_t line = rank_lines[place.index];
  if (place.op != Place::kWhole) line = op_lines[plan.programs()[place.index].op_begin + place.op];
  if (line != 0) diagnostic.where = fmt::format("{}:{}", name, line);
  return diagnostic;
}

Result<GoalPlan> ReadGoal(std::istream& in, const std::string& name, const GoalOptions& options) {
  const Result<GoalFile> file = ReadGoalText(in, name);
  if (!file.ok()) return file.status();
  const Result<GoalMessages> messages = FindGoalMessages(*file);
  if (!messages.ok()) return messages.status();
  const Result<uint32_t> root = FindRoot(*file, messages->messages, options.root);
  if (!root.ok()) return root.status();
  const Result<GoalBlocks> blocks = FindGoalBlocks(*file, *messages, *root, options.block_bytes);
  if (!blocks.ok()) return blocks.status();
  return GoalPlanBuilder(*file, *messages, *blocks, *root).Build();
}

}  // namespace prepost
