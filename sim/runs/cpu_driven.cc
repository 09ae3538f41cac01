// SPDX-License-Identifier: Apache-2.0
//
// Each node of each group has a HostThread, which is
//
//     idle      its NIC will report the next CQE. When that comes, it is due to poll: when it is
//               through with what it found last; after that, at once if it polls, after an
//               interrupt if it sleeps
//     due       it will poll at a time that is known
//     queued    it waits for its core, first come first served, and for the core to be there
//     done      it has found its last completion
//
// What a poll takes is known at once (host_thread.cc), so its end needs no event.
//
// Time stands still while threads act, and they act when all else that happens at that time has
// happened (HostHandler). So it does not matter which of several CQEs of the same time was written
// first.
#include "sim/runs/cpu_driven.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backends/local/armed_group.h"
#include "backends/local/driven_group.h"
#include "runtime/base/mapping.h"
#include "runtime/executor/block_places.h"
#include "runtime/executor/playable.h"
#include "sim/clock/clock.h"
#include "sim/hosts/host_core.h"
#include "sim/runs/cluster.h"

namespace prepost::sim {
namespace {

constexpr uint64_t kHostStepsAtOnce = 1 << 12;  // between two calls of the checkpoint
constexpr uint32_t kCachedHosts = 192;  // whose memory mostly stays in the cache, as measured
constexpr size_t kEventsAhead = 4;      // of CQs, whose threads are prefetched
constexpr size_t kStuckNodesMax = 3;    // that are named
constexpr size_t kStuckOpsMax = 3;      // of each

/// What rings of hosts need to hold for a run like that with rings which hold everything, at most
/// `most`. With a window of W at most W receives of a node are granted and open, so nobody has more
/// than W blocks or credits for one peer on the way, nor more than W that have come and are not
/// seen. Small rings are used again before they have left the cache.
uint32_t RingWqesOf(const Ready& ready, uint32_t most) {
  if (ready.mode != ReadyMode::kWindow || ready.window > most / 4) return most;
  return std::bit_ceil(4 * ready.window);
}

HostNoise NoiseOf(const CpuDrivenOptions& options) {
  return {.delays = options.delays,
          .preemptions = options.preemptions,
          .neighbours = options.neighbours,
          .seed = options.seed};
}

struct NodeThread;

struct alignas(64) Core : HostCore {
  using HostCore::HostCore;

  NodeThread* first =
      nullptr;  ///< of those that wait for it, first come first: see NodeThread::next
  NodeThread* last = nullptr;
  bool is_free_due = false;  ///< somebody waits for it not to be busy
};

/// A thread and what it is at.
struct alignas(64) NodeThread {
  enum class State : uint8_t { kIdle, kDue, kQueued, kDone };

  NodeThread(const HostCosts& costs, Core& core_in, Clock& clock, TimeHandler& handler,
             emulated::Nic& nic, nic::DeviceEndpoint& endpoint, const Plan& part, bool is_root)
      : core(core_in),
        cq(nic.Listen(endpoint.cq_number(), this)),
        thread(costs, core_in.cpu, clock, handler, endpoint, part, is_root) {}

  Core& core;
  CqState& cq;
  CpuExecutor* executor = nullptr;
  Picoseconds found_at = 0;    ///< through with the last poll that found something
  Picoseconds idle_from = 0;   ///< through with what it found, it polls for more
  NodeThread* next = nullptr;  ///< kQueued: behind it, for its core
  State state = State::kIdle;
  bool is_started = false;
  bool is_asked = false;         ///< its NIC will report the next CQE
  StepId due_step = kFirstStep;  ///< of the trail: why it polls when it is due
  uint32_t host = 0;
  uint32_t group = 0;
  HostThread thread;
  NodeId node;
};

class HostsRun final : private TimeHandler, private HostHandler {
 public:
  /// `network_of` is what `network` is made of.
  HostsRun(std::span<const Group> groups, const Network& network_of, FluidNetwork network,
           const CpuDrivenOptions& options)
      : plans_(groups),
        options_(options),
        polling_(PollingTime(options.wait, options.host)),
        cluster_(
            std::move(network), HostsOf(network_of),
            {.costs = options.nic,
             .hosts = this,
             .trail = options.trail,
             .tcp_over = options.host.is_tcp() && !network_of.links.empty() ? &network_of : nullptr,
             .seed = options.seed,
             .prefetches = options.prefetches,
             .cached_hosts = kCachedHosts}),
        after_(GroupsAfter(groups)),
        threads_of_(HostsOf(network_of)),
        cores_(HostsOf(network_of)) {
    result_.hosts.resize(HostsOf(network_of));
    if (options.trail != nullptr) options.trail->SetCosts(options.nic);
  }

