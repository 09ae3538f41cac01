// SPDX-License-Identifier: Apache-2.0
//
// Who connects to whom is fixed: for data the larger node to the smaller one, for control every
// node to the root. Control comes first: until the root has let a node in, the node connects to
// nobody else and answers nobody, and a refusal by the root is final. After that, whatever goes
// wrong with a peer may be the peer's fault (a node with another secret at its address), so it is
// noted, tried again until the deadline, and left to the root's word on the peer.
//
// Node 2 of 4, root 0: 2 > 0 control; then 2 > 0 and 2 > 1 data, while it waits for 3 > 2.
//
// A call (outgoing) goes through the addresses of its host and the ports of its range, waits
// kRetryWait, and begins again; each try has kTryMax. Once the listener has proved the secret and
// the call has sent its own proof, the listener may count it as there, so from then on it waits to
// the deadline. Of what tries have ended with, the most telling is kept for the report: a refusal
// at one port says more than nobody at the next.
//
// A guest (incoming) that has not proved the secret has kGuestMax, and there are at most kGuestsMax
// of them: when one more comes, the network address that has most of them loses one, first one that
// has not yet said what it wants, then the oldest. So who says nothing, or rubbish, however often,
// costs a socket for a while and crowds out himself; only who has many addresses delays others.
// A guest that is refused gets the reason; its socket stays until it has read that, within the same
// bounds, and what it still says is thrown away, kDiscardMax at most.
//
// A node that ends after the root has let it in ends the group (coordinator.h).
#include "runtime/group/bootstrap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "ir/count.h"
#include "runtime/interrupt.h"
#include "runtime/transport/tcp_address.h"

namespace prepost {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{100};       ///< between checkpoints, and polls of host look-ups
constexpr milliseconds kRetryWait{200};  ///< after all addresses and ports of a peer
constexpr milliseconds kTryMax{3000};
constexpr milliseconds kGuestMax{3000};
constexpr size_t kGuestsMax = 64;
constexpr size_t kAcceptsMax = 16;                ///< per poll of the listener
constexpr size_t kDiscardMax = size_t{64} << 10;  ///< of what a refused guest says
/// Nodes other than the root wait so much longer, for the root to say who is missing.
constexpr milliseconds kRootFirst{2000};
constexpr size_t kOwnFiles = 32;   ///< that a node has open beside its connections
constexpr size_t kMissingMax = 4;  ///< nodes named when not all have come

std::string TextOf(int error) { return std::system_category().message(error); }

/// A socket on which a hello is under way, and what of the next message has come.
struct Conversation {
  enum class Read : uint8_t { kNotYet, kAll, kGone };

  /// Until `wanted` bytes are there; they stand in `in`, until the next call.
  Read Receive(size_t wanted) {
    while (got < wanted) {
      const ssize_t bytes = recv(fd.get(), in.data() + got, wanted - got, MSG_DONTWAIT);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0 && errno == EAGAIN) return Read::kNotYet;
      if (bytes <= 0) return Read::kGone;
      got += static_cast<size_t>(bytes);
    }
    got = 0;
    return Read::kAll;
  }
  /// A new socket has room for all that a hello says.
  bool Send(const std::vector<std::byte>& bytes) const {
    return send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(bytes.size());
  }
  /// Throws away what is there, up to a bound. False when there is no more to come, or too much
  /// came.
  bool Discard() {
    std::array<std::byte, 4096> scratch;
    const ssize_t bytes = recv(fd.get(), scratch.data(), scratch.size(), MSG_DONTWAIT);
    if (bytes < 0) return errno == EAGAIN || errno == EINTR;
    got += static_cast<size_t>(bytes);
    return bytes > 0 && got <= kDiscardMax;
  }
  bool expired() const { return Clock::now() >= due; }

  FileDescriptor fd;
  Clock::time_point due;
  std::array<std::byte, kHelloBytes> in = {};
  size_t got = 0;
};

/// What was seen of a peer last; the later the value, the more it says.
enum class Telling : uint8_t { kNothing, kLookup, kNoConnection, kRefusal };

struct Sighting {
  Telling telling = Telling::kNothing;
  std::string what = "never seen";

  /// Replaces what says no more than this.
  void Note(const Sighting& seen) {
    if (seen.telling >= telling) *this = seen;
  }
};

}  // namespace

