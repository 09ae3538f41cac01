// SPDX-License-Identifier: Apache-2.0
//
// GOAL says which messages go where and what waits for what, but not what is in them. The steps to
// a plan:
//
// 1. Each rank's ops are put in an order that its requirements allow, the file's where possible.
// 2. Messages: the i-th send from s to d with a tag is taken by the i-th recv of that tag.
//    Synchronisation carries nothing: messages of 0 bytes, and those that goal_writer.h writes for
//    credits. It is left out; what it waited for at its rank still counts for what waits for it.
// 3. Of a collective that combines: a recv that a calc requires is combined, the calc says when;
//    other recvs replace what their rank has. Of other collectives calcs only take time.
// 4. Blocks, of a multicast. By tag, if every rank but the root receives each tag once: a tag is a
//    block. Else by flow: a send forwards the receive that it requires, directly or through calcs;
//    if that is none or several, the one receive behind all that it requires; else, if the rank
//    sends as many messages to that peer as it receives in all, the i-th forwards the i-th. So each
//    message of the root starts a tree. The trees are dealt, in order, each to the first block of
//    its size that none of its ranks has yet.
//    Of other collectives: a tag is the first block of a message (goal_ranges.cc).
// 5. What a send waits for: its requirements, seen through calcs, synchronisation, receives
//    (a plan's receives wait for nothing) and irequires (what started had its requirements met), as
//    the last op of each channel, since channels keep their order. What a combine waits for: those
//    of its calc.
// 6. Rounds: the longest chain of messages that wait for each other, where each rank sends, and
//    receives, one at a time in its order of step 1. If those orders block each other, an order
//    that all requirements allow takes their place. Ops are numbered by round.
//
// Steps 1, 2, 3 and 5 are in goal_messages.cc, step 6 in goal_rounds.cc. Of a multicast step 4 is
// in goal_blocks.cc and comes last; of others before step 6, as a block's sends and combines at a
// rank have an order.
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
#include "ir/exchange/goal_ranges.h"
#include "ir/exchange/goal_rounds.h"
#include "ir/exchange/goal_text.h"
#include "ir/place.h"
#include "ir/planned_transfers.h"
#include "ir/version.h"

namespace prepost {
namespace {

/// The one rank that receives nothing, or that sends nothing, or what the user says.
Result<uint32_t> FindRoot(const GoalFile& file, const std::vector<GoalMessage>& messages,
                          CollectiveKind kind, std::optional<uint32_t> wanted) {
  const auto ranks = static_cast<uint32_t>(file.ranks.size());
  if (wanted) {
    if (*wanted < ranks) return *wanted;
    return Rejected(
        fmt::format("root {} is out of range, the ranks are 0 to {}", *wanted, ranks - 1),
        file.name);
  }
  if (!HasRoot(kind)) return 0;
  const bool is_last = kind == CollectiveKind::kReduce || kind == CollectiveKind::kGather;
  const char* const verb = is_last ? "send" : "receive";
  const std::string what = kind == CollectiveKind::kMulticast ? "broadcast" : Name(kind);
  std::vector<bool> does(ranks);
  for (const GoalMessage& m : messages) does[file.ops[is_last ? m.send : m.recv].rank] = true;
  std::vector<uint32_t> roots;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (!does[rank]) roots.push_back(rank);
  }
  if (roots.size() == 1) return roots.front();
  if (roots.empty()) {
    return Rejected(
        fmt::format("every rank {}s, so this is no {}; if it is one, --root names its root{}", verb,
                    what,
                    kind == CollectiveKind::kMulticast
                        ? "; --collective and --combine say that it is another collective"
                        : ""),
        file.name);
  }
  return Rejected(fmt::format("ranks {} and {} both {} nothing: which is the root of a {}? --root "
                              "names it",
                              roots[0], roots[1], verb, what),
                  file.name);
}

/// The operation of `options`, if it goes with their collective.
Result<Combine> CombineFor(const GoalOptions& options) {
  Combine combine = options.combine;
  if (options.collective == CollectiveKind::kBarrier && combine.is_none())
    combine = {.op = CombineOp::kAnd, .type = ElementType::kUint8};
  if (Combines(options.collective) == combine.is_none()) {
    return Rejected(combine.is_none()
                        ? fmt::format("what {} does to values is missing, such as sum:float32",
                                      Name(options.collective))
                        : fmt::format("{} combines nothing", Name(options.collective)),
                    "/combine");
  }
  if (const Status status = CheckCombine(combine); !status.ok())
    return Rejected(status.message(), "/combine");
  return combine;
}

/// Writes messages and what they carry down as a plan.
GoalPlan WritePlan(const GoalFile& file, const GoalMessages& given,
                   std::span<const GoalRange> ranges, PlanHeader header) {
  header.generator = kGenerator;
  header.algorithm = "goal";
  header.nodes = static_cast<uint32_t>(file.ranks.size());
  header.ports = given.ports;
  std::vector<PlannedTransfer> transfers;
  transfers.reserve(given.messages.size());
  for (uint32_t m = 0; m < given.messages.size(); ++m) {
    const GoalMessage& message = given.messages[m];
    transfers.push_back({.round = message.round,
                         .from = file.ops[message.send].rank,
                         .to = file.ops[message.recv].rank,
                         .block = ranges[m].block,
                         .count = ranges[m].count,
                         .combines = !given.calc_of.empty() && given.calc_of[m] != kGoalNone});
  }
  const auto waits_of = [&](uint32_t m) { return std::span(given.waits[m]); };
  const auto waits_of_end = [&](uint32_t m, bool is_send) {
    return std::span(is_send ? given.waits[m] : given.combine_waits[m]);
  };
  TransferPlan written = header.collective.kind == CollectiveKind::kMulticast
                             ? PlanTransfers(std::move(header), transfers, waits_of)
                             : PlanInOrder(std::move(header), transfers, waits_of_end);
  GoalPlan result{.plan = std::move(written.plan), .name = file.name, .notes = given.notes};
  const std::span<const Op> ops = result.plan.ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    const GoalMessage& message = given.messages[written.transfer_of_op[i]];
    result.op_lines.push_back(file.ops[ops[i].is_send() ? message.send : message.recv].line);
  }
  for (const Program& program : result.plan.programs())
    result.op_begins.push_back(program.op_begin);
  for (const GoalFile::Rank& rank : file.ranks) result.rank_lines.push_back(rank.line);
  return result;
}

