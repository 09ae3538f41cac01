// SPDX-License-Identifier: Apache-2.0
//
// Each node of each group has a HostThread, which is
//
//     idle      its NIC will tell of the next CQE. When that comes, it is due to look: when it is
//               through with what it found last; after that, at once if it polls, after an
//               interrupt if it sleeps
//     due       it will look at a time that is known
//     queued    it waits for its core, first come first served, and for the core to be there
//     done      it has found its last completion
//
// What a look takes is known at once (host_thread.cc), so its end needs no event.
//
// Time stands still while threads act, and they act when all else that happens at that time has
// happened (HostHandler). So it does not matter which of several CQEs of the same time was written
// first.
#include "prepost/backends/emulated/virtual_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "prepost/backends/emulated/armed_group.h"
#include "prepost/backends/emulated/cpu_core.h"
#include "prepost/backends/emulated/driven_group.h"
#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/emulated/virtual_clock.h"
#include "prepost/runtime/mapping.h"

namespace prepost::emulated {
namespace {

constexpr uint64_t kSteps = 1 << 12;  // between two looks at the checkpoint
constexpr size_t kStuckNodesMax = 3;  // that are named
constexpr size_t kStuckOpsMax = 3;    // of each

/// Different for every core of a cluster.
uint64_t SeedOf(uint64_t seed, uint32_t host, size_t core) {
  std::seed_seq mix{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), host,
                    static_cast<uint32_t>(core)};
  std::array<uint32_t, 2> words = {};
  mix.generate(words.begin(), words.end());
  return uint64_t{words[0]} << 32 | words[1];
}

struct Player;

struct Core {
  Core(const HostCosts& costs, const std::vector<HostDelay>& delays, uint64_t seed)
      : cpu(costs, delays, seed) {}

  CpuCore cpu;
  Picoseconds busy_until = 0;
  bool is_free_due = false;  ///< somebody waits for that
  GrowingRing<Player*> queue;
};

/// A thread and what it is at.
struct Player {
  enum class State : uint8_t { kIdle, kDue, kQueued, kDone };

  Player(const HostCosts& costs, Core& core_in, VirtualClock& clock, TimeHandler& handler,
         nic::DeviceEndpoint& endpoint, const Plan& part, bool is_root)
      : thread(costs, core_in.cpu, clock, handler, endpoint, part, is_root),
        core(core_in),
        cqn(endpoint.cq_number()) {}

  HostThread thread;
  Core& core;
  uint32_t cqn;
  uint32_t host = 0;
  uint32_t group = 0;
  NodeId node;
  CpuExecutor* executor = nullptr;
  State state = State::kIdle;
  bool is_started = false;
  bool is_asked = false;      ///< its NIC will tell of the next CQE
  Picoseconds found_at = 0;   ///< the last look that found something
  Picoseconds idle_from = 0;  ///< through with what it found, it looks for more
};

class HostsRun final : private TimeHandler, private HostHandler {
 public:
  HostsRun(std::span<const VirtualGroup> groups, uint32_t hosts, FluidNetwork network,
           const VirtualHostsOptions& options)
      : plans_(groups),
        options_(options),
        network_(std::move(network)),
        fabric_(hosts, {.time = {.clock = &clock_,
                                 .network = &network_,
                                 .costs = options.nic,
                                 .hosts = this}}),
        players_of_(hosts),
        cores_(hosts) {
    result_.hosts.resize(hosts);
  }

  Status Arm() {
    for (const VirtualGroup& group : plans_) {
      PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
      PREPOST_RETURN_IF_ERROR(ArmGroup(group));
    }
    return {};
  }

  Status Run() {
    for (left_ = players_.size(); left_ != 0;) {
      const bool is_busy = fabric_.RunSome(kSteps);
      PREPOST_RETURN_IF_ERROR(status_);
      if (!is_busy && left_ != 0) return Stuck();
      PREPOST_RETURN_IF_ERROR(Check(options_.checkpoint));
    }
    return {};
  }

