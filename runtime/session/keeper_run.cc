// SPDX-License-Identifier: Apache-2.0
//
// What only groups that play one plan once have (KeptRun): messages between those who lead and
// play, and a leader that ends a run in which nothing moves.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session/keeper_group.h"

namespace prepost {
namespace {

constexpr size_t kStalledMax = 4;  ///< members named when nothing moves

template <typename... Type>
bool IsOneOf(const ControlMessage& message) {
  return (std::holds_alternative<Type>(message) || ...);
}

}  // namespace

/// Whether `message` is for those who lead and play a run, and nothing else.
bool Keeper::TakeRunMessage(Group& group, NodeId from, const ControlMessage& message) {
  if (!group.kept.run) return false;
  const bool is_theirs = group.is_leader() ? IsOneOf<control::Report, control::Summed>(message)
                                           : IsOneOf<control::Sum, control::Commit>(message);
  const bool is_for_both = group.is_leader() && IsOneOf<control::Progress>(message);
  if (is_theirs || is_for_both)
    Report({.kind = KeeperEvent::Kind::kRunMessage,
            .group = group.kept.serial,
            .node = from,
            .message = message});
  return is_theirs;
}

/// At the leader of a run, from when all are there.
void Keeper::CheckProgress(Group& group) {
  if (!group.kept.run || !std::ranges::all_of(group.peers, &Peer::joined)) return;
  if (options_.describe) {
    control::Progress own = options_.describe();
    group.own().progress = own.steps;
    group.own().waiting = std::move(own.waits_for);
  }
  uint64_t progress = 0;
  for (const Peer& peer : group.peers) {
    progress += peer.progress;
    for (const uint64_t arrived : peer.arrived.counts) progress += arrived;
    progress += peer.done ? 1 : 0;
  }
  const Clock::time_point now = Clock::now();
  const bool is_first = group.progress_at == Clock::time_point();
  if (is_first || progress != group.progress || now - awake_since_ < tick_) {
    group.progress = progress;
    group.progress_at = now;
    return;
  }
  // Of a member's progress the leader hears two ticks later, at most.
  const std::chrono::milliseconds interval =
      group.kept.run->is_over_device ? DeviceInterval(options_.failure_max) : tick_;
  const std::chrono::milliseconds limit =
      std::max(group.kept.run->no_progress_max, 2 * (interval + tick_));
  if (now - group.progress_at < limit) return;
  std::vector<std::string> reasons;
  for (const Peer& peer : group.peers) {
    if (!peer.waiting.empty() && reasons.size() < kStalledMax) reasons.push_back(peer.waiting);
  }
  if (reasons.empty()) reasons.push_back("no node has said what it waits for");
  End(group, {.cause = Rejected(fmt::format("no progress for {} ms: {}", limit.count(),
                                            fmt::join(reasons, "; "))),
              .where = {}});
}

}  // namespace prepost
