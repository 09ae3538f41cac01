// SPDX-License-Identifier: Apache-2.0
//
// LocalTransport: what connects the node processes of one machine. The launcher makes it before it
// forks them; each process then makes its endpoint of it.
#ifndef PREPOST_RUNTIME_TRANSPORT_LOCAL_TRANSPORT_H_
#define PREPOST_RUNTIME_TRANSPORT_LOCAL_TRANSPORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/checkpoint.h"
#include "runtime/executor/endpoint.h"
#include "runtime/executor/playable.h"
#include "runtime/files/message_file.h"
#include "runtime/files/node_buffer.h"
#include "runtime/group/group_key.h"
#include "runtime/transport/peer_links.h"
#include "runtime/transport/sealing/record_seal.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {

enum class TransportKind : uint8_t { kTcp, kShm };

inline constexpr std::array<std::string_view, 2> kTransportNames = {"tcp", "shm"};
constexpr std::string_view Name(TransportKind kind) {
  return kTransportNames[static_cast<size_t>(kind)];
}

/// Where the nodes' copies of the message lie. `buffers` are open when a transport is made; in its
/// own process a node's is reserved before MakeEndpoint(). The root's is not used: it has the
/// input. What it names is not owned.
struct LocalMemory {
  const MappedInput& input;
  std::span<const NodeBuffer> buffers;  ///< by node
  /// Of other collectives than multicasts: `input` has all nodes' inputs, `buffers` are outputs.
  std::span<const NodeBuffer> scratch = {};  ///< by node
};

/// Of kTcp.
struct LocalTcpOptions {
  uint16_t streams = 1;              ///< as MakeTcpMesh()
  std::optional<GroupKey> key = {};  ///< what connections carry is sealed under keys of this one
  SealCipher cipher = SealCipher::kNone;      ///< then; kNone: the best that this machine has
  std::function<void(TcpMesh&)> change = {};  ///< before anything is moved; may be empty
};

class LocalTransport {
 public:
  /// How many files Make() opens, with one stream; all are open until it is destroyed.
  static size_t FilesNeeded(TransportKind kind, Playable plan);
  /// Needs a verified plan, which must outlive it, as must what `memory` names. Errors:
  /// kEnvironment.
  static Result<std::unique_ptr<LocalTransport>> Make(TransportKind kind, Playable plan,
                                                      const LocalMemory& memory,
                                                      const LocalTcpOptions& tcp = {});

  virtual ~LocalTransport() = default;

  /// The open files that the process of `node` needs; it closes all others.
  virtual std::vector<int> FilesOf(NodeId node) const = 0;
  /// Once, in the process of `node`. While `wake_fd` is readable, the endpoint's Poll() does not
  /// wait. Errors: kEnvironment; those of `checkpoint`.
  virtual Result<std::unique_ptr<Endpoint>> MakeEndpoint(NodeId node, int wake_fd,
                                                         const Checkpoint& checkpoint) = 0;
  /// Of kTcp, instead of MakeEndpoint(), without a key: the node's links, over its connections. Of
  /// others null.
  virtual std::unique_ptr<PeerLinks> TakeLinks(NodeId /*node*/) { return nullptr; }
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_LOCAL_TRANSPORT_H_
