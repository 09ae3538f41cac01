// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/virtual_offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "prepost/backends/emulated/armed_group.h"
#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/emulated/virtual_clock.h"
#include "prepost/backends/nic/object_table.h"
#include "prepost/backends/nic/validate.h"
#include "prepost/runtime/mapping.h"

namespace prepost::emulated {
namespace {

constexpr uint64_t kSteps = 1 << 16;  // between two looks at the checkpoint

/// One run: arm, start, let time pass, check.
class VirtualRun final : private TimeHandler {
 public:
  VirtualRun(const Plan& plan, FluidNetwork network, const VirtualOffloadOptions& options)
      : plan_(plan),
        options_(options),
        network_(std::move(network)),
        fabric_(plan.header().nodes,
                {.time = {.clock = &clock_, .network = &network_, .costs = options.costs}}) {}

  Status Make(const nic::QueueProgram& program) {
    const Message& message = plan_.header().message;
    Result<Mapping> addresses = Mapping::Reserved(message.bytes);
    if (!addresses.ok()) return addresses.status();
    addresses_ = *std::move(addresses);
    fabric_.HoldTags(message.block_bytes);
    buffers_.assign(plan_.header().nodes, addresses_.bytes());
    transfers_[0] = {addresses_.bytes(), buffers_};
    Result<ArmedGroup> group =
        ArmedGroup::Make(fabric_, plan_, program, transfers_, {}, options_.keep_cqes);
    if (!group.ok()) return group.status();
    group_.emplace(*std::move(group));
    result_.nodes.resize(group_->nodes().size());
    is_done_.resize(group_->nodes().size());
    rearming_.resize(group_->nodes().size());
    return {};
  }

  /// Arms and validates all nodes, one after the other, and rings their doorbells. No NIC looks at
  /// them before time passes. `given_up`: may be null; the program of which each node's part goes
  /// as soon as its bytes stand in rings that are not written again.
  Status Start(nic::QueueProgram* given_up) {
    nic::Validator validator(plan_);
    for (nic::ArmedNode& node : group_->nodes()) {
      const NodeId id = node.program().node;
      PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
      PREPOST_RETURN_IF_ERROR(node.Arm());
      if (options_.validate) validator.Add(group_->Objects(id));
      PREPOST_RETURN_IF_ERROR(node.RequestEvents());
      node.Start();
      if (given_up == nullptr || node.program().rearms() != 0) continue;
      for (nic::QueuePair& qp : given_up->nodes[id.index()].qps) {
        if (qp.loopback) continue;  // the final CQE is looked at by these
        qp.sends = std::vector<nic::SendEntry>();
        qp.receives = std::vector<nic::ReceiveEntry>();
      }
      can_report_ = false;
    }
    return options_.validate ? validator.Finish().ToStatus() : Status();
  }

  Status Run() {
    std::vector<CqEvent> events;
    bool has_rung = false;
    for (size_t left = group_->nodes().size(); left != 0;) {
      const bool is_busy = fabric_.RunSome(has_rung ? kSteps : 1, &events);
      if (!std::exchange(has_rung, true)) NoteDoorbells();
      for (const NodeId node : rearmed_) events.push_back({node});
      rearmed_.clear();
      for (const CqEvent& event : events) {
        const Result<bool> done = TakeEvent(event.node);
        if (!done.ok()) return can_report_ ? CauseOf(done.status()) : done.status();
        if (*done) --left;
      }
      if (!is_busy && events.empty() && left != 0) return Stuck();
      if (events.empty()) PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
    }
    return {};
  }

  /// After the end: is everything where it should be?
  Status CheckAll() {
    PREPOST_RETURN_IF_ERROR(network_.CheckShares());
    PREPOST_RETURN_IF_ERROR(options_.keep_cqes ? group_->Check() : CheckMisuses(fabric_));
    for (const nic::ArmedNode& node : group_->nodes()) {
      const NodeId id = node.program().node;
      if (const std::optional<uint64_t> block = fabric_.MissingBlock(id)) {
        return Rejected(fmt::format("node {} has no block {} in the end", id.value, *block));
      }
    }
    return {};
  }

  VirtualOffload TakeResult() {
    for (const nic::ArmedNode& node : group_->nodes()) {
      VirtualOffload::Node& it = result_.nodes[node.program().node.index()];
      it.wqes = node.wqes_written();
      it.rearms = node.feed().rearms();
      result_.doorbells = std::max(result_.doorbells, it.doorbells);
      result_.completion = std::max(result_.completion, it.completion);
    }
    const Picoseconds now = clock_.now();
    for (const Resource resource : network_.resources()) {
      const LinkUse use = network_.UseOf(resource, now);
      if (use.bytes != 0) result_.links.push_back({resource, use});
    }
    result_.counters = fabric_.engine().counters();
    return std::move(result_);
  }

 private:
  /// All first doorbells have been handed to the NICs; when they come is known.
  void NoteDoorbells() {
    for (const nic::ArmedNode& node : group_->nodes()) {
      const NodeId id = node.program().node;
      result_.nodes[id.index()].doorbells = fabric_.engine().doorbells_until(id);
    }
  }

