// SPDX-License-Identifier: Apache-2.0
//
// Messages of an engine's groups, from the first step to the callbacks.
//
// Idle, the root begins the next message of its queue; the others begin what a peer has begun
// (MessageEndpoint::announced()), so that the size needs no message of its own: it comes with the
// first block. Nobody waits for the other members between two messages.
//
// Where a mover moves the messages (message_mover.h), a group is idle throughout, and up to two
// messages are with the mover, the second of which is armed while the first is moving:
//
//     root                        everybody
//     Send(), kNext  -->  memory found  -->  all: arm  -->  all: start  -->  all: complete
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "ir/base/count.h"
#include "ir/base/utf8.h"
#include "runtime/session/engine.h"
#include "runtime/session/engine_group.h"
#include "runtime/session/memory_pool.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

/// Messages that a mover has: one moves, one is armed.
constexpr size_t kWithMoverMax = 2;

}  // namespace

/// As far as it gets without waiting.
void Engine::Advance(Group& group) {
  // A visit of one group may take so many steps, so that none keeps the others waiting.
  constexpr int kStepsMax = 64;
  int steps = 0;
  bool has_moved = true;
  KeepAwake(group);
  CompleteSent(group);
  while (has_moved && steps < kStepsMax) {
    const int before = steps;
    if (!ServeEager(group)) break;
    while (steps < kStepsMax && Step(group)) ++steps;
    has_moved = group.eager != nullptr && steps > before;
  }
  group.is_busy = steps == kStepsMax ||
                  (group.endpoint != nullptr && !group.endpoint->PrepareToWait()) ||
                  (group.eager != nullptr && group.eager->has_work());
}

/// Whether there may be more to do.
bool Engine::Step(Group& group) {
  if (group.state == Group::State::kRunning) {
    const uint64_t before = group.executor->progress();
    const Status status = PollExecutor(group);
    if (!status.ok()) {
      Break(group, status, group.endpoint->lost_peer());
      return false;
    }
    const bool has_moved = group.executor->progress() != before;
    if (has_moved) ++progress_;
    if (!group.executor->done()) return has_moved;
    Finish(group);
    return true;
  }
  if (group.state != Group::State::kIdle && group.state != Group::State::kOpening) return false;
  if (group.mover != nullptr) return StepMover(group);
  if (group.options.is_for_calls) return StepCalls(group);
  if (group.is_source()) {
    if (group.queue.empty()) {
      CloseIfDone(group);
    } else if (IsShort(group, group.queue.front().bytes)) {
      if (SendShort(group)) return true;
    } else {
      const MessagePart outgoing = group.queue.front();
      const auto* const data = static_cast<const std::byte*>(outgoing.data);
      group.queue.pop_front();
      group.memory = const_cast<std::byte*>(data);
      const MessageStart message = {
          .number = static_cast<uint32_t>(group.message),
          .bytes = outgoing.bytes,
          .variant = group.plans->Choose(outgoing.bytes, group.rate, group.reach)};
      return Begin(group, message, {.source = {data, outgoing.bytes}});
    }
  }
  const std::optional<EagerLane::Front> front =
      group.eager == nullptr ? std::nullopt : group.eager->front();
  const bool is_short = front && front->number == static_cast<uint32_t>(group.message);
  if (front && !is_short && !IsAfter(front->number, static_cast<uint32_t>(group.message))) {
    BreakNonsense(group, "sends a message");
    return false;
  }
  if (is_short && TakeShort(group, *front)) return true;
  if (group.state != Group::State::kIdle) return false;
  if (std::exchange(group.has_arrivals, false) || !group.endpoint->PrepareToWait()) {
    const Result<PollOutcome> outcome = group.endpoint->Poll({}, milliseconds(0));
    if (!outcome.ok()) {
      Break(group, outcome.status(), group.endpoint->lost_peer());
      return false;
    }
  }
  if (!group.is_target() || is_short) return false;
  const std::optional<MessageStart> start = group.endpoint->announced();
  if (!start || start->number != static_cast<uint32_t>(group.message)) {
    CloseIfDone(group);
    return false;
  }
  if (!is_ticking_) SetTicking(true);  // it may wait for memory, and peers ask
  if (group.syncing.size() == kSyncsMax || !FindMemory(group, start->bytes)) return false;
  const std::span<std::byte> memory(static_cast<std::byte*>(group.memory), start->bytes);
  return Begin(group, *start, {.source = memory, .target = memory});
}

