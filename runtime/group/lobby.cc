// SPDX-License-Identifier: Apache-2.0
//
// A guest that has not proved the secret has kGuestMax, and there are at most kGuestsMax of them:
// when one more comes, the network address that has most of them loses one, first one that has not
// yet said what it wants, then the oldest. So who says nothing, or rubbish, however often, costs a
// socket for a while and crowds out himself; only who has many addresses delays others. A guest
// that is refused gets the reason; its socket stays until it has read that, within the same bounds,
// and what it still says is thrown away, Conversation::kDiscardMax at most.
//
// A guest that has proved the secret and is parked counts no more among those. Of such there are at
// most parked_guests_max: members of groups that are not here yet, each with a few connections.
// When there are more, the address that has most loses its oldest, so that a member that parks
// without end crowds out itself.
#include "runtime/group/lobby.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "runtime/group/conversation.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNoRoomWait{100};  ///< after the machine has had no room for a guest
constexpr milliseconds kGuestMax{3000};
constexpr size_t kAcceptsMax = 16;  ///< per poll of the listener

}  // namespace

struct Lobby::Guest : Conversation {
  Guest(FileDescriptor socket, const TcpAddress& from, HelloListener listener)
      : address(from), network(from.Network()), hello(std::move(listener)) {
    fd = std::move(socket);
    due = Clock::now() + kGuestMax;
  }
  bool is_parked() const { return hello.state() == HelloState::kParked; }

  TcpAddress address;  // its socket forgets it when the guest has gone
  NetworkBytes network;
  HelloListener hello;
  bool is_refused = false;  ///< and its hello has the reason
};

Lobby::Lobby(LobbyOptions options, Owner& owner) : options_(std::move(options)), owner_(owner) {}

Lobby::~Lobby() = default;

Result<std::unique_ptr<Lobby>> Lobby::Open(LobbyOptions options, Owner& owner) {
  std::unique_ptr<Lobby> lobby(new Lobby(std::move(options), owner));
  PREPOST_RETURN_IF_ERROR(lobby->Listen());
  return lobby;
}

Status Lobby::Listen() {
  const std::string host = options_.bind.empty() ? options_.own.host : options_.bind;
  const std::optional<TcpAddress> address = NumericAddress(host);
  if (!address && !options_.bind.empty()) {
    return UsageError(
        fmt::format("{}: '{}' is no address of a machine", options_.bind_option, host));
  }
  const PortRange ports = options_.ports.value_or(options_.own.ports);
  int error = 0;
  for (uint32_t port = ports.first; port <= ports.last; ++port) {
    port_ = static_cast<uint16_t>(port);
    listener_ = address ? prepost::Listen(address->WithPort(port_), &error)
                        : ListenEverywhere(port_, &error);
    if (listener_.valid()) {
      port_ = LocalPort(listener_);
      return {};
    }
    if (error != EADDRINUSE) break;
  }
  const std::string place =
      ToString({.host = address ? host : "*", .ports = {.first = ports.first, .last = port_}});
  const std::string hint =
      error == EADDRNOTAVAIL
          ? fmt::format(" ({} takes an address of this machine)", options_.bind_option)
          : "";
  return EnvironmentError(fmt::format("{} cannot listen on {}: {}{}", options_.who, place,
                                      std::system_category().message(error), hint));
}

void Lobby::AddPolls(std::vector<pollfd>* polls) const {
  if (is_accepting()) polls->push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  for (const auto& guest : guests_) {
    polls->push_back({.fd = guest->fd.get(), .events = POLLIN, .revents = 0});
  }
}

Status Lobby::Serve() {
  if (is_accepting()) PREPOST_RETURN_IF_ERROR(AcceptGuests());
  std::erase_if(guests_, [this](const auto& guest) { return !ServeGuest(*guest); });
  // One that was let in may be what others wait for, as may the end of a connection.
  if (Clock::now() >= reconsider_at_) has_admitted_ = true;
  while (std::exchange(has_admitted_, false)) Reconsider();
  return {};
}

void Lobby::Close() {
  listener_.Close();
  guests_.clear();
  is_open_ = false;
}