/// A connection of this node by the plan.
struct Bootstrap::Link {
  LinkName name;
  FileDescriptor fd;   ///< when it is there
  bool given = false;  ///< there, and handed over
  Sighting seen;
  // If this node connects:
  size_t tries = 0;
  bool calling = false;
  Clock::time_point next_try;
};

struct Bootstrap::Guest : Conversation {
  Guest(FileDescriptor socket, const TcpAddress& from, HelloListener listener)
      : address(from), network(from.Network()), hello(std::move(listener)) {
    fd = std::move(socket);
    due = Clock::now() + kGuestMax;
  }
  TcpAddress address;  // its socket forgets it when the guest has gone
  NetworkBytes network;
  HelloListener hello;
  bool is_refused = false;  ///< and its hello has the reason
};

struct Bootstrap::Call : Conversation {
  Call(Link& wanted, HelloConnector connector) : link(wanted), hello(std::move(connector)) {
    due = Clock::now() + kTryMax;
  }
  Link& link;
  HelloConnector hello;
  std::string address;
  size_t tries_per_sweep = 1;
  bool is_connected = false;
};

Bootstrap::Bootstrap(Playable plan, BootstrapOptions options)
    : plan_(plan),
      options_(std::move(options)),
      terms_{.plan = plan.Hash(),
             .carrier = options_.carrier,
             .message_bytes = plan.header().message.bytes},
      due_(Clock::now() + options_.connect_max) {}

Bootstrap::~Bootstrap() = default;

Result<std::unique_ptr<Bootstrap>> Bootstrap::Open(Playable plan, BootstrapOptions options) {
  PREPOST_CHECK(options.peers.size() == plan.header().nodes);
  std::unique_ptr<Bootstrap> bootstrap(new Bootstrap(plan, std::move(options)));
  bootstrap->ListLinks();
  PREPOST_RETURN_IF_ERROR(RaiseFileLimit(bootstrap->links_.size() + kGuestsMax + kOwnFiles));
  PREPOST_RETURN_IF_ERROR(bootstrap->OpenListener());
  return bootstrap;
}

void Bootstrap::ListLinks() {
  const NodeId self = options_.node;
  const NodeId root = plan_.header().root;
  for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
    if (NodeId(node) == root || (self != root && NodeId(node) != self)) continue;
    links_.emplace_back().name = {
        .from = NodeId(node), .to = root, .purpose = LinkPurpose::kControl};
  }
  for (const TcpConnection& connection : TcpConnections(plan_)) {
    if (connection.low != self && connection.high != self) continue;
    links_.emplace_back().name = {
        .from = connection.high, .to = connection.low, .lane = connection.lane};
  }
}

Status Bootstrap::OpenListener() {
  const PeerAddress& own = options_.peers[options_.node.index()];
  const std::string host = options_.bind.empty() ? own.host : options_.bind;
  const std::optional<TcpAddress> address = NumericAddress(host);
  if (!address && !options_.bind.empty()) {
    return {StatusCode::kUsage, fmt::format("--bind: '{}' is no address of a machine", host)};
  }
  const PortRange ports = options_.ports.value_or(own.ports);
  int error = 0;
  for (uint32_t port = ports.first; port <= ports.last; ++port) {
    port_ = static_cast<uint16_t>(port);
    listener_ =
        address ? Listen(address->WithPort(port_), &error) : ListenEverywhere(port_, &error);
    if (listener_.valid()) return {};
    if (error != EADDRINUSE) break;
  }
  const std::string place =
      ToString({.host = address ? host : "*", .ports = {.first = ports.first, .last = port_}});
  const char* const hint =
      error == EADDRNOTAVAIL ? " (--bind takes an address of this machine)" : "";
  return EnvironmentError(fmt::format("node {} cannot listen on {}: {}{}", options_.node.value,
                                      place, TextOf(error), hint));
}

Result<FileDescriptor> Bootstrap::ConnectToRoot() {
  PREPOST_CHECK(options_.node != plan_.header().root);
  to_root_only_ = true;
  PREPOST_RETURN_IF_ERROR(Serve(/*wake_fd=*/-1, {}, due_));
  to_root_only_ = false;
  links_.front().given = true;
  return std::move(links_.front().fd);
}

