// SPDX-License-Identifier: Apache-2.0
//
// TcpMesh: the connections of all nodes of a plan, made by one process over the loopback interface
// before the nodes exist as processes of their own. No port stays open and no secret is needed:
// each accepted connection is checked to be our own.
#ifndef PREPOST_RUNTIME_TCP_MESH_H_
#define PREPOST_RUNTIME_TCP_MESH_H_

#include <cstdint>
#include <vector>

#include "prepost/ir/plan.h"
#include "prepost/ir/status.h"
#include "prepost/runtime/file_descriptor.h"

namespace prepost {

/// One end of a connection. Two nodes that share a channel have one connection per lane of blocks
/// between them, and one "lane" kCreditLane for credits and delivery notes, so that these never
/// stand behind a block.
struct TcpSocket {
  NodeId peer;
  uint32_t lane = kBlockLane;
  FileDescriptor fd;  ///< connected, TCP_NODELAY, unsent bytes bounded; used with MSG_DONTWAIT
};

/// The sockets of each node, by node id.
using TcpMesh = std::vector<std::vector<TcpSocket>>;

/// How many connections MakeTcpMesh() makes; each has two ends.
size_t TcpConnectionCount(const Plan& plan);

/// Needs a verified plan. Errors: kEnvironment: out of descriptors or ports, no loopback interface.
Result<TcpMesh> MakeTcpMesh(const Plan& plan);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TCP_MESH_H_
