// SPDX-License-Identifier: Apache-2.0
//
// Which TCP connections the nodes of a plan have, and TcpMesh: those of all nodes, made by one
// process over the loopback interface before the nodes exist as processes of their own. No port
// stays open and no secret is needed: each accepted connection is checked to be our own. Nodes on
// several machines connect as bootstrap.h says.
#ifndef PREPOST_RUNTIME_TRANSPORT_TCP_TCP_MESH_H_
#define PREPOST_RUNTIME_TRANSPORT_TCP_TCP_MESH_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/executor/playable.h"
#include "runtime/group/group_key.h"
#include "runtime/transport/memory_window.h"
#include "runtime/transport/sealing/record_seal.h"
#include "runtime/transport/shm/block_stage.h"
#include "runtime/transport/shm/shm_stream.h"

namespace prepost {

/// Two nodes that share a channel have one connection for blocks, if any pass between them, and one
/// for credits and delivery notes, so that these never stand behind a block. That for blocks may be
/// of several streams (tcp_path.h).
struct TcpConnection {
  NodeId low;
  NodeId high;
  Lane lane = Lane::kBlocks;

  friend auto operator<=>(const TcpConnection&, const TcpConnection&) = default;
};
/// The connections of a verified plan, sorted.
std::vector<TcpConnection> TcpConnections(Playable plan);

/// A peer whose process runs on this machine (introduction.h).
struct LocalPeer {
  int process = 0;               ///< its id, by the kernel
  bool can_read = false;         ///< this process may read the peer's memory
  bool is_read = false;          ///< the peer may read this process's
  bool is_forbidden = false;     ///< it is there, but this process may not read its memory
  uint64_t window = 0;           ///< can_read: where its window for this process is, in its memory
  MemoryWindow::Sign sign = {};  ///< can_read: what stands there while its memory may be copied
};

/// One end of a connection, or of one of its streams.
struct TcpSocket {
  NodeId peer;
  Lane lane = Lane::kBlocks;
  uint16_t stream = 0;
  uint16_t streams = 1;  ///< of the connection
  FileDescriptor fd;     ///< connected, TCP_NODELAY, unsent bytes bounded; used with MSG_DONTWAIT
  LocalPeer local = {};  ///< on this machine: blocks are copied from memory to memory
  std::unique_ptr<MemoryWindow> window = nullptr;  ///< this end's, if the peer may read its memory
  std::optional<GroupKey> key = {};  ///< its two ends' alone (HelloSide::LinkKey()), where they met
  bool is_connector = false;         ///< of the two, in the hello
  std::unique_ptr<LinkSeal> seal = nullptr;  ///< of what it carries; null: nothing is sealed
  /// On this machine: what its bytes go through instead; only its end is looked for at `fd`.
  std::unique_ptr<ShmStream> memory = nullptr;
  /// On this machine: where this end puts blocks that the peer copies out; null: nowhere.
  std::shared_ptr<BlockStage> stage = nullptr;
  std::unique_ptr<PeerStage> peer_stage = nullptr;  ///< where the peer does
};

/// The sockets of each node, by node id.
using TcpMesh = std::vector<std::vector<TcpSocket>>;

/// Makes a connected socket what TcpSocket says. Errors: kEnvironment.
Status ConfigureTcp(const FileDescriptor& fd);

/// Needs a verified plan. `streams`: of each connection for blocks. Errors: kEnvironment: out of
/// descriptors or ports, no loopback interface.
Result<TcpMesh> MakeTcpMesh(Playable plan, uint16_t streams = 1);

/// In place of hellos: seals what the `sockets` of a mesh carry that `node` has, each under a key
/// of its own, which both of its ends derive from `key`. `cipher` is not kNone.
void SealSockets(NodeId node, std::span<TcpSocket> sockets, const GroupKey& key, SealCipher cipher);

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_TCP_TCP_MESH_H_
