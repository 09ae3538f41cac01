// SPDX-License-Identifier: Apache-2.0
//
// Receipts, one per block that is transferred, are sorted by node and block. So the first receipt
// of a block by a node is found by a binary search, a second one stands behind it, and a node's
// missing blocks are the gaps in what it lacks at first, which are few ranges. A number of blocks
// or nodes that a slip of the pen makes too large costs nothing.
#include "compiler/rounds/rounds_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "compiler/rounds/rounds_findings.h"
#include "ir/base/count.h"

namespace prepost {
namespace {

constexpr size_t kRangesShown = 8;  ///< of the blocks that a node misses

/// A node gets, or takes, a block by a transfer. Of those of one node and block, the first in the
/// file is the first in sorted order.
struct Receipt {
  uint32_t node;
  uint32_t block;
  uint32_t transfer;

  friend auto operator<=>(const Receipt&, const Receipt&) = default;
};

/// Blocks [begin, end).
struct BlockRange {
  uint32_t begin;
  uint32_t end;
};

class RoundsChecker {
 public:
  RoundsChecker(const RoundsFile& file, const RoundsExtent& extent)
      : file_(file),
        transfers_(file.transfers),
        extent_(extent),
        roles_(extent.roles()),
        combines_(Combines(extent.collective.kind)) {}

  Status Run() {
    FindReceipts();
    for (uint32_t t = 0; t < transfers_.size(); ++t) {
      if (transfers_[t].round != transfers_[round_begin_].round) round_begin_ = t;
      if (!CheckForm(t)) continue;
      if (combines_) {
        CheckTaking(t);
      } else {
        CheckOnce(t);
        CheckSource(t);
      }
    }
    if (!combines_) FindMissing();
    return findings_.ToStatus();
  }

 private:
  template <typename Make>
  void Find(uint32_t transfer, Make make) {
    findings_.Add([&] { return file_.At(transfer, make()); });
  }

  bool IsInRange(const PlannedTransfer& it) const {
    return it.from < extent_.nodes && it.to < extent_.nodes && it.block < extent_.blocks &&
           it.count <= extent_.blocks - it.block;
  }
  bool IsMulticast() const { return extent_.collective.kind == CollectiveKind::kMulticast; }
  /// The first block of `it` for which `is` holds.
  template <typename Is>
  std::optional<uint32_t> FirstBlock(const PlannedTransfer& it, Is is) const {
    for (uint32_t block = it.block; block < it.block + it.count; ++block) {
      if (is(block)) return block;
    }
    return std::nullopt;
  }
  std::optional<uint32_t> FirstInput(const PlannedTransfer& it) const {
    return FirstBlock(it, [&](uint32_t block) { return roles_.Contributes(NodeId(it.to), block); });
  }
  /// Whether somebody gets something by it: where blocks are combined, takes it.
  bool IsReceipt(const PlannedTransfer& it) const {
    if (!IsInRange(it) || it.from == it.to || (it.count != 1 && IsMulticast())) return false;
    return combines_ ? !it.combines : !it.combines && !FirstInput(it);
  }

  void FindReceipts() {
    receipts_.reserve(transfers_.size());
    for (uint32_t t = 0; t < transfers_.size(); ++t) {
      const PlannedTransfer& it = transfers_[t];
      if (!IsReceipt(it)) continue;
      for (uint32_t block = it.block; block < it.block + it.count; ++block)
        receipts_.push_back({.node = it.to, .block = block, .transfer = t});
    }
    std::ranges::sort(receipts_);
  }

  /// The transfer by which `node` first gets `block`, or kNone.
  uint32_t FirstReceipt(uint32_t node, uint32_t block) const {
    const auto at = std::ranges::lower_bound(receipts_, Receipt{node, block, 0});
    return at == receipts_.end() || at->node != node || at->block != block ? kNone : at->transfer;
  }