  Status Arm() {
    for (const Group& group : plans_) {
      PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
      PREPOST_RETURN_IF_ERROR(ArmGroup(group));
    }
    return {};
  }

  Status Run() {
    for (left_ = threads_.size(); left_ != 0;) {
      const bool is_busy = cluster_.fabric.RunSome(kHostStepsAtOnce);
      PREPOST_RETURN_IF_ERROR(status_);
      if (!is_busy && left_ != 0) return Stuck();
      PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
    }
    return {};
  }

  Status CheckAll() const {
    PREPOST_RETURN_IF_ERROR(cluster_.network.CheckShares());
    PREPOST_RETURN_IF_ERROR(local::CheckMisuses(cluster_.fabric));
    for (uint32_t host = 0; host < threads_of_.size(); ++host) {
      if (const std::optional<uint64_t> block = cluster_.fabric.MissingBlock(NodeId(host))) {
        return Rejected(fmt::format("host {} has no block {} in the end", host, *block));
      }
    }
    return {};
  }

  CpuDrivenResult TakeResult() {
    for (const ArenaPointer<NodeThread>& each : threads_) {
      const NodeThread& it = *each;
      CpuDrivenResult::Node& node = result_.groups[it.group].nodes[it.node.index()];
      node.work = it.thread.work();
      node.received = std::max(
          it.thread.result_at(),
          cluster_.LastBlockAt(NodeId(it.host), driven_[it.group].endpoint(it.node).open_node()));
    }
    for (size_t i = 0; i < cores_.size(); ++i) {
      for (const ArenaPointer<Core>& core : cores_[i]) {
        result_.hosts[i].busy += core->cpu.busy();
        result_.hosts[i].delayed += core->cpu.delayed();
      }
    }
    result_.links = cluster_.network.UsedLinks();
    result_.counters = cluster_.fabric.engine().counters();
    return std::move(result_);
  }

 private:
  static uint32_t HostsOf(const Network& network) {
    return static_cast<uint32_t>(network.nodes.size());
  }
  enum What : uint16_t { kPostDue = HostThread::kPostDue, kPollDue, kFreeDue };
  struct Due {
    NodeThread* it = nullptr;
    uint16_t what = kPollDue;
  };

  Status ArmGroup(const Group& group) {
    const PlanHeader& header = group.plan->header();
    const size_t first = threads_.size();
    const Result<std::vector<NodeMemory>> memory = MemoryOf(*group.plan, first);
    if (!memory.ok()) return memory.status();
    const auto wrap = [&](NodeId node, nic::DeviceEndpoint& endpoint,
                          const Plan& part) -> Endpoint& {
      return AddThread(group, node, endpoint, part).thread;
    };
    Result<local::DrivenGroup> made = local::DrivenGroup::Make(
        cluster_.fabric, *group.plan, *memory,
        {.ring_wqes_max = options_.rings_by_window
                              ? RingWqesOf(header.ready, options_.ring_wqes_max)
                              : options_.ring_wqes_max,
         .hosts = group.hosts,
         .may_sleep = false,
         .wrap = wrap});
    if (!made.ok()) return made.status();
    driven_.push_back(*std::move(made));
    if (options_.trail != nullptr) Observe(group, first);
    for (size_t i = first; i < threads_.size(); ++i) {
      threads_[i]->executor = &driven_.back().executor(threads_[i]->node);
      threads_[i]->state = NodeThread::State::kDue;
    }
    first_thread_.push_back(first);
    left_of_.push_back(header.nodes);
    last_step_.push_back(kFirstStep);
    result_.groups.emplace_back().nodes.resize(header.nodes);
    if (!group.after) StartGroup(driven_.size() - 1, group.start, kFirstStep);
    return {};
  }

