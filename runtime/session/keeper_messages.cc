// SPDX-License-Identifier: Apache-2.0
//
// What a keeper asks and answers, and what it makes of messages of members, at the leader, and of
// the leader, elsewhere (group/control_message.h). Whatever does not fit where it comes is nonsense
// and ends the group.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "runtime/session/group_terms.h"
#include "runtime/session/keeper_group.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

/// Control messages of one member that are read per visit and second. A member whose queue is full
/// keeps only the latest of a type (ControlSocket::QueueLatest()), so that the rest can wait.
constexpr double kMessagesPerVisit = 64;
constexpr double kMessagesPerSecond = 50'000;
/// Messages that report nothing new. A member needs fewer: some ten answers per failure_max.
constexpr uint32_t kRepeatsPerSecondMax = 1000;
constexpr uint32_t kClaimsPerSecondMax = 200;  ///< that are told to all
/// Messages that a leader may announce before those before them are complete: more than a mover
/// takes.
constexpr uint64_t kAnnouncedMax = 16;
constexpr uint64_t kAttentionMax = 200'000'000;  ///< ms; more says no more

}  // namespace

void Keeper::AskAll(Group& group) {
  if (Clock::now() < group.next_question) return;
  group.next_question = Clock::now() + tick_;
  Broadcast(group, control::Query{group.generation});
}

control::Progress Keeper::Answer() const {
  control::Progress answer;
  if (options_.describe) answer = options_.describe();
  answer.attention_ms = static_cast<uint64_t>(Attention().count());
  return answer;
}

/// As many messages as it is allowed: the others are not to wait, whatever it says.
void Keeper::Hear(Group& group, Peer& peer) {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> since = now - std::exchange(peer.allowed_at, now);
  peer.allowance = std::min(peer.allowance + since.count() * kMessagesPerSecond, kMessagesPerVisit);
  for (; peer.control && !group.is_over && peer.allowance >= 1; --peer.allowance) {
    const std::optional<ControlMessage> message = peer.control->Receive();
    if (!message) break;
    peer.heard = now;
    peer.has_spoken = true;
    if (!IsNews(group, peer, *message) && RepeatsTooOften(peer, now))
      return End(group, Nonsense(group, peer.node, "messages without pause that say nothing new"));
    if (group.is_leader()) {
      HearMember(group, peer, *message);
    } else if (peer.node == group.kept.leader) {
      HearLeader(group, *message);
    } else {
      HearGate(group, peer, *message);
    }
  }
}

/// Whether `message` reports more than this node knows. One more message to move is checked
/// otherwise.
bool Keeper::IsNews(const Group& group, const Peer& peer, const ControlMessage& message) {
  if (const auto* have = std::get_if<control::Have>(&message)) return have->messages > peer.have;
  if (const auto* arrived = std::get_if<control::Arrived>(&message))
    return arrived->number > peer.arrived[arrived->gate];
  if (const auto* passed = std::get_if<control::Passed>(&message))
    return passed->number > group.passed[passed->gate];
  return std::holds_alternative<control::Next>(message);
}

/// Of a message that reports nothing new, as answers do: it is one too many of these in a second.
bool Keeper::RepeatsTooOften(Peer& peer, Clock::time_point now) {
  if (now - peer.repeats_since >= std::chrono::seconds(1)) {
    peer.repeats_since = now;
    peer.repeats = 0;
  }
  return ++peer.repeats > kRepeatsPerSecondMax;
}

