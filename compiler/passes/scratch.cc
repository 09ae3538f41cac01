// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/scratch.h"

#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace prepost {
namespace {

bool FillsScratch(const Roles& roles, NodeId node, const Op& op) {
  if (op.is_send() || op.is_credit()) return false;
  if (op.is_combine()) return true;
  for (uint32_t block = op.block; block < op.block + op.count; ++block) {
    if (!roles.Wants(node, block)) return true;
  }
  return false;
}

class ScratchAssigner {
 public:
  explicit ScratchAssigner(const Plan& plan)
      : plan_(plan),
        roles_(plan.header().roles()),
        may_reuse_(plan.header().ready.mode == ReadyMode::kWindow),
        place_(plan.header().payload.blocks) {}

  Result<Plan> Run() {
    std::vector<uint16_t> scratch_of(plan_.ops().size(), kNoScratch);
    std::vector<std::vector<OpId>> waits_of(may_reuse_ ? plan_.ops().size() : 0);
    uint32_t most = 0;
    for (const Program& program : plan_.programs()) {
      BeginProgram(program);
      for (uint32_t i = 0; i < program.op_count; ++i) {
        const Op& op = ops_[i];
        if (op.is_send() || op.is_credit()) continue;
        const size_t credit = may_reuse_ ? NextCredit(program, op) : 0;
        if (!FillsScratch(roles_, program.node, op)) continue;
        const uint32_t first = FindRoom(op);
        if (first + op.count > kNoScratch) return TooMany(program);
        scratch_of[program.op_begin + i] = static_cast<uint16_t>(first);
        for (uint32_t j = 0; j < op.count; ++j)
          Take(program, i, j, first + j, may_reuse_ ? &waits_of[credit] : nullptr);
      }
      most = std::max(most, static_cast<uint32_t>(buffers_.size()));
    }
    const PlanHeader& header = plan_.header();
    PREPOST_RETURN_IF_ERROR(CheckMemory(header.collective, header.nodes, header.payload, most));
    return Write(scratch_of, waits_of, most);
  }

 private:
  /// Whose block a buffer holds, and until which round.
  struct Buffer {
    uint32_t last_round = 0;
    std::vector<OpId> uses = {};
  };
  /// Of a block at the node in hand: its touches, in id order.
  struct BlockPlace {
    uint32_t program = 0;  // counted from 1
    bool is_placed = false;
    std::vector<uint32_t> touches = {};
  };

  void BeginProgram(const Program& program) {
    ++program_;
    ops_ = plan_.ops(program);
    buffers_.clear();
    credits_.clear();
    position_.clear();
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (op.is_credit()) {
        if (op.is_send()) credits_[PeerOf(op)].push_back(i);
        continue;
      }
      for (uint32_t block = op.block; block < op.block + op.count; ++block) {
        BlockPlace& place = place_[block];
        if (place.program != program_) place = {.program = program_};
        place.touches.push_back(i);
      }
    }
  }

  /// To whom a credit goes.
  uint32_t PeerOf(const Op& credit) const {
    return plan_.channels()[credit.channel.index()].to.value;
  }

  /// The first of op.count buffers in a row that are free in its round.
  uint32_t FindRoom(const Op& op) {
    if (!may_reuse_) return static_cast<uint32_t>(buffers_.size());
    uint32_t free = 0;
    for (uint32_t buffer = 0; buffer < buffers_.size(); ++buffer) {
      const Buffer& it = buffers_[buffer];
      free = it.uses.empty() || it.last_round < op.round ? free + 1 : 0;
      if (free == op.count) return buffer + 1 - free;
    }
    return static_cast<uint32_t>(buffers_.size()) - free;
  }

