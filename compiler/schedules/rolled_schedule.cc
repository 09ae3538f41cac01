// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedules/rolled_schedule.h"

namespace prepost {
namespace {

class RolledNode final : public NodeSchedule {
 public:
  RolledNode(RolledProgram program, uint32_t blocks)
      : program_(std::move(program)), rounds_(program_, blocks) {}

  RoundRange ActiveRounds() const override { return {rounds_.begin(), rounds_.end()}; }
  std::optional<Transfer> Outgoing(uint32_t round) const override {
    return ToTransfer(rounds_.Outgoing(round));
  }
  std::optional<Transfer> Incoming(uint32_t round) const override {
    return ToTransfer(rounds_.Incoming(round));
  }

 private:
  static std::optional<Transfer> ToTransfer(const std::optional<RoundTransfer>& transfer) {
    if (!transfer) return std::nullopt;
    return Transfer{.peer = transfer->peer.value, .block = transfer->block};
  }

  const RolledProgram program_;
  const RolledRounds rounds_;
};

}  // namespace

uint32_t RolledSchedule::Rounds(Extent extent) const {
  if (extent.nodes == 1) return 0;
  return static_cast<uint32_t>(RoundsOf(RolledExtent(extent)).At(extent.blocks));
}

std::unique_ptr<NodeSchedule> RolledSchedule::ForNode(Extent extent, uint32_t node) const {
  RolledProgram program{.node = NodeId(node), .segments = {}};
  if (extent.nodes > 1) program.segments = SegmentsOf(RolledExtent(extent), node);
  return PlayRolled(std::move(program), extent.blocks);
}

std::unique_ptr<NodeSchedule> PlayRolled(RolledProgram program, uint32_t blocks) {
  return std::make_unique<RolledNode>(std::move(program), blocks);
}

}  // namespace prepost
