// SPDX-License-Identifier: Apache-2.0
//
// SlowMember: whom a transfer waits for. Members that relay hold each other up, so that all are
// equally far; but a connection that a slow one has a part in is busy all the time, and those
// between the others are idle between blocks.
#ifndef PREPOST_TOOLS_PUSH_SLOW_HOST_H_
#define PREPOST_TOOLS_PUSH_SLOW_HOST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace prepost::tools {

/// What member `from` has sent to member `to`, as PeerSpeed.
struct LinkSpeed {
  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t bytes = 0;
  double busy_seconds = 0;
};

/// By member, what the best connection of each has carried while it was busy, in bytes/s; 0: not
/// known.
std::vector<double> MemberSpeeds(const std::vector<LinkSpeed>& links, size_t members);

/// The member, not the root (0), of whose connections none carries half of what those of the others
/// do; none: there is no such, or it is not known yet.
std::optional<uint32_t> SlowMember(const std::vector<LinkSpeed>& links, size_t members);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_SLOW_HOST_H_
