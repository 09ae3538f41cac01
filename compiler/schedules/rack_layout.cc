// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedules/rack_layout.h"

#include <algorithm>

#include "ir/base/status.h"

namespace prepost {
namespace {

constexpr uint32_t kOneRack[] = {0};

}  // namespace

RackLayout::RackLayout(const RolledExtent& extent)
    : nodes_(extent.nodes), begin_(extent.racks.empty() ? std::span(kOneRack) : extent.racks) {
  PREPOST_CHECK(begin_.front() == 0 && begin_.back() < nodes_);
}

uint32_t RackLayout::size_max() const {
  uint32_t most = 0;
  for (uint32_t rack = 0; rack < count(); ++rack) most = std::max(most, size(rack));
  return most;
}

uint32_t RackLayout::RackOf(uint32_t node) const {
  return static_cast<uint32_t>(std::ranges::upper_bound(begin_, node) - begin_.begin()) - 1;
}

}  // namespace prepost
