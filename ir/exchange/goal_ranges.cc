// SPDX-License-Identifier: Apache-2.0
//
// A tag is the number of the first block that a message carries, its size says how many follow.
// With the size of a part and that of a block this is plain arithmetic. Without them, sizes are
// found:
//
// * If all messages of a tag have one size, and these can be those of blocks, a tag is a block.
//   Where there is one part, it need not be its number: blocks are in the order of the tags.
// * Else messages carry ranges. Of one part, all of whose blocks move: from one tag to the next
//   there are whole blocks, and a message that begins there has them all, so that a block is not
//   larger than the smallest message by the difference of the two tags, and is taken to be that
//   large. Of several parts: a part is one block, of the greatest size of which all messages are
//   multiples; where tags count several blocks to a part, they are divided by as many.
//
// Example, allreduce of 4 ranks by halving, 40 bytes in 4 blocks: tags 0 to 3, messages of 20 and
// 10 bytes; 10 bytes in a difference of 1 are a block. In blocks of 5 bytes tags are 0, 2, 4, 6,
// and 10 bytes in a difference of 2 are 5 again.
#include "ir/exchange/goal_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "ir/base/count.h"
#include "ir/planned_transfers.h"

namespace prepost {
namespace {

class RangeFinder {
 public:
  RangeFinder(const GoalFile& file, const GoalMessages& given, const Collective& collective)
      : file_(file),
        messages_(given.messages),
        collective_(collective),
        parts_(PartsOf(collective.kind, static_cast<uint32_t>(file.ranks.size()))) {}

  Result<GoalRanges> Run(std::optional<uint64_t> message_bytes,
                         std::optional<uint64_t> block_bytes) {
    PREPOST_RETURN_IF_ERROR(CheckParts(collective_.kind, static_cast<uint32_t>(file_.ranks.size()),
                                       "rank", file_.name));
    PREPOST_RETURN_IF_ERROR(CheckEmpty());
    if (collective_.kind == CollectiveKind::kBarrier && message_bytes.value_or(0) == 0) {
      // Its tags only tell messages from each other: all carry the one block, which is empty.
      PREPOST_RETURN_IF_ERROR(SetPayload(0, block_bytes.value_or(1)));
      return GoalRanges{.range_of = std::vector<GoalRange>(messages_.size(), {.block = 0}),
                        .payload = payload_};
    }
    if (message_bytes && block_bytes) {
      PREPOST_RETURN_IF_ERROR(SetPayload(*message_bytes, *block_bytes));
    } else {
      PREPOST_RETURN_IF_ERROR(FindPayload(block_bytes));
      PREPOST_RETURN_IF_ERROR(CheckSaid(message_bytes, block_bytes));
    }
    if (const Status status =
            CheckMemory(collective_, static_cast<uint32_t>(file_.ranks.size()), payload_, 0);
        !status.ok())
      return Rejected(status.message(), file_.name);
    PREPOST_RETURN_IF_ERROR(FindRanges());
    return GoalRanges{.range_of = std::move(range_of_), .payload = payload_};
  }

 private:
  uint32_t TagOf(const GoalMessage& message) const { return file_.ops[message.send].tag; }
  uint64_t BytesOf(const GoalMessage& message) const { return file_.ops[message.send].bytes; }
  Status At(const GoalMessage& message, std::string text) const {
    return file_.At(message.send, std::move(text));
  }

  /// What carries nothing has messages without bytes.
  Status CheckEmpty() const {
    if (collective_.kind != CollectiveKind::kBarrier) return {};
    for (const GoalMessage& it : messages_) {
      if (BytesOf(it) != 0) {
        return At(it, fmt::format("a barrier carries nothing, this send has {}",
                                  Count(BytesOf(it), "byte")));
      }
    }
    return {};
  }

  Status SetPayload(uint64_t bytes, uint64_t block_bytes) {
    const Result<Payload> payload = MakePayload(bytes, block_bytes, parts_);
    if (!payload.ok()) return Rejected(payload.status().message(), file_.name);
    payload_ = *payload;
    return {};
  }

  /// What is in each tag's messages: the smallest and the largest.
  struct Sizes {
    uint64_t least;
    uint64_t most;
  };

  Status FindPayload(std::optional<uint64_t> block_bytes) {
    if (messages_.empty()) return SetPayload(0, block_bytes.value_or(1));
    for (const GoalMessage& it : messages_) {
      const auto [sizes, is_new] =
          sizes_of_.try_emplace(TagOf(it), Sizes{BytesOf(it), BytesOf(it)});
      sizes->second.least = std::min(sizes->second.least, BytesOf(it));
      sizes->second.most = std::max(sizes->second.most, BytesOf(it));
    }
    const bool are_numbers = sizes_of_.size() > 1 || sizes_of_.begin()->first == 0;
    if (parts_ == 1 && block_bytes && are_numbers) return SetByEnds(*block_bytes);
    if (parts_ == 1 ? TagsAreBlocks() : TagsAreBlocksOfParts()) return {};
    return parts_ == 1 ? FindBlock() : FindPart();
  }

