// SPDX-License-Identifier: Apache-2.0
//
// Calls of an engine's groups. A member plays one after the other in the order in which it has made
// them, which is all members' order; nobody waits for the other members between two calls, and what
// a member that is ahead sends waits in the transport.
//
// What a call is stands in the start of everything that a connection carries of it, so that two
// that differ are noticed where they meet. Those that do not meet wait: a member that has waited
// for a while tells all what it waits for (Keeper::Claim()), and whoever has called something else
// under that number says so.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/base/count.h"
#include "runtime/session/engine.h"
#include "runtime/session/engine_group.h"

namespace prepost {
namespace {

/// Calls that are over, which others' claims are compared with; of older ones nothing is said.
constexpr size_t kCallsRemembered = 1024;

}  // namespace

Status Engine::Call(uint64_t number, GroupCall call) {
  {
    const std::lock_guard lock(mutex_);
    Result<std::shared_ptr<Group>> group = Find(number, "call in");
    if (!group.ok()) return group.status();
    Status status = (*group)->plans->CheckCall(call.shape);
    if (status.ok() && call.shape.bytes > kGroupMessageBytesMax)
      status = UsageError("a part has 256 TiB at most");
    if (!status.ok())
      return UsageError(fmt::format("cannot call in group {}: {}", number, status.message()));
    commands_.push_back({.kind = Command::Kind::kCall,
                         .group = *std::move(group),
                         .call = std::make_shared<GroupCall>(std::move(call))});
  }
  Alert();
  return {};
}

/// The group is idle, or opens connections. Whether there may be more to do.
bool Engine::StepCalls(Group& group) {
  if (group.calls.empty()) {
    // First what has come: it may be of another call than this member's last one.
    const Result<PollOutcome> outcome = group.endpoint->Poll({}, std::chrono::milliseconds(0));
    if (outcome.ok()) {
      CloseIfDone(group);
    } else {
      Break(group, outcome.status(), group.endpoint->lost_peer());
    }
    return false;
  }
  const GroupCall& call = *group.calls.front();
  const MessageStart start = StartOf(call.shape, static_cast<uint32_t>(group.message));
  const Result<GroupPlans::OfCall> plan = group.plans->ForCall(call.shape);
  if (plan.ok() && !OpenConnections(group, plan->peers)) return false;
  Status status = plan.status();
  NodeMemory memory = {.source = call.input, .target = call.output};
  if (status.ok()) status = PrepareCall(group, call, *plan, &memory);
  group.endpoint->set_ends_early(false);
  if (status.ok()) status = group.endpoint->Begin(*plan->plan, start);
  if (!status.ok()) {
    Break(group, status, std::nullopt);
    return false;
  }
  Play(group, *plan->plan, memory);
  return true;
}

/// Whether there are connections with `peers`. Those that are lacking are asked for, once.
bool Engine::OpenConnections(Group& group, std::span<const NodeId> peers) {
  std::vector<NodeId> lacking;
  std::ranges::copy_if(peers, std::back_inserter(lacking),
                       [&group](NodeId peer) { return !group.peers.contains(peer); });
  if (lacking.empty()) {
    if (group.state == Group::State::kOpening) CountRunning(-1);
    group.state = Group::State::kIdle;
    return true;
  }
  if (group.state == Group::State::kIdle) {
    group.state = Group::State::kOpening;
    group.began = std::chrono::steady_clock::now();
    CountRunning(1);
    keeper_->Want(group.serial, std::move(lacking));
  }
  const Result<PollOutcome> outcome = group.endpoint->Poll({}, std::chrono::milliseconds(0));
  if (!outcome.ok()) Break(group, outcome.status(), group.endpoint->lost_peer());
  return false;
}

/// Scratch buffers and what combines.
Status Engine::PrepareCall(Group& group, const GroupCall& call, const GroupPlans::OfCall& plan,
                           NodeMemory* memory) {
  const PlanHeader& header = plan.plan->header();
  memory->places = plan.places;
  if (call.uneven) {
    const auto own = std::ranges::find(plan.plan->programs(), group.options.self, &Program::node);
    group.places.emplace(header, group.options.self, plan.plan->ops(*own), *call.uneven);
    memory->places = &*group.places;
  }
  if (!header.combine.is_none())
    memory->combine = call.combine ? call.combine : CombineFunctionOf(header.combine);
  const bool is_copied =
      plan.places != nullptr && plan.places->exchanges() && call.input.data() == call.output.data();
  const uint64_t buffers = NodeBytesOf(header, group.options.self).scratch;
  const uint64_t scratch = buffers + (is_copied ? call.input.size() : 0);
  if (scratch > group.scratch_bytes) {
    group.scratch.reset();
    group.scratch_bytes = 0;
    group.scratch.reset(new (std::nothrow) std::byte[scratch]);
    if (group.scratch == nullptr) {
      return EnvironmentError(
          fmt::format("no memory for {} bytes of scratch buffers, which {} takes", scratch,
                      Describe(call.shape)));
    }
    group.scratch_bytes = scratch;
  }
  memory->scratch = {group.scratch.get(), static_cast<size_t>(buffers)};
  if (is_copied) {
    std::byte* const copy = group.scratch.get() + buffers;
    std::ranges::copy(call.input, copy);
    memory->source = {copy, call.input.size()};
  }
  return {};
}

void Engine::FinishCall(Group& group) {
  const std::shared_ptr<GroupCall> call = group.calls.front();
  group.calls.pop_front();
  Remember(group, group.message++, call->shape);
  group.is_claimed = false;
  if (call->done) call->done({});
}

void Engine::Remember(Group& group, uint64_t number, const CallShape& shape) {
  if (group.called.size() == kCallsRemembered) group.called.pop_front();
  group.called.emplace_back(number, shape);
}

/// Those that were not played to the end. `cause` ok: of a group that has closed.
void Engine::FailCalls(Group& group, const Status& failure) {
  const Status cause = failure.ok() ? Rejected("the group is over") : failure;
  const auto calls = std::exchange(group.calls, {});
  for (const std::shared_ptr<GroupCall>& call : calls) {
    if (call->done) call->done(cause);
  }
}

/// The call at hand takes long: others may have called something else.
void Engine::ClaimCall(Group& group) {
  const auto now = std::chrono::steady_clock::now();
  const auto since = group.is_claimed ? group.claimed_at : group.began;
  if (!group.is_running() || now - since < claim_after_) return;
  group.is_claimed = true;
  group.claimed_at = now;
  keeper_->Claim(group.serial, group.message, Describe(group.calls.front()->shape));
}

/// `node` waits for the others' part in call `number`, which is `what` there.
void Engine::HearClaim(Group& group, uint64_t number, NodeId node, const std::string& what) {
  if (group.state == Group::State::kBroken || node.index() >= group.options.members.size()) return;
  const uint64_t made = group.message + group.calls.size();
  if (group.is_closing && number >= made) {
    return BreakDiffering(
        group, Rejected(fmt::format("call {} is {} at node {}, and node {} destroys the group "
                                    "after {}",
                                    number, what, node.value, group.options.self.value,
                                    Count(made, "call"))));
  }
  std::optional<CallShape> own;
  if (number >= group.message && number - group.message < group.calls.size()) {
    own = group.calls[static_cast<size_t>(number - group.message)]->shape;
  } else {
    for (const auto& [called, shape] : group.called) {
      if (called == number) own = shape;
    }
  }
  if (!own || Describe(*own) == what) return;
  BreakDiffering(group,
                 Rejected(fmt::format("call {} is {} at node {}, and {} at node {}", number, what,
                                      node.value, Describe(*own), group.options.self.value)));
}

}  // namespace prepost
