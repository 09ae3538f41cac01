// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/virtual_offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "prepost/backends/emulated/armed_group.h"
#include "prepost/backends/emulated/cpu_core.h"
#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/emulated/nic_state.h"
#include "prepost/backends/emulated/virtual_clock.h"
#include "prepost/backends/nic/object_table.h"
#include "prepost/backends/nic/validate.h"
#include "prepost/runtime/mapping.h"

namespace prepost::emulated {
namespace {

constexpr uint64_t kSteps = 1 << 16;  // between two looks at the checkpoint

HostNoise NoiseOf(const VirtualOffloadOptions& options) {
  return {.delays = options.delays, .neighbours = options.neighbours, .seed = options.seed};
}

/// A core of a host that writes rings again.
struct Core {
  explicit Core(CpuCore cpu_in) : cpu(std::move(cpu_in)) {}

  CpuCore cpu;
  Picoseconds busy_until = 0;
  Picoseconds away_until = -1;   ///< if that is why it is busy
  Picoseconds awake_until = -1;  ///< a thread is at work or looks for some
};

/// A node's thread, as far as rings are to be written again: idle until a CQE tells that there is
/// room, then due to look, and then at work on what it has found. What it writes is in the rings when
/// it is through.
struct Rearming {
  enum class State : uint8_t { kIdle, kDue, kWorking };

  State state = State::kIdle;
  Core* core = nullptr;  ///< null: there is nothing to write
  Picoseconds until = 0;
  uint64_t cqes = 0;            ///< that it has dealt with
  nic::QueueFeed::Count count;  ///< WQEs that it writes
  StepId step = kFirstStep;     ///< of the trail: what it has done last
  Picoseconds looked = 0;       ///< when the host looked last, or started
};

/// A group, its queues, and how far it is.
struct RunningGroup {
  const VirtualGroup* group = nullptr;
  Mapping addresses;  // every node's message is here, as far as addresses go
  std::vector<std::span<std::byte>> buffers;
  std::array<MessageBuffers, 1> transfers;
  std::optional<ArmedGroup> armed;
  std::vector<bool> is_done;  // by node, as the next
  std::vector<Rearming> rearming;
  size_t left = 0;                 // nodes
  Picoseconds known = 0;           // by those hosts that are done
  StepId start_step = kFirstStep;  // of the trail: what its start comes after
  StepId known_step = kFirstStep;  // at `known`
};

/// One run of several groups: arm, start, let time pass, check.
class VirtualRun final : private TimeHandler {
 public:
  VirtualRun(std::span<const VirtualGroup> groups, FluidNetwork network, uint32_t hosts,
             const VirtualOffloadOptions& options)
      : groups_(groups),
        options_(options),
        network_(std::move(network)),
        fabric_(hosts, {.time = {.clock = &clock_,
                                 .network = &network_,
                                 .costs = options.costs,
                                 .trail = options.trail}}),
        nodes_at_(hosts),
        node_of_cq_(hosts),
        after_(GroupsAfter(groups)),
        left_(groups.size()),
        cores_(hosts),
        threads_(hosts) {}