  /// Whether `t` can be a transfer of this collective, whatever the others are.
  bool CheckForm(uint32_t t) {
    const PlannedTransfer& it = transfers_[t];
    if (!IsInRange(it)) {
      Find(t, [&] { return OutOfRange(it); });
    } else if (it.from == it.to) {
      Find(t, [&] { return fmt::format("node {} sends block {} to itself", it.from, it.block); });
    } else if (it.count != 1 && IsMulticast()) {
      Find(t, [&] {
        return fmt::format(
            "{} are several blocks in one message, and messages of a multicast have "
            "one; a transfer for each is what is meant",
            ToString(it));
      });
    } else if (it.combines && !combines_) {
      Find(t, [&] {
        return fmt::format("{} adds to what node {} has, and {} {} combines nothing", ToString(it),
                           it.to, ArticleOf(extent_.collective.kind),
                           Name(extent_.collective.kind));
      });
    } else if (const auto input = FirstInput(it); input && !combines_) {
      Find(t, [&] {
        return fmt::format("node {} sends block {} to node {}, {}", it.from, *input, it.to,
                           roles_.Contributed(NodeId(it.to)).count ==
                                   PartsOf(extent_.collective.kind, extent_.nodes)
                               ? "the root, which has the message"
                               : "which has it from the start");
      });
    } else {
      return true;
    }
    return false;
  }

  std::string OutOfRange(const PlannedTransfer& it) const {
    if (it.from >= extent_.nodes || it.to >= extent_.nodes) {
      return fmt::format("node {} is out of range, {}", it.from >= extent_.nodes ? it.from : it.to,
                         extent_.nodes == 1
                             ? std::string("the only node is 0")
                             : fmt::format("the nodes are 0 to {}", extent_.nodes - 1));
    }
    return fmt::format(
        "block {} is out of range, {}", it.block < extent_.blocks ? extent_.blocks : it.block,
        extent_.blocks == 1 ? std::string("the only block is 0")
                            : fmt::format("the blocks are 0 to {}", extent_.blocks - 1));
  }

  void CheckOnce(uint32_t t) {
    const PlannedTransfer& it = transfers_[t];
    const auto twice =
        FirstBlock(it, [&](uint32_t block) { return FirstReceipt(it.to, block) != t; });
    if (!twice) return;
    Find(t, [&] {
      const uint32_t first = FirstReceipt(it.to, *twice);
      return fmt::format("node {} gets block {} a second time, it comes from node {} in {}", it.to,
                         *twice, transfers_[first].from, file_.RoundOf(first));
    });
  }

  /// What is sent is there.
  void CheckSource(uint32_t t) {
    const PlannedTransfer& it = transfers_[t];
    const auto missing = FirstBlock(it, [&](uint32_t block) {
      if (roles_.Contributes(NodeId(it.from), block)) return false;
      const uint32_t source = FirstReceipt(it.from, block);
      return source == kNone || transfers_[source].round >= it.round;
    });
    if (!missing) return;
    Find(t, [&] {
      const uint32_t source = FirstReceipt(it.from, *missing);
      std::string when = "it never gets it";
      if (source != kNone) {
        when = transfers_[source].round == it.round
                   ? "it gets it in this round and can send it from the next one on"
                   : "it gets it in " + file_.RoundOf(source);
      }
      return fmt::format("node {} sends block {}, which it does not have yet: {}", it.from,
                         *missing, when);
    });
  }

  /// What is taken comes before what is sent of it in later rounds only.
  void CheckTaking(uint32_t t) {
    const PlannedTransfer& it = transfers_[t];
    const auto takes = [&](uint32_t block) {
      const auto at = std::ranges::lower_bound(receipts_, Receipt{it.from, block, round_begin_});
      return at != receipts_.end() && at->node == it.from && at->block == block &&
             transfers_[at->transfer].round == it.round;
    };
    const auto taken = FirstBlock(it, takes);
    if (!taken) return;
    Find(t, [&] {
      return fmt::format(
          "node {} sends block {} and takes it from another node in this round: it "
          "can send what it takes from the next one on",
          it.from, *taken);
    });
  }

