// SPDX-License-Identifier: Apache-2.0
//
// Who connects to whom is fixed: for control every node to the leader, for data the larger node to
// the smaller one; but where only one of the two is known to be at the leader's site, that one
// connects, as the leader lets it in a long path's round trips before the other. Control comes
// first: until the leader has let a node in, the node connects to nobody else and answers nobody,
// and a refusal by the leader is final. After that, whatever goes wrong with a peer may be the
// peer's fault (a node with another secret at its address), so it is noted, tried again until the
// deadline, and left to the leader's word on the peer.
//
// Node 2 of 4, leader 0: 2 > 0 control; then 2 > 0 and 2 > 1 data, while it waits for 3 > 2. Where
// 2 and 3 are at another site, 2 waits for 0 > 2 and 1 > 2.
//
// Over a long path the connection for blocks is of several streams (tcp_path.h), and how long the
// path is shows in the handshake of the first: as soon as that is through, the end that connects
// adds the others, and says in each hello how many there are. The end that listens adds them when
// the first one is in; one that comes before waits in the lobby.
//
// A call (outgoing) goes through the addresses of its host and the ports of its range, waits
// kRetryWait, and begins again; each try has kTryMax. Once the listener has proved the secret and
// the call has sent its own proof, the listener may count it as there, so from then on it waits to
// the deadline. Of what tries have ended with, the most telling is kept for the report: a refusal
// at one port says more than nobody at the next.
//
// A node that ends after the leader has let it in ends the group (session/keeper.h).
//
// Where the leader connects, it opens all of its connections, that for control first, and a node
// waits for it: nobody but the leader needs to be reached.
//
// Where connections are opened later, who connects is the same, and who listens takes whatever may
// be wanted, though it does not want it yet: it may come to that later.
#include "runtime/group/bootstrap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "ir/base/count.h"
#include "runtime/group/conversation.h"
#include "runtime/group/eager_tree.h"
#include "runtime/group/gate_tree.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRetryWait{200};  ///< after all addresses and ports of a peer
constexpr milliseconds kTryMax{3000};
constexpr milliseconds kQuestionWait{1000};
constexpr size_t kMissingMax = 4;  ///< nodes named when not all have come
constexpr size_t kAskedMax = 8;    ///< at once, of those that have not come
/// Its two connections, and what finding out takes whether it is on this machine.
constexpr size_t kFilesPerPeer = 4;

std::string TextOf(int error) { return std::system_category().message(error); }

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
  FileDescriptor fd;        ///< when it is there
  LinkKeys keys;            ///< then
  bool given = false;       ///< there, and handed over
  bool is_surplus = false;  ///< a stream of a connection that came again with fewer
  Sighting seen;
  // If this node connects:
  size_t tries = 0;
  bool calling = false;
  Clock::time_point next_try;
  bool is_probe = false;      ///< only to see whether the peer is there, until it has called
  bool is_asking = false;     ///< a probe of BootstrapOptions::ask_after
  bool has_differed = false;  ///< its answer: its terms are others
  /// The peer is one of BootstrapOptions::known, and has not answered here yet.
  bool is_expected = false;
  /// Since when a peer that was there is there no more.
  std::optional<Clock::time_point> lost_at;
  size_t tries_since_loss = 0;  ///< that nobody has answered
  bool is_lost = false;         ///< nobody listens at any of its addresses and ports any more
  /// Of a connection that was wanted later: until when it is to be there.
  std::optional<Clock::time_point> due;
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

Bootstrap::Bootstrap(Membership group, BootstrapOptions options)
    : group_(std::move(group)),
      options_(std::move(options)),
      due_(Clock::now() + options_.connect_max),
      to_leader_only_(!is_leader()) {
  PREPOST_CHECK(options_.peers.size() == group_.nodes);
  PREPOST_CHECK(options_.sites.empty() || options_.sites.size() == group_.nodes);
  ListLinks();
}

Bootstrap::~Bootstrap() = default;

