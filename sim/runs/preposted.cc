// SPDX-License-Identifier: Apache-2.0
#include "sim/runs/preposted.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "backends/emulated/fabric.h"
#include "backends/emulated/nic_state.h"
#include "backends/local/armed_group.h"
#include "backends/nic/validate/object_table.h"
#include "backends/nic/validate/validate.h"
#include "runtime/base/mapping.h"
#include "sim/runs/preposted_run.h"

namespace prepost::sim {
namespace {

constexpr uint64_t kNicStepsAtOnce = 1 << 16;  // between two calls of the checkpoint
constexpr size_t kTrimNodes = 256;  // whose programs together are worth giving back to the system

/// To the system: memory that malloc has free.
void GiveBack() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

Status PrepostedRun::Make(std::span<const nic::QueueProgram* const> programs) {
  result_.groups.resize(groups_.size());
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
    RunningGroup& it = running_.emplace_back();
    it.group = &groups_[i];
    PREPOST_RETURN_IF_ERROR(InGroup(i, MakeGroup(*programs[i], &it)));
    NoteNodes(i);
    if (options_.trail != nullptr) Observe(i);
  }
  return {};
}

Status PrepostedRun::Start(nic::QueueProgram* released) {
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    PREPOST_RETURN_IF_ERROR(InGroup(i, ArmGroup(i, released)));
    if (groups_[i].after || groups_[i].start == 0) continue;
    cluster_.clock.Schedule(groups_[i].start, *this, {.value = i, .what = kStartDue});
  }
  return {};
}

Status PrepostedRun::Run() {
  std::vector<CqEvent> events;
  while (left_ != 0) {
    const bool is_busy = cluster_.fabric.RunSome(kNicStepsAtOnce, &events);
    const bool has_events = !events.empty() || !due_.empty();
    for (const CqEvent& event : events) PREPOST_RETURN_IF_ERROR(TakeEvent(event));
    for (const Member& member : std::exchange(due_, {})) {
      PREPOST_RETURN_IF_ERROR(GoOn(member));
    }
    if (!is_busy && !has_events && left_ != 0) return Stuck();
    if (events.empty()) PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
  }
  return {};
}

Status PrepostedRun::CheckAll() {
  PREPOST_RETURN_IF_ERROR(cluster_.network.CheckShares());
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (options_.keep_cqes) PREPOST_RETURN_IF_ERROR(InGroup(i, running_[i].armed->Check()));
  }
  PREPOST_RETURN_IF_ERROR(local::CheckMisuses(cluster_.fabric));
  for (uint32_t host = 0; host < nodes_at_.size(); ++host) {
    if (const std::optional<uint64_t> block = cluster_.fabric.MissingBlock(NodeId(host))) {
      return Rejected(fmt::format("node {} has no block {} in the end", host, *block));
    }
  }
  return {};
}

PrepostedResult PrepostedRun::TakeResult() {
  for (size_t i = 0; i < running_.size(); ++i) {
    PrepostedResult::Group& group = result_.groups[i];
    for (const nic::ArmedNode& node : running_[i].armed->nodes()) {
      PrepostedResult::Node& it = group.nodes[node.program().node.index()];
      it.wqes_later = node.wqes_written() - it.wqes;
      it.rearms = node.feed().rearms();
      it.rings_later = node.feed().doorbells() - it.rings;
      it.received = cluster_.LastBlockAt(groups_[i].HostOf(node.program().node), node.open_node());
      group.doorbells = std::max(group.doorbells, it.doorbells);
      group.completion = std::max(group.completion, it.completion);
    }
    group.known = running_[i].known;
  }
  result_.links = cluster_.network.UsedLinks();
  result_.counters = cluster_.fabric.engine().counters();
  return std::move(result_);
}

Status PrepostedRun::InGroup(uint32_t index, Status status) const {
  if (status.ok() || groups_.size() == 1) return status;
  return {status.code(), fmt::format("group {}: {}", index, status.message()), status.where()};
}