  /// Addresses of a group's nodes, whose threads will be those from `first` on. All nodes have the
  /// same, as far as they need.
  Result<std::vector<NodeMemory>> MemoryOf(const VerifiedPlan& plan, size_t first) {
    const PlanHeader& header = plan.header();
    const bool is_multicast = header.collective.kind == CollectiveKind::kMulticast;
    uint64_t most = header.payload.bytes;
    std::vector<NodeBytes> bytes(header.nodes);
    for (uint32_t i = 0; !is_multicast && i < header.nodes; ++i) {
      bytes[i] = NodeBytesOf(header, NodeId(i));
      places_.push_back(Playable(plan).PlacesOf(NodeId(i)));
      const uint64_t staging = places_.back()->staging_bytes();
      uint64_t all = 0;  // up to three of them are counted (CheckMemory())
      if (__builtin_add_overflow(bytes[i].input + bytes[i].output + bytes[i].scratch, staging,
                                 &all))
        return Rejected(fmt::format("node {} has blocks that lie apart, too many to count", i));
      most = std::max(most, all);
    }
    Result<Mapping> addresses = Mapping::Reserved(most);
    if (!addresses.ok()) return addresses.status();
    addresses_.push_back(*std::move(addresses));
    std::span<std::byte> reserved = addresses_.back().bytes();
    if (is_multicast) {
      cluster_.fabric.HoldTags(header.payload.block_bytes);
      return local::MulticastMemory(header, reserved,
                                    std::vector<std::span<std::byte>>(header.nodes, reserved));
    }
    cluster_.fabric.HoldAddresses();
    std::vector<NodeMemory> memory(header.nodes);
    for (uint32_t i = 0; i < header.nodes; ++i) {
      std::span<std::byte> left = reserved;
      const auto take = [&](uint64_t count) {
        const std::span<std::byte> taken = left.first(count);
        left = left.subspan(count);
        return taken;
      };
      const std::unique_ptr<const BlockPlaces>& places = places_[places_.size() - header.nodes + i];
      NodeMemory& its = memory[i];
      its.source = take(bytes[i].input);
      its.target = take(bytes[i].output);
      its.scratch = take(bytes[i].scratch);
      its.staging = take(places->staging_bytes());
      its.places = places.get();
      its.combine = [this, thread = first + i, element = SizeOf(header.combine.type)](
                        std::byte*, const std::byte*, const std::byte*, size_t elements) {
        threads_[thread]->thread.Combine(elements * element);
      };
      its.copy = [this, thread = first + i, output = its.target](std::byte* to, const std::byte*,
                                                                 size_t count) {
        const bool is_result = !std::less<>()(to, output.data()) &&
                               static_cast<size_t>(to - output.data()) < output.size();
        threads_[thread]->thread.CopyBlocks(count, is_result);
      };
    }
    return memory;
  }

  /// Shows the trail the group's threads, from `first` on.
  void Observe(const Group& group, size_t first) {
    options_.trail->AddGroup(*group.plan);
    for (size_t i = first; i < threads_.size(); ++i) {
      NodeThread& it = *threads_[i];
      it.thread.Observe({options_.trail, it.group, it.node});
      options_.trail->AddNode(NodeId(it.host), it.node,
                              driven_.back().endpoint(it.node).open_node().qps);
    }
  }

  /// `step`: what its threads come after, in the trail.
  void StartGroup(size_t index, Picoseconds at, StepId step) {
    result_.groups[index].start = at;
    if (options_.trail != nullptr) {
      step = options_.trail->Push(at, step, TimeCause::kStart);
      options_.trail->StartGroup(static_cast<uint32_t>(index), step);
    }
    for (size_t i = 0; i < left_of_[index]; ++i) {
      NodeThread& it = *threads_[first_thread_[index] + i];
      it.due_step = step;
      Schedule(at, it, kPollDue);
    }
  }