LinkName Bootstrap::DataLink(NodeId one, NodeId other, Lane lane, LinkPurpose purpose) const {
  const auto is_near = [this](NodeId node) {
    const std::vector<uint32_t>& sites = options_.sites;
    return !sites.empty() && sites[node.index()] == sites[group_.leader.index()];
  };
  const auto [low, high] = std::minmax(one, other);
  const bool calls_up =
      group_.leader_connects ? low == group_.leader : is_near(low) && !is_near(high);
  return {
      .from = calls_up ? low : high, .to = calls_up ? high : low, .purpose = purpose, .lane = lane};
}

/// Of `node` with the leader.
LinkName Bootstrap::ControlLink(NodeId node) const {
  const bool is_called = group_.leader_connects;
  return {.from = is_called ? group_.leader : node,
          .to = is_called ? node : group_.leader,
          .purpose = LinkPurpose::kControl};
}

void Bootstrap::ListLinks() {
  const NodeId self = options_.node;
  for (uint32_t node = 0; node < group_.nodes; ++node) {
    if (NodeId(node) == group_.leader || (self != group_.leader && NodeId(node) != self)) continue;
    links_.emplace_back().name = ControlLink(NodeId(node));
  }
  const GateTree tree(group_.nodes, group_.leader,
                      group_.leader_connects ? group_.nodes : GateTree::kFanOut);
  const auto add_gate = [this](NodeId from, NodeId to) {
    if (to != group_.leader)
      links_.emplace_back().name = {.from = from, .to = to, .purpose = LinkPurpose::kGates};
  };
  if (const std::optional<NodeId> parent = tree.ParentOf(self)) add_gate(self, *parent);
  for (const NodeId child : tree.ChildrenOf(self)) add_gate(child, self);
  for (const TcpConnection& connection : group_.connections) {
    if (connection.low != self && connection.high != self) continue;
    links_.emplace_back().name = DataLink(connection.low, connection.high, connection.lane);
  }
  if (group_.has_eager_tree) {
    const EagerTree eager(group_.nodes, group_.leader, options_.sites);
    std::vector<NodeId> neighbours = eager.ChildrenOf(self);
    if (const std::optional<NodeId> parent = eager.ParentOf(self)) neighbours.push_back(*parent);
    for (const NodeId peer : neighbours)
      links_.emplace_back().name = DataLink(peer, self, Lane::kBlocks, LinkPurpose::kEager);
  }
  for (const NodeId node : options_.known) {
    if (node == self) continue;
    if (is_leader() && !group_.leader_connects) {
      Link& probe = links_.emplace_back();
      probe.name = {.from = self, .to = node, .purpose = LinkPurpose::kControl};
      probe.is_probe = true;
    }
    for (Link& link : links_) link.is_expected |= link.name.to == node;
  }
  if (options_.ask_after.count() > 0 && is_leader() != group_.leader_connects) ListQuestions();
}

void Bootstrap::ListQuestions() {
  for (uint32_t node = 0; node < group_.nodes; ++node) {
    if (!is_leader() && NodeId(node) != group_.leader) continue;
    const bool is_known = std::ranges::count(options_.known, NodeId(node)) > 0;
    if (NodeId(node) == options_.node || is_known || options_.peers[node].host.empty()) continue;
    Link& question = links_.emplace_back();
    question.name = {.from = options_.node, .to = NodeId(node), .purpose = LinkPurpose::kControl};
    question.is_probe = question.is_asking = true;
    question.next_try = Clock::now() + options_.ask_after;
  }
}

NodeId Bootstrap::PeerOf(const Link& link) const {
  return link.name.from == options_.node ? link.name.to : link.name.from;
}

Bootstrap::Clock::time_point Bootstrap::DueOf(const Link& link) const {
  return link.due ? *link.due : due_ + options_.leader_first;
}

