// SPDX-License-Identifier: Apache-2.0
#include "ir/exchange/goal_blocks.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>

#include "ir/base/count.h"

namespace prepost {
namespace {

/// Whether ops lead to no receive, to one, or to several.
struct Origin {
  uint32_t recv = kGoalNone;
  bool several = false;

  void Add(Origin other) {
    several |=
        other.several || (recv != kGoalNone && other.recv != kGoalNone && recv != other.recv);
    if (recv == kGoalNone) recv = other.recv;
  }
  bool is_one() const { return recv != kGoalNone && !several; }
};

class BlockFinder {
 public:
  BlockFinder(const GoalFile& file, const GoalMessages& given, uint32_t root,
              std::optional<uint64_t> block_bytes)
      : file_(file),
        given_(given),
        messages_(given.messages),
        root_(root),
        block_bytes_(block_bytes),
        cause_(messages_.size(), kGoalNone),
        block_of_(messages_.size(), kGoalNone) {}

  Result<GoalBlocks> Run() {
    if (!BlocksByTag()) PREPOST_RETURN_IF_ERROR(BlocksByFlow());
    PREPOST_RETURN_IF_ERROR(FindMessage());
    return GoalBlocks{.block_of = std::move(block_of_), .payload = payload_};
  }

 private:
  using Kind = GoalOp::Kind;

  const GoalOp& op(uint32_t index) const { return file_.ops[index]; }
  bool IsData(uint32_t index) const { return given_.message_of[index] != kGoalNone; }

  /// True when tags are blocks; they are then numbered in the order of the tags.
  bool BlocksByTag() {
    std::vector<uint32_t> tags;
    for (const GoalMessage& m : messages_) tags.push_back(op(m.send).tag);
    std::ranges::sort(tags);
    tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
    if (messages_.size() != uint64_t{tags.size()} * (file_.ranks.size() - 1)) return false;
    llvm::DenseSet<std::pair<uint32_t, uint32_t>> seen;  // (rank, tag)
    std::vector<uint64_t> bytes(tags.size(), UINT64_MAX);
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      const GoalOp& recv = op(messages_[m].recv);
      const auto block =
          static_cast<uint32_t>(std::ranges::lower_bound(tags, recv.tag) - tags.begin());
      block_of_[m] = block;
      if (bytes[block] == UINT64_MAX) bytes[block] = recv.bytes;
      const bool is_new = seen.insert({recv.rank, block}).second;
      if (NodeId(recv.rank) == root_ || !is_new || bytes[block] != recv.bytes) return false;
    }
    first_of_block_.assign(tags.size(), kGoalNone);
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      uint32_t& first = first_of_block_[block_of_[m]];
      if (first == kGoalNone) first = m;
    }
    return true;
  }

