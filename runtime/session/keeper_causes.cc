// SPDX-License-Identifier: Apache-2.0
//
// Finding the cause. Of member 2 that dies in a group of 0 (the leader), 1, 2 and 3, where 1 and 3
// are its peers, three signs come in any order: the leader's control connection with 2 ends; 1 and
// 3 lose their data connections and report just that. The first is a cause, the others are
// consequences. So a lost connection is only suspected: it becomes the cause if nothing better
// shows up within grace_. A member that is stopped or cut off closes nothing; it is lost when it
// has not answered for silence_max_. Both together are less than failure_max.
//
//     0    last answer of 2
//     0.6  silence_max_: the leader takes 2 for lost, and reports it to 1 and 3, where it ends
//     0.8  and the grace_ that a lost connection waits for such a cause       (of failure_max)
//
// Members that die together are reported together where the leader finds them within a quarter of
// grace_. One that it does not find is known to the survivors' next group, which it is missed in
// after silence_max_ and not only after the time that members have to come.
//
// A leader that is lost is each member's own finding. A member that suspects something waits for
// the leader's word until both times are over, and then goes by its own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "runtime/session/keeper_group.h"
#include "runtime/session/member_words.h"
#include "runtime/transport/tcp/tcp_wire.h"

namespace prepost {
namespace {

constexpr uint64_t kAgeMax = 200'000'000;  ///< ms; more says no more

}  // namespace

void Keeper::CheckSilence(Group& group) {
  for (Peer& peer : group.peers) {
    if (!peer.control) continue;
    const bool has_word = !group.is_leader() && *group.kept.leader_word != '\0';
    const std::string leader = has_word ? fmt::format(", the {},", group.kept.leader_word) : "";
    if (!peer.control->is_authentic()) return End(group, NotAuthenticFrom(group, peer.node));
    if (!peer.control->nonsense().empty()) {
      return End(group, Nonsense(group, peer.node, peer.control->nonsense()));
    }
    const std::string who = Who(group, peer.node) + leader;
    // One that was let in and never said a word may come again, or else Lost() names it.
    const bool may_come = group.is_leader() && !group.is_formed && !group.kept.run &&
                          !group.kept.leader_connects && !peer.has_spoken;
    if (peer.control->closed() && may_come && group.bootstrap->SeekMember(peer.node)) {
      peer.control.reset();
      continue;
    }
    if (peer.control->closed()) {
      return Lose(group, {.cause = Rejected(fmt::format("{} is gone", who)),
                          .where = peer.node,
                          .kind = FailureKind::kGone});
    }
    if (is_silent(peer)) {
      return Lose(group, {.cause = Rejected(fmt::format("{} has said nothing for {} ms", who,
                                                        silence_max_.count())),
                          .where = peer.node,
                          .kind = FailureKind::kGone});
    }
  }
}

/// For as long as this thread has not been frozen itself, as it may have been just now.
bool Keeper::is_silent(const Peer& peer) const {
  const Clock::time_point now = Clock::now();
  return now - awake_at_ < tick_ && now - std::max(peer.heard, awake_since_) >= silence_max_;
}

/// Called until the group is over. Members that die together, as those of one machine do, are not
/// found at one moment: the leader waits a little, so that the survivors hear of all of them.
void Keeper::Lose(Group& group, Failure failure) {
  if (!group.is_leader()) return End(group, std::move(failure));
  if (!group.finding) {
    group.finding = std::move(failure);
    group.finding_due = Clock::now() + grace_ / 4;
  }
  if (Clock::now() < group.finding_due) return;
  Failure found = *group.finding;
  for (const Peer& peer : group.peers) {
    const bool is_gone = peer.control && (peer.control->closed() || is_silent(peer));
    if (is_gone && peer.node != found.where) found.also_gone.push_back(peer.node);
  }
  End(group, std::move(found));
}

/// While a group forms, of members that are not in it: one that was there, by what calls to it or
/// another group have seen, and has not come back soon.
void Keeper::CheckLosses(Group& group) {
  std::vector<NodeId> lost = group.bootstrap->Lost(silence_max_);
  for (const Peer& peer : group.peers) {
    const bool is_listed = std::ranges::count(lost, peer.node) > 0;
    if (is_listed || peer.control || peer.node == group.kept.self) continue;
    const auto loss = losses_.find(group.kept.members[peer.node.index()]);
    if (loss == losses_.end() || loss->second.at < group.kept.created) continue;
    const bool is_same = loss->second.address == group.kept.addresses[peer.node.index()];
    if (is_same && Clock::now() - loss->second.at >= grace_) lost.push_back(peer.node);
  }
  if (lost.empty()) return;
  End(group, {.cause = Rejected(fmt::format("{} was there and is gone, while the group was forming",
                                            Who(group, lost.front()))),
              .where = lost.front(),
              .also_gone = {lost.begin() + 1, lost.end()}});
}

/// Who is gone and who was still there when the group failed: the survivors may create the next one
/// at once, with members that no member has missed yet.
void Keeper::NoteMembers(const Group& group, const Failure& failure) {
  const Clock::time_point now = Clock::now();
  for (size_t i = 0; i < group.kept.members.size(); ++i) {
    const NodeId node = NodeId::FromIndex(i);
    const Sighting sighting = {.address = group.kept.addresses[i], .at = now};
    const bool is_lost = (failure.kind == FailureKind::kGone && failure.where == node) ||
                         std::ranges::count(failure.also_gone, node) > 0;
    if (is_lost) {
      losses_[group.kept.members[i]] = sighting;
      seen_.erase(group.kept.members[i]);
    } else if (group.is_formed && node != group.kept.self) {
      seen_[group.kept.members[i]] = sighting;
    }
  }
}

/// Of a new group: who is expected to be there, as it was a moment ago. One that is known to be
/// gone is not: who creates a group with it all the same waits for it to come back.
std::vector<NodeId> Keeper::KnownNodes(const KeptGroup& kept) const {
  std::vector<NodeId> known;
  for (size_t i = 0; i < kept.members.size(); ++i) {
    const auto seen = seen_.find(kept.members[i]);
    if (seen == seen_.end() || seen->second.address != kept.addresses[i]) continue;
    if (kept.created - seen->second.at <= options_.connect_max)
      known.push_back(NodeId::FromIndex(i));
  }
  return known;
}

/// At the leader. Whether it is true is judged by the next answer of `where`, which may be busy
/// with a callback.
void Keeper::NoteStall(Group& group, NodeId by, NodeId where) {
  // One that still connects to others serves none of its connections; who asks says it again.
  const bool has_gathered = group.gathered_at && Clock::now() - *group.gathered_at >=
                                                     PeerAnswerMax(options_.failure_max) + tick_;
  if (group.kept.controls.empty() && !has_gathered) return;
  std::erase_if(group.stalls, [by](const Stall& it) { return it.by == by; });
  group.stalls.push_back({.by = by, .where = where});
  if (where == group.kept.self) JudgeStall(group, where, Attention());
}

/// `where` has polled its connections for `attention`: if for as long as another member has heard
/// nothing of it there, it is the connection that carries nothing.
void Keeper::JudgeStall(Group& group, NodeId where, std::chrono::milliseconds attention) {
  const auto stall = std::ranges::find(group.stalls, where, &Stall::where);
  if (stall == group.stalls.end()) return;
  const NodeId by = stall->by;
  std::erase_if(group.stalls, [where](const Stall& it) { return it.where == where; });
  const std::chrono::milliseconds silence = PeerAnswerMax(options_.failure_max);
  if (attention < silence + tick_) return;
  End(group, {.cause = Rejected(fmt::format(
                  "{} lost its connection to {}: it is open, but nothing has come for {} ms",
                  Who(group, by), Who(group, where), silence.count())),
              .where = where,
              .by = by});
}

/// `failure`, a lost connection, may be a consequence of something else.
void Keeper::Suspect(Group& group, Failure failure) {
  const bool is_first = group.suspicions.empty();
  const bool has_said =
      std::ranges::any_of(group.suspicions, [&](const Failure& it) { return it.by == failure.by; });
  if (has_said || (!is_first && !group.is_leader())) return;
  if (!group.is_leader())
    Broadcast(group, FailedOf(failure, group.kept.created, /*lost_peer=*/true));
  group.suspicions.push_back(std::move(failure));
  if (!is_first) return;
  group.suspicion_due = Clock::now() + (group.is_leader() ? grace_ : silence_max_ + grace_);
}

/// A member that loses a connection closes its others, so that several members lose theirs, and may
/// say so first: the cause is what the one has lost that the others have.
const Keeper::Failure& Keeper::CauseOf(const std::vector<Failure>& suspicions) {
  const Failure* cause = &suspicions.front();
  for (size_t i = 0; i < suspicions.size() && cause->where; ++i) {
    const auto before = std::ranges::find_if(suspicions, [cause](const Failure& it) {
      return it.by == cause->where && it.where != cause->by;
    });
    if (before == suspicions.end()) break;
    cause = &*before;
  }
  return *cause;
}

/// `failure` is this node's own finding, which the leader passes on.
void Keeper::End(Group& group, const Failure& failure) {
  if (!group.is_leader()) {
    Broadcast(group, FailedOf(failure, group.kept.created));
  } else {
    std::span<const NodeId> gone = failure.also_gone;
    while (!gone.empty()) {
      const std::span<const NodeId> some = gone.first(std::min(gone.size(), kControlNodesMax));
      Broadcast(group, control::Gone{{some.begin(), some.end()}});
      gone = gone.subspan(some.size());
    }
    Broadcast(group, AbortOf(failure, group.kept.created));
  }
  ReportFailure(group, failure, /*is_own_finding=*/true);
  Part(group);
}

void Keeper::ReportFailure(const Group& group, const Failure& failure, bool is_own_finding) {
  NoteMembers(group, failure);
  NoteFormer(group, failure);
  KeeperEvent event = {.kind = KeeperEvent::Kind::kFailed,
                       .group = group.kept.serial,
                       .status = failure.cause,
                       .is_own_finding = is_own_finding,
                       .failure = failure.kind};
  if (failure.where) event.members.push_back(group.kept.members[failure.where->index()]);
  for (const NodeId node : failure.also_gone)
    event.members.push_back(group.kept.members[node.index()]);
  Report(std::move(event));
}

uint64_t Keeper::MsSince(Clock::time_point when) {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - when);
  return static_cast<uint64_t>(std::max<int64_t>(since.count(), 0));
}

