// SPDX-License-Identifier: Apache-2.0
//
// Max-min fair rates, by filling: all flows grow alike until a link is full, whose flows then stay
// as they are; the others go on (Bertsekas and Gallager, Data Networks, 6.5.2). A flow grows to its
// limit at most, the rate of the slowest link of its path.
//
// Example: flows A 0>2, B 0>3 and C 1>3, all ports 10. Out of node 0 and into node 3 two flows are
// at most 5 each. All grow to 5; then both links are full, and nothing is left to grow: 5, 5, 5.
// With port 0 of 4, A and B stay at 2 and C goes on to 8.
//
// Integers: of a link with `residual` left for `unfixed` flows each gets floor(residual / unfixed),
// and all links that are full at the same share are taken together: so the result is one of the set
// of flows, not of their order. Where a share rounds down the link stays short of full by less than
// one unit per flow.
//
// Only what changed, and what shares a tight link with that, directly or over other flows, is
// computed again: the component. A flow that may reach its limit is a candidate of its own; others
// pass a link as slow as their limit that others use, too, so that link holds them up first. What
// comes out is kept by link (fluid_ends.cc): a flow is touched only when another link than before
// holds it up.
//
// Cost: O(H + R log L) for the H hops and L links of the component and the R times that a link's
// share is computed again.
#include <algorithm>
#include <utility>

#include "sim/network/fluid_network.h"

