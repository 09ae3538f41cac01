// SPDX-License-Identifier: Apache-2.0
//
// SiteEntries: how often a plan takes a block over the paths between sites, which are its dearest.
#ifndef PREPOST_IR_ANALYSIS_SITE_ENTRIES_H_
#define PREPOST_IR_ANALYSIS_SITE_ENTRIES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace prepost {

/// By site: how often a block comes to it from another one, in the mean over the plan's blocks; 1
/// is the least of a site that lacks them, 0 of the root's. `site_of`: by node, numbered from 0 on.
std::vector<double> SiteEntries(const Plan& plan, std::span<const uint32_t> site_of);

/// "each block enters each site once", "each block enters site tokyo 2.3 times", ...: of those that
/// are entered at all. `names`: by site.
std::string DescribeEntries(const std::vector<double>& entries,
                            const std::vector<std::string>& names);

}  // namespace prepost

#endif  // PREPOST_IR_ANALYSIS_SITE_ENTRIES_H_
