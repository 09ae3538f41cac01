// SPDX-License-Identifier: Apache-2.0
//
// A rolled plan is valid for all k if it is valid for every k up to a bound that follows from the
// plan itself. The argument, in full in docs/compiler.md:
//
// 1. Take one node. Measure its rounds from where its own numbers lie. Every segment begins and
//    ends at the head of the message (a fixed block) or at its tail (a fixed distance from block
//    k-1): Anchored() makes sure of it. In between it repeats itself every Q blocks, Q a common
//    multiple of all periods (in blocks), of the divisors, and of what moves ends and phases on by
//    whole periods. So the node's program for k + Q blocks is
//    its program for k blocks with one period put into the middle of each segment that runs from
//    head to tail, once the middle exists.
// 2. Every rule of the verifier compares things that are near each other: a block's receive and its
//    sends at one node; the i-th send and receive of a channel; a send and the W-th before it; a
//    credit and the W-th receive before it. Near means: within B rounds of the same place of the
//    segments, B the spread of the node's numbers, or W entries. The rule acyclic involves all
//    nodes, but where each edge goes forward in the plan's global order there is no cycle, and
//    whether an edge does is again a matter of near things.
// 3. So what is wrong for some k, is wrong near the head, near the tail or in the middle of some
//    segment. With k above 2 (Q + B + W) head and tail are so far apart that neither sees the
//    other, and the same mistake shows for k - Q. By induction it shows for some
//    k <= 2 (Q + B + W) + Q.
//
// Tests compare this with the flat verifier on mutants, for k far beyond the bound.
#include "compiler/verify_rolled.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/roll.h"
#include "ir/base/count.h"

namespace prepost {
namespace {

/// Transfers of all the flat plans that are checked, at most.
constexpr uint64_t kWorkMax = uint64_t{1} << 36;
/// Transfers of the one flat plan that VerifyRolledFor() checks, at most.
constexpr uint64_t kFlatMax = uint64_t{1} << 25;
constexpr int64_t kRepeatMax = 1 << 20;

/// Least common multiple, or none above kRepeatMax.
std::optional<int64_t> CommonMultiple(int64_t a, int64_t b) {
  const int64_t step = a / std::gcd(a, b);
  if (b > kRepeatMax / step) return std::nullopt;
  return step * b;
}

/// What the bound is made of.
class Bound {
 public:
  Status Add(const RolledPlan& plan) {
    PREPOST_RETURN_IF_ERROR(Repeat(plan.rounds.divisor, "/rounds"));
    for (size_t i = 0; i < plan.programs.size(); ++i) {
      lowest_.reset();
      highest_.reset();
      const std::vector<Segment>& segments = plan.programs[i].segments;
      for (size_t j = 0; j < segments.size(); ++j) {
        PREPOST_RETURN_IF_ERROR(Add(segments[j], fmt::format("/programs/{}/segments/{}", i, j)));
      }
      if (lowest_) spread_ = std::max(spread_, *highest_ - *lowest_);
    }
    window_ = std::max<int64_t>({plan.header.ready.window, plan.header.send_window.value_or(0),
                                 plan.ready_blocks_min, plan.send_window_blocks_min});
    return {};
  }

  /// 2 (Q + B + W) + Q.
  uint64_t blocks() const { return static_cast<uint64_t>(3 * repeat_ + 2 * (spread_ + window_)); }
  /// The number of blocks, of those up to blocks(), which `blocks` has all mistakes of.
  uint64_t StandIn(uint64_t blocks) const {
    const auto repeat = static_cast<uint64_t>(repeat_);
    if (blocks <= this->blocks()) return blocks;
    return this->blocks() - repeat + 1 + (blocks - this->blocks() - 1) % repeat;
  }

 private:
  Status Add(const Segment& segment, const std::string& where) {
    if (segment.blocks_max != kBlocksMax) spread_ = std::max<int64_t>(spread_, segment.blocks_max);
    spread_ = std::max<int64_t>(spread_, segment.blocks_min);
    if (!IsFixed(segment)) {
      PREPOST_RETURN_IF_ERROR(RepeatSlots(segment, {.per_block = segment.rounds_per_block}, where));
      for (const LinearInBlocks& linear : {segment.from, segment.to, segment.phase})
        PREPOST_RETURN_IF_ERROR(RepeatSlots(segment, linear, where));
    }
    PREPOST_RETURN_IF_ERROR(AddEnd(segment.from, where + "/from"));
    PREPOST_RETURN_IF_ERROR(AddEnd(segment.to, where + "/to"));
    PREPOST_RETURN_IF_ERROR(Repeat(segment.phase.divisor, where + "/phase"));
    for (size_t slot = 0; slot < segment.slots.size(); ++slot) {
      for (const auto& transfer : {segment.slots[slot].send, segment.slots[slot].recv}) {
        if (!transfer) continue;
        const std::string place = fmt::format("{}/slots/{}", where, slot);
        PREPOST_RETURN_IF_ERROR(Repeat(transfer->offset.divisor, place));
        See(-FloorOf(transfer->offset));
        if (segment.blocks_max != kBlocksMax) continue;  // there for few k, all of them checked
        PREPOST_RETURN_IF_ERROR(Anchored(segment, segment.from, transfer->offset, place));
        PREPOST_RETURN_IF_ERROR(Anchored(segment, segment.to, transfer->offset, place));
      }
    }
    return {};
  }