  /// A node has dealt with its last completion `at`, or will have.
  void NoteDone(const NodeThread& it, Picoseconds at) {
    CpuDrivenResult::Group& group = result_.groups[it.group];
    group.nodes[it.node.index()].completion = at;
    if (at >= group.completion) last_step_[it.group] = it.thread.step();
    group.completion = std::max(group.completion, at);
    --left_;
    if (--left_of_[it.group] != 0) return;
    for (const uint32_t next : after_[it.group]) {
      const Picoseconds own = plans_[next].start;  // what comes later counts
      StartGroup(next, std::max(own, group.completion),
                 own > group.completion ? kFirstStep : last_step_[it.group]);
    }
  }

  NodeThread& AddThread(const Group& group, NodeId node, nic::DeviceEndpoint& endpoint,
                        const Plan& part) {
    const uint32_t host = group.hosts.empty() ? node.value : group.hosts[node.index()].value;
    threads_.push_back(cluster_.fabric.memory().Make<NodeThread>(
        options_.host, CoreFor(host), cluster_.clock, static_cast<TimeHandler&>(*this),
        cluster_.fabric.nic(NodeId(host)), endpoint, part,
        part.header().collective.kind != CollectiveKind::kMulticast ||
            part.header().roles().IsSource(node)));
    NodeThread& it = *threads_.back();
    it.host = host;
    it.group = static_cast<uint32_t>(result_.groups.size());
    it.node = node;
    it.thread.KnowWire([this, &group](const Channel& channel, uint64_t bytes) {
      return cluster_.network.TimeAlone(group.HostOf(channel.from), group.HostOf(channel.to),
                                        bytes);
    });
    threads_of_[host].push_back(&it);
    return it;
  }

  /// Of the host's next thread.
  Core& CoreFor(uint32_t host) {
    std::vector<ArenaPointer<Core>>& cores = cores_[host];
    const size_t index = threads_of_[host].size() % options_.host.cores;
    if (index == cores.size()) {
      cores.push_back(cluster_.fabric.memory().Make<Core>(
          CoreOf(options_.host, NoiseOf(options_), NodeId(host), index)));
    }
    return *cores[index];
  }

  /// Also for now: then it is done before time goes on, after what else happens now.
  void Schedule(Picoseconds at, NodeThread& it, What what) {
    if (at == cluster_.now() && is_acting_) {
      due_.push_back({&it, what});
    } else {
      cluster_.clock.Schedule(at, *this, {.subject = &it, .value = 0, .what = what});
    }
  }

  void OnTime(const TimedEvent& event) override {
    if (event.what == kPostDue) return static_cast<HostThread*>(event.subject)->MakePosts();
    due_.push_back({static_cast<NodeThread*>(event.subject), event.what});
    cluster_.clock.Hold();
  }

  bool Act(std::span<const CqEvent> events) override {
    is_acting_ = true;
    for (size_t i = 0; i < events.size(); ++i) {
      if (cluster_.clock.prefetches() && i + kEventsAhead < events.size())
        PrefetchLines(events[i + kEventsAhead].listener, sizeof(NodeThread));
      TakeEvent(events[i]);
    }
    while (!due_.empty() && status_.ok()) {
      const Due due = due_.front();
      due_.pop_front();
      status_ = ActOn(due);
    }
    is_acting_ = false;
    return status_.ok() && left_ != 0;
  }

  /// The NIC reports a CQE; or, with number 0, an error, which every thread of the host polls for.
  void TakeEvent(const CqEvent& event) {
    if (event.cqn == 0) {
      for (NodeThread* it : threads_of_[event.node.index()]) Notify(*it);
      return;
    }
    auto& it = *static_cast<NodeThread*>(event.listener);
    it.is_asked = false;
    Notify(it);
  }