/// At the leader; also of this node itself.
void Keeper::HearMember(Group& group, Peer& peer, const ControlMessage& message) {
  if (TakeRunMessage(group, peer.node, message)) return;
  if (const auto* progress = std::get_if<control::Progress>(&message)) {
    peer.has_answered = true;
    peer.progress = progress->steps;
    peer.waiting = progress->waits_for;
    JudgeStall(group, peer.node, milliseconds(std::min(progress->attention_ms, kAttentionMax)));
  } else if (const auto* arrived = std::get_if<control::Arrived>(&message)) {
    HearArrived(group, peer, *arrived);
  } else if (const auto* have = std::get_if<control::Have>(&message)) {
    peer.have = std::max(peer.have, have->messages);
    const uint64_t delivered = std::ranges::min_element(group.peers, {}, &Peer::have)->have;
    while (group.delivered < delivered) {
      Report({.kind = KeeperEvent::Kind::kDelivered,
              .group = group.kept.serial,
              .number = group.delivered++});
    }
  } else if (const auto* done = std::get_if<control::Done>(&message)) {
    peer.done = true;
    peer.barriers = done->barriers;
    if (!std::ranges::all_of(group.peers, &Peer::done)) return;
    // Those that all have come to have passed, also where the tree has not heard of them yet.
    const uint64_t barriers = std::ranges::min_element(group.peers, {}, &Peer::barriers)->barriers;
    ReportPassed(group, {.gate = Gate::kBarrier, .number = barriers});
    Broadcast(group, control::Release{barriers});
    Finish(group);
  } else if (const auto* claim = std::get_if<control::Waiting>(&message)) {
    RelayClaim(group, peer, *claim);
  } else if (std::holds_alternative<control::Joined>(message)) {
    if (std::exchange(peer.joined, true)) return;
    if (!std::ranges::all_of(group.peers, &Peer::joined)) return;
    Broadcast(group, control::Joined());
    group.gathered_at = Clock::now();
    group.introductions_due = *group.gathered_at + silence_max_;
  } else if (const auto* failed = std::get_if<control::Failed>(&message)) {
    HearFailed(group, peer, *failed);
  } else if (const auto* stalled = std::get_if<control::Stalled>(&message)) {
    if (group.Has(stalled->peer) && stalled->peer != peer.node)
      return NoteStall(group, peer.node, stalled->peer);
    End(group, Nonsense(group, peer.node, "a stall of no other member"));
  } else {
    End(group, Nonsense(group, peer.node, message));
  }
}

void Keeper::HearFailed(Group& group, Peer& peer, const control::Failed& failed) {
  // The answer to a question of this group (EndForming()); one that has answered before is in it.
  const bool is_of_terms = failed.kind == FailureKind::kTerms && !group.gathered_at;
  if (is_of_terms && !peer.has_answered) {
    const milliseconds ended(std::min(failed.ended_ms, kAttentionMax));
    const bool is_before = group.former_ended && Clock::now() - ended < group.kept.created;
    if (IsOfFormer(group, failed.age_ms) || (is_before && group.bootstrap != nullptr)) {
      peer.control.reset();
      group.bootstrap->SeekMember(peer.node);
      return lobby_->Reconsider();
    }
  }
  const bool is_interrupted = failed.code == StatusCode::kInterrupted;
  const bool is_of_machine =
      failed.code == StatusCode::kEnvironment && group.kept.run && group.kept.run->is_one_machine;
  Failure failure = {
      .cause = {is_of_machine ? StatusCode::kEnvironment : StatusCode::kRejected,
                is_interrupted ? fmt::format("{} was interrupted", Who(group, peer.node))
                               : fmt::format("{}: {}", Who(group, peer.node), failed.cause)},
      .where = group.WhereOf(failed.where),
      .kind = failed.kind == FailureKind::kGone ? FailureKind::kOther : failed.kind,
      .by = peer.node};
  if (failed.lost_peer) return Suspect(group, std::move(failure));
  // It has ended its own, and may come again before this one has another: then it is told.
  if (is_of_terms && peer.control) {
    Part(*std::move(peer.control));
    peer.control.reset();
  }
  End(group, failure);
}