namespace prepost::sim {

void FluidNetwork::Settle(Picoseconds now) {
  TakePorts();
  if (new_flows_.empty() && changed_links_.empty()) return;
  FindComponent();
  for (const FlowIndex index : new_flows_) {
    const bool is_alone = std::ranges::none_of(
        flows_[index].path.all(), [&](LinkIndex link) { return links_[link].in_component; });
    if (is_alone) HoldUp(index, kAtLimit, now);
  }
  new_flows_.clear();
  if (component_links_.empty()) return;
  OpenComponent();
  ShareComponent();
  ApplyShares(now);
}

/// All links whose shares can be others now. Those that were tight and are not any more belong to
/// it.
void FluidNetwork::FindComponent() {
  std::erase_if(changed_links_, [&](LinkIndex index) {
    links_[index].is_changed = false;
    return !links_[index].NeedsSharing();
  });
  component_links_.clear();
  if (!RecallComponent()) {
    size_t parts = 0;
    for (const LinkIndex index : changed_links_) {
      const size_t found = component_links_.size();
      AddLink(index);
      if (component_links_.size() == found) continue;
      ++parts;
      Connect(found);
    }
    // To take two that have nothing to do with each other for one would cost more than it saves.
    recalls_left_ = parts == 1 ? kRecalls : 0;
    last_component_ = component_links_;
  }
  changed_links_.clear();
}

/// Takes the last component for this one. Flows that start only join links, which have changed
/// then; so where it has all that have changed it is this one, or has become too large since flows
/// have ended, which costs time but changes no share: now and then it is searched anew. False: it
/// is not this one.
bool FluidNetwork::RecallComponent() {
  if (changed_links_.empty()) return true;
  if (recalls_left_ == 0) {
    ++component_;
    return false;
  }
  --recalls_left_;
  const auto is_known = [&](LinkIndex it) { return links_[it].component == component_; };
  if (!std::ranges::all_of(changed_links_, is_known)) {
    ++component_;
    return false;
  }
  std::erase_if(last_component_, [&](LinkIndex index) {
    Link& link = links_[index];
    link.in_component = link.NeedsSharing();
    if (!link.in_component) link.component = 0;
    return !link.in_component;
  });
  component_links_ = last_component_;
  return true;
}

/// Adds what shares flows with links of the component from position `first` on.
void FluidNetwork::Connect(size_t first) {
  for (size_t i = first; i < component_links_.size(); ++i) {
    for (const Hop hop : links_[component_links_[i]].hops) {
      if (component_links_.size() == sharing_links_) return;  // there are no others
      for (const LinkIndex link : flows_[FlowOf(hop)].path.all()) AddLink(link);
    }
  }
}

void FluidNetwork::AddLink(LinkIndex index) {
  Link& link = links_[index];
  if (link.in_component || !link.NeedsSharing()) return;
  link.in_component = true;
  link.component = component_;
  component_links_.push_back(index);
}

/// All flows of the component are to get a rate.
void FluidNetwork::OpenComponent() {
  ++filling_;
  candidates_.clear();
  limits_.clear();
  moves_.clear();
  for (const LinkIndex index : component_links_) {
    Link& link = links_[index];
    link.is_tight = link.IsFull();
    const auto flows = static_cast<uint32_t>(link.hops.size());
    fillings_[index] = {.residual = link.rate, .unfixed = flows};
    if (link.is_tight) {
      if (link.rate < flows) crowded_ = index;
      candidates_.push_back({fillings_[index].Share(), index});
    } else {
      --sharing_links_;
    }
    if (link.limited == 0) continue;
    for (const Hop hop : link.hops) {
      if (flows_[FlowOf(hop)].may_reach_limit) limits_.push_back(FlowOf(hop));
    }
  }
  std::ranges::sort(limits_, {}, [&](FlowIndex it) { return std::pair(flows_[it].limit, it); });
  const auto again = std::ranges::unique(limits_);
  limits_.erase(again.begin(), again.end());
}

namespace {
constexpr auto kIsLarger = [](const auto& a, const auto& b) { return a.share > b.share; };
}  // namespace

void FluidNetwork::ShareComponent() {
  std::ranges::make_heap(candidates_, kIsLarger);
  size_t limited = 0;  // flows of limits_ that are fixed
  while (true) {
    const Rate share = NextLevel();
    bool is_limited = false;
    for (; limited < limits_.size(); ++limited) {
      const FlowIndex index = limits_[limited];
      Flow& flow = flows_[index];
      if (flow.filled == filling_) continue;
      if (flow.limit > share) break;
      Fix(flow, flow.limit);
      if (flow.bottleneck != kAtLimit) moves_.push_back({index, kAtLimit});
      is_limited = true;
    }
    if (level_.empty()) return;
    if (!is_limited) {
      ShareLevel(share);
      continue;
    }
    for (const LinkIndex index : level_) {  // what they have has changed
      if (fillings_[index].unfixed != 0) AddCandidate(index);
    }
  }
}

/// The links that are full next, into level_, and their share; kRateMax: none will be.
FluidNetwork::Rate FluidNetwork::NextLevel() {
  level_.clear();
  Rate share = kRateMax;
  while (!candidates_.empty() && candidates_.front().share <= share) {
    std::ranges::pop_heap(candidates_, kIsLarger);
    const auto [then, index] = candidates_.back();
    candidates_.pop_back();
    const Filling& filling = fillings_[index];
    if (filling.unfixed == 0) continue;
    if (filling.Share() != then) {  // shares only rise
      AddCandidate(index);
      continue;
    }
    share = then;
    level_.push_back(index);
  }
  return share;
}

void FluidNetwork::AddCandidate(LinkIndex index) {
  candidates_.push_back({fillings_[index].Share(), index});
  std::ranges::push_heap(candidates_, kIsLarger);
}

/// Fixes all flows of the links of level_, which all have the same share.
void FluidNetwork::ShareLevel(Rate share) {
  for (const LinkIndex index : level_) fillings_[index].share = share;
  for (const LinkIndex index : level_) {
    for (const Hop hop : links_[index].hops) {
      const FlowIndex flow_index = FlowOf(hop);
      Flow& flow = flows_[flow_index];
      if (flow.filled == filling_) continue;
      Fix(flow, share);
      if (flow.bottleneck == index) continue;
      const bool is_link = flow.bottleneck < links_.size();
      // Of several links that are full at the same share it may stay at its own.
      if (is_link && links_[flow.bottleneck].in_component &&
          fillings_[flow.bottleneck].share == share) {
        continue;
      }
      moves_.push_back({flow_index, index});
    }
  }
}

void FluidNetwork::Fix(Flow& flow, Rate rate) {
  flow.filled = filling_;
  for (const LinkIndex link : flow.path.all()) {
    fillings_[link].residual -= rate;
    --fillings_[link].unfixed;
  }
}

void FluidNetwork::ApplyShares(Picoseconds now) {
  for (const Move& move : moves_) SetApart(move.flow, now);
  for (const LinkIndex index : component_links_) {
    links_[index].in_component = false;
    SetShare(levels_[index], fillings_[index].share, now);
  }
  for (const Move& move : moves_) HoldUp(move.flow, move.to, now);
  for (const LinkIndex index : component_links_) ScheduleLink(index, now);
}

}  // namespace prepost::sim
