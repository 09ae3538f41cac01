// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/playable.h"

#include "runtime/executor/program.h"

namespace prepost {

std::vector<ChannelOps> Playable::ChannelOpsOf(NodeId node) const {
  if (rolled_ != nullptr) return rolled_->ChannelOpsOf(node);
  return prepost::ChannelOpsOf(*outline_, ProgramOf(*outline_, node));
}

std::unique_ptr<OpStream> Playable::OpsOf(NodeId node) const {
  if (rolled_ != nullptr) return rolled_->OpsOf(node);
  return std::make_unique<FlatOpStream>(*outline_, ProgramOf(*outline_, node));
}

std::unique_ptr<const BlockPlaces> Playable::PlacesOf(NodeId node) const {
  PREPOST_CHECK(rolled_ == nullptr);
  return std::make_unique<const BlockPlaces>(header(), node,
                                             outline_->ops(ProgramOf(*outline_, node)));
}

size_t Playable::look_ahead(NodeId node) const {
  return rolled_ != nullptr ? kRolledLookAhead : ProgramOf(*outline_, node).op_count;
}

PlanHash Playable::Hash() const {
  if (whole_) return *whole_;
  return rolled_ != nullptr ? HashRolledPlan(rolled_->plan()) : HashPlan(*outline_);
}

}  // namespace prepost
