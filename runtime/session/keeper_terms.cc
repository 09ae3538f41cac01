// SPDX-License-Identifier: Apache-2.0
//
// What members hear that create a group with other terms than others do, or after it has failed: of
// a group that fails before all have come a Former stays for a while, for those who call later.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/session/group_terms.h"
#include "runtime/session/keeper_group.h"
#include "runtime/session/member_words.h"

namespace prepost {
namespace {

/// Leaders ask twice (Bootstrap::differing()).
constexpr std::chrono::milliseconds kDifferedMax{1000};
constexpr size_t kOrdersMax = 4;  ///< in which members call that hear of a failure, more or less

/// What `who` has done, whose terms are others than those of `self`.
std::string OtherTermsOf(Refusal what, const std::string& who, bool who_seals,
                         const std::string& self) {
  switch (what) {
    case Refusal::kOtherSeal:
      return fmt::format("{} seals its connections and {} does not: all members do, or none",
                         who_seals ? who : self, who_seals ? self : who);
    case Refusal::kOtherOrder:
      return who + " creates the group with its members in another order";
    case Refusal::kOtherRoot:
      return who + " creates the group with another root";
    default:
      return who + " creates the group with other options or another plan";
  }
}

}  // namespace

/// Whether it is a leader's question (BootstrapOptions::ask_after), by what its terms say.
bool Keeper::IsAsking(const LinkName& name, const GroupTerms& terms) {
  return name.purpose == LinkPurpose::kControl && RootOf(terms.plan) == name.from;
}

Refusal Keeper::DifferenceOf(const GroupTerms& own, const GroupTerms& other) {
  const Refusal difference = TermsDifference(own.plan, other.plan);
  if (difference != Refusal::kNone) return difference;
  return own.is_sealed == other.is_sealed ? Refusal::kNone : Refusal::kOtherSeal;
}

/// Of a group that forms: who calls has the secret, so it is a member, and it will not come with
/// other terms later. But a leader that asks (BootstrapOptions::ask_after) may be of a group that
/// is just ending, so it is heard once more.
std::optional<Refusal> Keeper::JudgeOther(Group& group, const LinkName& name,
                                          const GroupTerms& terms, const TcpAddress& from) {
  if (!group.Has(name.from) || !group.Has(name.to)) return Refusal::kUnexpected;
  const bool has_order = OrderOf(group.kept.terms) == OrderOf(terms.plan);
  // In the name of a member that is here already it is for the next group, or not that member.
  if (has_order && group.bootstrap->HasServed(name)) return std::nullopt;
  const Refusal what =
      DifferenceOf({.plan = group.kept.terms, .is_sealed = group.kept.is_sealed}, terms);
  const bool asks = IsAsking(name, terms);
  const bool is_heard_once_more =
      asks && !group.is_leader() && group.other_leaders.insert(name.from).second;
  if (!is_heard_once_more && !group.other_terms) {
    group.other_terms = OtherTerms{.what = what, .host = from.Host()};
    if (has_order) group.other_terms->node = name.from;
  }
  if (asks) return what;
  // Who takes this member for the leader: at one it waits for the word that the group is over.
  if (group.is_leader()) return std::nullopt;
  const bool is_new = group.refused.size() <= kOrdersMax * group.kept.members.size() &&
                      group.refused.emplace(OrderOf(terms.plan), name.from).second;
  return is_new ? std::optional(what) : std::nullopt;
}

/// Over those of another member.
void Keeper::EndOverTerms(Group& group) {
  const OtherTerms& other = *group.other_terms;
  const std::string who =
      other.node ? Who(group, *other.node) : fmt::format("a member at {}", other.host);
  EndForming(group, {.cause = Rejected(OtherTermsOf(other.what, who, !group.kept.is_sealed,
                                                    Who(group, group.kept.self))),
                     .where = other.node,
                     .kind = FailureKind::kTerms});
}

Keeper::Former* Keeper::FindFormer(const PlanHash& terms) {
  const auto former = std::ranges::find_if(
      formers_, [&terms](const Former& it) { return SameGroup(it.terms.plan, terms); });
  return former == formers_.end() ? nullptr : &*former;
}

/// Where there is no such group: who has not heard that the last one failed is told; all else
/// waits for the next one.
std::optional<Refusal> Keeper::JudgeByFormer(const LinkName& name, const GroupTerms& terms) {
  const Former* const former = FindFormer(terms.plan);
  if (former == nullptr || name.purpose != LinkPurpose::kControl) return std::nullopt;
  const Refusal difference = DifferenceOf(former->terms, terms);
  const bool differs = former->failure.kind == FailureKind::kTerms && difference != Refusal::kNone;
  if (IsAsking(name, terms) && difference != Refusal::kNone) {
    const bool is_due = differs && Clock::now() < former->asked_until;
    return is_due ? std::optional(difference) : std::nullopt;
  }
  if (name.from.index() >= former->members.size()) return Refusal::kUnexpected;
  if (former->told.size() > kOrdersMax * former->members.size() ||
      former->told.contains({OrderOf(terms.plan), name.from}))
    return std::nullopt;
  const bool is_own = difference == Refusal::kNone;
  const bool is_missed = is_own && former->was_leader && name.to == former->leader;
  // Its leader, which does not know: where others have ended the group, EndForming() says nothing.
  const bool is_leader =
      is_own && name.from == former->leader && former->failure.kind == FailureKind::kTerms;
  return differs || is_missed || is_leader ? std::optional(Refusal::kNone) : std::nullopt;
}

/// To the member that calls with `terms`.
ControlMessage Keeper::LastWordFor(const Former& former, const LinkName& name,
                                   const GroupTerms& terms) {
  const Refusal difference = DifferenceOf(former.terms, terms);
  if (IsAsking(name, terms)) {
    control::Failed word = FailedOf(former.failure, former.created);
    word.ended_ms = MsSince(former.ended);
    return word;
  }
  if (difference == Refusal::kNone) return AbortOf(former.failure, former.created);
  const std::string caller = fmt::format("member {}", former.members[name.from.index()]);
  Failure failure = {
      .cause = Rejected(OtherTermsOf(difference, former.self, former.terms.is_sealed, caller)),
      .where = {},
      .kind = FailureKind::kTerms};
  if (difference != Refusal::kOtherOrder) failure.where = name.to;
  return AbortOf(failure, former.created);
}

void Keeper::NoteFormer(const Group& group, const Failure& failure) {
  if (lobby_ == nullptr || !group.kept.controls.empty()) return;  // it began with its connections
  // A member has its own connections before it hears that all have theirs.
  if (group.is_leader() ? group.is_formed : group.introductions_due.has_value()) return;
  const Clock::time_point now = Clock::now();
  Former former = {.terms = {.plan = group.kept.terms, .is_sealed = group.kept.is_sealed},
                   .leader = group.kept.leader,
                   .was_leader = group.is_leader(),
                   .members = group.kept.members,
                   .self = Who(group, group.kept.self),
                   .told = group.refused,
                   .failure = failure,
                   .created = group.kept.created,
                   .ended = now,
                   .asked_until = now + kDifferedMax,
                   .until = now + 2 * options_.failure_max};
  for (const Peer& peer : group.peers) {
    if (peer.control) former.told.emplace(OrderOf(group.kept.terms), peer.node);
  }
  formers_.push_back(std::move(former));
}

void Keeper::ServeFormers() {
  if (formers_.empty()) return;
  const Clock::time_point now = Clock::now();
  std::erase_if(formers_, [now](const Former& group) { return now >= group.until; });
  lobby_->Reconsider();
}

/// To the leader, once it is there.
void Keeper::SayLastWord(Group& group) {
  Bootstrap& bootstrap = *group.bootstrap;
  if (!bootstrap.Step().ok()) return Part(group);
  if (!bootstrap.connected()) return;
  group.peers.front().control.emplace(bootstrap.TakeControl());
  Broadcast(group, FailedOf(*group.last_word, group.kept.created));
  Part(group);
}

}  // namespace prepost
