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
// Cost: O(H log L) for the H hops and L links of the component, which is what changed and what
// shares a tight link with that, directly or over other flows.
#include <algorithm>
#include <utility>

#include "prepost/backends/emulated/fluid_network.h"

namespace prepost::emulated {

void FluidNetwork::Settle(Picoseconds now) {
  if (new_flows_.empty() && changed_links_.empty()) return;
  FindComponent();
  for (const FlowIndex index : new_flows_) {
    Flow& flow = flows_[index];
    if (flow.in_component) continue;
    flow.rate = flow.limit;
    ScheduleEnd(index, now);
  }
  new_flows_.clear();
  if (component_flows_.empty() && component_links_.empty()) return;
  ShareComponent();
  ApplyShares(now);
}

/// All that can have another rate now. Links that were tight and are not any more belong to it.
void FluidNetwork::FindComponent() {
  component_flows_.clear();
  component_links_.clear();
  for (const LinkIndex index : changed_links_) {
    links_[index].is_changed = false;
    if (links_[index].NeedsSharing()) AddLink(index);
  }
  changed_links_.clear();
  // A new flow on a tight link has made it a changed one.
  for (size_t i = 0; i < component_links_.size(); ++i) {
    for (Hop hop = links_[component_links_[i]].first; hop != kNoHop;) {
      const FlowIndex flow = static_cast<FlowIndex>(hop / kPathLinks);
      hop = flows_[flow].hops[hop % kPathLinks].next;
      AddFlow(flow);
    }
  }
}

void FluidNetwork::AddLink(LinkIndex index) {
  if (links_[index].in_component) return;
  links_[index].in_component = true;
  component_links_.push_back(index);
}

void FluidNetwork::AddFlow(FlowIndex index) {
  Flow& flow = flows_[index];
  if (flow.in_component) return;
  flow.in_component = true;
  component_flows_.push_back(index);
  for (const LinkIndex link : flow.path.all()) {
    if (links_[link].NeedsSharing()) AddLink(link);
  }
}

void FluidNetwork::ShareComponent() {
  const auto is_larger = [](const Candidate& a, const Candidate& b) { return a.share > b.share; };
  candidates_.clear();
  for (const LinkIndex index : component_links_) {
    Link& link = links_[index];
    link.is_tight = link.demand > link.rate;
    if (!link.is_tight) continue;
    link.residual = link.rate;
    link.unfixed = link.flows;
    if (link.rate < link.flows) crowded_ = index;
    candidates_.push_back({link.Share(), index});
  }
  std::ranges::make_heap(candidates_, is_larger);
  for (const FlowIndex index : component_flows_) flows_[index].is_fixed = false;
  std::ranges::sort(component_flows_, {},
                    [&](FlowIndex index) { return std::pair(flows_[index].limit, index); });
  size_t limited = 0;  // flows that are fixed or have been looked at, from the front
  while (limited < component_flows_.size()) {
    level_.clear();
    Rate share = kRateMax;
    while (!candidates_.empty() && candidates_.front().share <= share) {
      std::ranges::pop_heap(candidates_, is_larger);
      const auto [then, index] = candidates_.back();
      candidates_.pop_back();
      const Link& link = links_[index];
      if (link.unfixed == 0) continue;
      if (link.Share() == then) {  // shares only rise
        share = then;
        level_.push_back(index);
        continue;
      }
      candidates_.push_back({link.Share(), index});
      std::ranges::push_heap(candidates_, is_larger);
    }
    bool is_limited = false;
    for (; limited < component_flows_.size(); ++limited) {
      const Flow& flow = flows_[component_flows_[limited]];
      if (flow.is_fixed) continue;
      if (flow.limit > share) break;
      Fix(component_flows_[limited], flow.limit);
      is_limited = true;
    }
    if (!is_limited) {
      ShareLevel();
      continue;
    }
    for (const LinkIndex index : level_) {  // what they have has changed
      if (links_[index].unfixed == 0) continue;
      candidates_.push_back({links_[index].Share(), index});
      std::ranges::push_heap(candidates_, is_larger);
    }
  }
}

/// Fixes all flows of the links of level_, which all have the same share.
void FluidNetwork::ShareLevel() {
  if (level_.empty()) return;
  const Rate share = links_[level_.front()].Share();
  for (const LinkIndex index : level_) {
    for (Hop hop = links_[index].first; hop != kNoHop;) {
      const FlowIndex flow = static_cast<FlowIndex>(hop / kPathLinks);
      hop = flows_[flow].hops[hop % kPathLinks].next;
      if (!flows_[flow].is_fixed) Fix(flow, share);
    }
  }
}

void FluidNetwork::Fix(FlowIndex index, Rate rate) {
  Flow& flow = flows_[index];
  flow.is_fixed = true;
  flow.new_rate = rate;
  for (const LinkIndex link : flow.path.all()) {
    if (!links_[link].is_tight) continue;
    links_[link].residual -= rate;
    --links_[link].unfixed;
  }
}

void FluidNetwork::ApplyShares(Picoseconds now) {
  for (const LinkIndex index : component_links_) links_[index].in_component = false;
  for (const FlowIndex index : component_flows_) {
    Flow& flow = flows_[index];
    flow.in_component = false;
    if (flow.new_rate == flow.rate) continue;  // it ends when it would have
    flow.left -= static_cast<Work>(flow.rate) * (now - flow.since);
    flow.since = now;
    flow.rate = flow.new_rate;
    ScheduleEnd(index, now);
  }
}

}  // namespace prepost::emulated