  void Notify(NodeThread& it) {
    if (it.state != NodeThread::State::kIdle) return;
    it.state = NodeThread::State::kDue;
    const Picoseconds poll = NextPoll(it);
    if (options_.trail != nullptr) it.due_step = StepOfPoll(it, poll);
    Schedule(poll, it, kPollDue);
  }

  /// Of an idle thread that is notified now, and will poll at `poll`.
  StepId StepOfPoll(const NodeThread& it, Picoseconds poll) const {
    if (cluster_.now() < it.idle_from) return it.thread.step();
    const StepId cqe = options_.trail->CqeStep(NodeId(it.host), it.cq.number);
    const bool sleeps =
        poll == cluster_.now() + options_.host.interrupt && options_.wait != WaitMode::kPolling;
    return options_.trail->Push(poll, cqe, sleeps ? TimeCause::kInterrupt : TimeCause::kDetect);
  }

  /// Of an idle thread that is notified now.
  Picoseconds NextPoll(NodeThread& it) const {
    const Picoseconds now = cluster_.now();
    if (now <= it.idle_from) return it.idle_from;
    if (now <= After(it.found_at, polling_)) return now;
    const Picoseconds awake = After(now, options_.host.interrupt);
    it.thread.CountWakeup(awake);
    return awake;
  }

  Status ActOn(const Due& due) {
    if (due.what == kPollDue) return WaitForCore(*due.it);
    due.it->core.is_free_due = false;
    return Serve(due.it->core);
  }

  Status WaitForCore(NodeThread& it) {
    it.state = NodeThread::State::kQueued;
    Core& core = it.core;
    it.next = nullptr;
    (core.first == nullptr ? core.first : core.last->next) = &it;
    core.last = &it;
    return Serve(it.core);
  }

  /// Lets those that wait for the core poll, until one of them finds something.
  Status Serve(Core& core) {
    while (core.first != nullptr) {
      NodeThread& it = *core.first;
      if (const Picoseconds free_at = core.FreeAt(cluster_.now()); free_at > cluster_.now()) {
        if (!std::exchange(core.is_free_due, true)) Schedule(free_at, it, kFreeDue);
        return {};
      }
      core.first = it.next;
      PREPOST_RETURN_IF_ERROR(PollNow(it));
    }
    return {};
  }

  /// For the trail: what the thread that polls now comes after. From when it was due on another
  /// group's thread had its core, and in the end the core may have been away.
  StepId StepAtPoll(const NodeThread& it) const {
    TimeTrail& trail = *options_.trail;
    const Picoseconds now = cluster_.now();
    const Core& core = it.core;
    const Picoseconds due = trail.step(it.due_step).at;
    const Picoseconds taken = core.away_until == now ? std::clamp(core.away_from, due, now) : now;
    const StepId step = trail.Push(taken, it.due_step, TimeCause::kOtherGroupsCore);
    return trail.Push(now, step, TimeCause::kStopped);
  }

  Status PollNow(NodeThread& it) {
    HostThread& thread = it.thread;
    if (options_.trail != nullptr) thread.BeginAt(StepAtPoll(it));
    bool has_found = true;
    if (!std::exchange(it.is_started, true)) {
      if (options_.wait == WaitMode::kPolling) ++it.core.pollers;
      thread.Start(*it.executor);
    } else {
      const Result<bool> found = thread.PollOnce(*it.executor);
      if (!found.ok()) return found.status();
      has_found = *found;
    }
    it.idle_from = thread.until();
    if (it.idle_from == kNever) {
      cluster_.clock.NoteMissed();
      return Stuck();
    }
    if (has_found) {
      it.core.busy_until = thread.until();
      it.found_at = thread.until();
    }
    it.core.StayAwake(AwakeUntil(it));
    if (it.executor->done()) {
      if (options_.trail != nullptr) {
        options_.trail->End(it.group, it.node, thread.step(), thread.step());
      }
      it.state = NodeThread::State::kDone;
      if (options_.wait == WaitMode::kPolling) --it.core.pollers;
      NoteDone(it, thread.until());
      return {};
    }
    if (thread.may_find_more()) {
      it.state = NodeThread::State::kDue;
      it.due_step = thread.step();
      Schedule(thread.until(), it, kPollDue);
      return {};
    }
    it.state = NodeThread::State::kIdle;
    if (!std::exchange(it.is_asked, true)) it.cq.AskForNext();
    return {};
  }