  /// True when it was the node's last.
  Result<bool> TakeEvent(NodeId id) {
    VirtualOffload::Node& it = result_.nodes[id.index()];
    if (is_done_[id.index()] || Rearms(id)) return false;
    Result<bool> done = group_->nodes()[id.index()].TakeEvents();
    if (!done.ok() || !*done) return done;
    is_done_[id.index()] = true;
    it.completion = clock_.now();
    return true;
  }

  /// What its host is writing.
  struct Rearming {
    Picoseconds until = 0;
    nic::QueueFeed::Count count;
  };

  /// True while the host is at work on what it will have written then. What becomes free meanwhile, it
  /// writes as well.
  bool Rearms(NodeId id) {
    const RearmCosts& costs = options_.rearm;
    if (costs.send == 0 && costs.receive == 0) return false;
    Rearming& it = rearming_[id.index()];
    if (it.until > clock_.now()) return true;
    const nic::QueueFeed::Count count = group_->nodes()[id.index()].Refillable();
    const Picoseconds cost =
        static_cast<Picoseconds>(count.sends - it.count.sends) * costs.send +
        static_cast<Picoseconds>(count.receives - it.count.receives) * costs.receive;
    it.count = count;
    if (cost == 0) {
      it.count = {};
      return false;
    }
    it.until = After(clock_.now(), cost);
    clock_.Schedule(it.until, *this, {.value = id.value});
    result_.nodes[id.index()].rearming += cost;
    return true;
  }

  void OnTime(const TimedEvent& event) override {
    rearmed_.push_back(NodeId(static_cast<uint32_t>(event.value)));
    clock_.Hold();
  }

  Status Stuck() {
    PREPOST_RETURN_IF_ERROR(CheckWithinTime(clock_, network_));
    if (can_report_) return group_->Stuck();
    PREPOST_RETURN_IF_ERROR(CheckMisuses(fabric_));
    const auto waits = std::ranges::find(is_done_, false) - is_done_.begin();
    return Rejected(fmt::format(
        "nothing can happen any more, and node {} has no final CQE; a run that keeps CQEs says why",
        waits));
  }

  Status CauseOf(const Status& seen) {
    const Status cause = seen.code() == StatusCode::kRejected ? group_->Fail() : seen;
    return cause.ok() ? seen : cause;
  }

  const Plan& plan_;
  const VirtualOffloadOptions& options_;
  VirtualClock clock_;
  FluidNetwork network_;
  Fabric fabric_;
  Mapping addresses_;  // every node's message is here, as far as addresses go
  std::vector<std::span<std::byte>> buffers_;
  std::array<MessageBuffers, 1> transfers_;
  std::optional<ArmedGroup> group_;
  std::vector<bool> is_done_;  // by node, as the next
  std::vector<Rearming> rearming_;
  std::vector<NodeId> rearmed_;  // their time has come
  bool can_report_ = true;       // the whole queue program is there
  VirtualOffload result_;
};

Status CheckRearmCosts(const RearmCosts& costs) {
  for (const Picoseconds cost : {costs.send, costs.receive}) {
    if (cost >= 0 && cost <= kStepMax) continue;
    return Rejected(
        fmt::format("a host writes a WQE in {} ps, expected from 0 to {}", cost, kStepMax));
  }
  return {};
}

Result<VirtualOffload> RunProgram(const Plan& plan, const nic::QueueProgram& program,
                                  nic::QueueProgram* given_up, const Network& network,
                                  const VirtualOffloadOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckProgram(plan, program));
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, plan.header().nodes));
  PREPOST_RETURN_IF_ERROR(CheckCosts(options.costs));
  PREPOST_RETURN_IF_ERROR(CheckRearmCosts(options.rearm));
  Result<FluidNetwork> fluid = FluidNetwork::Make(network);
  if (!fluid.ok()) return fluid.status();
  VirtualRun run(plan, *std::move(fluid), options);
  const auto end_step = [&](VirtualStep step, Status status) {
    if (status.ok() && options.done) options.done(step);
    return status;
  };
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kMake, run.Make(program)));
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kArm, run.Start(given_up)));
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kRun, run.Run()));
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kCheck, run.CheckAll()));
  return run.TakeResult();
}

}  // namespace

Result<VirtualOffload> RunVirtualOffload(const Plan& plan, const Network& network,
                                         const VirtualOffloadOptions& options) {
  Result<nic::QueueProgram> program = nic::Lower(plan, options.lower);
  if (!program.ok()) return program.status();
  if (options.done) options.done(VirtualStep::kLower);
  return RunProgram(plan, *program, options.keep_cqes ? nullptr : &*program, network, options);
}

Result<VirtualOffload> RunVirtualOffload(const Plan& plan, const nic::QueueProgram& program,
                                         const Network& network,
                                         const VirtualOffloadOptions& options) {
  return RunProgram(plan, program, /*given_up=*/nullptr, network, options);
}

}  // namespace prepost::emulated