Status PrepostedRun::MakeGroup(const nic::QueueProgram& program, RunningGroup* it) {
  const Plan& plan = *it->group->plan;
  const Payload& payload = plan.header().payload;
  Result<Mapping> addresses = Mapping::Reserved(payload.bytes);
  if (!addresses.ok()) return addresses.status();
  it->addresses = *std::move(addresses);
  cluster_.fabric.HoldTags(payload.block_bytes);
  it->buffers.assign(plan.header().nodes, it->addresses.bytes());
  it->transfers[0] = {it->addresses.bytes(), it->buffers};
  Result<local::ArmedGroup> armed = local::ArmedGroup::Make(
      cluster_.fabric, plan, program, it->transfers, {}, options_.keep_cqes, it->group->hosts);
  if (!armed.ok()) return armed.status();
  it->armed.emplace(*std::move(armed));
  it->left = it->armed->nodes().size();
  for (nic::ArmedNode& node : it->armed->nodes()) {
    const NodeId host = it->group->HostOf(node.program().node);
    it->hosts.emplace_back(cluster_.fabric.device(host), node);
  }
  it->rearming.resize(it->left);
  return {};
}

void PrepostedRun::NoteNodes(uint32_t index) {
  result_.groups[index].nodes.resize(running_[index].left);
  for (const nic::ArmedNode& node : running_[index].armed->nodes()) {
    const Member member = {index, node.program().node};
    const size_t host = groups_[index].HostOf(member.node).index();
    nodes_at_[host].push_back(member);
    const size_t core = threads_[host]++ % options_.host.cores;
    if (node.program().rearms() != 0) RearmingOf(member).core = &CoreFor(host, core);
    std::vector<Member>& members = node_of_cq_[host];
    for (const uint32_t cqn : node.bindings().cqns) {
      const size_t position = cqn - NicState::kFirstCqn;
      if (position >= members.size()) members.resize(position + 1);
      members[position] = member;
    }
  }
}

void PrepostedRun::Observe(uint32_t index) {
  options_.trail->SetCosts(options_.costs);
  options_.trail->AddGroup(*groups_[index].plan);
  for (const nic::ArmedNode& node : running_[index].armed->nodes()) {
    const NodeId id = node.program().node;
    options_.trail->AddNode(groups_[index].HostOf(id), id, node.open_node().qps);
  }
}

Status PrepostedRun::ArmGroup(uint32_t index, nic::QueueProgram* released) {
  RunningGroup& group = running_[index];
  const bool starts = !group.group->after && group.group->start == 0;
  nic::Validator validator(*group.group->plan);
  size_t released_nodes = 0;
  for (nic::PrepostedHost& host : group.hosts) {
    nic::ArmedNode& node = host.node();
    const NodeId id = node.program().node;
    PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
    PREPOST_RETURN_IF_ERROR(node.Arm());
    if (options_.validate) validator.Add(group.armed->Objects(id));
    PREPOST_RETURN_IF_ERROR(node.RequestEvents());
    if (starts) StartNode(index, host);
    if (released == nullptr || !starts || node.program().rearms() != 0) continue;
    for (nic::QueuePair& qp : released->nodes[id.index()].qps) {
      qp.sends = std::vector<nic::SendEntry>();
      qp.receives = std::vector<nic::ReceiveEntry>();
    }
    can_report_ = false;
    // What was released stands in many small pieces, which malloc keeps for itself.
    if (++released_nodes % kTrimNodes == 0) GiveBack();
  }
  return options_.validate ? validator.Finish().ToStatus() : Status();
}

void PrepostedRun::StartGroup(uint32_t index) {
  RunningGroup& group = running_[index];
  result_.groups[index].start = cluster_.now();
  if (TimeTrail* const trail = options_.trail) {
    const StepId step = trail->Push(cluster_.now(), group.start_step, TimeCause::kStart);
    trail->StartGroup(index, step);
    trail->BeginHost(step);
  }
  for (nic::PrepostedHost& host : group.hosts) StartNode(index, host);
}

void PrepostedRun::StartAfter(const RunningGroup& before, uint32_t index) {
  const Picoseconds own = groups_[index].start;  // what comes later counts
  running_[index].start_step = own > before.known ? kFirstStep : before.known_step;
  const Picoseconds at = std::max(own, before.known);
  if (at == kNever) return cluster_.clock.NoteMissed();
  if (at == cluster_.now()) return StartGroup(index);
  cluster_.clock.Schedule(at, *this, {.value = index, .what = kStartDue});
}