  /// Plays the same slots for any number of blocks, only in other rounds: it has no middle.
  static bool IsFixed(const Segment& segment) {
    return segment.from.divisor == 1 && segment.to.divisor == 1 && segment.phase.divisor == 1 &&
           segment.to.per_block == segment.from.per_block &&
           segment.phase.per_block == -segment.from.per_block;
  }

  /// A segment's end, `end`, is at a fixed block from the first or from the last.
  static Status Anchored(const Segment& segment, const LinearInBlocks& end,
                         const LinearInBlocks& offset, const std::string& where) {
    // (a / m + b / n) k with a / m + b / n = 0 or rounds_per_block.
    const __int128 slope = static_cast<__int128>(end.per_block) * offset.divisor +
                           static_cast<__int128>(offset.per_block) * end.divisor;
    const __int128 whole =
        static_cast<__int128>(end.divisor) * offset.divisor * segment.rounds_per_block;
    if (slope == 0 || slope == whole) return {};
    return Rejected(
        "the segment begins or ends neither near the first block nor near the last, so that "
        "nothing can be said of all sizes",
        where);
  }

  /// So many blocks more that `linear` moves on by whole periods of the slots.
  Status RepeatSlots(const Segment& segment, const LinearInBlocks& linear,
                     const std::string& where) {
    const int64_t slots = static_cast<int64_t>(segment.slots.size()) * linear.divisor;
    return Repeat(slots / std::gcd(slots, static_cast<int64_t>(linear.per_block)), where);
  }

  Status AddEnd(const LinearInBlocks& end, const std::string& where) {
    See(FloorOf(end));
    return Repeat(end.divisor, where);
  }

  static int64_t FloorOf(const LinearInBlocks& linear) {
    return LinearInBlocks{.constant = linear.constant, .divisor = linear.divisor}.At(0);
  }
  void See(int64_t round) {
    lowest_ = std::min(lowest_.value_or(round), round);
    highest_ = std::max(highest_.value_or(round), round);
  }
  Status Repeat(int64_t period, const std::string& where) {
    const std::optional<int64_t> common = CommonMultiple(repeat_, period);
    if (!common) {
      return Rejected(
          fmt::format("periods and divisors come together only after more than {} blocks",
                      kRepeatMax),
          where);
    }
    repeat_ = *common;
    return {};
  }

  int64_t repeat_ = 1;                       // Q
  int64_t spread_ = 1;                       // B
  int64_t window_ = 1;                       // W
  std::optional<int64_t> lowest_, highest_;  // of the node in hand
};

/// Goes through the rounds of one node after the other, by itself, up to a limit.
class AloneCheck {
 public:
  explicit AloneCheck(const RolledPlan& plan) : plan_(plan) {}

  /// Refuses what Check() would refuse in the end, with so many `blocks`. Work grows with blocks,
  /// and all numbers up to here are checked.
  Status CheckWork(uint32_t blocks) const {
    uint64_t largest = 0;
    for (const RolledProgram& program : plan_.programs) {
      largest += RolledRounds(program, blocks).active() / 2;
      for (const Segment& segment : program.segments) largest += segment.slots.size();
    }
    return largest > kActiveRoundsMax / blocks ? TooMuch(blocks) : Status();
  }

  /// All programs with `blocks` blocks.
  Status Check(uint32_t blocks) {
    for (size_t i = 0; i < plan_.programs.size(); ++i) {
      const std::string where = fmt::format("/programs/{}", i);
      const RolledRounds rounds(plan_.programs[i], blocks);
      const Status possible = rounds.Check(plan_.RoundsFor(blocks));
      if (!possible.ok()) return Wrong(blocks, possible.message(), where);
      rounds_ += rounds.active();
      if (rounds_ > kActiveRoundsMax) return TooMuch(blocks);
      PREPOST_RETURN_IF_ERROR(Play(plan_.programs[i], where, rounds, blocks));
    }
    return {};
  }

 private:
  static Status Wrong(uint32_t blocks, const std::string& what, const std::string& where) {
    return Rejected(fmt::format("with {}: {}", Count(blocks, "block"), what), where);
  }
  static Status TooMuch(uint32_t blocks) {
    return Rejected(fmt::format("with up to {} there are more than {} rounds to look at",
                                Count(blocks, "block"), kActiveRoundsMax));
  }