  /// Of a thread that has polled; one that never sleeps counts as a poller besides.
  Picoseconds AwakeUntil(const NodeThread& it) const {
    if (options_.wait != WaitMode::kHybrid) return it.idle_from;
    return std::max(it.idle_from, After(it.found_at, polling_));
  }

  Status Stuck() const {
    PREPOST_RETURN_IF_ERROR(CheckWithinTime(cluster_.clock, cluster_.network));
    std::string text;
    size_t named = 0;
    for (const ArenaPointer<NodeThread>& each : threads_) {
      const NodeThread& it = *each;
      if (it.state == NodeThread::State::kDone) continue;
      if (named++ == kStuckNodesMax) break;
      fmt::format_to(std::back_inserter(text), "{}group {}, node {}: {}", named == 1 ? "" : "; ",
                     it.group, it.node.value, it.executor->Waiting(kStuckOpsMax));
    }
    return Rejected(fmt::format("nothing happens any more at {} ps, and {} nodes are not done: {}",
                                cluster_.now(), left_, text));
  }

  const std::span<const Group> plans_;
  const CpuDrivenOptions& options_;
  const Picoseconds polling_;
  Cluster cluster_;
  std::vector<Mapping>
      addresses_;  // by group: every node's message is here, as far as addresses go
  std::vector<std::unique_ptr<const BlockPlaces>> places_;  // group by group, of no multicasts
  const std::vector<std::vector<uint32_t>> after_;  // by group: who starts when it is complete
  std::vector<ArenaPointer<NodeThread>> threads_;
  std::vector<size_t> first_thread_;                    // by group: its node 0's
  std::vector<StepId> last_step_;                       // by group: of the trail, at its completion
  std::vector<size_t> left_of_;                         // by group: nodes that are not done
  std::vector<std::vector<NodeThread*>> threads_of_;    // by host
  std::vector<std::vector<ArenaPointer<Core>>> cores_;  // by host
  std::vector<local::DrivenGroup> driven_;              // by group; uses all of the above
  emulated::GrowingRing<Due> due_;
  bool is_acting_ = false;
  size_t left_ = 0;
  Status status_;  // of what hosts have done
  CpuDrivenResult result_;
};

Status CheckOptions(std::span<const Group> groups, const Network& network,
                    const CpuDrivenOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, static_cast<uint32_t>(network.nodes.size())));
  PREPOST_RETURN_IF_ERROR(CheckCosts(options.nic));
  PREPOST_RETURN_IF_ERROR(CheckCosts(options.host));
  PREPOST_RETURN_IF_ERROR(CheckNoise(NoiseOf(options), network.nodes.size()));
  return CheckGroups(groups, network.nodes.size());
}

}  // namespace

Result<CpuDrivenResult> RunCpuDriven(std::span<const Group> groups, const Network& network,
                                     const CpuDrivenOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckOptions(groups, network, options));
  Result<FluidNetwork> fluid = FluidNetwork::Make(network, options.nic.port_sharing);
  if (!fluid.ok()) return fluid.status();
  HostsRun run(groups, network, *std::move(fluid), options);
  const auto end_step = [&](RunStep step, Status status) {
    if (status.ok() && options.done) options.done(step);
    return status;
  };
  PREPOST_RETURN_IF_ERROR(end_step(RunStep::kMake, run.Arm()));
  PREPOST_RETURN_IF_ERROR(end_step(RunStep::kRun, run.Run()));
  PREPOST_RETURN_IF_ERROR(end_step(RunStep::kCheck, run.CheckAll()));
  return run.TakeResult();
}

}  // namespace prepost::sim
