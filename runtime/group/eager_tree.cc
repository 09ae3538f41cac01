// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/eager_tree.h"

#include <bit>

namespace prepost {

EagerTree::EagerTree(uint32_t nodes, NodeId root, std::span<const uint32_t> sites)
    : places_(nodes) {
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<std::vector<NodeId>> members;      // of each site, the root's first
  std::vector<uint32_t> place_of(nodes, kNone);  // by the site's number
  for (uint32_t i = 0; i < nodes; ++i) {
    const NodeId node((root.value + i) % nodes);
    uint32_t& place = place_of[sites.empty() ? 0 : sites[node.index()]];
    if (place == kNone) {
      place = static_cast<uint32_t>(members.size());
      members.emplace_back();
    }
    members[place].push_back(node);
  }
  std::vector<NodeId> firsts;
  for (const std::vector<NodeId>& site : members) firsts.push_back(site.front());
  Connect(firsts);  // before those of a site: what has far to go leaves first
  for (const std::vector<NodeId>& site : members) Connect(site);
}

/// Below the first of `nodes`: the parent of place i is i without its lowest bit.
void EagerTree::Connect(std::span<const NodeId> nodes) {
  const auto count = static_cast<uint32_t>(nodes.size());
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t below = i == 0 ? std::bit_ceil(count) : i & -i;
    for (uint32_t step = below / 2; step > 0; step /= 2) {
      if (i + step >= count) continue;
      places_[nodes[i].index()].children.push_back(nodes[i + step]);
      places_[nodes[i + step].index()].parent = nodes[i];
    }
  }
}

}  // namespace prepost