/// What the elements of `payload` are, are whole; as Verify() would say it.
Status CheckElements(const Payload& payload, ElementType type, const std::string& name) {
  const uint64_t size = std::max<uint64_t>(1, SizeOf(type));
  const bool is_block = payload.bytes % size == 0;
  const uint64_t bytes = is_block ? payload.block_bytes : payload.bytes;
  if (bytes % size == 0 || (is_block && payload.bytes <= payload.block_bytes)) return {};
  return Rejected(fmt::format("{} of {} bytes are not a whole number of {} ({} bytes each)",
                              is_block ? "blocks" : "messages", bytes, Name(type), size),
                  name);
}

Result<GoalPlan> ReadMulticast(const GoalFile& file, GoalMessages messages, uint32_t root,
                               const GoalOptions& options) {
  PREPOST_RETURN_IF_ERROR(FindGoalRounds(file, {}, &messages));
  const Result<GoalBlocks> blocks = FindGoalBlocks(file, messages, root, options.block_bytes);
  if (!blocks.ok()) return blocks.status();
  std::vector<GoalRange> ranges;
  for (const uint32_t block : blocks->block_of) ranges.push_back({.block = block});
  return WritePlan(file, messages, ranges,
                   {.collective = {.root = NodeId(root)}, .payload = blocks->payload});
}

Result<GoalPlan> ReadCollective(const GoalFile& file, GoalMessages messages,
                                const Collective& collective, const Combine& combine,
                                const GoalOptions& options) {
  const Result<GoalRanges> ranges =
      FindGoalRanges(file, messages, collective, options.message_bytes, options.block_bytes);
  if (!ranges.ok()) return ranges.status();
  PREPOST_RETURN_IF_ERROR(CheckElements(ranges->payload, combine.type, file.name));
  PREPOST_RETURN_IF_ERROR(FindGoalRounds(file, ranges->range_of, &messages));
  return WritePlan(file, messages, ranges->range_of,
                   {.collective = collective, .payload = ranges->payload, .combine = combine});
}

}  // namespace

Diagnostic GoalPlan::AtLine(const Plan& found_in, Diagnostic diagnostic) const {
  const Place& place = diagnostic.place;
  if (place.section != Place::Section::kPrograms || place.index >= rank_lines.size())
    return diagnostic;
  uint32_t line = rank_lines[place.index];
  const std::span<const Op> ops = found_in.ops(found_in.programs()[place.index]);
  if (place.op != Place::kWhole && !ops[place.op].is_credit()) {
    // Passes put credits between the ops, which keep their order.
    const auto before =
        std::ranges::count_if(ops.first(place.op), [](const Op& op) { return !op.is_credit(); });
    line = op_lines[op_begins[place.index] + static_cast<size_t>(before)];
  }
  if (line != 0) diagnostic.where = fmt::format("{}:{}", name, line);
  return diagnostic;
}

Result<GoalPlan> ReadGoal(std::istream& in, const std::string& name, const GoalOptions& options) {
  const Result<GoalFile> file = ReadGoalText(in, name);
  if (!file.ok()) return file.status();
  const Result<Combine> combine = CombineFor(options);
  if (!combine.ok()) return combine.status();
  Result<GoalMessages> messages = FindGoalMessages(*file, options.collective);
  if (!messages.ok()) return messages.status();
  const Result<uint32_t> root =
      FindRoot(*file, messages->messages, options.collective, options.root);
  if (!root.ok()) return root.status();
  if (options.collective == CollectiveKind::kMulticast)
    return ReadMulticast(*file, *std::move(messages), *root, options);
  return ReadCollective(*file, *std::move(messages),
                        {.kind = options.collective, .root = NodeId(*root)}, *combine, options);
}

}  // namespace prepost
