// SPDX-License-Identifier: Apache-2.0
//
// What a member tells its user about the paths of a group: where they are longer than its sites
// say, and where buffers hold less than they need.
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_PATH_NOTES_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_PATH_NOTES_H_

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "prepost/prepost.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {

/// All by node of the group.
struct GroupPaths {
  std::vector<uint32_t> members;
  NodeId self;
  std::vector<uint32_t> sites;  ///< empty: all are at one
  /// To each node, 0 where it is not known; empty: to none.
  std::vector<std::chrono::microseconds> round_trips;
  PathOptions options;
  const char* word = "member";  ///< before their numbers
};

/// `sockets`: of this member, connected. One sentence each, without a period.
std::vector<std::string> PathNotes(const GroupPaths& group, std::span<const TcpSocket> sockets);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_PATH_NOTES_H_