  Status Play(const RolledProgram& program, const std::string& where, const RolledRounds& rounds,
              uint32_t blocks) const;

  const RolledPlan& plan_;
  uint64_t rounds_ = 0;  // so far
};

/// Whether the node of the program at `where` receives each block once, and before it sends it.
Status AloneCheck::Play(const RolledProgram& program, const std::string& where,
                        const RolledRounds& rounds, uint32_t blocks) const {
  const auto wrong = [&](const std::string& what, const std::string& place) {
    return Wrong(blocks, fmt::format("node {} {}", program.node.value, what), where + place);
  };
  std::vector<bool> has(blocks);
  for (uint32_t block = 0; block < blocks; ++block)
    has[block] = plan_.header.roles().Contributes(program.node, block);
  for (uint32_t round = rounds.begin(); round < rounds.end(); round = rounds.Next(round + 1)) {
    if (const auto out = rounds.Outgoing(round); out && !has[out->block]) {
      return wrong(fmt::format("sends block {} in round {} before it has it", out->block, round),
                   rounds.PlaceOf(round, /*outgoing=*/true));
    }
    const auto in = rounds.Incoming(round);
    if (!in) continue;
    if (has[in->block]) {
      return wrong(fmt::format("receives block {} in round {}, and has it", in->block, round),
                   rounds.PlaceOf(round, /*outgoing=*/false));
    }
    has[in->block] = true;
  }
  const auto missing = std::ranges::find(has, false);
  if (missing == has.end()) return {};
  return wrong(fmt::format("never receives block {}", missing - has.begin()), "");
}

Result<Bound> BoundOf(const RolledPlan& plan) {
  PREPOST_RETURN_IF_ERROR(CheckRolled(plan));
  Bound bound;
  PREPOST_RETURN_IF_ERROR(bound.Add(plan));
  return bound;
}

/// The plan of `blocks` blocks, whose sizes do not matter.
Status VerifyFlat(const RolledPlan& plan, uint64_t blocks) {
  RolledPlan small = plan;  // blocks of one byte, so that sizes are numbers of blocks
  small.header.payload.block_bytes = 1;
  return Unroll(small, blocks, {.skip_passes = {"thin"}}).status();
}

Status TooMuchToVerify(const RolledPlan& plan, const std::string& numbers) {
  return Rejected(fmt::format("{} would have to be looked at, which is too much for {}", numbers,
                              Count(plan.header.nodes, "node")));
}

}  // namespace

Result<uint32_t> BlocksThatSettle(const RolledPlan& plan) {
  const Result<Bound> bound = BoundOf(plan);
  if (!bound.ok()) return bound.status();
  // The sum of k up to the bound, of all nodes.
  const uint64_t blocks = bound->blocks();
  if (blocks > kBlocksMax || blocks * blocks / 2 > kWorkMax / plan.header.nodes)
    return TooMuchToVerify(plan, fmt::format("every number of blocks up to {}", blocks));
  return static_cast<uint32_t>(blocks);
}

Result<uint32_t> VerifyRolled(const RolledPlan& plan, const RolledProgress& progress) {
  const Result<uint32_t> last = BlocksThatSettle(plan);
  if (!last.ok()) return last.status();
  for (uint32_t blocks = 1; blocks <= *last; ++blocks) {
    PREPOST_RETURN_IF_ERROR(VerifyFlat(plan, blocks));
    if (progress) progress(blocks, *last);
  }
  return last;
}

Result<uint32_t> VerifyRolledPrograms(const RolledPlan& plan, const RolledProgress& progress) {
  const Result<uint32_t> last = BlocksThatSettle(plan);
  if (!last.ok()) return last.status();
  AloneCheck check(plan);
  PREPOST_RETURN_IF_ERROR(check.CheckWork(*last));
  for (uint32_t blocks = 1; blocks <= *last; ++blocks) {
    PREPOST_RETURN_IF_ERROR(check.Check(blocks));
    if (progress) progress(blocks, *last);
  }
  return last;
}

Status VerifyRolledFor(const RolledPlan& plan, uint32_t blocks) {
  const Result<Bound> bound = BoundOf(plan);
  if (!bound.ok()) return bound.status();
  const uint64_t looked_at = bound->StandIn(blocks);
  if (plan.programs.size() != plan.header.nodes)
    return AloneCheck(plan).Check(static_cast<uint32_t>(looked_at));
  if (looked_at > kFlatMax / plan.header.nodes)
    return TooMuchToVerify(plan, Count(looked_at, "block"));
  return VerifyFlat(plan, looked_at);
}

}  // namespace prepost