  Status CheckAll() const {
    PREPOST_RETURN_IF_ERROR(network_.CheckShares());
    PREPOST_RETURN_IF_ERROR(CheckMisuses(fabric_));
    for (const Player& player : players_) {
      if (const std::optional<uint64_t> block = fabric_.MissingBlock(NodeId(player.host))) {
        return Rejected(fmt::format("host {} has no block {} in the end", player.host, *block));
      }
    }
    return {};
  }

  VirtualHosts TakeResult() {
    for (const Player& player : players_) {
      VirtualHosts::Group& group = result_.groups[player.group];
      group.nodes[player.node.index()].work = player.thread.work();
      group.completion = std::max(group.completion, group.nodes[player.node.index()].completion);
    }
    for (size_t i = 0; i < cores_.size(); ++i) {
      for (const Core& core : cores_[i]) {
        result_.hosts[i].busy += core.cpu.busy();
        result_.hosts[i].delayed += core.cpu.delayed();
      }
    }
    for (const Resource resource : network_.resources()) {
      const LinkUse use = network_.UseOf(resource, clock_.now());
      if (use.bytes != 0) result_.links.push_back({resource, use});
    }
    result_.counters = fabric_.engine().counters();
    return std::move(result_);
  }

 private:
  enum What : uint32_t { kPostDue = HostThread::kPostDue, kLookDue, kFreeDue };
  struct Due {
    Player* player = nullptr;
    uint32_t what = kLookDue;
  };

  Status ArmGroup(const VirtualGroup& group) {
    const PlanHeader& header = group.plan->header();
    Result<Mapping> addresses = Mapping::Reserved(header.message.bytes);
    if (!addresses.ok()) return addresses.status();
    addresses_.push_back(*std::move(addresses));
    fabric_.HoldTags(header.message.block_bytes);
    const std::vector<std::span<std::byte>> buffers(header.nodes, addresses_.back().bytes());
    const size_t first = players_.size();
    const auto wrap = [&](NodeId node, nic::DeviceEndpoint& endpoint,
                          const Plan& part) -> Endpoint& {
      return AddPlayer(group, node, endpoint, part).thread;
    };
    Result<DrivenGroup> made =
        DrivenGroup::Make(fabric_, *group.plan, addresses_.back().bytes(), buffers,
                          {.ring_wqes_max = options_.ring_wqes_max,
                           .hosts = group.hosts,
                           .may_sleep = false,
                           .wrap = wrap});
    if (!made.ok()) return made.status();
    driven_.push_back(*std::move(made));
    for (size_t i = first; i < players_.size(); ++i) {
      Player& player = players_[i];
      player.executor = &driven_.back().executor(player.node);
      player.state = Player::State::kDue;
      Schedule(group.start, player, kLookDue);
    }
    result_.groups.emplace_back().nodes.resize(header.nodes);
    return {};
  }

  Player& AddPlayer(const VirtualGroup& group, NodeId node, nic::DeviceEndpoint& endpoint,
                    const Plan& part) {
    const uint32_t host = group.hosts.empty() ? node.value : group.hosts[node.index()].value;
    Player& player = players_.emplace_back(options_.host, CoreFor(host), clock_,
                                           static_cast<TimeHandler&>(*this), endpoint, part,
                                           node == part.header().root);
    player.host = host;
    player.group = static_cast<uint32_t>(result_.groups.size());
    player.node = node;
    players_of_[host].push_back(&player);
    return player;
  }

  /// Of the host's next thread.
  Core& CoreFor(uint32_t host) {
    std::deque<Core>& cores = cores_[host];
    const size_t index = players_of_[host].size() % options_.host.cores;
    if (index == cores.size()) {
      std::vector<HostDelay> delays;
      std::ranges::copy_if(options_.delays, std::back_inserter(delays),
                           [&](const HostDelay& delay) { return delay.host.value == host; });
      cores.emplace_back(options_.host, delays, SeedOf(options_.seed, host, index));
    }
    return cores[index];
  }