/// Whether `name` is one that may be opened later, and is not there yet; for the end that listens.
bool Bootstrap::IsLater(const LinkName& name) const {
  if (!group_.opens_later || name.purpose != LinkPurpose::kData || name.stream > 0) return false;
  if (name.from.index() >= group_.nodes || name.from == name.to) return false;
  const bool is_of_credits = name.lane == Lane::kCredits && name.streams == 1;
  if (name.lane != Lane::kBlocks && !is_of_credits) return false;
  return DataLink(name.from, name.to, name.lane).from == name.from;
}

/// Both connections. Errors: this process may not have so many files open.
Status Bootstrap::AddPeer(NodeId peer, std::optional<Clock::time_point> due) {
  Result<FileRoom> room = FileRoom::Reserve(kFilesPerPeer);
  if (!room.ok()) return room.status();
  rooms_.push_back(*std::move(room));
  for (const Lane lane : {Lane::kBlocks, Lane::kCredits}) {
    Link& link = links_.emplace_back();
    link.name = DataLink(peer, options_.node, lane);
    link.due = due;
  }
  return {};
}

void Bootstrap::Want(NodeId peer, milliseconds within) {
  PREPOST_CHECK(group_.opens_later && peer != options_.node);
  const LinkName name = DataLink(peer, options_.node, Lane::kBlocks);
  if (name.from != options_.node || FindLink(name) != nullptr || !refused_.ok()) return;
  refused_ = AddPeer(peer, Clock::now() + within);
}

bool Bootstrap::SeekMember(NodeId node) {
  bool is_sought = false;
  for (Link& link : links_) {
    if (link.name.purpose != LinkPurpose::kControl || PeerOf(link) != node) continue;
    link.given = false;
    if (!link.is_probe) continue;
    is_sought = true;
    if (!link.lost_at) link.lost_at = Clock::now();
  }
  return is_sought;
}

std::optional<Bootstrap::Unreached> Bootstrap::Overdue() const {
  for (const Link& link : links_) {
    if (link.due && !IsServed(link) && Clock::now() >= *link.due)
      return Unreached{.peer = PeerOf(link), .why = link.seen.what};
  }
  return std::nullopt;
}

/// Null: there is none.
bool Bootstrap::HasServed(const LinkName& name) {
  const Link* const link = FindLink(name);
  return link != nullptr && IsServed(*link);
}

Bootstrap::Link* Bootstrap::FindLink(const LinkName& name) {
  const auto link =
      std::ranges::find_if(links_, [&](const Link& it) { return SameStream(it.name, name); });
  return link == links_.end() ? nullptr : &*link;
}

/// Those beside `first`, which are awaited as long as that is. Some are there where it comes again,
/// and may be more than it has now. Errors: this process may not have so many files open.
Status Bootstrap::AddStreams(const LinkName& first, std::optional<Clock::time_point> due) {
  size_t there = 0;
  for (Link& link : links_) {
    LinkName beside = link.name;
    beside.stream = 0;
    if (link.name.stream == 0 || !SameStream(beside, first)) continue;
    link.name.streams = first.streams;
    link.is_surplus = link.name.stream >= first.streams;
    if (!link.is_surplus) ++there;
  }
  const size_t lacking = first.streams - size_t{1} - there;
  if (lacking == 0) return {};
  Result<FileRoom> room = FileRoom::Reserve(lacking);
  if (!room.ok()) return room.status();
  rooms_.push_back(*std::move(room));
  LinkName name = first;
  for (name.stream = 1; name.stream < name.streams; ++name.stream) {
    if (FindLink(name) != nullptr) continue;
    Link& link = links_.emplace_back();
    link.name = name;
    link.due = due;
  }
  return {};
}

ControlSocket Bootstrap::TakeControl() {
  PREPOST_CHECK(to_leader_only_ && connected());
  to_leader_only_ = false;
  Link& link = links_.front();
  link.given = true;
  // Who was not called yet by the leader calls it no more.
  std::erase_if(calls_, [](const auto& call) { return call->link.is_asking; });
  for (Link& it : links_) it.given |= it.is_asking;
  return ControlSocket(std::move(link.fd), std::move(link.keys.seal));
}