void Lobby::Reconsider() {
  reconsider_at_ = Clock::now() + kReconsiderInterval;
  std::erase_if(guests_, [this](const auto& guest) {
    if (!guest->is_parked()) return false;
    if (!guest->IsQuiet()) return true;  // it has given up meanwhile
    const std::optional<Refusal> refusal =
        owner_.Judge(guest->hello.link(), guest->hello.terms(), guest->address);
    if (!refusal) return false;
    return !guest->Send(guest->hello.Decide(*refusal)) || !AfterTalk(*guest);
  });
}

Status Lobby::AcceptGuests() {
  for (size_t i = 0; i < kAcceptsMax; ++i) {
    TcpAddress from;
    from.bytes = sizeof(from.storage);
    auto fd = FileDescriptor::Open([&] {
      return accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.bytes,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);
    });
    if (!fd.valid()) return AfterNoAccept(errno);
    guests_.push_back(std::make_unique<Guest>(
        std::move(fd), from,
        HelloListener(options_.key, RandomNonce(), options_.terms,
                      [this, from](const LinkName& name, const GroupTerms& terms) {
                        return owner_.Judge(name, terms, from);
                      })));
    const auto parked = static_cast<size_t>(
        std::ranges::count_if(guests_, [](const auto& guest) { return guest->is_parked(); }));
    if (guests_.size() - parked > kGuestsMax) EvictGuest(/*is_parked=*/false);
    if (parked > options_.parked_guests_max) EvictGuest(/*is_parked=*/true);
  }
  return {};
}

/// Nobody is there, somebody has gone already, or the machine has no room, which it is given time
/// to find.
Status Lobby::AfterNoAccept(int error) {
  const bool has_no_room =
      error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == EPERM;
  if (!has_no_room) return {};
  next_accept_ = Clock::now() + kNoRoomWait;
  if (error == EMFILE && guests_.empty()) {
    return SystemError(StatusCode::kEnvironment, "cannot accept connections", error);
  }
  const bool has_stranger =
      std::ranges::any_of(guests_, [](const auto& guest) { return !guest->is_parked(); });
  if (!guests_.empty()) EvictGuest(!has_stranger);
  return {};
}

/// The one that the essay above names, of those who are parked or of those who are not.
void Lobby::EvictGuest(bool is_parked) {
  std::map<NetworkBytes, size_t> guests_of;
  for (const auto& guest : guests_) {
    if (guest->is_parked() == is_parked) ++guests_of[guest->network];
  }
  const auto weight = [&](const std::unique_ptr<Guest>& guest) {
    return guest->is_parked() != is_parked
               ? std::pair(size_t{0}, false)
               : std::pair(guests_of[guest->network], !guest->hello.has_name());
  };
  guests_.erase(
      std::ranges::max_element(guests_, {}, weight));  // the first, so the oldest, of equals
}

/// False when it is over with the guest. Takes a bounded number of bytes.
bool Lobby::ServeGuest(Guest& guest) {
  if (guest.expired()) return false;
  if (guest.is_refused) return guest.Discard();
  if (guest.is_parked()) return guest.IsQuiet();
  for (;;) {
    const size_t wanted = guest.hello.wanted();
    switch (guest.Receive(wanted)) {
      case Conversation::Read::kNotYet:
        return true;
      case Conversation::Read::kGone:
        return false;
      case Conversation::Read::kAll:
        break;
    }
    const std::vector<std::byte> reply = guest.hello.Take(std::span(guest.in).first(wanted));
    if (!reply.empty() && !guest.Send(reply)) return false;
    if (guest.hello.state() != HelloState::kTalking) return AfterTalk(guest);
  }
}

/// False when it is over with the guest.
bool Lobby::AfterTalk(Guest& guest) {
  switch (guest.hello.state()) {
    case HelloState::kTalking:
      return true;
    case HelloState::kParked:
      guest.due = Conversation::Clock::now() + options_.parked_max;
      return true;
    case HelloState::kBroken:
      return false;
    case HelloState::kWelcome:
      // It may be gone already.
      if (ConfigureTcp(guest.fd).ok()) {
        has_admitted_ = true;
        owner_.Admit(guest.hello.link(), guest.hello.terms(), std::move(guest.fd),
                     guest.hello.Keys());
      }
      return false;
    case HelloState::kRefused:
      if (guest.hello.has_name()) {
        owner_.NoteRefused(guest.hello.link(), guest.address.ToString(), guest.hello.Why());
      }
      guest.is_refused = true;
      shutdown(guest.fd.get(), SHUT_WR);
      return true;
  }
  PREPOST_CHECK(false);
  return false;
}

}  // namespace prepost