  /// Also for now: then it is done before time goes on, after what else happens now.
  void Schedule(Picoseconds at, Player& player, What what) {
    if (at == clock_.now() && is_acting_) {
      due_.push_back({&player, what});
    } else {
      clock_.Schedule(at, *this, {.subject = &player, .value = 0, .what = what});
    }
  }

  void OnTime(const TimedEvent& event) override {
    if (event.what == kPostDue) return static_cast<HostThread*>(event.subject)->MakePosts();
    due_.push_back({static_cast<Player*>(event.subject), event.what});
    clock_.Hold();
  }

  void Foresee(const TimedEvent& event) const override {
    if (event.what == kPostDue) return static_cast<const HostThread*>(event.subject)->Foresee();
    const auto& player = *static_cast<const Player*>(event.subject);
    player.thread.Foresee();
    PrefetchObject(*player.executor);
    PrefetchObject(player.core);
  }

  bool Act(std::span<const CqEvent> events) override {
    is_acting_ = true;
    for (const CqEvent& event : events) TakeEvent(event);
    while (!due_.empty() && status_.ok()) {
      const Due due = due_.front();
      due_.pop_front();
      status_ = ActOn(due);
    }
    is_acting_ = false;
    return status_.ok() && left_ != 0;
  }

  /// The NIC tells of a CQE; or, with number 0, of an error, which everyone is to look for.
  void TakeEvent(const CqEvent& event) {
    for (Player* player : players_of_[event.node.index()]) {
      if (event.cqn == player->cqn) player->is_asked = false;
      if (event.cqn == player->cqn || event.cqn == 0) Tell(*player);
    }
  }

  void Tell(Player& player) {
    if (player.state != Player::State::kIdle) return;
    player.state = Player::State::kDue;
    Schedule(NextLook(player), player, kLookDue);
  }

  /// Of an idle thread that is told now.
  Picoseconds NextLook(Player& player) const {
    const Picoseconds now = clock_.now();
    if (now <= player.idle_from) return player.idle_from;
    const bool polls = options_.wait == WaitMode::kPolling ||
                       (options_.wait == WaitMode::kHybrid &&
                        now <= After(player.found_at, options_.host.hybrid_polling));
    if (polls) return now;
    player.thread.CountWakeup();
    return After(now, options_.host.interrupt);
  }

  Status ActOn(const Due& due) {
    if (due.what == kLookDue) return Look(*due.player);
    due.player->core.is_free_due = false;
    return Serve(due.player->core);
  }

  Status Look(Player& player) {
    player.state = Player::State::kQueued;
    player.core.queue.push_back(&player);
    return Serve(player.core);
  }

  /// Lets those that wait for the core look, until one of them finds something.
  Status Serve(Core& core) {
    while (!core.queue.empty()) {
      Player& player = *core.queue.front();
      if (core.busy_until <= clock_.now()) core.busy_until = core.cpu.WhenBack(clock_.now());
      if (core.busy_until > clock_.now()) {
        if (!std::exchange(core.is_free_due, true)) Schedule(core.busy_until, player, kFreeDue);
        return {};
      }
      core.queue.pop_front();
      PREPOST_RETURN_IF_ERROR(LookNow(player));
    }
    return {};
  }

  Status LookNow(Player& player) {
    HostThread& thread = player.thread;
    bool has_found = true;
    if (!std::exchange(player.is_started, true)) {
      thread.Start(*player.executor);
    } else {
      const Result<bool> found = thread.Look(*player.executor);
      if (!found.ok()) return found.status();
      has_found = *found;
    }
    player.idle_from = thread.until();
    if (player.idle_from == kNever) {
      clock_.NoteMissed();
      return Stuck();
    }
    if (has_found) {
      player.core.busy_until = thread.until();
      player.found_at = clock_.now();
    }
    if (player.executor->done()) {
      player.state = Player::State::kDone;
      result_.groups[player.group].nodes[player.node.index()].completion = thread.until();
      --left_;
      return {};
    }
    if (thread.may_find_more()) {
      player.state = Player::State::kDue;
      Schedule(thread.until(), player, kLookDue);
      return {};
    }
    player.state = Player::State::kIdle;
    if (std::exchange(player.is_asked, true)) return {};
    return fabric_.nic(NodeId(player.host)).ArmForNext(player.cqn);
  }