void Bootstrap::SeekLeader() {
  to_leader_only_ = true;
  for (Link& link : links_) {
    if (&link != &links_.front() && !link.is_asking) continue;
    link.given = link.calling = false;
    link.next_try = Clock::now() + kRetryWait;
  }
}

void Bootstrap::GiveBack(const TcpSocket& socket) {
  for (Link& link : links_) {
    const LinkName& name = link.name;
    if (name.purpose == LinkPurpose::kData && PeerOf(link) == socket.peer &&
        name.lane == socket.lane && name.stream == socket.stream) {
      link.given = false;
    }
  }
}

Result<std::vector<TcpSocket>> Bootstrap::TakeSockets() {
  PREPOST_CHECK(!to_leader_only_);
  std::set<NodeId> partial;
  for (const Link& link : links_) {
    if (link.name.purpose == LinkPurpose::kData && !IsServed(link)) partial.insert(PeerOf(link));
  }
  std::vector<TcpSocket> sockets;
  for (Link& link : links_) {
    const NodeId peer = PeerOf(link);
    if (link.name.purpose != LinkPurpose::kData || link.given || link.is_surplus ||
        partial.contains(peer))
      continue;
    if (link.name.lane == Lane::kBlocks)
      PREPOST_RETURN_IF_ERROR(ShapeStream(link.fd.get(), link.name.streams, options_.paths));
    sockets.push_back({.peer = peer,
                       .lane = link.name.lane,
                       .stream = link.name.stream,
                       .streams = link.name.streams,
                       .fd = std::move(link.fd),
                       .key = std::move(link.keys.key),
                       .is_connector = link.name.from == options_.node,
                       .seal = std::move(link.keys.seal)});
    link.given = true;
  }
  return sockets;
}

std::vector<GateSocket> Bootstrap::TakeGates() {
  std::vector<GateSocket> gates;
  for (Link& link : links_) {
    if (link.name.purpose != LinkPurpose::kGates || std::exchange(link.given, true)) continue;
    gates.push_back({.peer = PeerOf(link),
                     .control = ControlSocket(std::move(link.fd), std::move(link.keys.seal))});
  }
  return gates;
}

Result<std::vector<TcpSocket>> Bootstrap::TakeEager() {
  std::vector<TcpSocket> sockets;
  for (Link& link : links_) {
    if (link.name.purpose != LinkPurpose::kEager || std::exchange(link.given, true)) continue;
    PREPOST_RETURN_IF_ERROR(ShapeStream(link.fd.get(), /*streams=*/1, options_.paths));
    sockets.push_back({.peer = PeerOf(link),
                       .fd = std::move(link.fd),
                       .key = std::move(link.keys.key),
                       .is_connector = link.name.from == options_.node,
                       .seal = std::move(link.keys.seal)});
  }
  return sockets;
}

std::string Bootstrap::Name(NodeId node) const {
  return options_.names.empty() ? fmt::format("node {}", node.value) : options_.names[node.index()];
}

bool Bootstrap::IsServed(const Link& link) const {
  return link.given || link.is_surplus || link.fd.valid();
}

/// Whether the other end has closed it before it was given to anybody: one whose connection ended
/// in the middle of the hello may come again, though this end has let it in.
bool Bootstrap::IsGone(const Link& link) {
  return !link.given && link.fd.valid() && HasEnded(link.fd.get());
}

/// Null: not known yet.
const GroupTerms* Bootstrap::TermsOf(const LinkName& name) const {
  if (name.purpose == LinkPurpose::kControl) return &group_.terms;
  return group_.data_terms ? &*group_.data_terms : nullptr;
}

bool Bootstrap::connected() const {
  if (to_leader_only_) return IsServed(links_.front());
  return std::ranges::all_of(links_, [this](const Link& it) { return it.due || IsServed(it); });
}

