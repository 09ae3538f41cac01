// SPDX-License-Identifier: Apache-2.0
//
// Receipts, one per transfer, are sorted by node and block. So the first receipt of a block by a
// node is found by a binary search, a second one stands behind it, and a node's missing blocks are
// the gaps. A number of blocks or nodes that a slip of the pen makes too large costs nothing.
#include "compiler/rounds/rounds_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "compiler/rounds/rounds_findings.h"
#include "ir/count.h"

namespace prepost {
namespace {

constexpr size_t kRangesShown = 8;  ///< of the blocks that a node misses

/// A node gets a block by a transfer. Of those of one node and block, the first in the file is the
/// first in sorted order.
struct Receipt {
  uint32_t node;
  uint32_t block;
  uint32_t transfer;

  friend auto operator<=>(const Receipt&, const Receipt&) = default;
};

class RoundsChecker {
 public:
  RoundsChecker(const RoundsFile& file, const RoundsExtent& extent)
      : file_(file), transfers_(file.transfers), extent_(extent), roles_(extent.roles()) {}

  Result<CheckedRounds> Run() {
    FindReceipts();
    checked_.source.assign(transfers_.size(), CheckedRounds::kNone);
    for (uint32_t t = 0; t < transfers_.size(); ++t) {
      if (CheckForm(t)) {
        CheckOnce(t);
        FindSource(t);
      }
    }
    FindMissing();
    if (Status status = findings_.ToStatus(); !status.ok()) return status;
    CountPorts();
    return std::move(checked_);
  }

 private:
  template <typename Make>
  void Find(uint32_t transfer, Make make) {
    findings_.Add([&] { return file_.At(transfer, make()); });
  }

  bool IsInRange(const PlannedTransfer& it) const {
    return it.from < extent_.nodes && it.to < extent_.nodes && it.block < extent_.blocks;
  }
  /// Whether somebody gets something by it.
  bool IsReceipt(const PlannedTransfer& it) const {
    return IsInRange(it) && it.from != it.to && roles_.Lacks(NodeId(it.to), it.block);
  }

  void FindReceipts() {
    receipts_.reserve(transfers_.size());
    for (uint32_t t = 0; t < transfers_.size(); ++t) {
      const PlannedTransfer& it = transfers_[t];
      if (IsReceipt(it)) receipts_.push_back({.node = it.to, .block = it.block, .transfer = t});
    }
    std::ranges::sort(receipts_);
  }

  /// The transfer by which `node` first gets `block`, or kNone.
  uint32_t FirstReceipt(uint32_t node, uint32_t block) const {
    const auto at = std::ranges::lower_bound(receipts_, Receipt{node, block, 0});
    if (at == receipts_.end() || at->node != node || at->block != block)
      return CheckedRounds::kNone;
    return at->transfer;
  }

  /// Whether `t` can be a transfer of this multicast, whatever the others are.
  bool CheckForm(uint32_t t) {
    const PlannedTransfer& it = transfers_[t];
    if (!IsInRange(it)) {
      Find(t, [&] { return OutOfRange(it); });
    } else if (it.from == it.to) {
      Find(t, [&] { return fmt::format("node {} sends block {} to itself", it.from, it.block); });
    } else if (!roles_.Lacks(NodeId(it.to), it.block)) {
      Find(t, [&] {
        return fmt::format("node {} sends block {} to node {}, the root, which has the message",
                           it.from, it.block, it.to);
      });
    }
    return IsReceipt(it);
  }

  std::string OutOfRange(const PlannedTransfer& it) const {
    if (it.from >= extent_.nodes || it.to >= extent_.nodes) {
      return fmt::format("node {} is out of range, {}", it.from >= extent_.nodes ? it.from : it.to,
                         extent_.nodes == 1
                             ? std::string("the only node is 0")
                             : fmt::format("the nodes are 0 to {}", extent_.nodes - 1));
    }
    return fmt::format("block {} is out of range, {}", it.block,
                       extent_.blocks == 1
                           ? std::string("the only block is 0")
                           : fmt::format("the blocks are 0 to {}", extent_.blocks - 1));
  }

