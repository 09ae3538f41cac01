// SPDX-License-Identifier: Apache-2.0
//
// Short messages of an engine's groups: at the root from the queue into the stream of the group's
// EagerLane, elsewhere from there to the callbacks. Long ones before and after them keep their
// places: the root puts a short message into the stream when it has nothing more to do for those
// before it, and a member takes it when it has those before it.
#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/group/eager_tree.h"
#include "runtime/session/engine.h"
#include "runtime/session/engine_group.h"

namespace prepost {

Status Engine::OpenEager(Group& group, std::vector<TcpSocket> sockets) {
  {
    const std::lock_guard lock(mutex_);
    for (const TcpSocket& socket : sockets) {
      KeepAlive(socket.fd.get(), keep_alive_);
      BoundRetries(socket.fd.get(), failure_max_);
      ++(socket.memory != nullptr ? group.paths.short_memory : group.paths.short_network);
    }
  }
  const EngineGroupOptions& options = group.options;
  const EagerTree tree(static_cast<uint32_t>(options.members.size()), options.collective.root,
                       options.sites);
  auto lane = EagerLane::Make({.self = options.self,
                               .parent = tree.ParentOf(options.self),
                               .counts_messages = options.notify_delivered,
                               .hook = hook_,
                               .epoll = epoll_.get(),
                               .token = kEagerToken | group.serial * kEagerLinksMax},
                              std::move(sockets));
  if (!lane.ok()) return lane.status();
  group.eager = *std::move(lane);
  KeepAwake(group);
  return {};
}

/// Moves bytes of short messages, to here and on. False: there are none of this group, or it has
/// failed.
bool Engine::ServeEager(Group& group) {
  if (group.eager == nullptr) return true;
  const Status status =
      group.eager_failure.ok() ? group.eager->Service() : std::exchange(group.eager_failure, {});
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
bool Engine::IsShort(const Group& group, uint64_t bytes) {
  if (group.eager == nullptr || bytes > kEagerBytesMax) return false;
  const double rate = group.rate > 0 ? group.rate : group.short_rate;
  return bytes <= group.plans->EagerBytesMax(rate, group.reach);
}

/// The next message of the queue, if there is room for it, which makes it this member's no more.
bool Engine::SendShort(Group& group) {
  const MessagePart outgoing = group.queue.front();
  if (!group.eager->HasRoom(outgoing.bytes)) return false;
  group.queue.pop_front();
  const uint64_t number = group.message;
  AppendShort(group, outgoing);
  Complete(group, {number, const_cast<void*>(outgoing.data), outgoing.bytes});
  return true;
}

/// A network may be slower than is assumed of one that nothing is known of. Then the larger ones
/// are better off with plans. Of what connections were busy, round trips are no time on the port,
/// as far as messages did not overlap; over long paths they are most of it.
void Engine::NoteShortRate(Group& group, uint64_t bytes) {
  constexpr uint64_t kEach = 4 * kEagerBytesMax;
  constexpr std::chrono::milliseconds kLeastBusy{50};
  constexpr std::chrono::microseconds kNear{1000};
  if (bytes < kRatedBytesMin) return;
  ++group.short_count;
  group.short_bytes += bytes;
  if (group.short_bytes < kEach) return;
  group.short_bytes = 0;
  const TcpUse use = group.eager->Use();
  const std::chrono::microseconds round_trip = group.eager->round_trip();
  if (use.busy < kLeastBusy || round_trip >= kNear) return;
  const std::chrono::duration<double> busy =
      std::max(use.busy - static_cast<int64_t>(group.short_count) * round_trip, use.busy / 4);
  group.short_rate = static_cast<double>(use.acknowledged_bytes) / busy.count();
  group.short_count = 0;
  group.eager->CountUse();
}

/// To the stream, which has room for it.
void Engine::AppendShort(Group& group, const MessagePart& part) {
  NoteShortRate(group, part.bytes);
  const auto number = static_cast<uint32_t>(group.message++);
  group.eager->Append(number, {static_cast<const std::byte*>(part.data), part.bytes});
  group.endpoint->Skip(number);
  ++progress_;
}

/// Whether these, the next ones of the group, may go down the EagerTree now.
bool Engine::CanSendAtOnce(const Group& group, std::span<const MessagePart> parts) const {
  if (group.state != Group::State::kIdle || group.eager == nullptr || !group.queue.empty() ||
      !group.eager_failure.ok()) {
    return false;
  }
  uint64_t bytes = 0;
  for (const MessagePart& part : parts) {
    if (!IsShort(group, part.bytes)) return false;
    bytes += part.bytes;
  }
  return group.eager->HasRoom(bytes, parts.size());
}

/// Whether the next of many messages right after each other may wait for whoever turns the engine,
/// who writes several of them in one system call. The first few, and many bytes, do not wait.
bool Engine::MayWait(Group& group) {
  constexpr std::chrono::microseconds kNext{10};
  constexpr uint32_t kFew = 8;
  constexpr uint64_t kMany = kEagerBytesMax / 2;
  const auto now = std::chrono::steady_clock::now();
  const bool follows = now - std::exchange(group.sent_short_at, now) < kNext;
  group.follow_each_other = follows ? group.follow_each_other + 1 : 0;
  return group.follow_each_other >= kFew && group.eager->unsent() < kMany;
}

/// In the thread of the program, which saves a wake-up of the turning one. True: that one has
/// something to do, such as to call back.
bool Engine::SendAtOnce(Group& group, std::span<const MessagePart> parts) {
  for (const MessagePart& part : parts) {
    const uint64_t number = group.message;
    AppendShort(group, part);
    group.sent_at_once.push_back({number, const_cast<void*>(part.data), part.bytes});
  }
  if (!MayWait(group)) group.eager_failure = group.eager->Push();
  if (!is_ticking_ && group.eager->is_engaged()) SetTicking(true);
  if (!group.callbacks.complete) CompleteSent(group);
  group.is_busy |= !group.eager_failure.ok() || group.eager->has_work();
  is_busy_ |= group.is_busy;
  return group.is_busy || !group.sent_at_once.empty();
}

void Engine::CompleteSent(Group& group) {
  while (!group.sent_at_once.empty()) {
    const Message message = group.sent_at_once.front();
    group.sent_at_once.pop_front();
    Complete(group, message);
  }
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