bool Bootstrap::settled() const {
  if (to_leader_only_) return connected();
  return std::ranges::all_of(links_, [this](const Link& it) { return IsServed(it); });
}

Status Bootstrap::Step() {
  std::erase_if(calls_, [this](const auto& call) { return !ServeCall(*call); });
  if (!refused_.ok()) return refused_;
  if (settled()) return {};
  Clock::time_point due = to_leader_only_ || is_leader() ? due_ : due_ + options_.leader_first;
  // Who calls knows at which address, and what came of it; who is called knows nothing to say.
  const bool calls = std::ranges::any_of(links_, [this](const Link& it) {
    return it.name.from == options_.node && !it.is_asking && !IsServed(it);
  });
  if (!is_leader() && !calls) due += options_.leader_first / 4;
  if (Clock::now() >= due && !connected()) return NotThere();
  StartCalls();
  return {};
}

void Bootstrap::AddPolls(std::vector<pollfd>* polls) const {
  for (const auto& call : calls_) {
    const short events = call->is_connected ? POLLIN : POLLOUT;
    polls->push_back({.fd = call->fd.get(), .events = events, .revents = 0});
  }
}

void Bootstrap::NoteRefused(const LinkName& name, const std::string& address,
                            const std::string& why) {
  for (Link& link : links_) {
    if (link.name.to != options_.node || link.name.from != name.from) continue;
    link.seen.Note(
        {Telling::kRefusal, fmt::format("somebody at {} who says to be {} was refused: {}", address,
                                        Name(link.name.from), why)});
  }
}

std::optional<Refusal> Bootstrap::Judge(const LinkName& name, const GroupTerms& terms,
                                        const TcpAddress& /*from*/) {
  const bool is_leaders = group_.leader_connects && name == ControlLink(options_.node);
  if (to_leader_only_ && !is_leaders) return std::nullopt;
  if (name.to != options_.node) return Refusal::kWrongNode;
  if (name.from.index() >= group_.nodes) return Refusal::kUnexpected;
  const GroupTerms* const own = TermsOf(name);
  if (own == nullptr) return std::nullopt;
  if (terms.is_sealed != own->is_sealed) return Refusal::kOtherSeal;
  if (terms.plan != own->plan) return Refusal::kOtherPlan;
  if (terms.carrier != own->carrier) return Refusal::kOtherCarrier;
  if (terms != *own) return Refusal::kOtherSize;
  const Link* const link = FindLink(name);
  if (link != nullptr && name.stream > 0 && link->name.streams != name.streams)
    return Refusal::kUnexpected;
  if (link != nullptr)
    return IsServed(*link) && !IsGone(*link) ? Refusal::kDuplicate : Refusal::kNone;
  if (IsLater(name)) return Refusal::kNone;
  LinkName first = name;
  first.stream = 0;
  const Link* const beside = name.stream == 0 ? nullptr : FindLink(first);
  if (beside == nullptr || IsServed(*beside)) return Refusal::kUnexpected;
  return std::nullopt;
}

void Bootstrap::Admit(const LinkName& name, const GroupTerms& /*terms*/, FileDescriptor fd,
                      LinkKeys keys) {
  if (IsLater(name) && FindLink(name) == nullptr) {
    // The other end opens both, and sees to it that it does.
    if (refused_.ok()) refused_ = AddPeer(name.from, Clock::now() + options_.connect_max);
    if (!refused_.ok()) return;
  }
  Link& link = *FindLink(name);
  if (name.purpose == LinkPurpose::kGates || name.purpose == LinkPurpose::kEager) {
    link.fd = std::move(fd);
    link.keys = std::move(keys);
  } else if (name.purpose == LinkPurpose::kData) {
    // The other end waits for all of them now.
    if (name.stream == 0 && refused_.ok()) refused_ = AddStreams(name, link.due);
    link.name.streams = name.streams;
    link.fd = std::move(fd);
    link.keys = std::move(keys);
  } else if (!is_leader()) {
    link.fd = std::move(fd);  // for TakeControl()
    link.keys = std::move(keys);
  } else {
    link.given = true;
    const LinkName probe = {.from = name.to, .to = name.from, .purpose = LinkPurpose::kControl};
    if (Link* const probing = FindLink(probe); probing != nullptr) probing->given = true;
    arrival_(name.from, ControlSocket(std::move(fd), std::move(keys.seal)));
  }
}