  /// One part: each tag has messages of one size, and these are blocks of which the last may be
  /// short.
  bool TagsAreBlocks() {
    const uint64_t full = sizes_of_.begin()->second.most, last = sizes_of_.rbegin()->second.most;
    uint64_t number = 0;
    for (const auto& [tag, sizes] : sizes_of_) {
      ++number;
      if (sizes.least != sizes.most) return false;
      if (number != sizes_of_.size() && sizes.most != full) return false;
    }
    if (last > full || (last == 0 && number > 1) || number > kBlocksMax) return false;
    is_by_rank_ = true;
    return SetPayload((number - 1) * full + last, std::max<uint64_t>(full, 1)).ok();
  }

  /// Several parts: the same of each, all parts alike. The tag of the last block that moves says
  /// how many blocks there are.
  bool TagsAreBlocksOfParts() {
    const uint64_t moving = MovingParts(collective_, static_cast<uint32_t>(file_.ranks.size()));
    const uint64_t per_part = (uint64_t{sizes_of_.rbegin()->first} + moving) / moving;
    if (per_part * parts_ > kBlocksMax || sizes_of_.size() != per_part * LackedParts())
      return false;
    std::optional<uint64_t> full, last;
    for (const auto& [tag, sizes] : sizes_of_) {
      std::optional<uint64_t>& expected = tag % per_part == per_part - 1 ? last : full;
      if (!expected) expected = sizes.most;
      if (sizes.least != *expected || sizes.most != *expected) return false;
    }
    if (!last || (per_part > 1 && (!full || *last == 0 || *last > *full))) return false;
    const uint64_t block = std::max<uint64_t>(per_part > 1 ? *full : *last, 1);
    return SetPayload((per_part - 1) * block + *last, block).ok();
  }

  /// Parts that some rank must be sent, where there are several.
  uint64_t LackedParts() const {
    const bool has_root = HasRoot(collective_.kind);
    return parts_ - (collective_.kind == CollectiveKind::kAlltoall ? file_.ranks.size()
                     : has_root                                    ? 1
                                                                   : 0);
  }

  /// One part, ranges.
  Status FindBlock() {
    std::optional<uint64_t> block;
    for (auto it = sizes_of_.begin(); std::next(it) != sizes_of_.end(); ++it) {
      const uint64_t blocks = std::next(it)->first - it->first;
      const uint64_t most = it->second.least / blocks;
      if (!block || most < *block) block = most;
    }
    if (!block || *block == 0) return Open();
    return SetByEnds(*block);
  }

  /// One part of full blocks of such a size, but for the last: it ends where the last message ends.
  Status SetByEnds(uint64_t block) {
    uint64_t bytes = 0;
    for (const GoalMessage& it : messages_) {
      uint64_t end = 0;
      if (__builtin_mul_overflow(uint64_t{TagOf(it)}, block, &end) ||
          __builtin_add_overflow(end, BytesOf(it), &end))
        return At(it, fmt::format("tag {} in blocks of {} is beyond 2^64 bytes", TagOf(it),
                                  Count(block, "byte")));
      bytes = std::max(bytes, end);
    }
    return SetPayload(bytes, block);
  }

  /// Several parts, ranges of whole parts.
  Status FindPart() {
    uint64_t part = 0;
    uint32_t step = 0;
    for (const GoalMessage& it : messages_) {
      part = std::gcd(part, BytesOf(it));
      step = std::gcd(step, TagOf(it));
    }
    if (part == 0) return Open();
    const uint64_t least = uint64_t{sizes_of_.rbegin()->first} / parts_ + 1;
    if (step == 0) return FitsParts(1, part) ? SetPayload(part, part) : Open();
    // Divisors from the least up: d below the root of `step`, and then step / d.
    std::vector<uint64_t> divisors;
    for (uint64_t d = 1; d * d <= step; ++d) {
      if (step % d != 0) continue;
      divisors.push_back(d);
      if (d * d != step) divisors.push_back(step / d);
    }
    std::ranges::sort(divisors);
    for (const uint64_t blocks : divisors) {
      if (blocks < least || !FitsParts(blocks, part)) continue;
      blocks_per_part_ = blocks;
      return SetPayload(part, part);
    }
    return Open();
  }

  /// Whether all messages are ranges of parts of `part` bytes, with tags that count `blocks` to
  /// each.
  bool FitsParts(uint64_t blocks, uint64_t part) const {
    const uint64_t moving = MovingParts(collective_, static_cast<uint32_t>(file_.ranks.size()));
    return std::ranges::all_of(sizes_of_, [&](const auto& entry) {
      return entry.first / blocks + entry.second.most / part <= moving;
    });
  }