Result<std::vector<TcpSocket>> Bootstrap::ConnectPeers(int wake_fd, const Checkpoint& checkpoint,
                                                       const Arrival& arrival) {
  arrival_ = arrival;
  const bool is_root = options_.node == plan_.header().root;
  PREPOST_RETURN_IF_ERROR(Serve(wake_fd, checkpoint, is_root ? due_ : due_ + kRootFirst));
  listener_.Close();
  guests_.clear();
  std::vector<TcpSocket> sockets;
  for (Link& link : links_) {
    if (link.name.purpose != LinkPurpose::kData) continue;
    const NodeId peer = link.name.from == options_.node ? link.name.to : link.name.from;
    sockets.push_back({.peer = peer, .lane = link.name.lane, .fd = std::move(link.fd)});
  }
  return sockets;
}

bool Bootstrap::IsServed(const Link& link) const { return link.given || link.fd.valid(); }

bool Bootstrap::all_done() const {
  if (to_root_only_) return IsServed(links_.front());
  return std::ranges::all_of(links_, [this](const Link& link) { return IsServed(link); });
}

Status Bootstrap::Serve(int wake_fd, const Checkpoint& checkpoint, Clock::time_point due) {
  while (!all_done()) {
    if (Clock::now() >= due) return NotThere();
    StartCalls();
    TellWaiting();
    PREPOST_RETURN_IF_ERROR(WaitForEvents(wake_fd));
    if (IsInterrupted(options_.interrupt_fd)) return Interrupted();
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    if (is_accepting()) PREPOST_RETURN_IF_ERROR(AcceptGuests());
    std::erase_if(guests_, [this](const auto& guest) { return !ServeGuest(*guest); });
    std::erase_if(calls_, [this](const auto& call) { return !ServeCall(*call); });
    if (!refused_.ok()) return refused_;
  }
  return {};
}

/// Returns when there may be something to do; what, the callers find out.
Status Bootstrap::WaitForEvents(int wake_fd) {
  std::vector<pollfd> polls = {
      {.fd = options_.interrupt_fd, .events = POLLIN, .revents = 0},
      {.fd = wake_fd, .events = POLLIN, .revents = 0},
      {.fd = is_accepting() ? listener_.get() : -1, .events = POLLIN, .revents = 0}};
  for (const auto& guest : guests_) {
    polls.push_back({.fd = guest->fd.get(), .events = POLLIN, .revents = 0});
  }
  for (const auto& call : calls_) {
    const short events = call->is_connected ? POLLIN : POLLOUT;
    polls.push_back({.fd = call->fd.get(), .events = events, .revents = 0});
  }
  if (poll(polls.data(), polls.size(), static_cast<int>(kTick.count())) < 0 && errno != EINTR) {
    return SystemError(StatusCode::kEnvironment, "cannot wait for connections", errno);
  }
  return {};
}

bool Bootstrap::is_accepting() const { return !to_root_only_ && Clock::now() >= next_accept_; }

Status Bootstrap::AcceptGuests() {
  for (size_t i = 0; i < kAcceptsMax; ++i) {
    TcpAddress from;
    from.bytes = sizeof(from.storage);
    FileDescriptor fd(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from.storage),
                              &from.bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return AfterNoAccept(errno);
    guests_.push_back(std::make_unique<Guest>(
        std::move(fd), from,
        HelloListener(
            options_.key, RandomNonce(), terms_,
            [this](const LinkName& name, const GroupTerms& terms) { return Judge(name, terms); })));
    if (guests_.size() > kGuestsMax) EvictGuest();
  }
  return {};
}

/// Nobody is there, somebody has gone already, or the machine has no room, which it is given time
/// to find.
Status Bootstrap::AfterNoAccept(int error) {
  const bool has_no_room =
      error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == EPERM;
  if (!has_no_room) return {};
  if (error == EMFILE && guests_.empty()) {
    return SystemError(StatusCode::kEnvironment, "cannot accept connections", error);
  }
  if (!guests_.empty()) EvictGuest();
  next_accept_ = Clock::now() + kTick;
  return {};
}

/// The one that the essay above names.
void Bootstrap::EvictGuest() {
  std::map<NetworkBytes, size_t> guests_of;
  for (const auto& guest : guests_) ++guests_of[guest->network];
  const auto weight = [&guests_of](const std::unique_ptr<Guest>& guest) {
    return std::pair(guests_of[guest->network], !guest->hello.has_name());
  };
  guests_.erase(
      std::ranges::max_element(guests_, {}, weight));  // the first, so the oldest, of equals
}