void Bootstrap::StartCalls() {
  auto asked = static_cast<size_t>(
      std::ranges::count_if(calls_, [](const auto& call) { return call->link.is_asking; }));
  for (Link& link : links_) {
    const bool is_wanted = !to_leader_only_ || &link == &links_.front() || link.is_asking;
    if (!is_wanted || link.name.from != options_.node || IsServed(link)) continue;
    if (TermsOf(link.name) == nullptr) continue;
    if (link.calling || Clock::now() < link.next_try) continue;
    if (link.is_asking && asked++ >= kAskedMax) continue;
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
  auto call = std::make_unique<Call>(
      link, HelloConnector(options_.key, RandomNonce(), link.name, *TermsOf(link.name)));
  link.calling = true;
  if (link.is_expected && !link.lost_at) link.lost_at = Clock::now();
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
    // Until it ends; what came of an earlier one says more.
    if (link.seen.telling < Telling::kNoConnection)
      link.seen = {Telling::kNoConnection, fmt::format("{}: no answer", call->address)};
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
  if (link.lost_at && !link.is_expected && !call.is_connected)
    link.is_lost |= ++link.tries_since_loss >= call.tries_per_sweep;
  if (call.hello.has_proved() && call.hello.state() != HelloState::kRefused && !link.is_asking) {
    link.lost_at = Clock::now();
    link.tries_since_loss = 0;
  }
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
    LinkName& name = call.link.name;
    const bool is_for_blocks = name.purpose == LinkPurpose::kData && name.lane == Lane::kBlocks;
    if (is_for_blocks && name.stream == 0 && name.streams == 1 &&
        options_.carrier == Carrier::kTcp) {
      name.streams = StreamsOf(options_.paths, call.fd.get());
      if (!AddStreams(name, call.link.due).ok()) name.streams = 1;
      call.hello.set_streams(name.streams);
    }
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
    if (call.hello.has_proved()) {
      call.due = DueOf(call.link);
      call.link.lost_at.reset();
      call.link.is_lost = false;
      call.link.is_expected = false;
      // Until it says more.
      if (call.link.name.purpose == LinkPurpose::kControl)
        call.link.seen.Note({Telling::kNoConnection,
                             fmt::format("{}: it is there, and has not come to this group: does it "
                                         "mean the same one?",
                                         call.address)});
    }
  }
  switch (call.hello.state()) {
    case HelloState::kTalking:
    case HelloState::kParked:
    case HelloState::kBroken:
      return EndCall(call, "it does not speak prepost's protocol");
    case HelloState::kRefused:
      return TakeRefusal(call);
    case HelloState::kWelcome:
      break;
  }
  if (!ConfigureTcp(call.fd).ok()) return EndCall(call, "the connection broke");
  call.link.calling = false;
  // Where the leader connects, it answers so when the group is over there: it has a last word.
  const bool is_question = call.link.is_asking && !is_leader();
  if (is_question && IsServed(links_.front())) return false;
  Link& link = is_question ? links_.front() : call.link;
  if (is_leader() && call.link.name.purpose == LinkPurpose::kControl) {
    call.link.given = true;
    arrival_(call.link.name.to, ControlSocket(std::move(call.fd), call.hello.Keys().seal));
    return false;
  }
  link.fd = std::move(call.fd);
  link.keys = call.hello.Keys();
  return false;
}