  Status Make(std::span<const nic::QueueProgram* const> programs) {
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

  /// Arms and validates all nodes, one after the other, and rings the doorbells of those that start
  /// at 0. No NIC looks at them before time passes. `given_up`: may be null; the program, of one
  /// group, of which each node's part goes as soon as its bytes stand in rings that are not written
  /// again.
  Status Start(nic::QueueProgram* given_up) {
    for (uint32_t i = 0; i < groups_.size(); ++i) {
      PREPOST_RETURN_IF_ERROR(InGroup(i, ArmGroup(i, given_up)));
      if (groups_[i].after || groups_[i].start == 0) continue;
      clock_.Schedule(groups_[i].start, *this, {.value = i, .what = kStartDue});
    }
    return {};
  }

  Status Run() {
    std::vector<CqEvent> events;
    while (left_ != 0) {
      const bool is_busy = fabric_.RunSome(kSteps, &events);
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

  /// After the end: is everything where it should be?
  Status CheckAll() {
    PREPOST_RETURN_IF_ERROR(network_.CheckShares());
    for (uint32_t i = 0; i < groups_.size(); ++i) {
      if (options_.keep_cqes) PREPOST_RETURN_IF_ERROR(InGroup(i, running_[i].armed->Check()));
    }
    PREPOST_RETURN_IF_ERROR(CheckMisuses(fabric_));
    for (uint32_t host = 0; host < nodes_at_.size(); ++host) {
      if (const std::optional<uint64_t> block = fabric_.MissingBlock(NodeId(host))) {
        return Rejected(fmt::format("node {} has no block {} in the end", host, *block));
      }
    }
    return {};
  }

  VirtualOffloads TakeResult() {
    for (size_t i = 0; i < running_.size(); ++i) {
      VirtualOffloads::Group& group = result_.groups[i];
      for (const nic::ArmedNode& node : running_[i].armed->nodes()) {
        VirtualOffload::Node& it = group.nodes[node.program().node.index()];
        it.wqes_later = node.wqes_written() - it.wqes;
        it.rearms = node.feed().rearms();
        it.rings_later = node.feed().doorbells() - it.rings;
        it.received = fabric_.LastBlockAt(groups_[i].HostOf(node.program().node), node.open_node());
        group.doorbells = std::max(group.doorbells, it.doorbells);
        group.completion = std::max(group.completion, it.completion);
      }
      group.known = running_[i].known;
    }
    for (const Resource resource : network_.resources()) {
      const LinkUse use = network_.UseOf(resource);
      if (use.bytes != 0) result_.links.push_back({resource, use});
    }
    result_.counters = fabric_.engine().counters();
    return std::move(result_);
  }

 private:
  /// A node of a group.
  struct Member {
    uint32_t group = 0;
    NodeId node;
  };

  /// Of several groups an error says which one has it.
  Status InGroup(uint32_t index, Status status) const {
    if (status.ok() || groups_.size() == 1) return status;
    return {status.code(), fmt::format("group {}: {}", index, status.message()), status.where()};
  }

  Status MakeGroup(const nic::QueueProgram& program, RunningGroup* it) {
    const Plan& plan = *it->group->plan;
    const Message& message = plan.header().message;
    Result<Mapping> addresses = Mapping::Reserved(message.bytes);
    if (!addresses.ok()) return addresses.status();
    it->addresses = *std::move(addresses);
    fabric_.HoldTags(message.block_bytes);
    it->buffers.assign(plan.header().nodes, it->addresses.bytes());
    it->transfers[0] = {it->addresses.bytes(), it->buffers};
    Result<ArmedGroup> armed = ArmedGroup::Make(fabric_, plan, program, it->transfers, {},
                                                options_.keep_cqes, it->group->hosts);
    if (!armed.ok()) return armed.status();
    it->armed.emplace(*std::move(armed));
    it->left = it->armed->nodes().size();
    it->is_done.resize(it->left);
    it->rearming.resize(it->left);
    return {};
  }

  /// Which events are whose.
  void NoteNodes(uint32_t index) {
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

  Core& CoreFor(size_t host, size_t index) {
    std::deque<Core>& cores = cores_[host];
    while (cores.size() <= index) {
      cores.emplace_back(
          CoreOf(options_.host, NoiseOf(options_), NodeId::FromIndex(host), cores.size()));
    }
    return cores[index];
  }

  void Observe(uint32_t index) {
    options_.trail->SetCosts(options_.costs);
    options_.trail->AddGroup(*groups_[index].plan);
    for (const nic::ArmedNode& node : running_[index].armed->nodes()) {
      const NodeId id = node.program().node;
      options_.trail->AddNode(groups_[index].HostOf(id), id, node.open_node().qps);
    }
  }

  Status ArmGroup(uint32_t index, nic::QueueProgram* given_up) {
    RunningGroup& group = running_[index];
    const bool starts = !group.group->after && group.group->start == 0;
    nic::Validator validator(*group.group->plan);
    for (nic::ArmedNode& node : group.armed->nodes()) {
      const NodeId id = node.program().node;
      PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
      PREPOST_RETURN_IF_ERROR(node.Arm());
      if (options_.validate) validator.Add(group.armed->Objects(id));
      PREPOST_RETURN_IF_ERROR(node.RequestEvents());
      if (starts) StartNode(index, node);
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

  /// Now.
  void StartGroup(uint32_t index) {
    RunningGroup& group = running_[index];
    result_.groups[index].start = clock_.now();
    if (TimeTrail* const trail = options_.trail) {
      const StepId step = trail->Push(clock_.now(), group.start_step, TimeCause::kStart);
      trail->StartGroup(index, step);
      trail->BeginHost(step);
    }
    for (nic::ArmedNode& node : group.armed->nodes()) StartNode(index, node);
  }

  /// As soon as all hosts of the one before it, `before`, know that that is over.
  void StartAfter(const RunningGroup& before, uint32_t index) {
    const Picoseconds own = groups_[index].start;  // what comes later counts
    running_[index].start_step = own > before.known ? kFirstStep : before.known_step;
    const Picoseconds at = std::max(own, before.known);
    if (at == kNever) return clock_.NoteMissed();
    if (at == clock_.now()) return StartGroup(index);
    clock_.Schedule(at, *this, {.value = index, .what = kStartDue});
  }

  /// Hands its first doorbells to its NIC; when they come there is known.
  void StartNode(uint32_t index, nic::ArmedNode& node) {
    const NodeId id = node.program().node;
    VirtualOffload::Node& it = result_.groups[index].nodes[id.index()];
    it.wqes = node.wqes_written();
    node.Start();
    it.rings = node.feed().doorbells();
    it.doorbells = fabric_.engine().doorbells_until(groups_[index].HostOf(id));
    Rearming& rearming = running_[index].rearming[id.index()];
    rearming.looked = clock_.now();
    if (Core* const core = rearming.core) {
      if (core->awake_until < clock_.now()) core->cpu.Wake(clock_.now());
      core->awake_until = std::max(core->awake_until, After(clock_.now(), polling()));
    }
  }

  enum What : uint32_t { kStartDue, kHostDue };

  void OnTime(const TimedEvent& event) override {
    const auto group = static_cast<uint32_t>(event.value);
    if (event.what == kStartDue) return StartGroup(group);
    due_.push_back({group, NodeId(static_cast<uint32_t>(event.value >> 32))});
    clock_.Hold();
  }

  Rearming& RearmingOf(const Member& member) {
    return running_[member.group].rearming[member.node.index()];
  }
  nic::ArmedNode& NodeOf(const Member& member) {
    return running_[member.group].armed->nodes()[member.node.index()];
  }

  void ScheduleHost(Picoseconds at, const Member& member) {
    clock_.Schedule(at, *this,
                    {.value = uint64_t{member.node.value} << 32 | member.group, .what = kHostDue});
  }

  /// How long hosts look for the next CQE before they sleep.
  Picoseconds polling() const {
    switch (options_.wait) {
      case WaitMode::kPolling:
        return kNever;
      case WaitMode::kHybrid:
        return options_.host.hybrid_polling;
      case WaitMode::kInterrupt:
        break;
    }
    return 0;
  }

  /// A CQE is there. True: its host sleeps.
  bool NoteLook(const Member& member) {
    Rearming& it = RearmingOf(member);
    VirtualOffload::Node& node = result_.groups[member.group].nodes[member.node.index()];
    const Picoseconds now = clock_.now();
    if (it.looked == now && node.looks != 0) return false;
    node.ends_asleep = now - std::max(it.looked, it.until) > polling();
    node.looks += 1;
    node.wakeups += node.ends_asleep ? 1 : 0;
    it.looked = now;
    return node.ends_asleep;
  }

  /// There is a CQE for a host that has rings to write; it looks when it sees that.
  Status BeginLook(const Member& member) {
    Rearming& it = RearmingOf(member);
    PREPOST_CHECK(it.core != nullptr);
    if (it.state != Rearming::State::kIdle) return {};  // it will find this as well
    const Picoseconds at = After(clock_.now(), NoteLook(member) ? options_.host.interrupt : 0);
    if (TimeTrail* const trail = options_.trail; trail != nullptr && at != kNever)
      it.step = trail->Push(at, trail->host_step(), TimeCause::kInterrupt);
    it.state = Rearming::State::kDue;
    if (at == clock_.now()) return Look(member);
    ScheduleHost(at, member);
    return {};
  }

  /// As soon as the core is there, and free.
  Status Look(const Member& member) {
    Rearming& it = RearmingOf(member);
    Core& core = *it.core;
    const Picoseconds now = clock_.now();
    if (core.awake_until < now) core.cpu.Wake(now);
    if (core.busy_until <= now) {
      core.busy_until = core.away_until = core.cpu.WhenBack(now);
      if (core.busy_until != kNever) {
        result_.groups[member.group].nodes[member.node.index()].delayed += core.busy_until - now;
      }
    }
    if (core.busy_until > now) {
      const bool is_away = core.busy_until == core.away_until;
      if (TimeTrail* const trail = options_.trail; trail != nullptr && core.busy_until != kNever) {
        it.step = trail->Push(core.busy_until, it.step,
                              is_away ? TimeCause::kStopped : TimeCause::kOtherGroupsCore);
      }
      ScheduleHost(core.busy_until, member);
      return {};
    }
    it.count = {};
    return Work(member, options_.host.poll);
  }

  /// Takes `cost`, and deals with all that is there by now and that it has not begun with yet.
  Status Work(const Member& member, Picoseconds cost) {
    Rearming& it = RearmingOf(member);
    Core& core = *it.core;
    VirtualOffload::Node& found = result_.groups[member.group].nodes[member.node.index()];
    const nic::QueueFeed::Count before = std::exchange(it.count, NodeOf(member).Refillable());
    const uint64_t cqes_before = std::exchange(it.cqes, NodeOf(member).cqes_read());
    const HostCosts& host = options_.host;
    const Picoseconds writing =
        static_cast<Picoseconds>(it.count.sends - before.sends) * host.post_send +
        static_cast<Picoseconds>(it.count.receives - before.receives) * host.post_receive;
    cost += writing + static_cast<Picoseconds>(it.cqes - cqes_before) * host.completion;
    found.rearming += writing;
    const Picoseconds delayed_before = core.cpu.delayed();
    it.until = core.busy_until = core.cpu.WorkEnd(clock_.now(), cost);
    if (it.until == kNever) {
      clock_.NoteMissed();
      return Stuck();
    }
    found.delayed += core.cpu.delayed() - delayed_before;
    core.awake_until = std::max(core.awake_until, After(it.until, polling()));
    if (TimeTrail* const trail = options_.trail) {
      it.step = trail->Push(it.until - cost, it.step, TimeCause::kStopped);
      it.step = trail->Push(it.until, it.step, TimeCause::kRearm);
    }
    if (it.until == clock_.now()) return EndWork(member);
    it.state = Rearming::State::kWorking;
    ScheduleHost(it.until, member);
    return {};
  }

  Status EndWork(const Member& member) {
    Rearming& it = RearmingOf(member);
    it.state = Rearming::State::kIdle;
    if (options_.trail != nullptr) options_.trail->BeginHost(it.step);
    return TakeEvents(member, {});
  }

  /// Its time has come. What has become free while it was at work, it writes as well.
  Status GoOn(const Member& member) {
    if (running_[member.group].is_done[member.node.index()]) return {};
    const Rearming& it = RearmingOf(member);
    if (it.state == Rearming::State::kDue) return Look(member);
    const nic::QueueFeed::Count count = NodeOf(member).Refillable();
    const bool has_more = count.sends != it.count.sends || count.receives != it.count.receives;
    return has_more ? Work(member, 0) : EndWork(member);
  }

  Status TakeEvent(const CqEvent& event) {
    const size_t host = event.node.index();
    if (options_.trail != nullptr)
      options_.trail->BeginHost(options_.trail->CqeStep(event.node, event.cqn));
    if (event.cqn != 0) return TakeEvent(node_of_cq_[host][event.cqn - NicState::kFirstCqn], {});
    // Something is wrong at this NIC: whose it is they know themselves.
    const std::vector<nic::ErrorEvent> errors = fabric_.device(event.node).TakeErrors();
    for (const Member& member : nodes_at_[host]) {
      PREPOST_RETURN_IF_ERROR(TakeEvent(member, errors));
    }
    return {};
  }

  Status TakeEvent(const Member& member, std::span<const nic::ErrorEvent> errors) {
    if (running_[member.group].is_done[member.node.index()]) return {};
    // Where all is written nothing is left but the end, and no host has a part in when that is.
    if (errors.empty() && !NodeOf(member).feed().is_complete()) return BeginLook(member);
    NoteLook(member);
    return TakeEvents(member, errors);
  }

  Status TakeEvents(const Member& member, std::span<const nic::ErrorEvent> errors) {
    RunningGroup& group = running_[member.group];
    nic::ArmedNode& node = NodeOf(member);
    const Result<bool> done = node.TakeEvents(errors);
    if (!done.ok()) return InGroup(member.group, CauseOf(group, done.status()));
    if (!*done) return {};
    group.is_done[member.node.index()] = true;
    VirtualOffload::Node& found = result_.groups[member.group].nodes[member.node.index()];
    found.completion = clock_.now();
    found.completions = node.cqes_read();
    NoteEnd(member, &found);
    if (--group.left != 0) return {};
    --left_;
    for (const uint32_t next : after_[member.group]) StartAfter(group, next);
    return {};
  }

  /// A node has its final CQE now: when its host knows.
  void NoteEnd(const Member& member, VirtualOffload::Node* node) {
    RunningGroup& group = running_[member.group];
    const HostCosts& host = options_.host;
    const Picoseconds looks = After(node->completion, node->ends_asleep ? host.interrupt : 0);
    const Picoseconds seen = After(looks, host.poll);
    node->known = After(seen, host.completion);
    const bool is_last = node->known >= group.known;
    group.known = std::max(group.known, node->known);
    TimeTrail* const trail = options_.trail;
    if (trail == nullptr || node->known == kNever) return;
    const StepId end = trail->host_step();
    StepId known = trail->Push(looks, end, TimeCause::kInterrupt);
    known = trail->Push(seen, known, TimeCause::kPoll);
    known = trail->Push(node->known, known, TimeCause::kCompletion);
    trail->End(member.group, member.node, end, known);
    if (is_last) group.known_step = known;
  }

  /// The first group that is not through.
  Status Stuck() {
    PREPOST_RETURN_IF_ERROR(CheckWithinTime(clock_, network_));
    const auto group =
        std::ranges::find_if(running_, [](const RunningGroup& it) { return it.left != 0; });
    const auto index = static_cast<uint32_t>(group - running_.begin());
    if (can_report_) return InGroup(index, group->armed->Stuck());
    PREPOST_RETURN_IF_ERROR(CheckMisuses(fabric_));
    const auto waits = std::ranges::find(group->is_done, false) - group->is_done.begin();
    return InGroup(index,
                   Rejected(fmt::format(
                       "nothing can happen any more, and node {} has no final CQE; a run that "
                       "keeps CQEs says why",
                       waits)));
  }

  Status CauseOf(RunningGroup& group, const Status& seen) {
    if (!can_report_ || seen.code() != StatusCode::kRejected) return seen;
    const Status cause = group.armed->Fail();
    return cause.ok() ? seen : cause;
  }

  const std::span<const VirtualGroup> groups_;
  const VirtualOffloadOptions& options_;
  VirtualClock clock_;
  FluidNetwork network_;
  Fabric fabric_;
  std::deque<RunningGroup> running_;                // by group; use all of the above
  std::vector<std::vector<Member>> nodes_at_;       // by host
  std::vector<std::vector<Member>> node_of_cq_;     // by host, by number from the first on
  const std::vector<std::vector<uint32_t>> after_;  // by group: who starts when it is complete
  size_t left_;                                     // groups
  std::vector<Member> due_;                         // their time has come
  std::vector<std::deque<Core>> cores_;             // by host
  std::vector<size_t> threads_;                     // by host: nodes of all groups
  bool can_report_ = true;                          // the whole queue program is there
  VirtualOffloads result_;
};

/// `programs` are by group, `given_up` may be null, or is that of the only group.
Result<VirtualOffloads> RunPrograms(std::span<const VirtualGroup> groups,
                                    std::span<const nic::QueueProgram* const> programs,
                                    nic::QueueProgram* given_up, const Network& network,
                                    const VirtualOffloadOptions& options) {
  const auto hosts = static_cast<uint32_t>(network.nodes.size());
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, hosts));
  PREPOST_RETURN_IF_ERROR(CheckCosts(options.costs));
  PREPOST_RETURN_IF_ERROR(CheckCosts(options.host));
  PREPOST_RETURN_IF_ERROR(CheckNoise(NoiseOf(options), hosts));
  PREPOST_RETURN_IF_ERROR(CheckGroups(groups, hosts));
  Result<FluidNetwork> fluid = FluidNetwork::Make(network, options.costs.port_sharing);
  if (!fluid.ok()) return fluid.status();
  VirtualRun run(groups, *std::move(fluid), hosts, options);
  const auto end_step = [&](VirtualStep step, Status status) {
    if (status.ok() && options.done) options.done(step);
    return status;
  };
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kMake, run.Make(programs)));
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kArm, run.Start(given_up)));
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kRun, run.Run()));
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kCheck, run.CheckAll()));
  return run.TakeResult();
}

