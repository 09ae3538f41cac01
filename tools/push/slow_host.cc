// SPDX-License-Identifier: Apache-2.0
#include "tools/push/slow_host.h"

#include <algorithm>

namespace prepost::tools {
namespace {

constexpr uint64_t kLeastBytes = uint64_t{256} << 10;  ///< of a connection that is judged
constexpr double kLeastSeconds = 1e-6;                 ///< the kernel counts no less
constexpr double kSlowShare = 0.5;                     ///< of what the others' carry

bool IsJudged(const LinkSpeed& link, size_t members) {
  return link.bytes >= kLeastBytes && link.from < members && link.to < members;
}

}  // namespace

std::vector<double> MemberSpeeds(const std::vector<LinkSpeed>& links, size_t members) {
  std::vector<double> speeds(members);
  for (const LinkSpeed& link : links) {
    if (!IsJudged(link, members)) continue;
    const double speed =
        static_cast<double>(link.bytes) / std::max(link.busy_seconds, kLeastSeconds);
    for (const uint32_t member : {link.from, link.to})
      speeds[member] = std::max(speeds[member], speed);
  }
  return speeds;
}

std::optional<uint32_t> SlowMember(const std::vector<LinkSpeed>& links, size_t members) {
  const std::vector<double> speeds = MemberSpeeds(links, members);
  std::optional<uint32_t> slowest;
  for (uint32_t member = 1; member < members; ++member) {
    if (speeds[member] > 0 && (!slowest || speeds[member] < speeds[*slowest])) slowest = member;
  }
  if (!slowest) return std::nullopt;
  std::vector<double> others;
  for (uint32_t member = 0; member < members; ++member) {
    if (member != *slowest && speeds[member] > 0) others.push_back(speeds[member]);
  }
  if (others.empty()) return std::nullopt;
  const auto middle = others.begin() + static_cast<ptrdiff_t>(others.size() / 2);
  std::ranges::nth_element(others, middle);
  const double slow = kSlowShare * *middle;
  if (speeds[*slowest] >= slow) return std::nullopt;
  // One whose only connection is that to a slow one seems as slow: it has fewer.
  std::vector<size_t> connections(members);
  for (const LinkSpeed& link : links) {
    if (!IsJudged(link, members)) continue;
    ++connections[link.from];
    ++connections[link.to];
  }
  for (uint32_t member = 1; member < members; ++member) {
    if (speeds[member] > 0 && speeds[member] < slow && connections[member] > connections[*slowest])
      slowest = member;
  }
  return slowest;
}

}  // namespace prepost::tools