  Status BlocksByFlow() {
    FindOrigins();
    llvm::DenseMap<uint32_t, llvm::SmallVector<uint32_t, 4>>
        forwarded;  // message -> those it causes
    for (const uint32_t m : given_.order) {
      PREPOST_RETURN_IF_ERROR(FindCause(m));
      if (cause_[m] != kGoalNone) forwarded[cause_[m]].push_back(m);
    }
    std::vector<uint32_t> tree;
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      if (cause_[m] != kGoalNone) continue;
      tree.assign(1, m);
      for (size_t i = 0; i < tree.size(); ++i) {
        const auto next = forwarded.find(tree[i]);
        if (next != forwarded.end())
          tree.insert(tree.end(), next->second.begin(), next->second.end());
      }
      PREPOST_RETURN_IF_ERROR(Deal(tree));
    }
    return {};
  }

  /// The receives that each op's requirements lead to: through calcs, and through anything.
  void FindOrigins() {
    near_.assign(file_.ops.size(), {});
    far_.assign(file_.ops.size(), {});
    for (const uint32_t index : given_.sequence) {
      for (const GoalOrder& order : file_.OrdersOf(index)) {
        const Origin itself{.recv = order.earlier};
        const bool is_recv = op(order.earlier).kind == Kind::kRecv && IsData(order.earlier);
        const bool is_calc = op(order.earlier).kind == Kind::kCalc;
        if (!order.is_start && is_recv) near_[index].Add(itself);
        if (!order.is_start && is_calc) near_[index].Add(near_[order.earlier]);
        far_[index].Add(!order.is_start && is_recv ? itself : far_[order.earlier]);
      }
    }
    // In the order of each rank, as given_.sequence is.
    for (const uint32_t index : given_.sequence) {
      if (!IsData(index)) continue;
      const GoalOp& it = op(index);
      if (it.kind == Kind::kRecv) {
        received_[it.rank].push_back(index);
      } else {
        sent_[{it.rank, it.peer}].push_back(index);
      }
    }
  }

  Status FindCause(uint32_t m) {
    const uint32_t send = messages_[m].send;
    if (NodeId(op(send).rank) == root_) return {};
    uint32_t recv = kGoalNone;
    if (near_[send].is_one()) {
      recv = near_[send].recv;
    } else if (near_[send].recv == kGoalNone && far_[send].is_one()) {
      recv = far_[send].recv;
    } else {
      recv = ByOrder(send);
    }
    if (recv == kGoalNone) return NoCause(send);
    const uint32_t cause = given_.message_of[recv];
    if (op(recv).bytes != op(send).bytes) {
      return file_.At(send, fmt::format("this send has {}, what it forwards, in line {}, has {}: a "
                                        "broadcast hands on whole blocks",
                                        Count(op(send).bytes, "byte"), op(recv).line,
                                        Count(op(recv).bytes, "byte")));
    }
    cause_[m] = cause;
    return {};
  }

  /// The i-th receive of the rank for its i-th send to that peer, if there are as many.
  uint32_t ByOrder(uint32_t send) const {
    const auto received = received_.find(op(send).rank);
    const auto sent = sent_.find({op(send).rank, op(send).peer});
    if (received == received_.end() || received->second.size() != sent->second.size())
      return kGoalNone;
    const auto at = std::ranges::lower_bound(sent->second, given_.place[send], {},
                                             [&](uint32_t index) { return given_.place[index]; });
    const uint32_t recv = received->second[static_cast<size_t>(at - sent->second.begin())];
    return messages_[given_.message_of[recv]].round < messages_[given_.message_of[send]].round
               ? recv
               : kGoalNone;
  }

  Status NoCause(uint32_t send) const {
    if (far_[send].recv == kGoalNone && !near_[send].several) {
      return file_.At(
          send, fmt::format("what does rank {} forward here? it is not the root ({}), and this "
                            "send requires no recv",
                            op(send).rank, root_.value));
    }
    return file_.At(
        send, fmt::format("which block does this send forward? it requires the recv in line {} "
                          "and others; a tag per block, or a single required recv, tells",
                          op(far_[send].recv).line));
  }

  /// Gives a tree of messages that carry the same its block.
  Status Deal(std::span<const uint32_t> tree) {
    const uint64_t bytes = op(messages_[tree.front()].send).bytes;
    uint32_t block = 0;
    for (const uint32_t m : tree) block = std::max(block, lacks_[op(messages_[m].recv).rank]);
    for (;; ++block) {
      if (block == first_of_block_.size()) {
        first_of_block_.push_back(tree.front());
        break;
      }
      dealing_steps_ += tree.size();
      if (dealing_steps_ > kDealingStepsMax * (messages_.size() + 1)) {
        return file_.At(
            messages_[tree.front()].send,
            "too many ways to deal the root's messages out to blocks; a tag per block tells");
      }
      const auto has_it = [&](uint32_t m) {
        return has_.contains({op(messages_[m].recv).rank, block});
      };
      const uint64_t others = op(messages_[first_of_block_[block]].send).bytes;
      if (others == bytes && std::ranges::none_of(tree, has_it)) break;
    }
    for (const uint32_t m : tree) {
      const uint32_t rank = op(messages_[m].recv).rank;
      block_of_[m] = block;
      has_.insert({rank, block});
      uint32_t& lacks = lacks_[rank];
      while (has_.contains({rank, lacks})) ++lacks;
    }
    return {};
  }

  uint64_t BytesOf(uint32_t block) const {
    return op(messages_[first_of_block_[block]].send).bytes;
  }
  Status AtBlock(uint32_t block, std::string message) const {
    return file_.At(messages_[first_of_block_[block]].send, std::move(message));
  }

  /// The size of a full block: what the user says, or that of the largest.
  Result<uint64_t> FullBlock() const {
    uint32_t longest = 0;
    for (uint32_t b = 0; b < first_of_block_.size(); ++b) {
      if (BytesOf(b) > BytesOf(longest)) longest = b;
    }
    if (first_of_block_.empty()) return block_bytes_.value_or(1);
    if (BytesOf(longest) == 0 && first_of_block_.size() > 1)
      return AtBlock(longest,
                     fmt::format("{} blocks of 0 bytes are no message", first_of_block_.size()));
    const uint64_t bytes = std::max<uint64_t>(BytesOf(longest), 1);
    const uint64_t full = block_bytes_.value_or(bytes);
    if (full < bytes || (full > bytes && first_of_block_.size() > 1)) {
      return AtBlock(longest, fmt::format("the largest block, of {}, does not agree with a block "
                                          "size of {}",
                                          Count(bytes, "byte"), full));
    }
    return full;
  }

  /// The message's size from the blocks' sizes; a short block becomes the last.
  Status FindMessage() {
    const auto blocks = static_cast<uint32_t>(first_of_block_.size());
    const Result<uint64_t> full = FullBlock();
    if (!full.ok()) return full.status();
    uint64_t bytes = 0;
    uint32_t shorter = kGoalNone;
    for (uint32_t b = 0; b < blocks; ++b) {
      if (__builtin_add_overflow(bytes, BytesOf(b), &bytes))
        return AtBlock(b, "the blocks add up to more than 2^64 bytes");
      if (BytesOf(b) == *full) continue;
      if (shorter != kGoalNone) {
        return AtBlock(b, fmt::format("a block of {}, one of {} in line {} and full ones of {}: "
                                      "only the last block of a message may be short",
                                      Count(BytesOf(b), "byte"), BytesOf(shorter),
                                      op(messages_[first_of_block_[shorter]].send).line, *full));
      }
      shorter = b;
    }
    if (shorter != kGoalNone) MoveToEnd(shorter);
    const Result<Payload> payload = MakePayload(bytes, *full);
    if (!payload.ok()) return Rejected(payload.status().message(), file_.name);
    PREPOST_CHECK(payload->blocks == std::max(blocks, 1u));
    payload_ = *payload;
    return {};
  }

  void MoveToEnd(uint32_t block) {
    const auto last = static_cast<uint32_t>(first_of_block_.size()) - 1;
    for (uint32_t& b : block_of_) b = b == block ? last : b > block ? b - 1 : b;
  }

  /// Steps of dealing per message, on average; files that need more are made to need them.
  static constexpr uint64_t kDealingStepsMax = 64;

  const GoalFile& file_;
  const GoalMessages& given_;
  const std::vector<GoalMessage>& messages_;
  const NodeId root_;
  const std::optional<uint64_t> block_bytes_;
  std::vector<uint32_t> cause_;                               // message -> the one that it forwards
  std::vector<uint32_t> block_of_;                            // message -> block
  std::vector<Origin> near_, far_;                            // op -> receives behind it
  llvm::DenseMap<uint32_t, std::vector<uint32_t>> received_;  // rank -> ops
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> sent_;  // rank, peer -> ops
  std::vector<uint32_t> first_of_block_;               // block -> one of its messages
  llvm::DenseSet<std::pair<uint32_t, uint32_t>> has_;  // (rank, block)
  llvm::DenseMap<uint32_t, uint32_t> lacks_;           // rank -> the first block it has not
  uint64_t dealing_steps_ = 0;
  Payload payload_;
};

}  // namespace

Result<GoalBlocks> FindGoalBlocks(const GoalFile& file, const GoalMessages& messages, uint32_t root,
                                  std::optional<uint64_t> block_bytes) {
  return BlockFinder(file, messages, root, block_bytes).Run();
}

}  // namespace prepost