void PrepostedRun::StartNode(uint32_t index, nic::PrepostedHost& host) {
  const nic::ArmedNode& node = host.node();
  const NodeId id = node.program().node;
  PrepostedResult::Node& it = result_.groups[index].nodes[id.index()];
  it.wqes = node.wqes_written();
  host.Start();
  it.rings = node.feed().doorbells();
  it.doorbells = cluster_.fabric.state(groups_[index].HostOf(id)).doorbells_until;
  Rearming& rearming = running_[index].rearming[id.index()];
  rearming.polled_at = cluster_.now();
  if (HostCore* const core = rearming.core) {
    core->WakeIfAsleep(cluster_.now());
    if (options_.wait == WaitMode::kPolling) ++core->pollers;
    StayAwake(cluster_.now(), core);
  }
}

void PrepostedRun::OnTime(const TimedEvent& event) {
  const auto group = static_cast<uint32_t>(event.value);
  if (event.what == kStartDue) return StartGroup(group);
  due_.push_back({group, NodeId(static_cast<uint32_t>(event.value >> 32))});
  cluster_.clock.Hold();
}

Status PrepostedRun::TakeEvent(const CqEvent& event) {
  const size_t host = event.node.index();
  if (options_.trail != nullptr)
    options_.trail->BeginHost(options_.trail->CqeStep(event.node, event.cqn));
  if (event.cqn != 0) return TakeEvent(node_of_cq_[host][event.cqn - NicState::kFirstCqn], {});
  // Something is wrong at this NIC: whose it is they know themselves.
  const std::vector<nic::ErrorEvent> errors = cluster_.fabric.device(event.node).TakeErrors();
  for (const Member& member : nodes_at_[host]) {
    PREPOST_RETURN_IF_ERROR(TakeEvent(member, errors));
  }
  return {};
}

Status PrepostedRun::TakeEvent(const Member& member, std::span<const nic::ErrorEvent> errors) {
  if (HostOf(member).done()) return {};
  // Where all is written nothing is left but the end, and no host has a part in when that is.
  if (errors.empty() && !NodeOf(member).feed().is_complete()) return BeginPoll(member);
  NotePoll(member);
  return TakeEvents(member, errors);
}

Status PrepostedRun::TakeEvents(const Member& member, std::span<const nic::ErrorEvent> errors) {
  RunningGroup& group = running_[member.group];
  nic::ArmedNode& node = NodeOf(member);
  const Result<bool> done = HostOf(member).TakeEvents(errors);
  if (!done.ok()) return InGroup(member.group, CauseOf(group, done.status()));
  if (!*done) return {};
  PrepostedResult::Node& found = result_.groups[member.group].nodes[member.node.index()];
  found.completion = cluster_.now();
  found.completions = node.cqes_read();
  NoteEnd(member, &found);
  if (HostCore* const core = RearmingOf(member).core) LeaveCore(found, core);
  if (--group.left != 0) return {};
  --left_;
  for (const uint32_t next : after_[member.group]) StartAfter(group, next);
  return {};
}

void PrepostedRun::NoteEnd(const Member& member, PrepostedResult::Node* node) {
  RunningGroup& group = running_[member.group];
  const HostCosts& host = options_.host;
  const Picoseconds polls = After(node->completion, node->ends_asleep ? host.interrupt : 0);
  const Picoseconds seen = After(polls, host.poll);
  node->known = After(seen, host.completion);
  const bool is_last = node->known >= group.known;
  group.known = std::max(group.known, node->known);
  TimeTrail* const trail = options_.trail;
  if (trail == nullptr || node->known == kNever) return;
  const StepId end = trail->host_step();
  StepId known = trail->Push(polls, end, TimeCause::kInterrupt);
  known = trail->Push(seen, known, TimeCause::kPoll);
  known = trail->Push(node->known, known, TimeCause::kCompletion);
  trail->End(member.group, member.node, end, known);
  if (is_last) group.known_step = known;
}

