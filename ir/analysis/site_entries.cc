// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/site_entries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace prepost {

std::vector<double> SiteEntries(const Plan& plan, std::span<const uint32_t> site_of) {
  std::vector<double> entries(std::ranges::max(site_of) + size_t{1});
  for (const Op& op : plan.ops()) {
    if (op.is_send() || op.is_credit()) continue;
    const Channel& channel = plan.channels()[op.channel.index()];
    const uint32_t from = site_of[channel.from.index()], to = site_of[channel.to.index()];
    if (from != to) entries[to] += 1.0 / plan.header().payload.blocks;
  }
  return entries;
}

std::string DescribeEntries(const std::vector<double>& entries,
                            const std::vector<std::string>& names) {
  constexpr double kSlack = 1e-6;
  std::vector<std::string> more;
  for (size_t site = 0; site < entries.size(); ++site) {
    if (entries[site] > 1 + kSlack)
      more.push_back(fmt::format("site {} {:.3g} times", names[site], entries[site]));
  }
  if (more.empty()) return "each block enters each site once";
  return fmt::format("each block enters {}", fmt::join(more, ", "));
}

}  // namespace prepost