/// A caller's operation may throw.
Status Engine::PollExecutor(Group& group) {
  if (!group.options.is_for_calls) return group.executor->Poll(milliseconds(0));
  std::string thrown;
  try {
    return group.executor->Poll(milliseconds(0));
  } catch (const std::exception& error) {
    thrown = Printable(error.what());
  } catch (...) {
    thrown = "of a type that is not derived from std::exception";
  }
  return Rejected(fmt::format("the operation of call {} threw an exception at node {}: {}",
                              group.message, group.options.self.value, thrown));
}

/// Gives the mover one more message.
bool Engine::StepMover(Group& group) {
  const bool is_next = group.is_source() ? !group.queue.empty() : !group.announced.empty();
  if (!is_next) CloseIfDone(group);
  const bool is_full = group.with_mover.size() == kWithMoverMax ||
                       group.with_mover.size() + group.syncing.size() > kSyncsMax;
  if (!is_next || is_full) return false;
  Message message = {.number = group.message};
  NodeMemory memory;
  if (group.is_source()) {
    const MessagePart outgoing = group.queue.front();
    group.queue.pop_front();
    message.memory = const_cast<void*>(outgoing.data);
    message.bytes = outgoing.bytes;
    memory.source = {static_cast<const std::byte*>(outgoing.data), outgoing.bytes};
    keeper_->Announce(group.serial, message.bytes);
  } else {
    message.bytes = group.announced.front();
    if (!FindMemory(group, message.bytes)) return false;
    group.announced.pop_front();
    message.memory = std::exchange(group.memory, nullptr);
    memory.target = {static_cast<std::byte*>(message.memory), message.bytes};
    memory.source = memory.target;
  }
  ++group.message;
  ++progress_;
  group.with_mover.push_back(message);
  group.mover->Begin(memory, message.bytes);
  keeper_->Arrive(group.serial, Gate::kMemory, message.number);
  return true;
}

/// For the next message. False: it has to wait, or the group has ended.
bool Engine::FindMemory(Group& group, uint64_t bytes) {
  const uint32_t self = group.options.members[group.options.self.index()];
  group.waits_for_buffer = false;
  if (group.callbacks.pool != nullptr && bytes > 0) {
    MemoryPool::Impl& pool = *group.callbacks.pool->impl_;
    if (bytes > pool.buffer_bytes()) {
      Break(group,
            Rejected(fmt::format("member {} cannot take message {} of {}: the buffers of its pool "
                                 "have {}",
                                 self, group.message, Count(bytes, "byte"),
                                 Count(pool.buffer_bytes(), "byte"))),
            std::nullopt);
      return false;
    }
    group.memory = pool.Take(&group, [this] { Resume(); });
    group.waits_for_buffer = group.memory == nullptr;
    return !group.waits_for_buffer;
  }
  std::string thrown;
  try {
    group.memory =
        group.callbacks.incoming ? group.callbacks.incoming(group.message, bytes) : nullptr;
  } catch (const std::exception& error) {  // most likely for want of memory
    thrown = Printable(error.what());
  } catch (...) {
    thrown = "of a type that is not derived from std::exception";
  }
  if (group.state != Group::State::kIdle) return false;  // the callback has ended it
  if (!thrown.empty()) {
    group.memory = nullptr;
    Break(group,
          Rejected(fmt::format("member {} has no memory for message {} of {}: its callback "
                               "`incoming` threw an exception: {}",
                               self, group.message, Count(bytes, "byte"), thrown)),
          std::nullopt);
    return false;
  }
  if (group.memory == kNotYet) {
    group.memory = nullptr;
    group.waits_for_buffer = true;
    return false;
  }
  if (group.memory != nullptr || bytes == 0) return true;
  Break(group,
        Rejected(fmt::format("member {} has no memory for message {} of {}", self, group.message,
                             Count(bytes, "byte"))),
        std::nullopt);
  return false;
}

/// False after an error.
bool Engine::Begin(Group& group, const MessageStart& message, NodeMemory memory) {
  group.bytes = message.bytes;
  const Result<Playable> plan = group.plans->For(message.bytes, message.variant);
  Status status = plan.status();
  const bool is_direct = group.plans->IsDirect(message.variant);
  // Not where sends that are complete say that others have the message, or bound what is in flight.
  group.endpoint->set_in_step(group.plans->IsInStep(message.variant));
  group.endpoint->set_ends_early(!is_direct && plan.ok() && !plan->header().send_window);
  if (status.ok()) status = group.endpoint->Begin(*plan, message);
  if (!status.ok()) {
    Break(group, status, std::nullopt);
    return false;
  }
  group.is_direct = is_direct;
  Play(group, *plan, memory);
  return true;
}

