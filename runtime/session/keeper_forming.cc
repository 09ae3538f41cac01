// SPDX-License-Identifier: Apache-2.0
//
// How a group forms: connections of members come in through the lobby and are for the group of
// their terms; the bootstrap finds the members; then peers introduce themselves to each other.
#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/group/eager_tree.h"
#include "runtime/session/group_terms.h"
#include "runtime/session/introduction.h"
#include "runtime/session/keeper_group.h"
#include "runtime/session/member_words.h"
#include "runtime/transport/tcp/tcp_path.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {
namespace {

/// Members create a group at about the same time, and call its leader at once.
constexpr std::chrono::milliseconds kAskAfter{150};
/// Beside its connections, and a name for each that introduces itself.
constexpr size_t kFilesPerGroup = 12;
/// Of a connection on one machine: a socket each way for bells and, until the two ends know each
/// other, memory.
constexpr size_t kFilesPerMemory = 3;
/// On one machine: what is on the way to a child, and to the parent.
constexpr size_t kEagerRingBytes = size_t{256} << 10;
constexpr size_t kEagerReportBytes = size_t{4} << 10;
/// Of connections for blocks: their records, and blocks that are neither staged nor read.
constexpr size_t kBlocksRingBytes = size_t{64} << 10;
constexpr size_t kCreditsRingBytes = size_t{16} << 10;

}  // namespace

EagerTree Keeper::EagerTreeOf(const Group& group) {
  return EagerTree(static_cast<uint32_t>(group.kept.members.size()), group.kept.leader,
                   group.kept.sites);
}

Keeper::Group* Keeper::FindByTerms(const PlanHash& terms) {
  if (options_.only_group) {
    const bool is_there = !groups_.empty() && !groups_.begin()->second->is_over;
    return is_there ? groups_.begin()->second.get() : nullptr;
  }
  for (const auto& [serial, group] : groups_) {
    if (!group->is_over && SameGroup(group->kept.terms, terms)) return group.get();
  }
  return nullptr;
}

/// A connection of a group that is not here yet waits for it, as does one that the group has
/// already: it is for the next group of that number.
std::optional<Refusal> Keeper::Judge(const LinkName& name, const GroupTerms& terms,
                                     const TcpAddress& from) {
  Group* const group = FindByTerms(terms.plan);
  if (group == nullptr) return JudgeByFormer(name, terms);
  if (group->bootstrap == nullptr) return std::nullopt;
  const bool is_control = name.purpose == LinkPurpose::kControl;
  if (is_control && !group->kept.run && !group->is_formed &&
      TermsDifference(group->kept.terms, terms.plan) != Refusal::kNone)
    return JudgeOther(*group, name, terms, from);
  const std::optional<Refusal> refusal = group->bootstrap->Judge(name, terms, from);
  if (group->kept.run) return refusal;
  if (group->is_formed && refusal != Refusal::kNone) return std::nullopt;
  // Of another generation: it ends as soon as its member hears that this is over, or it is early.
  const bool is_other = refusal && IsOfTerms(*refusal);
  if (!is_control && is_other) return std::nullopt;
  if (is_other) return JudgeOther(*group, name, terms, from);
  return refusal == Refusal::kDuplicate ? std::nullopt : refusal;
}

void Keeper::NoteRefused(const LinkName& name, const std::string& address, const std::string& why) {
  for (const auto& [serial, group] : groups_) {
    if (group->bootstrap != nullptr) group->bootstrap->NoteRefused(name, address, why);
  }
}

void Keeper::Admit(const LinkName& name, const GroupTerms& terms, FileDescriptor fd,
                   LinkKeys keys) {
  Group* const group = FindByTerms(terms.plan);
  if (group != nullptr) return group->bootstrap->Admit(name, terms, std::move(fd), std::move(keys));
  Former& former = *FindFormer(terms.plan);
  former.told.emplace(OrderOf(terms.plan), name.from);
  ControlSocket control(std::move(fd), std::move(keys.seal));
  control.Send(LastWordFor(former, name, terms));
  Part(std::move(control));
}

/// All control connections are there, and others are not this keeper's business.
void Keeper::AddFormed(KeptGroup kept) {
  auto made = std::make_unique<Group>();
  Group& group = *made;
  group.kept = std::move(kept);
  group.is_formed = group.is_reported = true;
  for (size_t i = 0; i < group.kept.controls.size(); ++i) {
    Peer& peer = group.peers.emplace_back();
    peer.node = group.is_leader() ? NodeId::FromIndex(i) : group.kept.leader;
    // Until its first word the leader may still be starting other members.
    peer.heard = group.is_leader() ? Clock::now() : Clock::time_point::max();
    peer.joined = true;
    if (FileDescriptor& control = group.kept.controls[i]; control.valid())
      peer.control.emplace(std::move(control));
  }
  group.tree = group.kept.Tree();
  group.children = group.tree.ChildrenOf(group.kept.self);
  AddGates(group, std::move(group.kept.gates));
  groups_.emplace(group.kept.serial, std::move(made));
}

