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

#include <algorithm>
#include <span>

#include "ir/exchange/goal_blocks.h"
#include "ir/exchange/goal_messages.h"
#include "ir/exchange/goal_text.h"
#include "ir/place.h"
#include "ir/planned_transfers.h"
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
GoalPlan WritePlan(const GoalFile& file, const GoalMessages& given, const GoalBlocks& blocks,
                   uint32_t root) {
  std::vector<PlannedTransfer> transfers;
  transfers.reserve(given.messages.size());
  for (uint32_t m = 0; m < given.messages.size(); ++m) {
    const GoalMessage& message = given.messages[m];
    transfers.push_back({.round = message.round,
                         .from = file.ops[message.send].rank,
                         .to = file.ops[message.recv].rank,
                         .block = blocks.block_of[m]});
  }
  TransferPlan written =
      PlanTransfers({.generator = kGenerator,
                     .collective = {.root = NodeId(root)},
                     .algorithm = "goal",
                     .nodes = static_cast<uint32_t>(file.ranks.size()),
                     .payload = blocks.payload},
                    transfers, [&](uint32_t m) { return std::span(given.waits[m]); });
  GoalPlan result{.plan = std::move(written.plan), .name = file.name, .notes = given.notes};
  const std::span<const Op> ops = result.plan.ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    const GoalMessage& message = given.messages[written.transfer_of_op[i]];
    result.op_lines.push_back(file.ops[ops[i].is_send() ? message.send : message.recv].line);
  }
  for (const GoalFile::Rank& rank : file.ranks) result.rank_lines.push_back(rank.line);
  return result;
}

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
  return WritePlan(*file, *messages, *blocks, *root);
}

}  // namespace prepost
