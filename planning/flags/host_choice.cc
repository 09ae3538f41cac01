// SPDX-License-Identifier: Apache-2.0
#include "planning/flags/host_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/base/count.h"
#include "ir/plan.h"
#include "planning/flags/values.h"

namespace prepost {
namespace {

/// Different from those of pairs of nodes, and of other flags.
uint64_t DrawnHost(DrawingFlag flag, uint32_t host) {
  static_assert(kNodesMax < std::numeric_limits<uint32_t>::max() - 0xff);
  const uint32_t high = std::numeric_limits<uint32_t>::max() - static_cast<uint32_t>(flag);
  return uint64_t{high} << 32 | host;
}

}  // namespace

Result<HostChoice> HostChoice::Of(const std::map<std::string, std::string>& parts) {
  HostChoice choice;
  std::string given;
  for (const char* key : {"node", "hosts", "share"}) {
    const auto part = parts.find(key);
    if (part == parts.end()) continue;
    if (!given.empty()) return UsageError(fmt::format("'{}' and '{}' are both there", given, key));
    given = key;
    if (given == "node") choice.node_ = part->second;
    if (given == "hosts") {
      choice.count_ = NumberOf<uint32_t>(part->second);
      if (!choice.count_)
        return UsageError(fmt::format("the number of hosts '{}' is no whole number", part->second));
    }
    if (given == "share") {
      choice.share_ = NumberOf<double>(part->second);
      if (!choice.share_ || !(*choice.share_ >= 0 && *choice.share_ <= 1))
        return UsageError(fmt::format("the share '{}' is not from 0 to 1", part->second));
    }
  }
  return choice;
}

Result<std::vector<NodeId>> HostChoice::Among(uint32_t hosts, uint64_t seed,
                                              DrawingFlag flag) const {
  if (node_) {
    const std::optional<uint32_t> node = NumberOf<uint32_t>(*node_);
    if (!node || *node >= hosts) return NoSuchNode(*node_, hosts);
    return std::vector{NodeId(*node)};
  }
  std::vector<NodeId> chosen;
  for (uint32_t host = 0; host < hosts; ++host) chosen.emplace_back(host);
  if (is_of_all()) return chosen;
  if (count_ && *count_ > hosts) {
    return Status(*count_ <= kNodesMax ? StatusCode::kRejected : StatusCode::kUsage,
                  fmt::format("{}, and there are {}", Count(*count_, "host"), hosts));
  }
  const auto count = count_ ? *count_ : static_cast<uint32_t>(std::llround(*share_ * hosts));
  std::vector<double> draws;
  for (uint32_t host = 0; host < hosts; ++host)
    draws.push_back(DrawOf(seed, DrawnHost(flag, host)));
  std::ranges::stable_sort(chosen, {}, [&](NodeId host) { return draws[host.index()]; });
  chosen.resize(count);
  std::ranges::sort(chosen);
  return chosen;
}

Status NoSuchNode(const std::string& node, uint32_t nodes) {
  const std::optional<uint32_t> number = NumberOf<uint32_t>(node);
  return {number && *number < kNodesMax ? StatusCode::kRejected : StatusCode::kUsage,
          fmt::format("no node '{}', the nodes are 0 to {}", node, nodes - 1)};
}

double DrawOf(uint64_t seed, uint64_t what) {
  const auto mix = [](uint64_t z) {
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  };
  const uint64_t bits = mix(mix(seed) ^ what);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace prepost
