// SPDX-License-Identifier: Apache-2.0
//
// How a group ends at one member: with its last message, or over an error, which the keeper then
// brings to all.
#include <fmt/format.h>

#include <utility>

#include "ir/base/count.h"
#include "runtime/session/engine.h"
#include "runtime/session/engine_group.h"
#include "runtime/session/member_words.h"
#include "runtime/session/memory_pool.h"
#include "runtime/transport/tcp/tcp_endpoint.h"

namespace prepost {

/// Reports to the keeper that this member has all messages.
void Engine::CloseIfDone(Group& group) {
  if (!group.is_closing || group.is_done || !group.with_mover.empty()) return;
  const bool is_leader = group.options.self == group.options.collective.root;
  if (group.options.is_for_calls && (!group.calls.empty() || (!is_leader && !group.last))) return;
  if (group.options.is_for_calls && !is_leader && group.last != group.message) {
    return BreakDiffering(
        group, Rejected(fmt::format("node {} has destroyed the group after {}, and node {} after "
                                    "{}: one of them has called what the other has not",
                                    group.options.collective.root.value, Count(*group.last, "call"),
                                    group.options.self.value, Count(group.message, "call"))));
  }
  if (group.is_target() && (group.last != group.message || !group.syncing.empty())) return;
  group.is_done = true;
  keeper_->Close(group.serial, group.message);
}

/// Of what the root of `group` said that no root says then.
void Engine::BreakNonsense(Group& group, const char* what) {
  Break(group,
        Rejected(fmt::format("member {}, the root, {} out of turn",
                             group.options.members[group.options.collective.root.index()], what)),
        std::nullopt);
}

/// Members have called different things.
void Engine::BreakDiffering(Group& group, const Status& status) {
  Fail(group, InMemberWords(status, group.options.members), std::nullopt, /*differs=*/true);
}

/// `status`, with what this node has called where that is over already.
Status Engine::NameBothCalls(const Group& group, const Status& status) {
  if (!group.endpoint->late_call()) return status;
  const auto& [peer, start] = *group.endpoint->late_call();
  for (const auto& [number, shape] : group.called) {
    if (static_cast<uint32_t>(number) != start.number) continue;
    return Rejected(fmt::format("call {} is {} at node {}, and {} at node {}", number,
                                Describe(start), peer.value, Describe(shape),
                                group.options.self.value));
  }
  return status;
}

/// `status` speaks of nodes.
void Engine::Break(Group& group, const Status& status, std::optional<NodeId> lost_peer) {
  if (group.endpoint != nullptr && group.endpoint->differs())
    return BreakDiffering(group, NameBothCalls(group, status));
  Status cause = InMemberWords(status, group.options.members);
  if (lost_peer) {
    cause = Rejected(fmt::format("member {} lost its connection to member {}",
                                 group.options.members[group.options.self.index()],
                                 group.options.members[lost_peer->index()]));
  }
  Fail(group, std::move(cause), lost_peer);
}

void Engine::Fail(Group& group, Status cause, std::optional<NodeId> lost_peer, bool differs) {
  const std::optional<NodeId> where =
      group.endpoint != nullptr ? group.endpoint->failed_peer() : std::nullopt;
  if (group.is_running()) CountRunning(-1);
  group.state = Group::State::kBroken;
  group.endpoint.reset();  // closes its connections, so that peers notice at once
  group.eager.reset();
  group.executor.reset();  // has memory that they might have copied from
  if (group.mover != nullptr) group.mover->Stop();
  ReturnBuffers(group);
  keeper_->Fail(group.serial, std::move(cause), lost_peer, differs, where);
}

/// The group is over; what it has is freed when its last callback has returned.
void Engine::Retire(Group& group) {
  if (group.is_running()) CountRunning(-1);
  group.state = Group::State::kGone;
  group.endpoint.reset();  // before memory of the executor's that peers copy from
  group.eager.reset();
  group.executor.reset();
  if (group.mover != nullptr) group.mover->Stop();
  ReturnBuffers(group);
  if (group.sync != nullptr) {
    group.sync->End();
    ending_syncs_.push_back(std::move(group.sync));
  }
  group.barriers.clear();
  awake_.erase(group.serial);
  groups_.erase(group.serial);
}

/// Its number is free.
void Engine::Unlist(const Group& group) {
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(group.options.number);
  if (found != by_number_.end() && found->second.get() == &group) by_number_.erase(found);
}

/// Those of messages under way, to their pool.
void Engine::ReturnBuffers(Group& group) {
  const std::deque<Message> with_mover = std::exchange(group.with_mover, {});
  if (group.callbacks.pool == nullptr) return;
  MemoryPool& pool = *group.callbacks.pool;
  pool.impl_->Forget(&group);
  group.waits_for_buffer = false;
  if (!group.is_target()) return;
  PREPOST_CHECK(pool.Give(std::exchange(group.memory, nullptr)).ok());
  for (const Message& message : with_mover) PREPOST_CHECK(pool.Give(message.memory).ok());
}

}  // namespace prepost