  /// What `node` must be sent, in order: few ranges, or those of as many parts as there are nodes.
  std::vector<BlockRange> LackedOf(uint32_t node) const {
    const PartRow wanted = roles_.Wanted(NodeId(node)), own = roles_.Contributed(NodeId(node));
    const uint32_t size = roles_.blocks_per_part();
    std::vector<BlockRange> lacked;
    const auto add = [&](uint32_t first, uint32_t end) {
      if (first < end) lacked.push_back({.begin = first * size, .end = end * size});
    };
    if (wanted.step != 1) {
      for (uint32_t i = 0; i < wanted.count; ++i) {
        if (!own.Has(wanted.At(i))) add(wanted.At(i), wanted.At(i) + 1);
      }
      return lacked;
    }
    const uint32_t end = wanted.first + wanted.count;
    const uint32_t own_begin = std::clamp(own.first, wanted.first, end);
    add(wanted.first, own_begin);
    add(std::clamp(own.first + own.count, own_begin, end), end);
    return lacked;
  }

  /// The nodes, in order, that do not get everything; neighbours that get nothing in one finding.
  void FindMissing() {
    size_t next = 0;
    for (uint32_t node = 0; node < extent_.nodes; ++node) {
      const size_t begin = next;
      while (next < receipts_.size() && receipts_[next].node == node) ++next;
      const std::vector<BlockRange> lacked = LackedOf(node);
      if (lacked.empty()) continue;
      if (begin != next) {
        FindMissingBlocks(node, lacked, std::span(receipts_).subspan(begin, next - begin));
        continue;
      }
      const uint32_t first = node;
      const uint32_t stop = next == receipts_.size() ? extent_.nodes : receipts_[next].node;
      while (node + 1 < stop && !LackedOf(node + 1).empty()) ++node;
      FindInFile([&] {
        return first == node ? fmt::format("node {} never gets any block", node)
                             : fmt::format("nodes {} to {} never get any block", first, node);
      });
    }
  }

  void FindMissingBlocks(uint32_t node, std::span<const BlockRange> lacked,
                         std::span<const Receipt> receipts) {
    std::vector<std::pair<uint32_t, uint32_t>> gaps;  // first and last block
    uint64_t missing = 0;
    const auto add = [&](uint32_t begin, uint32_t end) {
      if (begin >= end) return;
      missing += end - begin;
      if (gaps.size() <= kRangesShown) gaps.emplace_back(begin, end - 1);
    };
    auto receipt = receipts.begin();
    for (const auto& [begin, end] : lacked) {
      uint32_t wanted = begin;
      while (receipt != receipts.end() && receipt->block < begin) ++receipt;
      for (; receipt != receipts.end() && receipt->block < end; ++receipt) {
        add(wanted, receipt->block);
        wanted = receipt->block + 1;
      }
      add(wanted, end);
    }
    if (missing == 0) return;
    FindInFile([&] { return fmt::format("node {} never gets {}", node, Describe(gaps, missing)); });
  }

  /// "block 3", "blocks 0, 2 and 5 to 9".
  static std::string Describe(std::span<const std::pair<uint32_t, uint32_t>> gaps,
                              uint64_t missing) {
    std::string text = missing == 1 ? "block " : "blocks ";
    uint64_t shown = 0;
    for (size_t i = 0; i < std::min(gaps.size(), kRangesShown); ++i) {
      const auto& [first, last] = gaps[i];
      if (i > 0) text += i + 1 == gaps.size() ? " and " : ", ";
      text += first == last ? fmt::to_string(first) : fmt::format("{} to {}", first, last);
      shown += last - first + 1;
    }
    if (shown < missing) text += fmt::format(" and {} more", missing - shown);
    return text;
  }

  template <typename Make>
  void FindInFile(Make make) {
    findings_.Add([&] { return Rejected(make(), file_.name); });
  }

  const RoundsFile& file_;
  const std::span<const PlannedTransfer> transfers_;
  static constexpr uint32_t kNone = 0xffffffff;

  const RoundsExtent extent_;
  const Roles roles_;
  const bool combines_;
  std::vector<Receipt> receipts_;
  uint32_t round_begin_ = 0;  // the first transfer of the round in hand
  RoundsFindings findings_;
};

}  // namespace

Status CheckRounds(const RoundsFile& file, const RoundsExtent& extent) {
  return RoundsChecker(file, extent).Run();
}

}  // namespace prepost
