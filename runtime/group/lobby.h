// SPDX-License-Identifier: Apache-2.0
//
// Lobby: where the other machines of a group come in. It listens, hears their hellos (hello.h), and
// hands over the connections that its owner wants. Strangers cost it a bounded number of sockets
// and bytes, and no more. Bootstrap has one for as long as its group forms, a session one for all
// of its groups.
#ifndef PREPOST_RUNTIME_GROUP_LOBBY_H_
#define PREPOST_RUNTIME_GROUP_LOBBY_H_

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/group/group_key.h"
#include "runtime/group/hello.h"
#include "runtime/group/peers_file.h"
#include "runtime/transport/tcp/tcp_address.h"

namespace prepost {

struct LobbyOptions {
  std::string who;  ///< in messages, "node 3"
  PeerAddress own;  ///< where the others look for it; port 0: at any that is free
  /// Where to listen. Empty: at `own` or, if that is a name (which may mean something else on this
  /// machine than on others), at all addresses.
  std::string bind;
  std::string bind_option = "--bind";  ///< what it is called where it is given
  std::optional<PortRange> ports;      ///< instead of those of `own`; the first free one is taken
  GroupKey key;
  GroupTerms terms;  ///< named in verdicts
  /// How long a peer that has proved the secret may wait for the owner's decision.
  std::chrono::milliseconds parked_max{0};
  /// How many may: members of groups that are not here yet, each with a few connections.
  size_t parked_guests_max = 1024;
};

/// Used by one thread: AddPolls(), poll(), Serve(), again and again.
class Lobby {
 public:
  /// Sockets of those who are not in yet.
  static constexpr size_t kGuestsMax = 64;
  static constexpr std::chrono::milliseconds kReconsiderInterval{100};

  class Owner {
   public:
    virtual ~Owner() = default;
    /// About a peer that has proved the secret, and calls from `from`; none: it waits, and is asked
    /// about again by every Reconsider().
    virtual std::optional<Refusal> Judge(const LinkName& name, const GroupTerms& terms,
                                         const TcpAddress& from) = 0;
    /// Somebody at `address` who may or may not be who he says was refused.
    virtual void NoteRefused(const LinkName& name, const std::string& address,
                             const std::string& why) = 0;
    /// Takes the connection, which Judge() has let in, with HelloSide::Keys().
    virtual void Admit(const LinkName& name, const GroupTerms& terms, FileDescriptor fd,
                       LinkKeys keys) = 0;
  };

  /// Listens. `owner` must outlive it. Errors: kEnvironment: the port is taken, the address is not
  /// this machine's; kUsage: `bind` is no address.
  static Result<std::unique_ptr<Lobby>> Open(LobbyOptions options, Owner& owner);
  ~Lobby();

  uint16_t port() const { return port_; }
  /// Nobody comes in any more: it does not listen, and guests are sent away.
  void Close();
  /// While false, nobody is accepted and nobody is heard.
  void set_open(bool is_open) { is_open_ = is_open; }
  /// What poll() is to wait for. Guests also time out: wait no longer than some 100 ms while there
  /// are any.
  void AddPolls(std::vector<pollfd>* polls) const;
  bool has_guests() const { return !guests_.empty(); }
  /// Hears whoever has something to say. Errors: kEnvironment.
  Status Serve();
  /// Asks the owner again about parked connections: what it decides may have changed.
  void Reconsider();

 private:
  using Clock = std::chrono::steady_clock;
  struct Guest;

  Lobby(LobbyOptions options, Owner& owner);
  Status Listen();
  bool is_accepting() const { return is_open_ && Clock::now() >= next_accept_; }
  Status AcceptGuests();
  Status AfterNoAccept(int error);
  void EvictGuest(bool is_parked);
  bool ServeGuest(Guest& guest);
  bool AfterTalk(Guest& guest);

  const LobbyOptions options_;
  Owner& owner_;
  FileDescriptor listener_;
  uint16_t port_ = 0;
  bool is_open_ = true;
  bool has_admitted_ = false;  ///< somebody, since others were reconsidered last
  Clock::time_point next_accept_;
  Clock::time_point reconsider_at_;
  std::vector<std::unique_ptr<Guest>> guests_;  ///< oldest first
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_LOBBY_H_