/// One plan, whose node i is host i.
Result<VirtualOffload> RunProgram(const Plan& plan, const nic::QueueProgram& program,
                                  nic::QueueProgram* given_up, const Network& network,
                                  const VirtualOffloadOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckProgram(plan, program));
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, plan.header().nodes));
  const VirtualGroup group = {.plan = &plan};
  const nic::QueueProgram* const programs[] = {&program};
  Result<VirtualOffloads> run = RunPrograms({&group, 1}, programs, given_up, network, options);
  if (!run.ok()) return run.status();
  VirtualOffloads::Group& only = run->groups.front();
  return VirtualOffload{.nodes = std::move(only.nodes),
                        .doorbells = only.doorbells,
                        .completion = only.completion,
                        .links = std::move(run->links),
                        .counters = run->counters};
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

Result<VirtualOffloads> RunVirtualOffloads(std::span<const VirtualGroup> groups,
                                           const Network& network,
                                           const VirtualOffloadOptions& options) {
  std::map<const Plan*, size_t> position_of;
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
  if (options.done) options.done(VirtualStep::kLower);
  nic::QueueProgram* given_up =
      groups.size() == 1 && !options.keep_cqes ? &lowered.front() : nullptr;
  return RunPrograms(groups, programs, given_up, network, options);
}

}  // namespace prepost::emulated
