// SPDX-License-Identifier: Apache-2.0
#include "library/call_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/choice/collective_choice.h"
#include "compiler/choice/stream_cost.h"
#include "compiler/compile.h"
#include "compiler/spec.h"
#include "runtime/executor/playable.h"

namespace prepost {
namespace {

/// What kept plans may have together: about 100 bytes each.
constexpr size_t kKeptOpsMax = size_t{1} << 20;
/// Of an alltoall, whose plan has the square of them as parts: it is compiled while peers wait.
constexpr uint32_t kAlltoallMembersMax = 512;

class CallPlans final : public GroupPlans {
 public:
  static Result<std::unique_ptr<CallPlans>> Make(const CallPlanSpec& spec) {
    std::unique_ptr<CallPlans> plans(new CallPlans(spec));
    for (const std::string& algorithm : StreamAlgorithms(spec.nodes)) {
      Result<StreamCandidate> candidate = MakeStreamCandidate(algorithm, spec.nodes);
      if (!candidate.ok()) return UsageError(candidate.status().ToString());
      plans->multicasts_.push_back(*std::move(candidate));
    }
    return plans;
  }

  const std::vector<TcpConnection>& connections() const override { return connections_; }
  /// What calls there are is no plan's; how they are planned the group's options say.
  PlanHash Hash() const override { return {}; }
  Status CheckSize(uint64_t /*bytes*/) const override {
    return UsageError("it is for calls, not for messages");
  }
  Result<Playable> For(uint64_t /*bytes*/, uint16_t /*variant*/) override {
    return Rejected("the group is for calls");
  }
  Result<std::shared_ptr<const VerifiedPlan>> FlatFor(uint64_t /*bytes*/) override {
    return Rejected("the group is for calls");
  }

  Status CheckCall(const CallShape& call) const override {
    const Spec spec = SpecOf(call);
    if (call.kind == CollectiveKind::kAlltoall && spec.nodes > kAlltoallMembersMax) {
      return UsageError(fmt::format("an alltoall of {} members, the limit of a group is {}",
                                    spec.nodes, kAlltoallMembersMax));
    }
    const Status status = CheckSpec(spec);
    if (!status.ok()) return UsageError(status.message());
    return {};
  }

  Result<OfCall> ForCall(const CallShape& call) override {
    const auto found = std::ranges::find_if(kept_, [&](const Kept& it) { return it.call == call; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
    } else {
      Result<VerifiedPlan> plan = Compile(SpecOf(call));
      if (!plan.ok()) return plan.status();
      Keep(call, *std::move(plan));
    }
    const Kept& kept = kept_.front();
    return OfCall{
        .plan = &*kept.plan, .places = kept.places ? &*kept.places : nullptr, .peers = kept.peers};
  }

 private:
  struct Kept {
    CallShape call;
    std::optional<VerifiedPlan> plan;
    std::optional<BlockPlaces> places;
    std::vector<NodeId> peers;
  };

  explicit CallPlans(const CallPlanSpec& spec) : spec_(spec) {}

  Spec SpecOf(const CallShape& call) const {
    Spec spec;
    spec.collective = call.kind;
    spec.nodes = spec_.nodes;
    spec.root = call.root;
    spec.combine = call.combine;
    spec.message_bytes = call.bytes;
    // Early blocks wait in the transport without loss: credits and windows would only add waiting.
    spec.ready = {.automatic = false, .ready = {.mode = ReadyMode::kBarrier}};
    spec.send_window = {.automatic = false, .window = {}};
    if (call.is_uneven) {
      spec.algorithm = "pairwise";
      spec.block_bytes = 1;
    } else if (call.kind == CollectiveKind::kMulticast) {
      const StreamChoice choice = ChooseStream(multicasts_, spec_.nodes, call.bytes, 0, {});
      spec.algorithm = multicasts_[choice.candidate].algorithm;
      spec.block_bytes = choice.block_bytes;
    } else {
      const CollectiveChoice choice =
          ChooseCollective({.kind = call.kind,
                            .members = spec_.nodes,
                            .bytes = call.bytes,
                            .combine = call.combine,
                            .is_deterministic = spec_.is_deterministic});
      spec.algorithm = choice.algorithm;
      spec.block_bytes = choice.block_bytes;
      spec.send_window.window = choice.send_window;
    }
    return WithDefaults(std::move(spec));
  }

  void Keep(const CallShape& call, VerifiedPlan plan) {
    kept_ops_ += plan.ops().size();
    Kept& kept = kept_.emplace_front();
    kept.call = call;
    kept.plan.emplace(std::move(plan));
    const Plan& it = *kept.plan;
    std::set<NodeId> peers;
    for (const ChannelOps& ops : Playable(*kept.plan).ChannelOpsOf(spec_.self)) {
      const Channel& channel = it.channels()[ops.channel.index()];
      peers.insert(ops.outgoing ? channel.to : channel.from);
    }
    kept.peers.assign(peers.begin(), peers.end());
    if (call.kind != CollectiveKind::kMulticast && !call.is_uneven) {
      const auto own = std::ranges::find(it.programs(), spec_.self, &Program::node);
      kept.places.emplace(it.header(), spec_.self, it.ops(*own));
    }
    while (kept_ops_ > kKeptOpsMax && kept_.size() > 1) {
      kept_ops_ -= kept_.back().plan->ops().size();
      kept_.pop_back();
    }
  }

  const CallPlanSpec spec_;
  const std::vector<TcpConnection> connections_;  ///< none to begin with
  std::vector<StreamCandidate> multicasts_;
  std::list<Kept> kept_;  ///< the last used first
  size_t kept_ops_ = 0;
};

}  // namespace

Result<std::unique_ptr<GroupPlans>> MakeCallPlans(const CallPlanSpec& spec) {
  if (spec.nodes > kCallMembersMax) {
    return UsageError(
        fmt::format("a group for calls has {} members at most, and this would have {}",
                    kCallMembersMax, spec.nodes));
  }
  auto plans = CallPlans::Make(spec);
  if (!plans.ok()) return plans.status();
  return std::unique_ptr<GroupPlans>(*std::move(plans));
}

}  // namespace prepost