  Status Open() const {
    return Rejected(
        fmt::format(
            "how many blocks a message has is open: a tag is the first one's number, and "
            "{} says how large they are",
            parts_ == 1 ? "--block-bytes" : "--message-bytes (of a part) with --block-bytes"),
        file_.name);
  }

  /// Against the one size that the user says.
  Status CheckSaid(std::optional<uint64_t> message_bytes, std::optional<uint64_t> block_bytes) {
    if (message_bytes && *message_bytes != payload_.bytes) {
      return Rejected(fmt::format("--message-bytes {} does not agree with the messages, which are "
                                  "those of {}{}; --block-bytes beside it may",
                                  *message_bytes, payload_.bytes, parts_ == 1 ? "" : " in a part"),
                      file_.name);
    }
    if (!block_bytes || *block_bytes == payload_.block_bytes) return {};
    const uint64_t blocks = payload_.blocks / parts_;
    if (blocks == 1 && *block_bytes >= payload_.bytes && *block_bytes != 0)
      return SetPayload(payload_.bytes, *block_bytes);
    return Rejected(
        fmt::format("--block-bytes {} does not agree with the messages, which are those "
                    "of blocks of {}; --message-bytes beside it may",
                    *block_bytes, payload_.block_bytes),
        file_.name);
  }

  Status FindRanges() {
    std::map<uint32_t, uint32_t> rank_of;  // tag -> its place among all
    if (is_by_rank_) {
      for (const auto& [tag, sizes] : sizes_of_)
        rank_of.emplace(tag, static_cast<uint32_t>(rank_of.size()));
    }
    uint64_t others = 0;
    for (const GoalMessage& it : messages_) {
      const uint64_t first = is_by_rank_ ? rank_of.at(TagOf(it)) : TagOf(it) / blocks_per_part_;
      if (first >= payload_.blocks) {
        return At(it, fmt::format("tag {} is no block, there are {}: a tag is the number of the "
                                  "first block of a message",
                                  TagOf(it), Count(payload_.blocks, "block")));
      }
      const std::optional<uint32_t> count = CountOf(static_cast<uint32_t>(first), BytesOf(it));
      if (!count) {
        return At(it, fmt::format("{} are no whole blocks from block {} on, of {} in blocks of {}",
                                  Count(BytesOf(it), "byte"), first, Count(payload_.bytes, "byte"),
                                  payload_.block_bytes));
      }
      others += *count - 1;
      if (others > kRangeBlocksMax) {
        return At(it, fmt::format("messages have more than {} blocks in all beside the first of "
                                  "each",
                                  kRangeBlocksMax));
      }
      range_of_.push_back({.block = static_cast<uint32_t>(first), .count = *count});
    }
    return {};
  }

  /// How many blocks from `first` on have so many bytes.
  std::optional<uint32_t> CountOf(uint32_t first, uint64_t bytes) const {
    const uint64_t per_part = payload_.blocks / parts_;
    const uint64_t left = payload_.bytes - payload_.BlockOffset(first);  // in its part
    uint64_t count = 0;
    if (bytes > left) {
      count = per_part - first % per_part;
      bytes -= left;
      if (payload_.bytes == 0) return std::nullopt;
      count += bytes / payload_.bytes * per_part;
      bytes %= payload_.bytes;
    }
    const uint64_t before = count;
    count += bytes / payload_.block_bytes + (bytes % payload_.block_bytes == 0 ? 0 : 1);
    count = std::max<uint64_t>(count, 1);
    if (count > payload_.blocks - first) return std::nullopt;
    const auto blocks = static_cast<uint32_t>(count);
    const auto skipped = static_cast<uint32_t>(before);
    const uint64_t found =
        before == count ? 0 : payload_.RangeSize(first + skipped, blocks - skipped);
    return found == bytes ? std::optional(blocks) : std::nullopt;
  }

  const GoalFile& file_;
  const std::vector<GoalMessage>& messages_;
  const Collective collective_;
  const uint64_t parts_;
  std::map<uint32_t, Sizes> sizes_of_;  // by tag
  bool is_by_rank_ = false;             ///< blocks are in the order of the tags, else their numbers
  uint64_t blocks_per_part_ = 1;        ///< in tags, of a block here
  Payload payload_;
  std::vector<GoalRange> range_of_;
};

}  // namespace

Result<GoalRanges> FindGoalRanges(const GoalFile& file, const GoalMessages& messages,
                                  const Collective& collective,
                                  std::optional<uint64_t> message_bytes,
                                  std::optional<uint64_t> block_bytes) {
  return RangeFinder(file, messages, collective).Run(message_bytes, block_bytes);
}

}  // namespace prepost