/// The leader's word is final if it is surely the leader's: it stands alone at its address, or has
/// proved the secret and that it is the leader.
bool Bootstrap::TakeRefusal(Call& call) {
  const Refusal refusal = call.hello.refusal();
  const bool differs = call.hello.is_proved() && IsOfTerms(refusal);
  const bool is_leaders = is_leader() && call.link.name.purpose == LinkPurpose::kControl;
  if (is_leaders && differs) {
    if (std::exchange(call.link.has_differed, true))
      differing_ = {.peer = call.link.name.to, .why = refusal};
  } else if (call.link.is_probe && call.hello.has_proved() && is_leader()) {
    call.link.given = true;  // it will call
  }
  const std::string why = call.hello.Why();
  const bool is_proved_leader = call.hello.is_proved() && refusal != Refusal::kWrongNode;
  const bool is_final =
      call.link.is_asking ? differs : is_proved_leader || call.tries_per_sweep == 1;
  if (to_leader_only_ && is_final) {
    if (differs) differing_ = {.peer = call.link.name.to, .why = refusal};
    refused_ = Rejected(fmt::format("{} at {} refuses {}: {}", Name(call.link.name.to),
                                    call.address, Name(options_.node), why));
  }
  EndCall(call, "it refuses this node: " + why);
  // It is the leader that will call, unless its group ends before that.
  if (call.link.is_asking && !is_leader()) call.link.next_try = Clock::now() + kQuestionWait;
  return false;
}

std::vector<NodeId> Bootstrap::Lost(milliseconds max) const {
  std::vector<NodeId> lost;
  for (const Link& link : links_) {
    if (IsServed(link) || !link.lost_at || std::ranges::count(lost, link.name.to) > 0) continue;
    if (link.is_lost || Clock::now() - *link.lost_at >= max) lost.push_back(link.name.to);
  }
  return lost;
}

void Bootstrap::TellWaiting() {
  if (!options_.waiting || Clock::now() < tell_at_) return;
  tell_at_ = Clock::now() + std::chrono::seconds(1);
  options_.waiting(Missing());
}

std::string Bootstrap::Missing() const {
  std::map<uint32_t, Sighting> missing;
  for (const Link& link : links_) {
    if (IsServed(link) || (to_leader_only_ && &link != &links_.front())) continue;
    const NodeId peer = PeerOf(link);
    missing[peer.value].Note(link.seen);
  }
  std::vector<std::string> words;
  for (const auto& [node, seen] : missing) {
    if (words.size() == kMissingMax) break;
    words.push_back(fmt::format("{} ({})", Name(NodeId(node)), seen.what));
  }
  if (missing.size() > kMissingMax) {
    words.push_back(fmt::format("and {} more", Count(missing.size() - kMissingMax, "node")));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

std::optional<NodeId> Bootstrap::OnlyMissing() const {
  std::optional<NodeId> missing;
  for (const Link& link : links_) {
    if (IsServed(link)) continue;
    const NodeId peer = PeerOf(link);
    if (link.name.purpose == LinkPurpose::kControl && peer == group_.leader) return peer;
    if (missing && *missing != peer) return std::nullopt;
    missing = peer;
  }
  return missing;
}

Status Bootstrap::NotThere() const {
  const std::chrono::duration<double> waited = options_.connect_max;
  std::string text =
      fmt::format("not connected with all nodes after {:g} s: {}", waited.count(), Missing());
  // The leader is there and has the same header, so what it does not expect comes of the programs.
  const NodeId leader = group_.leader;
  const bool lacks_leader =
      !to_leader_only_ && options_.node != leader &&
      std::ranges::any_of(links_, [&](const Link& link) {
        return !IsServed(link) && (link.name.from == leader || link.name.to == leader);
      });
  if (lacks_leader && group_.is_rolled) {
    text += fmt::format(
        "; node {} is in the group: are all files of the rolled plan made with the same order of "
        "nodes (--order, --topology of prepost compile)?",
        leader.value);
  }
  return Rejected(std::move(text));
}

}  // namespace prepost