  void CheckOnce(uint32_t t) {
    const PlannedTransfer& it = transfers_[t];
    const uint32_t first = FirstReceipt(it.to, it.block);
    if (first == t) return;
    Find(t, [&] {
      return fmt::format("node {} gets block {} a second time, it comes from node {} in {}", it.to,
                         it.block, transfers_[first].from, file_.RoundOf(first));
    });
  }

  void FindSource(uint32_t t) {
    const PlannedTransfer& it = transfers_[t];
    if (roles_.Contributes(NodeId(it.from), it.block)) return;
    const uint32_t source = FirstReceipt(it.from, it.block);
    checked_.source[t] = source;
    if (source != CheckedRounds::kNone && transfers_[source].round < it.round) return;
    Find(t, [&] {
      std::string when = "it never gets it";
      if (source != CheckedRounds::kNone) {
        when = transfers_[source].round == it.round
                   ? "it gets it in this round and can send it from the next one on"
                   : "it gets it in " + file_.RoundOf(source);
      }
      return fmt::format("node {} sends block {}, which it does not have yet: {}", it.from,
                         it.block, when);
    });
  }

  /// The nodes, in order, that do not get everything; neighbours that get nothing in one finding.
  void FindMissing() {
    size_t next = 0;
    for (uint32_t node = 0; node < extent_.nodes; ++node) {
      const size_t begin = next;
      while (next < receipts_.size() && receipts_[next].node == node) ++next;
      if (!roles_.IsTarget(NodeId(node))) continue;
      if (begin != next) {
        FindMissingBlocks(node, std::span(receipts_).subspan(begin, next - begin));
        continue;
      }
      const uint32_t first = node;
      const uint32_t stop = next == receipts_.size() ? extent_.nodes : receipts_[next].node;
      while (node + 1 < stop && roles_.IsTarget(NodeId(node + 1))) ++node;
      FindInFile([&] {
        return first == node ? fmt::format("node {} never gets any block", node)
                             : fmt::format("nodes {} to {} never get any block", first, node);
      });
    }
  }

  void FindMissingBlocks(uint32_t node, std::span<const Receipt> receipts) {
    std::vector<std::pair<uint32_t, uint32_t>> gaps;  // first and last block
    uint64_t missing = 0;
    const auto add = [&](uint32_t begin, uint32_t end) {
      if (begin >= end) return;
      missing += end - begin;
      if (gaps.size() <= kRangesShown) gaps.emplace_back(begin, end - 1);
    };
    uint32_t wanted = 0;
    for (const Receipt& receipt : receipts) {
      add(wanted, receipt.block);
      wanted = receipt.block + 1;
    }
    add(wanted, extent_.blocks);
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

  void CountPorts() {
    struct Use {
      uint32_t round = 0;
      uint32_t count = 0;
    };
    std::vector<Use> sends(extent_.nodes), receives(extent_.nodes);
    for (uint32_t t = 0; t < transfers_.size(); ++t) {
      const PlannedTransfer& it = transfers_[t];
      for (Use* use : {&sends[it.from], &receives[it.to]}) {
        use->count = use->round == it.round ? use->count + 1 : 1;
        use->round = it.round;
        if (use->count <= checked_.ports) continue;
        checked_.ports = use->count;
        checked_.busiest = t;
      }
    }
  }

  const RoundsFile& file_;
  const std::span<const PlannedTransfer> transfers_;
  const RoundsExtent extent_;
  const Roles roles_;
  std::vector<Receipt> receipts_;
  RoundsFindings findings_;
  CheckedRounds checked_;
};

}  // namespace

Result<CheckedRounds> CheckRounds(const RoundsFile& file, const RoundsExtent& extent) {
  return RoundsChecker(file, extent).Run();
}

}  // namespace prepost