void Keeper::HearLeader(Group& group, const ControlMessage& message) {
  const NodeId leader = group.kept.leader;
  const GroupSerial serial = group.kept.serial;
  if (TakeRunMessage(group, leader, message)) return;
  if (const auto* query = std::get_if<control::Query>(&message)) {
    // Of a group whose connections were there: all members are.
    if (!group.kept.controls.empty() && !group.introductions_due)
      group.introductions_due = Clock::now() + silence_max_;
    if (group.bootstrap != nullptr && group.generation != query->generation) {
      group.generation = query->generation;
      group.bootstrap->set_data_terms(
          {.plan = DataTermsOfGroup(group.kept.terms, query->generation),
           .is_sealed = group.kept.is_sealed});
      lobby_->Reconsider();  // peers may have come before the leader's word
    }
    BroadcastLatest(group, Answer());
  } else if (const auto* passed = std::get_if<control::Passed>(&message)) {
    HearPassed(group, group.peers.front(), *passed);
  } else if (const auto* gone = std::get_if<control::Gone>(&message)) {
    // Several of these name no more than there are members, or they begin anew.
    if (group.also_gone.size() + gone->nodes.size() > group.kept.members.size())
      group.also_gone.clear();
    std::ranges::copy_if(gone->nodes, std::back_inserter(group.also_gone),
                         [&group](NodeId node) { return group.Has(node); });
  } else if (const auto* abort = std::get_if<control::Abort>(&message)) {
    // The leader's first word: it has not created this group yet, but told of the one before.
    if (group.generation == 0 && IsOfFormer(group, abort->age_ms)) {
      group.peers.front().control.reset();
      return group.bootstrap->SeekLeader();
    }
    ReportFailure(group,
                  {.cause = Rejected(abort->cause),
                   .where = group.WhereOf(abort->where),
                   .kind = abort->kind,
                   .also_gone = std::move(group.also_gone)},
                  /*is_own_finding=*/false);
    Part(group);
  } else if (std::holds_alternative<control::Joined>(message)) {
    if (!group.introductions_due) group.introductions_due = Clock::now() + silence_max_;
  } else if (const auto* device = std::get_if<control::Device>(&message)) {
    Report({.kind = KeeperEvent::Kind::kPlace, .group = serial, .text = device->place});
  } else if (const auto* claim = std::get_if<control::Waiting>(&message)) {
    if (!group.Has(claim->node)) return End(group, Nonsense(group, leader, "a call of no member"));
    ReportClaim(group, *claim);
  } else if (const auto* next = std::get_if<control::Next>(&message)) {
    if (++group.announced > group.passed[Gate::kMoved] + kAnnouncedMax)
      return End(group, Nonsense(group, leader, "messages announced without end"));
    Report({.kind = KeeperEvent::Kind::kNext, .group = serial, .number = next->bytes});
  } else if (const auto* last = std::get_if<control::Last>(&message)) {
    if (std::exchange(group.has_last, true))
      return End(group, Nonsense(group, leader, "\"last\" out of turn"));
    Report({.kind = KeeperEvent::Kind::kLast, .group = serial, .number = last->messages});
  } else if (const auto* release = std::get_if<control::Release>(&message)) {
    if (!group.is_done) return End(group, Nonsense(group, leader, "\"release\" out of turn"));
    ReportPassed(group, {.gate = Gate::kBarrier,
                         .number = std::min(release->barriers, group.arrived[Gate::kBarrier])});
    Finish(group);
  } else {
    End(group, Nonsense(group, leader, message));
  }
}

/// All have all messages. Its members may end now, and come back when they like.
void Keeper::Finish(Group& group) {
  for (const uint32_t member : group.kept.members) seen_.erase(member);
  Report({.kind = KeeperEvent::Kind::kClosed, .group = group.kept.serial});
  Part(group);
}

/// To all, the first of a call, again after a while, and whatever differs from it; of a member not
/// more often than it has to (Engine::ClaimCall()), nor of all together so often that the others
/// would take it for a flood.
void Keeper::RelayClaim(Group& group, Peer& peer, const control::Waiting& claim) {
  const bool is_known = claim.call == group.claim.call && claim.what == group.claim.what;
  const auto now = Clock::now();
  if (is_known && now - group.claimed_at < options_.failure_max / 2) return;
  if (now - peer.claimed_at < options_.failure_max / 8) return;
  if (now - group.claims_since >= std::chrono::seconds(1)) {
    group.claims_since = now;
    group.claims = 0;
  }
  if (++group.claims > kClaimsPerSecondMax) return;
  peer.claimed_at = group.claimed_at = now;
  group.claim = {.call = claim.call, .node = peer.node, .what = claim.what};
  Broadcast(group, group.claim);
  ReportClaim(group, group.claim);
}

void Keeper::ReportClaim(const Group& group, const control::Waiting& claim) {
  Report({.kind = KeeperEvent::Kind::kClaim,
          .group = group.kept.serial,
          .number = claim.call,
          .node = claim.node,
          .text = claim.what});
}

}  // namespace prepost