Status PrepostedRun::Stuck() {
  PREPOST_RETURN_IF_ERROR(CheckWithinTime(cluster_.clock, cluster_.network));
  const auto group =
      std::ranges::find_if(running_, [](const RunningGroup& it) { return it.left != 0; });
  const auto index = static_cast<uint32_t>(group - running_.begin());
  if (can_report_) return InGroup(index, group->armed->Stuck());
  PREPOST_RETURN_IF_ERROR(local::CheckMisuses(cluster_.fabric));
  const auto waits =
      std::ranges::find(group->hosts, false, &nic::PrepostedHost::done) - group->hosts.begin();
  return InGroup(index, Rejected(fmt::format(
                            "nothing can happen any more, and node {} has no final CQE; a run that "
                            "keeps CQEs says why",
                            waits)));
}

Status PrepostedRun::CauseOf(RunningGroup& group, const Status& seen) {
  if (!can_report_ || seen.code() != StatusCode::kRejected) return seen;
  const Status cause = group.armed->Fail();
  return cause.ok() ? seen : cause;
}

namespace {

/// `programs` are by group, `released` may be null, or is that of the only group.
Result<PrepostedResult> RunPrograms(std::span<const Group> groups,
                                    std::span<const nic::QueueProgram* const> programs,
                                    nic::QueueProgram* released, const Network& network,
                                    const PrepostedOptions& options) {
  const auto hosts = static_cast<uint32_t>(network.nodes.size());
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, hosts));
  PREPOST_RETURN_IF_ERROR(CheckCosts(options.costs));
  PREPOST_RETURN_IF_ERROR(CheckCosts(options.host));
  PREPOST_RETURN_IF_ERROR(CheckNoise(PrepostedRun::NoiseOf(options), hosts));
  PREPOST_RETURN_IF_ERROR(CheckGroups(groups, hosts));
  Result<FluidNetwork> fluid = FluidNetwork::Make(network, options.costs.port_sharing);
  if (!fluid.ok()) return fluid.status();
  PrepostedRun run(groups, *std::move(fluid), hosts, options);
  const auto end_step = [&](RunStep step, Status status) {
    if (status.ok() && options.done) options.done(step);
    return status;
  };
  PREPOST_RETURN_IF_ERROR(end_step(RunStep::kMake, run.Make(programs)));
  PREPOST_RETURN_IF_ERROR(end_step(RunStep::kArm, run.Start(released)));
  PREPOST_RETURN_IF_ERROR(end_step(RunStep::kRun, run.Run()));
  PREPOST_RETURN_IF_ERROR(end_step(RunStep::kCheck, run.CheckAll()));
  return run.TakeResult();
}

}  // namespace

Result<PrepostedResult> RunPreposted(std::span<const Group> groups,
                                     std::span<const nic::QueueProgram* const> programs,
                                     const Network& network, const PrepostedOptions& options) {
  PREPOST_CHECK(programs.size() == groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    PREPOST_RETURN_IF_ERROR(local::CheckProgram(*groups[i].plan, *programs[i]));
  }
  return RunPrograms(groups, programs, /*released=*/nullptr, network, options);
}

Result<PrepostedResult> RunPreposted(std::span<const Group> groups, const Network& network,
                                     const PrepostedOptions& options) {
  std::map<const VerifiedPlan*, size_t> position_of;
  std::deque<nic::QueueProgram> lowered;
  std::vector<const nic::QueueProgram*> programs;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto [it, is_new] = position_of.try_emplace(groups[i].plan, lowered.size());
    if (is_new) {
      Result<nic::QueueProgram> program = nic::Lower(*groups[i].plan, options.lower);
      if (!program.ok()) {
        return Status(program.status().code(),
                      fmt::format("group {}: {}", i, program.status().message()),
                      program.status().where());
      }
      lowered.push_back(*std::move(program));
    }
    programs.push_back(&lowered[it->second]);
  }
  if (options.done) options.done(RunStep::kLower);
  nic::QueueProgram* released =
      groups.size() == 1 && !options.keep_cqes ? &lowered.front() : nullptr;
  return RunPrograms(groups, programs, released, network, options);
}

}  // namespace prepost::sim