void Keeper::AddGroup(KeptGroup kept) {
  if (!kept.controls.empty()) return AddFormed(std::move(kept));
  std::optional<Clock::time_point> former_ended;
  if (const Former* const former = FindFormer(kept.terms)) former_ended = former->ended;
  std::erase_if(formers_,
                [&kept](const Former& group) { return SameGroup(group.terms.plan, kept.terms); });
  for (const auto& [serial, group] : groups_) {
    const bool is_before = group->last_word && SameGroup(group->kept.terms, kept.terms);
    if (is_before && !group->is_over) Part(*group);
  }
  auto made = std::make_unique<Group>();
  Group& group = *made;
  group.kept = std::move(kept);
  group.former_ended = former_ended;
  const auto nodes = static_cast<uint32_t>(group.kept.members.size());
  BootstrapOptions options = {.node = group.kept.self,
                              .peers = group.kept.addresses,
                              .sites = group.kept.sites,
                              .key = *options_.key,
                              .paths = group.kept.paths,
                              .connect_max = options_.connect_max,
                              .leader_first = silence_max_,
                              .known = KnownNodes(group.kept)};
  for (const uint32_t member : group.kept.members)
    options.names.push_back(fmt::format("{} {}", group.kept.word, member));
  Membership membership = {.nodes = nodes,
                           .leader = group.kept.leader,
                           .connections = group.kept.connections,
                           .terms = {.plan = group.kept.terms, .is_sealed = group.kept.is_sealed},
                           .data_terms = {},
                           .opens_later = group.kept.opens_later,
                           .leader_connects = group.kept.leader_connects,
                           .has_eager_tree = group.kept.has_eager_tree};
  if (group.kept.run) {
    options.carrier = options_.only_group->carrier;
    options.waiting = group.kept.run->waiting;
    membership.terms = *options_.only_group;
    membership.data_terms = membership.terms;
    membership.is_rolled = group.kept.run->is_rolled;
  } else {
    options.ask_after = kAskAfter;
  }
  if (!group.kept.run && group.is_leader()) {
    while (group.generation == 0) randombytes_buf(&group.generation, sizeof(group.generation));
    membership.data_terms = {.plan = DataTermsOfGroup(group.kept.terms, group.generation),
                             .is_sealed = group.kept.is_sealed};
  }
  group.bootstrap = std::make_unique<Bootstrap>(std::move(membership), std::move(options));
  group.tree = group.kept.Tree();
  group.children = group.tree.ChildrenOf(group.kept.self);
  for (uint32_t node = 0; node < (group.is_leader() ? nodes : 1); ++node)
    group.peers.push_back(
        {.node = group.is_leader() ? NodeId(node) : group.kept.leader, .control = {}});
  group.bootstrap->set_arrival([&group](NodeId node, ControlSocket control) {
    Peer& peer = group.peers[node.index()];
    peer.control.emplace(std::move(control));
    peer.heard = Clock::now();
    peer.has_spoken = peer.has_answered = false;
    peer.control->Queue(control::Query{group.generation});
  });
  const size_t eager_links =
      group.kept.has_eager_tree ? 1 + EagerTreeOf(group).ChildrenOf(group.kept.self).size() : 0;
  // What one group may fail for: its own number of files.
  Result<FileRoom> files =
      FileRoom::Reserve(2 * group.kept.connections.size() + group.peers.size() +
                        group.children.size() + 2 * eager_links + kFilesPerGroup);
  groups_.emplace(group.kept.serial, std::move(made));
  if (!files.ok()) return End(group, {.cause = files.status(), .where = group.kept.self});
  group.files = *std::move(files);
  lobby_->Reconsider();
}