/// Whether a failure is that of the last group of this number, of which there are news while this
/// one forms: the other end, which created its group `age_ms` ago, has not created this one yet.
bool Keeper::IsOfFormer(const Group& group, uint64_t age_ms) {
  const std::chrono::milliseconds age(std::min(age_ms, kAgeMax));
  return group.bootstrap != nullptr && group.former_ended &&
         Clock::now() - age < *group.former_ended;
}

control::Failed Keeper::FailedOf(const Failure& failure, Clock::time_point created,
                                 bool lost_peer) {
  return {.code = failure.cause.code(),
          .kind = failure.kind,
          .lost_peer = lost_peer,
          .where = failure.where,
          .age_ms = MsSince(created),
          .cause = ControlText(failure.cause.ToString())};
}

control::Abort Keeper::AbortOf(const Failure& failure, Clock::time_point created) {
  return {.kind = failure.kind,
          .where = failure.where,
          .age_ms = MsSince(created),
          .cause = ControlText(failure.cause.ToString())};
}

Keeper::Failure Keeper::NotAuthenticFrom(const Group& group, NodeId node) const {
  const std::string what = NotAuthentic(group.kept.self, node);
  return {.cause = Rejected(group.kept.run ? what : InMemberWords(what, group.kept.members)),
          .where = group.kept.self};
}

Keeper::Failure Keeper::Nonsense(const Group& group, NodeId node, const std::string& what) const {
  return {.cause = Rejected(fmt::format("{} sent nonsense over its control connection: {}",
                                        Who(group, node), what)),
          .where = node};
}

/// Of one that is no nonsense in itself, and that `node` has no reason to send.
Keeper::Failure Keeper::Nonsense(const Group& group, NodeId node,
                                 const ControlMessage& message) const {
  return Nonsense(group, node, fmt::format("\"{}\"", Name(message)));
}

}  // namespace prepost