  Status Stuck() const {
    PREPOST_RETURN_IF_ERROR(CheckWithinTime(clock_, network_));
    std::string text;
    size_t named = 0;
    for (const Player& player : players_) {
      if (player.state == Player::State::kDone) continue;
      if (named++ == kStuckNodesMax) break;
      fmt::format_to(std::back_inserter(text), "{}group {}, node {}: {}", named == 1 ? "" : "; ",
                     player.group, player.node.value, player.executor->Waiting(kStuckOpsMax));
    }
    return Rejected(fmt::format("nothing happens any more at {} ps, and {} nodes are not done: {}",
                                clock_.now(), left_, text));
  }

  const std::span<const VirtualGroup> plans_;
  const VirtualHostsOptions& options_;
  VirtualClock clock_;
  FluidNetwork network_;
  Fabric fabric_;
  std::vector<Mapping>
      addresses_;  // by group: every node's message is here, as far as addresses go
  std::deque<Player> players_;
  std::vector<std::vector<Player*>> players_of_;  // by host
  std::vector<std::deque<Core>> cores_;           // by host
  std::vector<DrivenGroup> driven_;               // by group; uses all of the above
  GrowingRing<Due> due_;
  bool is_acting_ = false;
  size_t left_ = 0;
  Status status_;  // of what hosts have done
  VirtualHosts result_;
};

Status CheckGroup(const VirtualGroup& group, size_t hosts) {
  const uint32_t nodes = group.plan->header().nodes;
  if (group.start < 0) return Rejected(fmt::format("it starts at {} ps", group.start));
  if (group.hosts.empty() && nodes <= hosts) return {};
  if (group.hosts.size() != nodes) {
    return Rejected(fmt::format("a plan of {} nodes for {} hosts", nodes,
                                group.hosts.empty() ? hosts : group.hosts.size()));
  }
  std::vector<bool> is_taken(hosts);
  for (const NodeId host : group.hosts) {
    if (host.index() >= hosts) {
      return Rejected(fmt::format("host {}, and there are {}", host.value, hosts));
    }
    if (is_taken[host.index()]) return Rejected(fmt::format("host {} is there twice", host.value));
    is_taken[host.index()] = true;
  }
  return {};
}

Status CheckOptions(std::span<const VirtualGroup> groups, const Network& network,
                    const VirtualHostsOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckNetwork(network, static_cast<uint32_t>(network.nodes.size())));
  PREPOST_RETURN_IF_ERROR(CheckCosts(options.nic));
  PREPOST_RETURN_IF_ERROR(CheckCosts(options.host));
  for (const HostDelay& delay : options.delays) {
    if (delay.host.index() >= network.nodes.size() || delay.at < 0 || delay.length < 0) {
      return Rejected(fmt::format("a delay of host {} at {} ps for {} ps", delay.host.value,
                                  delay.at, delay.length));
    }
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const Status status = CheckGroup(groups[i], network.nodes.size());
    if (!status.ok()) return Rejected(fmt::format("group {}: {}", i, status.message()));
  }
  return {};
}

}  // namespace

Result<VirtualHosts> RunVirtualHosts(std::span<const VirtualGroup> groups, const Network& network,
                                     const VirtualHostsOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckOptions(groups, network, options));
  Result<FluidNetwork> fluid = FluidNetwork::Make(network);
  if (!fluid.ok()) return fluid.status();
  HostsRun run(groups, static_cast<uint32_t>(network.nodes.size()), *std::move(fluid), options);
  const auto end_step = [&](VirtualStep step, Status status) {
    if (status.ok() && options.done) options.done(step);
    return status;
  };
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kMake, run.Arm()));
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kRun, run.Run()));
  PREPOST_RETURN_IF_ERROR(end_step(VirtualStep::kCheck, run.CheckAll()));
  return run.TakeResult();
}

}  // namespace prepost::emulated