void Keeper::Connect(Group& group) {
  Bootstrap& bootstrap = *group.bootstrap;
  const Status status = bootstrap.Step();
  const std::optional<Bootstrap::Differing> other = bootstrap.differing();
  if (!status.ok()) {
    return End(group, {.cause = group.kept.run ? status : InMemberWords(status, group.kept.members),
                       .where = bootstrap.OnlyMissing(),
                       .kind = other                  ? FailureKind::kTerms
                               : bootstrap.is_final() ? FailureKind::kOther
                                                      : FailureKind::kUnreached});
  }
  if (other && group.is_leader()) {
    group.other_terms = OtherTerms{.what = other->why, .node = other->peer};
    return EndOverTerms(group);
  }
  if (!bootstrap.connected()) return bootstrap.TellWaiting();
  if (!group.is_leader() && !group.peers.front().control) {
    group.peers.front().control.emplace(bootstrap.TakeControl());
    group.peers.front().heard = Clock::now();
    lobby_->Reconsider();  // peers may have come before the leader's word
    if (group.kept.run) Report({.kind = KeeperEvent::Kind::kLetIn, .group = group.kept.serial});
    Hear(group, group.peers.front());
    return group.is_over ? void() : Connect(group);
  }
  if (!group.is_leader() && !group.kept.run && group.generation == 0) return;
  TakeNewcomers(group);
  if (group.is_over) return;
  AddGates(group, bootstrap.TakeGates());
  Result<std::vector<TcpSocket>> eager = bootstrap.TakeEager();
  if (!eager.ok()) return End(group, {.cause = eager.status(), .where = group.kept.self});
  for (TcpSocket& taken : *eager) {
    Newcomer& newcomer = AddNewcomer(group, std::move(taken));
    newcomer.is_eager = true;
    const TcpSocket& socket = *newcomer.socket;
    if (socket.seal != nullptr) continue;
    const bool is_below = EagerTreeOf(group).ParentOf(socket.peer) == group.kept.self;
    newcomer.introduction = std::make_unique<Introduction>(
        socket, options_.reads_memory,
        MemoryFor(group, socket, is_below ? kEagerRingBytes : kEagerReportBytes));
  }
  group.is_formed = true;
  // What others still connect to each other has its own `connect_max`; the leader judges first.
  group.join_due = Clock::now() + (group.is_leader() ? 1 : 2) * join_max_;
  if (!group.kept.opens_later) {
    group.stream_files = bootstrap.TakeRooms();
    group.bootstrap.reset();
    if (group.kept.run) lobby_->Close();
  }
  Say(group, control::Joined());
}

/// A member that answers, but never says that it has its connections, or a leader that never says
/// that all have.
void Keeper::CheckJoined(Group& group) {
  if (!group.is_formed || group.introductions_due || !group.kept.controls.empty()) return;
  if (Clock::now() < group.join_due) return;
  if (!group.is_leader()) {
    return End(group, {.cause = Rejected(fmt::format("{} has not said for {} ms that all are there",
                                                     Who(group, group.kept.leader),
                                                     2 * join_max_.count())),
                       .where = group.kept.leader});
  }
  const auto missing = std::ranges::find(group.peers, false, &Peer::joined);
  if (missing == group.peers.end()) return;
  End(group, {.cause = Rejected(fmt::format("{} has not connected to all others for {} ms",
                                            Who(group, missing->node), join_max_.count())),
              .where = missing->node,
              .kind = FailureKind::kUnreached});
}

/// Connections that are wanted, or that a peer has opened, while the group runs.
void Keeper::ConnectLater(Group& group) {
  Bootstrap& bootstrap = *group.bootstrap;
  const Status status = bootstrap.Step();
  if (!status.ok()) return End(group, {.cause = status, .where = group.kept.self});
  TakeNewcomers(group);
  if (group.is_over) return;
  const std::optional<Bootstrap::Unreached> unreached = bootstrap.Overdue();
  if (!unreached) return;
  Suspect(group,
          {.cause = Rejected(fmt::format("{} cannot connect to {}: {}", Who(group, group.kept.self),
                                         Who(group, unreached->peer), unreached->why)),
           .where = unreached->peer,
           .kind = FailureKind::kUnreached,
           .by = group.kept.self});
}

Keeper::Newcomer& Keeper::AddNewcomer(Group& group, TcpSocket socket) {
  Newcomer& newcomer = group.newcomers.emplace_back();
  newcomer.socket = std::make_unique<TcpSocket>(std::move(socket));
  newcomer.since = Clock::now();
  return newcomer;
}

void Keeper::TakeNewcomers(Group& group) {
  Result<std::vector<TcpSocket>> sockets = group.bootstrap->TakeSockets();
  if (!sockets.ok()) return End(group, {.cause = sockets.status(), .where = group.kept.self});
  for (TcpSocket& taken : *sockets) {
    Newcomer& newcomer = AddNewcomer(group, std::move(taken));
    const TcpSocket& socket = *newcomer.socket;
    // What is sealed is not to pass by in memory, and its ends have proved who they are.
    const bool has_blocks = socket.lane == Lane::kBlocks;
    if (socket.streams > 1 || socket.seal != nullptr) continue;
    if (!has_blocks && !group.kept.shares_memory) continue;
    OwnMemory own;
    if (!has_blocks || group.kept.rings_blocks)
      own = MemoryFor(group, socket, has_blocks ? kBlocksRingBytes : kCreditsRingBytes);
    if (has_blocks && own.stream != nullptr) own.stage = StageOf(group);
    newcomer.introduction =
        std::make_unique<Introduction>(socket, options_.reads_memory, std::move(own));
  }
}