/// False when it is over with the guest. Takes a bounded number of bytes.
bool Bootstrap::ServeGuest(Guest& guest) {
  if (guest.expired()) return false;
  if (guest.is_refused) return guest.Discard();
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
    switch (guest.hello.state()) {
      case HelloState::kTalking:
        break;
      case HelloState::kBroken:
        return false;
      case HelloState::kWelcome:
        Admit(guest);
        return false;
      case HelloState::kRefused:
        NoteRefused(guest);
        guest.is_refused = true;
        shutdown(guest.fd.get(), SHUT_WR);
        return true;
    }
  }
}

void Bootstrap::NoteRefused(const Guest& guest) {
  if (!guest.hello.has_name()) return;
  for (Link& link : links_) {
    if (link.name.to != options_.node || link.name.from != guest.hello.link().from) continue;
    link.seen.Note(
        {Telling::kRefusal,
         fmt::format("somebody at {} who says to be node {} was refused: {}",
                     guest.address.ToString(), link.name.from.value, guest.hello.Why())});
  }
}

Refusal Bootstrap::Judge(const LinkName& name, const GroupTerms& terms) const {
  if (name.to != options_.node) return Refusal::kWrongNode;
  if (terms.plan != terms_.plan) return Refusal::kOtherPlan;
  if (terms.carrier != terms_.carrier) return Refusal::kOtherCarrier;
  if (terms != terms_) return Refusal::kOtherSize;
  const auto link = std::ranges::find(links_, name, &Link::name);
  if (link == links_.end()) return Refusal::kUnexpected;
  return IsServed(*link) ? Refusal::kDuplicate : Refusal::kNone;
}

void Bootstrap::Admit(Guest& guest) {
  Link& link = *std::ranges::find(links_, guest.hello.link(), &Link::name);
  if (!ConfigureTcp(guest.fd).ok()) return;  // it is gone already
  if (link.name.purpose == LinkPurpose::kData) {
    link.fd = std::move(guest.fd);
  } else {
    link.given = true;
    arrival_(link.name.from, std::move(guest.fd));
  }
}

void Bootstrap::StartCalls() {
  for (Link& link : links_) {
    const bool is_wanted = to_root_only_ ? &link == &links_.front() : true;
    if (!is_wanted || link.name.from != options_.node || IsServed(link)) continue;
    if (link.calling || Clock::now() < link.next_try) continue;
    const auto addresses = lookups_.Find(options_.peers[link.name.to.index()].host);
    if (addresses) {
      StartCall(link, *addresses);
    } else {
      link.seen.Note({Telling::kLookup, "its host name is being looked up"});
    }
  }
}

void Bootstrap::StartCall(Link& link, const Result<std::vector<TcpAddress>>& addresses) {
  const PeerAddress& peer = options_.peers[link.name.to.index()];
  auto call =
      std::make_unique<Call>(link, HelloConnector(options_.key, RandomNonce(), link.name, terms_));
  link.calling = true;
  if (!addresses.ok()) {
    call->address = peer.host;
    EndCall(*call, addresses.status().message());
    return;
  }
  const size_t ports = size_t{peer.ports.last} - peer.ports.first + 1u;
  call->tries_per_sweep = addresses->size() * ports;
  const size_t index = link.tries % call->tries_per_sweep;
  const auto port = static_cast<uint16_t>(peer.ports.first + index % ports);
  const TcpAddress address = (*addresses)[index / ports].WithPort(port);
  call->address = address.ToString();
  int error = 0;
  call->fd = StartConnect(address, &error);
  if (call->fd.valid()) {
    calls_.push_back(std::move(call));
  } else {
    EndCall(*call, TextOf(error));
  }
}

/// After a try that failed. Always false: it is over with the call.
bool Bootstrap::EndCall(Call& call, const std::string& why) {
  Link& link = call.link;
  // That somebody else is at one port of a range is as it should be.
  const bool is_refusal =
      call.hello.state() == HelloState::kRefused && call.hello.refusal() != Refusal::kWrongNode;
  link.calling = false;
  link.seen.Note({is_refusal ? Telling::kRefusal : Telling::kNoConnection,
                  fmt::format("{}: {}", call.address, why)});
  if (++link.tries % call.tries_per_sweep != 0) return false;
  link.next_try = Clock::now() + kRetryWait;
  lookups_.Forget(options_.peers[link.name.to.index()].host);  // names may get other addresses
  return false;
}