  /// The j-th block of op i goes into `buffer`; `waits`: of its credit, to which the uses of what
  /// the buffer held are added.
  void Take(const Program& program, uint32_t i, uint32_t j, uint32_t buffer,
            std::vector<OpId>* waits) {
    const Op& op = ops_[i];
    if (buffer >= buffers_.size()) buffers_.resize(buffer + size_t{1});
    BlockPlace& place = place_[op.block + j];
    const bool is_wanted = roles_.Wants(program.node, op.block + j);
    const bool is_place = !is_wanted && !std::exchange(place.is_placed, true);
    Buffer& it = buffers_[buffer];
    if (is_wanted && !op.is_combine()) return;  // it has its place: the buffer stays empty
    if (waits != nullptr) waits->insert(waits->end(), it.uses.begin(), it.uses.end());
    it = {.last_round = op.round};
    const auto use = [&](uint32_t touch) {
      it.last_round = std::max(it.last_round, ops_[touch].round);
      if (may_reuse_) it.uses.push_back(OpId(touch));
    };
    use(i);
    if (!is_place) return;
    for (auto touch = std::ranges::upper_bound(place.touches, i); touch != place.touches.end();
         ++touch)
      use(*touch);
  }

  /// The credit of `receive`, the next one of its channel, by its index into Plan::ops().
  size_t NextCredit(const Program& program, const Op& receive) {
    const uint32_t peer = plan_.channels()[receive.channel.index()].from.value;
    const std::vector<uint32_t>& credits = credits_[peer];
    const uint32_t position = position_[peer]++;
    PREPOST_CHECK(position < credits.size());
    return program.op_begin + size_t{credits[position]};
  }

  Status TooMany(const Program& program) const {
    return Rejected(
        fmt::format(
            "node {} would need more than {} scratch buffers in ready mode {}, the limit{}",
            program.node.value, kNoScratch - 1u, ToString(plan_.header().ready),
            may_reuse_ ? "; larger blocks need fewer" : "; window=W or larger blocks need fewer"),
        "/block_bytes");
  }

  Plan Write(const std::vector<uint16_t>& scratch_of, std::vector<std::vector<OpId>>& waits_of,
             uint32_t most) const {
    PlanHeader header = plan_.header();
    header.scratch = most;
    PlanBuilder builder(std::move(header));
    builder.Reserve(plan_.ops().size(), plan_.after_count());
    for (const Channel& channel : plan_.channels()) builder.AddChannel(channel);
    std::vector<OpId> after;
    for (const Program& program : plan_.programs()) {
      builder.BeginProgram(program.node);
      for (uint32_t i = program.op_begin; i < program.op_begin + program.op_count; ++i) {
        Op op = plan_.ops()[i];
        op.scratch = scratch_of[i];
        const std::span<const OpId> given = plan_.after(op);
        if (!may_reuse_ || waits_of[i].empty()) {
          builder.AddOp(op, given);
          continue;
        }
        after = std::move(waits_of[i]);
        after.insert(after.end(), given.begin(), given.end());
        std::ranges::sort(after);
        after.erase(std::unique(after.begin(), after.end()), after.end());
        builder.AddOp(op, after);
      }
    }
    return std::move(builder).Build();
  }

  const Plan& plan_;
  const Roles roles_;
  const bool may_reuse_;
  uint32_t program_ = 0;  // in hand, counted from 1
  std::span<const Op> ops_;
  std::vector<Buffer> buffers_;                              // of the program in hand
  std::vector<BlockPlace> place_;                            // by block
  llvm::DenseMap<uint32_t, std::vector<uint32_t>> credits_;  // peer -> credits to it
  llvm::DenseMap<uint32_t, uint32_t> position_;              // peer -> receives from it so far
};

bool NeedsScratch(const Plan& plan) {
  const PlanHeader& header = plan.header();
  if (header.payload.bytes == 0) return false;
  if (header.collective.kind == CollectiveKind::kMulticast && header.collective.helpers == 0)
    return false;
  const Roles roles = plan.header().roles();
  for (const Program& program : plan.programs()) {
    for (const Op& op : plan.ops(program)) {
      if (FillsScratch(roles, program.node, op)) return true;
    }
  }
  return false;
}

}  // namespace

Result<Plan> AssignScratch(Plan&& plan) {
  if (!NeedsScratch(plan)) return std::move(plan);
  return ScratchAssigner(plan).Run();
}

}  // namespace prepost