void Engine::Play(Group& group, Playable plan, const NodeMemory& memory) {
  group.executor.emplace(plan, group.options.self, *group.endpoint, OpObserver(), group.pool);
  group.executor->Prepare(memory);
  group.executor->Arm();
  group.executor->Start();
  group.state = Group::State::kRunning;
  group.began = std::chrono::steady_clock::now();
  CountRunning(1);
  ++progress_;
}

void Engine::Finish(Group& group) {
  group.executor.reset();
  group.endpoint->End();
  group.state = Group::State::kIdle;
  CountRunning(-1);
  if (group.options.is_for_calls) return FinishCall(group);
  if (group.is_source() && !group.endpoint->has_ended_early()) NoteRate(group);
  const uint64_t number = group.message++;
  group.has_arrivals = true;  // which may have come in between
  Received(group, {number, std::exchange(group.memory, nullptr), group.bytes});
  if (!group.is_source() || !TellsBySends(group) || group.state != Group::State::kIdle) return;
  if (group.options.notify_delivered) Delivered(group, number);
}

/// Whether the sends of the message at hand tell the root that all have it.
bool Engine::TellsBySends(const Group& group) {
  return group.is_direct && group.mover == nullptr && !group.options.sync;
}

/// At the root: all members have `number`. Messages are told of in their order, and once.
void Engine::Delivered(Group& group, uint64_t number) {
  if (number < group.delivered) return;
  group.sent_to_all.insert(number);
  TellDelivered(group);
}

/// Of all messages that are known to be everywhere, up to the first that is not.
void Engine::TellDelivered(Group& group) {
  const auto is_next = [&group] {
    return group.sent_to_all.erase(group.delivered) != 0 || group.delivered < group.have_all;
  };
  while (is_next()) {
    const uint64_t next = group.delivered++;
    ++progress_;
    if (group.callbacks.delivered) group.callbacks.delivered(next);
    if (group.state == Group::State::kBroken || group.state == Group::State::kGone) return;
  }
}

/// What the next messages may expect: the best of late, since one that waited says little.
void Engine::NoteRate(Group& group) {
  if (group.bytes < std::max(kRatedBytesMin, group.rated_bytes / 4)) return;
  group.rated_bytes = std::max(group.rated_bytes, group.bytes);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - group.began).count();
  const double rate = static_cast<double>(group.bytes) / std::max(seconds, 1e-9);
  group.rate = std::max(rate, 0.7 * group.rate + 0.3 * rate);
}

void Engine::Received(Group& group, const Message& message) {
  if (!group.options.sync || !group.is_target()) return Complete(group, message);
  if (group.sync == nullptr) {
    Result<std::unique_ptr<FileSync>> sync = FileSync::Start([this] { Alert(); });
    if (!sync.ok()) return Break(group, sync.status(), std::nullopt);
    group.sync = *std::move(sync);
  }
  group.syncing.push_back(message);
  group.sync->Add({static_cast<const std::byte*>(message.memory), message.bytes});
}

void Engine::Complete(Group& group, const Message& message) {
  ++progress_;
  ++group.have;
  if (group.eager != nullptr) {
    group.eager->set_have(group.have);
  } else if (group.options.notify_delivered && !TellsBySends(group)) {
    keeper_->Have(group.serial, message.number);
  }
  if (group.callbacks.complete)
    group.callbacks.complete(message.number, message.memory, message.bytes);
}

void Engine::TakeSynced(Group& group) {
  for (const Status& status : group.sync->TakeResults()) {
    if (group.state == Group::State::kBroken) return;
    const Message message = group.syncing.front();
    group.syncing.pop_front();
    if (!status.ok()) {
      return Break(
          group,
          Status(status.code(),
                 fmt::format("member {} has message {} of {}, but {}",
                             group.options.members[group.options.self.index()], message.number,
                             Count(message.bytes, "byte"), status.message())),
          std::nullopt);
    }
    Complete(group, message);
  }
  Advance(group);
}

}  // namespace prepost
