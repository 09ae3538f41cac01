// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap: how one node of a group on several machines gets its connections: it listens, connects
// to its peers as soon as they are there, and lets in only who proves that he belongs to the group
// (hello.h). Strangers cost it a bounded number of sockets and bytes, and no more.
#ifndef PREPOST_RUNTIME_GROUP_BOOTSTRAP_H_
#define PREPOST_RUNTIME_GROUP_BOOTSTRAP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/status.h"
#include "runtime/checkpoint.h"
#include "runtime/file_descriptor.h"
#include "runtime/files/plan_hash.h"
#include "runtime/group/group_key.h"
#include "runtime/group/hello.h"
#include "runtime/group/peers_file.h"
#include "runtime/playable.h"
#include "runtime/transport/tcp_address.h"
#include "runtime/transport/tcp_mesh.h"

namespace prepost {

struct BootstrapOptions {
  NodeId node;
  std::vector<PeerAddress> peers;  ///< by node, all of the plan
  GroupKey key;
  /// What its blocks will go over. A node that goes over something else is refused.
  Carrier carrier = Carrier::kTcp;
  /// Where to listen. Empty: at the node's own address of `peers` or, if that is a name (which may
  /// mean something else on this machine than on others), at all addresses.
  std::string bind;
  std::optional<PortRange> ports;  ///< instead of those of `peers`; the first free one is taken
  /// From now: until when all peers must be there.
  std::chrono::milliseconds connect_max{30000};
  /// Called about once a second, from the second second on, with the nodes that are missing and
  /// why: "node 3 (no answer); ...". May be empty.
  std::function<void(const std::string& missing)> waiting = {};
  /// The bootstrap is interrupted when this is readable (InterruptSignals); -1: never. Not owned.
  int interrupt_fd = -1;
};

/// Used by one thread: Open(), ConnectToRoot() unless it is the root, ConnectPeers().
class Bootstrap {
 public:
  /// Listens. `plan` is verified and must outlive it. Errors: kEnvironment: the port is taken, the
  /// address is not this machine's; kUsage: `bind` is no address.
  static Result<std::unique_ptr<Bootstrap>> Open(Playable plan, BootstrapOptions options);
  ~Bootstrap();

  uint16_t port() const { return port_; }

  /// The control connection to the root, whose word on whether this node belongs to the group is
  /// final. Errors: kRejected: the root refuses this node, or has not come in time; kInterrupted.
  Result<FileDescriptor> ConnectToRoot();

  /// Called at the root with the control connection of another node.
  using Arrival = std::function<void(NodeId node, FileDescriptor control)>;
  /// The data connections with all peers and, at the root, control connections with all nodes; then
  /// nothing listens any more. Calls `checkpoint` about ten times a second, and when `wake_fd` (-1:
  /// none) is readable. Errors: kRejected: not all have come in time; kInterrupted; kEnvironment;
  /// those of `checkpoint`.
  Result<std::vector<TcpSocket>> ConnectPeers(int wake_fd, const Checkpoint& checkpoint,
                                              const Arrival& arrival);

 private:
  using Clock = std::chrono::steady_clock;

  struct Link;
  struct Guest;
  struct Call;

  Bootstrap(Playable plan, BootstrapOptions options);
  Status OpenListener();
  void ListLinks();
  Status Serve(int wake_fd, const Checkpoint& checkpoint, Clock::time_point due);
  Status WaitForEvents(int wake_fd);
  bool IsServed(const Link& link) const;
  bool all_done() const;
  std::string Missing() const;
  Status NotThere() const;
  void TellWaiting();

  bool is_accepting() const;
  Status AcceptGuests();
  Status AfterNoAccept(int error);
  void EvictGuest();
  bool ServeGuest(Guest& guest);
  void Admit(Guest& guest);
  void NoteRefused(const Guest& guest);
  Refusal Judge(const LinkName& name, const GroupTerms& terms) const;

  void StartCalls();
  void StartCall(Link& link, const Result<std::vector<TcpAddress>>& addresses);
  bool ServeCall(Call& call);
  bool EndCall(Call& call, const std::string& why);
  bool TakeRefusal(Call& call);

  const Playable plan_;
  const BootstrapOptions options_;
  const GroupTerms terms_;
  const Clock::time_point due_;
  FileDescriptor listener_;
  uint16_t port_ = 0;
  Clock::time_point tell_at_ = Clock::now() + std::chrono::seconds(1);
  Clock::time_point next_accept_;
  std::vector<Link> links_;
  HostLookups lookups_;
  std::vector<std::unique_ptr<Guest>> guests_;  ///< oldest first
  std::vector<std::unique_ptr<Call>> calls_;
  bool to_root_only_ = false;
  Arrival arrival_;
  Status refused_;  ///< by the root, for good
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_BOOTSTRAP_H_