/// False when it is over with the call.
bool Bootstrap::ServeCall(Call& call) {
  if (!call.is_connected) {
    pollfd connected = {.fd = call.fd.get(), .events = POLLOUT, .revents = 0};
    if (poll(&connected, 1, 0) == 0) return !call.expired() || EndCall(call, "no answer");
    int error = 0;
    socklen_t bytes = sizeof(error);
    getsockopt(call.fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error != 0) return EndCall(call, TextOf(error));
    call.is_connected = true;
    if (!call.Send(call.hello.Begin())) return EndCall(call, "the connection broke");
  }
  while (call.hello.state() == HelloState::kTalking) {
    const size_t wanted = call.hello.wanted();
    switch (call.Receive(wanted)) {
      case Conversation::Read::kNotYet:
        return !call.expired() || EndCall(call, "it does not answer the hello");
      case Conversation::Read::kGone:
        return EndCall(call, "it closed the connection during the hello");
      case Conversation::Read::kAll:
        break;
    }
    const std::vector<std::byte> reply = call.hello.Take(std::span(call.in).first(wanted));
    const bool is_sent = reply.empty() || call.Send(reply);
    if (call.hello.state() != HelloState::kTalking) break;
    if (!is_sent) return EndCall(call, "the connection broke");
    if (call.hello.has_proved()) call.due = due_ + kRootFirst;
  }
  switch (call.hello.state()) {
    case HelloState::kTalking:
    case HelloState::kBroken:
      return EndCall(call, "it does not speak prepost's protocol");
    case HelloState::kRefused:
      return TakeRefusal(call);
    case HelloState::kWelcome:
      break;
  }
  if (!ConfigureTcp(call.fd).ok()) return EndCall(call, "the connection broke");
  call.link.calling = false;
  call.link.fd = std::move(call.fd);
  return false;
}

/// The root's word is final if it is surely the root's: it stands alone at its address, or has
/// proved the secret and that it is the root.
bool Bootstrap::TakeRefusal(Call& call) {
  const Refusal refusal = call.hello.refusal();
  const std::string why = call.hello.Why();
  const bool is_proved_root = call.hello.is_proved() && refusal != Refusal::kWrongNode;
  if (to_root_only_ && (is_proved_root || call.tries_per_sweep == 1)) {
    refused_ = Rejected(fmt::format("node {} at {} refuses node {}: {}", call.link.name.to.value,
                                    call.address, options_.node.value, why));
  }
  return EndCall(call, "it refuses this node: " + why);
}

void Bootstrap::TellWaiting() {
  if (!options_.waiting || Clock::now() < tell_at_) return;
  tell_at_ = Clock::now() + std::chrono::seconds(1);
  options_.waiting(Missing());
}

std::string Bootstrap::Missing() const {
  std::map<uint32_t, Sighting> missing;
  for (const Link& link : links_) {
    if (IsServed(link) || (to_root_only_ && &link != &links_.front())) continue;
    const NodeId peer = link.name.from == options_.node ? link.name.to : link.name.from;
    missing[peer.value].Note(link.seen);
  }
  std::vector<std::string> words;
  for (const auto& [node, seen] : missing) {
    if (words.size() == kMissingMax) break;
    words.push_back(fmt::format("node {} ({})", node, seen.what));
  }
  if (missing.size() > kMissingMax) {
    words.push_back(fmt::format("and {} more", Count(missing.size() - kMissingMax, "node")));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

Status Bootstrap::NotThere() const {
  const std::chrono::duration<double> waited = options_.connect_max;
  std::string text =
      fmt::format("not connected with all nodes after {:g} s: {}", waited.count(), Missing());
  // The root is there and has the same header, so what it does not expect comes of the programs.
  const NodeId root = plan_.header().root;
  const bool lacks_root =
      !to_root_only_ && options_.node != root && std::ranges::any_of(links_, [&](const Link& link) {
        return !IsServed(link) && (link.name.from == root || link.name.to == root);
      });
  if (lacks_root && plan_.is_rolled()) {
    text += fmt::format(
        "; node {} is in the group: are all files of the rolled plan made with the same order of "
        "nodes (--order, --topology)?",
        root.value);
  }
  return Rejected(std::move(text));
}

}  // namespace prepost
