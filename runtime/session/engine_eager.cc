// SPDX-License-Identifier: Apache-2.0
//
// Short messages of an engine's groups: at the root from the queue into the stream of the group's
// EagerLane, elsewhere from there to the callbacks. Long ones before and after them keep their
// places: the root puts a short message into the stream when it has nothing more to do for those
// before it, and a member takes it when it has those before it.
#include <algorithm>
#include <limits>

#include "runtime/session/engine.h"
#include "runtime/session/engine_group.h"

namespace prepost {

/// Moves bytes of short messages, to here and on. False: there are none of this group, or it has
/// failed.
bool Engine::ServeEager(Group& group) {
  if (group.eager == nullptr) return true;
  const Status status = group.eager->Service();
  if (!status.ok()) {
    Break(group, status, group.eager->lost_peer());
    return false;
  }
  if (!is_ticking_ && group.eager->is_engaged()) SetTicking(true);
  if (!group.is_source() || !group.options.notify_delivered) return true;
  group.have_all = std::min(group.eager->have_below(), group.have);
  TellDelivered(group);
  return group.eager != nullptr;
}

/// At the root: whether the next message of its queue goes down the EagerTree.
bool Engine::IsShort(Group& group, uint64_t bytes) const {
  if (group.eager == nullptr || bytes > kEagerBytesMax) return false;
  return bytes <= group.plans->EagerBytesMax(group.rate, group.is_memory);
}

/// The next message of the queue, if there is room for it, which makes it this member's no more.
bool Engine::SendShort(Group& group) {
  const Group::Outgoing outgoing = group.queue.front();
  if (!group.eager->HasRoom(outgoing.bytes)) return false;
  group.queue.pop_front();
  group.eager->Append(static_cast<uint32_t>(group.message), {outgoing.data, outgoing.bytes});
  group.endpoint->Skip(static_cast<uint32_t>(group.message));
  ++progress_;
  const uint64_t number = group.message++;
  Received(group, {number, const_cast<std::byte*>(outgoing.data), outgoing.bytes});
  return true;
}

/// The message at hand, when it is there and has its memory.
bool Engine::TakeShort(Group& group, const EagerLane::Front& front) {
  if (!is_ticking_) SetTicking(true);  // it may wait for memory
  if (!front.is_whole || group.syncing.size() >= kSyncsMax) return false;
  if (!FindMemory(group, front.bytes)) return false;
  group.eager->Take({static_cast<std::byte*>(group.memory), front.bytes});
  group.endpoint->Skip(front.number);
  ++progress_;
  const uint64_t number = group.message++;
  Received(group, {number, std::exchange(group.memory, nullptr), front.bytes});
  return true;
}

/// As CheckPeers(), of the group's short messages. False: it has failed.
bool Engine::CheckEager(Group& group) {
  if (group.eager == nullptr) return true;
  const Status status = group.eager->CheckPeers(silence_max_);
  if (!status.ok()) {
    Break(group, status, group.eager->lost_peer());
    return false;
  }
  const std::optional<NodeId> silent = group.eager->Tick(answer_max_);
  if (silent) keeper_->Stalled(group.serial, *silent);
  return ServeEager(group);
}

}  // namespace prepost