/// Where there is no memory, or no room for its files, the connection is there.
OwnMemory Keeper::MemoryFor(Group& group, const TcpSocket& socket, size_t ring_bytes) {
  OwnMemory own;
  if (!options_.reads_memory || !group.kept.shares_memory ||
      !IsOfThisMachine(PeerAddressOf(socket.fd)))
    return own;
  Result<FileRoom> files = FileRoom::ReserveSpare(kFilesPerMemory);
  if (!files.ok()) return own;
  group.memory_files.push_back(*std::move(files));
  if (auto made = ShmStream::Make(ring_bytes); made.ok()) own.stream = *std::move(made);
  return own;
}

std::shared_ptr<BlockStage> Keeper::StageOf(Group& group) {
  if (group.kept.stages_blocks && group.stage == nullptr) {
    if (auto made = BlockStage::Make(); made.ok()) group.stage = *std::move(made);
  }
  return group.stage;
}

/// A connection that has ended before anybody has used it, whose other end may not know that it was
/// let in, and comes again.
bool Keeper::GiveBack(Group& group, const Newcomer& newcomer) {
  const bool is_heard = newcomer.introduction != nullptr && newcomer.introduction->has_heard();
  const bool may_come_again =
      group.bootstrap != nullptr && !newcomer.is_eager && !group.kept.run && !is_heard;
  if (!may_come_again || !HasEnded(newcomer.socket->fd.get())) return false;
  group.bootstrap->GiveBack(*newcomer.socket);
  return true;
}

/// A peer may take its time, as it waits for other members, until all have joined; but where the
/// connection is cut, one of its two ends has said something that is not acknowledged.
void Keeper::Introduce(Group& group) {
  if (group.is_reported && group.newcomers.empty()) return;
  std::erase_if(group.newcomers,
                [&](const Newcomer& newcomer) { return GiveBack(group, newcomer); });
  std::set<NodeId> talking;
  for (Newcomer& newcomer : group.newcomers) {
    std::unique_ptr<Introduction>& introduction = newcomer.introduction;
    if (introduction == nullptr) continue;
    TcpSocket& socket = *newcomer.socket;
    const Clock::time_point now = Clock::now();
    const bool is_due = group.is_reported
                            ? now >= newcomer.since + open_max_
                            : group.introductions_due && now >= *group.introductions_due;
    switch (introduction->Step()) {
      case Introduction::State::kTalking:
        talking.insert(socket.peer);
        if (!is_due &&
            !newcomer.watch.IsSilent(socket.fd.get(), PeerSilenceMax(options_.failure_max)))
          break;
        [[fallthrough]];
      case Introduction::State::kGone:
        return Suspect(group, {.cause = Rejected(fmt::format("{} lost its connection to {}",
                                                             Who(group, group.kept.self),
                                                             Who(group, socket.peer))),
                               .where = socket.peer,
                               .by = group.kept.self});
      case Introduction::State::kForged:
        return End(group, {.cause = Rejected(fmt::format(
                               "{} got an introduction over its connection to {} that is not from "
                               "there: something between them changes what they say",
                               Who(group, group.kept.self), Who(group, socket.peer))),
                           .where = socket.peer});
      case Introduction::State::kDone:
        if (socket.lane == Lane::kBlocks) {
          socket.local = introduction->local();
          socket.window = introduction->TakeWindow();
        }
        socket.memory = introduction->TakeStream();
        socket.stage = introduction->TakeStage();
        socket.peer_stage = introduction->TakePeerStage();
        socket.key.reset();
        introduction.reset();
    }
  }
  // Those that the group begins with are reported together, later ones as they come. Who may open
  // some later waits until all members are there, as all have `connect_max` for that.
  const bool is_waiting = group.kept.opens_later && !group.introductions_due;
  if (!group.is_reported && (!talking.empty() || is_waiting)) return;
  KeeperEvent event = {.kind = KeeperEvent::Kind::kConnected, .group = group.kept.serial};
  std::vector<Newcomer> staying;
  for (Newcomer& newcomer : std::exchange(group.newcomers, {})) {
    if (talking.contains(newcomer.socket->peer)) {
      staying.push_back(std::move(newcomer));
    } else {
      (newcomer.is_eager ? event.eager : event.sockets).push_back(std::move(*newcomer.socket));
    }
  }
  group.newcomers = std::move(staying);
  if (group.is_reported && event.sockets.empty()) return;
  group.is_reported = true;
  for (const Peer& peer : group.peers) {
    if (group.is_leader())
      event.round_trips.push_back(peer.control ? RoundTripOf(peer.control->fd())
                                               : std::chrono::microseconds(0));
  }
  Report(std::move(event));
}

}  // namespace prepost
