// SPDX-License-Identifier: Apache-2.0
#include "tests/support/engines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "backends/emulated/fabric.h"
#include "backends/local/driven_group.h"
#include "backends/local/offload_run.h"
#include "backends/mlx5/stand_in/stand_in.h"
#include "backends/nic/host/armed_node.h"
#include "backends/nic/host/device_endpoint.h"
#include "backends/registry.h"
#include "runtime/base/event_fd.h"
#include "tests/support/op_trace.h"
#include "tests/support/oracle.h"
#include "tests/support/playing_nodes.h"
#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/transfer.h"
#include "tests/support/verbs_device.h"

namespace prepost::test {
namespace {

constexpr std::chrono::milliseconds kWaitMax{1000};

Spec SpecOf(const char* algorithm, uint32_t nodes, uint64_t bytes, uint64_t block_bytes,
            const char* ready) {
  return {.nodes = nodes,
          .message_bytes = bytes,
          .block_bytes = block_bytes,
          .algorithm = algorithm,
          .ready = *ParseReady(ready)};
}

std::vector<Engine> MakeEngines() {
  // More than a socket holds or one visit copies.
  constexpr uint64_t kLarge = 3u << 20;
  // An eighth is more than an MTU, so that packets of blocks interleave.
  constexpr uint64_t kPackets = 40'000;
  // A receive is posted for each block, and no ring of a NIC has room for so many; and no provider
  // has counters for the ends of so many channels.
  const Spec many_blocks = SpecOf("chain", 2, 40'000, 1, "barrier");
  const Spec many_peers = SpecOf("sequential", 100, 10, 10, "window=1");
  const std::string late =
      "libfabric connects with the first message, and tries again where nobody listens";
  const std::string verbs = VerbsDeviceOfTests();
  return {
      {.name = "tcp", .transport = TransportKind::kTcp, .large_block_bytes = kLarge},
      // As over long paths.
      {.name = "tcp_streams",
       .transport = TransportKind::kTcp,
       .streams = 3,
       .large_block_bytes = kLarge},
      // As between members of one machine.
      {.name = "tcp_memory",
       .transport = TransportKind::kTcp,
       .shares_memory = true,
       .large_block_bytes = BlockStage::kBlockBytesMax},
      {.name = "tcp_sealed",
       .transport = TransportKind::kTcp,
       .seal = SealCipher::kChaCha20Poly1305,
       .large_block_bytes = kLarge,
       .fewer = 2},
      {.name = "tcp_streams_sealed",
       .transport = TransportKind::kTcp,
       .streams = 3,
       .seal = SealCipher::kChaCha20Poly1305,
       .large_block_bytes = kLarge,
       .fewer = 2},
      {.name = "shm", .transport = TransportKind::kShm, .large_block_bytes = kLarge},
      {.name = "emulated",
       .nics = FindSoftwareDevice("emulated").make,
       .device = "emulated",
       .too_large = many_blocks,
       .large_block_bytes = kPackets},
      // The same queues are made by commands of firmware: a field that the device writes elsewhere
      // than the stand-in reads, a ring that is not where the NIC reads, shows here. Commands take
      // most of the time, and are the same for larger plans.
      {.name = "mlx5_emulated",
       .nics = FindSoftwareDevice("mlx5:emulated").make,
       .device = "mlx5:emulated",
       .too_large = many_blocks,
       .large_block_bytes = kPackets,
       .fewer = 2,
       .limits = {.nodes_max = 6, .blocks_max = 4}},
      {.name = "mlx5_emulated_infiniband",
       .nics = [](nic::NicModel& nic) { return mlx5::OpenOnStandIn(nic, {}); },
       .large_block_bytes = kPackets,
       .fewer = 2,
       .limits = {.nodes_max = 6, .blocks_max = 4}},
      {.name = "fabric_sockets",
       .device = "fabric:sockets",
       .too_large = many_peers,
       .connects_late = late,
       .fewer = 16},
      {.name = "fabric_tcp",
       .device = "fabric:tcp",
       .connects_late = late,
       .fewer = 32,
       .limits = {.nodes_max = 6, .blocks_max = 6}},
      // Endpoints of fabric:shm are named by their process, which is one here: run_test.cc.
      {.name = "verbs", .device = verbs.empty() ? "verbs:" : verbs, .fewer = 2},
  };
}

/// What a preposted host does while the rest is up to the device: it starts it, and wakes up at the
/// end.
void ExpectIdle(const NodeReport& report, uint64_t timeouts) {
  EXPECT_EQ(report.host_posts_during, 0u);
  EXPECT_EQ(report.host_event_requests_during, 0u);
  EXPECT_LE(report.host_wakeups, 1u + timeouts);
  EXPECT_GE(report.host_posts, 1u);
}

/// What was done, and the bound by the queues' lengths.
void ExpectRearmsWithinBound(const RunReport& report) {
  for (const NodeReport& node : report.nodes)
    EXPECT_LE(node.rearms, node.rearms_max) << "node " << node.node.value;
  for (const QueueRearms& it : report.queue_rearms)
    EXPECT_LE(it.rearms, it.bound) << "node " << it.node.value << " " << it.queue;
}

/// A thread for each of armed `executors`, which it starts and polls. One that fails ends the
/// others, whose endpoints have the same `wake`.
Result<RunReport> PlayHosts(const std::vector<CpuExecutor*>& executors, WaitMode wait,
                            const EventFd& wake) {
  std::atomic<bool> has_ended = false;
  const auto play = [&](CpuExecutor& executor) -> Status {
    WaitPacer pacer({.mode = wait, .idle_max = std::chrono::milliseconds(1)});
    executor.Start();
    while (!executor.done() && !has_ended)
      PREPOST_RETURN_IF_ERROR(executor.Poll(pacer.Timeout(executor.progress())));
    return {};
  };
  std::vector<Status> statuses(executors.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < executors.size(); ++i) {
    threads.emplace_back([&, i] {
      statuses[i] = play(*executors[i]);
      if (statuses[i].ok()) return;
      has_ended = true;
      wake.Signal();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) PREPOST_RETURN_IF_ERROR(status);
  RunReport report;
  for (const CpuExecutor* const executor : executors) report.nodes.push_back(executor->report());
  return report;
}

/// Over memory that the transport can share, from and to which `memory` is copied.
Result<RunReport> PlayOverTransport(const Engine& engine, const VerifiedPlan& plan,
                                    std::span<const NodeMemory> memory,
                                    const PlayOptions& options) {
  const Collective& collective = plan.header().collective;
  const bool is_multicast = collective.kind == CollectiveKind::kMulticast;
  std::vector<std::byte> input;
  for (uint32_t node = 0; node < memory.size(); ++node) {
    const std::span<const std::byte> its = memory[node].source;
    if (!is_multicast || NodeId(node) == collective.root)
      input.insert(input.end(), its.begin(), its.end());
  }
  LocalNodes local(plan,
                   {.transport = *engine.transport,
                    .streams = engine.streams,
                    .seal = engine.seal,
                    .shares_memory = engine.shares_memory},
                   std::move(input));
  Result<RunReport> report = PlayLocal(plan, local, options.observer, options.wait);
  for (uint32_t node = 0; node < memory.size(); ++node)
    std::ranges::copy(local.memory(NodeId(node)).target, memory[node].target.begin());
  return report;
}

/// Each node by itself, over the device that `open` opens.
Result<RunReport> PlayOverDevices(const PlayingNodes::Open& open, const VerifiedPlan& plan,
                                  std::span<const NodeMemory> memory, const PlayOptions& options) {
  const uint32_t count = plan.header().nodes;
  const std::vector<bool> preposted =
      options.preposted.empty() ? std::vector<bool>(count) : options.preposted;
  auto made = PlayingNodes::Make(open, plan, preposted);
  if (!made.ok()) return made.status();
  PlayingNodes& nodes = **made;
  std::vector<uint64_t> wakeups(count);  // that an observer was told of
  const auto prepared = nodes.All([&](uint32_t node, PlayingNode& its) {
    const auto observe = [&options, &wakeups, node](const OpEvent& event) {
      if (event.kind == OpEvent::Kind::kWakeup) ++wakeups[node];
      if (options.observer) options.observer(event);
    };
    return its.Make(plan, memory[node], {.observer = observe});
  });
  if (!prepared) return Rejected(prepared.message());
  options.before_start();
  RunReport report;
  report.nodes.resize(count);
  std::vector<uint64_t> timeouts(count);
  const auto played = nodes.All([&](uint32_t node, PlayingNode& its) {
    const auto began = std::chrono::steady_clock::now();
    its.player().Start();
    const Status status = its.Poll([] { return false; }, kWaitMax);
    report.nodes[node] = its.player().report();
    const auto elapsed = std::chrono::steady_clock::now() - began;
    timeouts[node] = static_cast<uint64_t>(elapsed / kWaitMax);
    return status;
  });
  nodes.EndPlayers();
  if (!played) return Rejected(played.message());
  for (uint32_t node = 0; node < count; ++node) {
    SCOPED_TRACE(testing::Message() << "node " << node);
    EXPECT_EQ(wakeups[node], report.nodes[node].host_wakeups);
    if (preposted[node]) ExpectIdle(report.nodes[node], timeouts[node]);
  }
  return report;
}

/// A thread for each node's executor.
Result<RunReport> PlayDriven(const Engine& engine, const VerifiedPlan& plan,
                             std::span<const NodeMemory> memory, const PlayOptions& options) {
  emulated::Fabric fabric(plan.header().nodes,
                          {.scheduler = options.scheduler, .seed = options.seed});
  if (*engine.nics) PREPOST_RETURN_IF_ERROR(fabric.MakeDevices(*engine.nics));
  const EventFd wake = *EventFd::Make();
  auto group = local::DrivenGroup::Make(
      fabric, plan, memory,
      {.ring_wqes_max = options.ring_wqes_max, .wake_fd = wake.fd(), .observer = options.observer});
  if (!group.ok()) return group.status();
  std::vector<CpuExecutor*> executors;
  for (uint32_t node = 0; node < group->size(); ++node)
    executors.push_back(&group->executor(NodeId(node)));
  PREPOST_RETURN_IF_ERROR(fabric.Start(emulated::Fabric::Until::kStopped));
  Result<RunReport> report = PlayHosts(executors, options.wait, wake);
  fabric.Stop();
  if (report.ok()) PREPOST_RETURN_IF_ERROR(local::CheckMisuses(fabric));
  return report;
}

/// One node on a NIC, preposted or driven.
class Member {
 public:
  /// Connected by ConnectAll(). `program`: null, it is driven.
  Status Make(nic::Device& device, const VerifiedPlan& plan, NodeId node,
              const nic::NodeProgram* program, const NodeMemory& memory) {
    const bool writable = !memory.target.empty();
    if (program != nullptr) {
      auto made = nic::ArmedNode::Make(device, *program,
                                       {.messages = {memory.source},
                                        .writable = writable,
                                        .rnr_retry = nic::RnrRetryOf(plan.header())});
      if (made.ok()) armed_.emplace(*std::move(made));
      return made.status();
    }
    auto made = nic::DeviceEndpoint::Make(device, plan, node,
                                          {.message = memory.source, .writable = writable});
    if (!made.ok()) return made.status();
    endpoint_ = *std::move(made);
    executor_ = std::make_unique<CpuExecutor>(plan, node, *endpoint_);
    executor_->Prepare(memory);
    return {};
  }

  nic::OpenNode open_node() const { return armed_ ? armed_->open_node() : endpoint_->open_node(); }
  Status Arm() {
    if (armed_) return armed_->Arm();
    executor_->Arm();
    return {};
  }
  void Start() { armed_ ? armed_->Start() : executor_->Start(); }
  Status Poll() {
    if (is_done_) return {};
    if (!armed_) {
      PREPOST_RETURN_IF_ERROR(executor_->Poll(std::chrono::milliseconds(0)));
      is_done_ = executor_->done();
      return {};
    }
    const Result<bool> done = armed_->Poll(std::chrono::milliseconds(0), /*wake_fd=*/-1);
    if (!done.ok()) return done.status();
    is_done_ = *done;
    return is_done_ ? armed_->CheckAll() : Status();
  }
  bool is_done() const { return is_done_; }

 private:
  bool is_done_ = false;
  std::optional<nic::ArmedNode> armed_;
  std::unique_ptr<nic::DeviceEndpoint> endpoint_;
  std::unique_ptr<CpuExecutor> executor_;
};

/// Some nodes are preposted, and others driven. All hosts and NICs are this thread, in an order
/// that is the seed's.
Result<RunReport> PlayMixed(const Engine& engine, const VerifiedPlan& plan,
                            std::span<const NodeMemory> memory, const PlayOptions& options) {
  const auto program = nic::Lower(plan, options.lower);
  if (!program.ok()) return program.status();
  emulated::Fabric fabric(plan.header().nodes,
                          {.scheduler = options.scheduler, .seed = options.seed});
  if (*engine.nics) PREPOST_RETURN_IF_ERROR(fabric.MakeDevices(*engine.nics));
  std::vector<Member> members(memory.size());
  std::vector<nic::OpenNode> open;
  for (uint32_t i = 0; i < members.size(); ++i) {
    const NodeId node(i);
    PREPOST_RETURN_IF_ERROR(members[i].Make(fabric.device(node), plan, node,
                                            options.preposted[i] ? &program->nodes[i] : nullptr,
                                            memory[i]));
    open.push_back(members[i].open_node());
  }
  PREPOST_RETURN_IF_ERROR(nic::ConnectAll(open));
  for (Member& member : members) PREPOST_RETURN_IF_ERROR(member.Arm());
  for (Member& member : members) member.Start();
  for (uint64_t steps = UINT64_MAX; steps != fabric.engine().steps();) {
    steps = fabric.engine().steps();
    fabric.RunUntilIdle();
    for (Member& member : members) PREPOST_RETURN_IF_ERROR(member.Poll());
  }
  if (!std::ranges::all_of(members, &Member::is_done)) return Rejected("a node stands still");
  PREPOST_RETURN_IF_ERROR(local::CheckMisuses(fabric));
  return RunReport();
}

/// All hosts are one thread.
Result<RunReport> PlayPreposted(const Engine& engine, const VerifiedPlan& plan,
                                std::span<const NodeMemory> memory, const PlayOptions& options) {
  std::vector<std::span<std::byte>> buffers;
  for (const NodeMemory& it : memory) buffers.push_back(it.target);
  auto report =
      local::RunOffload(plan, memory[plan.header().collective.root.index()].source, buffers,
                        {.make_device = *engine.nics,
                         .lower = options.lower,
                         .scheduler = options.scheduler,
                         .seed = options.seed,
                         .first = options.first,
                         .observer = options.observer});
  if (!report.ok()) return report;
  ExpectRearmsWithinBound(*report);
  if (options.lower.profile != nic::DeviceProfile{}) return report;
  for (const NodeReport& node : report->nodes) {
    SCOPED_TRACE(testing::Message() << "node " << node.node.value);
    ExpectIdle(node, /*timeouts=*/0);
    EXPECT_EQ(node.host_wakeups, 1u);
    EXPECT_EQ(node.host_completions, 1u);
  }
  return report;
}

bool AllAreDriven(const PlayOptions& options) {
  return std::ranges::find(options.preposted, true) == options.preposted.end();
}
bool AllArePreposted(const PlayOptions& options) {
  return !options.preposted.empty() &&
         std::ranges::find(options.preposted, false) == options.preposted.end();
}

}  // namespace

std::optional<std::string> Engine::WhySkipped() const {
  if (!is_library()) return std::nullopt;
  if (device == "verbs:") return kNoVerbsDevice;
  if (kHasThreadSanitizer)
    return "the thread sanitizer does not see how a library's threads are ordered";
  const Status found = FindListed(listed_name()).status();
  if (found.ok()) return std::nullopt;
  return found.message();
}

bool Engine::IsObserved(const PlayOptions& options) const {
  return AllAreDriven(options) || (nics && AllArePreposted(options));
}

Result<RunReport> Engine::Play(const VerifiedPlan& plan, std::span<const NodeMemory> memory,
                               const PlayOptions& options) const {
  if (transport) return PlayOverTransport(*this, plan, memory, options);
  if (nics && AllAreDriven(options)) return PlayDriven(*this, plan, memory, options);
  if (nics && AllArePreposted(options)) return PlayPreposted(*this, plan, memory, options);
  if (nics) return PlayMixed(*this, plan, memory, options);
  return PlayOverDevices(
      [&](uint32_t node) {
        const bool needs_offload = !options.preposted.empty() && options.preposted[node];
        return OpenPlayerDevice(device, {.needs_offload = needs_offload});
      },
      plan, memory, options);
}

const std::vector<Engine>& Engines() {
  static const std::vector<Engine> engines = MakeEngines();
  return engines;
}

const Engine& EngineOf(const std::string& name) {
  const auto found = std::ranges::find(Engines(), name, &Engine::name);
  PREPOST_CHECK(found != Engines().end());
  return *found;
}

std::vector<std::string> EnginesWhere(const std::function<bool(const Engine&)>& takes) {
  std::vector<std::string> names;
  for (const Engine& engine : Engines()) {
    if (takes(engine)) names.push_back(engine.name);
  }
  return names;
}

std::string Way::name() const {
  if (engine->transport) return engine->name;
  if (!is_preposted) return engine->name + "_driven";
  return engine->name + "_" + std::string(engine->nics ? nic::Name(mode) : "preposted");
}

PlayOptions Way::Options(const VerifiedPlan& plan) const {
  PlayOptions options{.lower = {.mode = mode}};
  if (is_preposted) options.preposted.assign(plan.header().nodes, true);
  return options;
}

std::vector<Way> Ways(const std::function<bool(const Way&)>& takes) {
  std::vector<Way> ways;
  for (const Engine& engine : Engines()) {
    ways.push_back({&engine});
    if (engine.can_prepost()) ways.push_back({&engine, true});
    if (engine.nics) ways.push_back({&engine, true, nic::LoweringMode::kManaged});
  }
  std::erase_if(ways, [&](const Way& way) { return !takes(way); });
  return ways;
}

Result<RunReport> PlayLocal(Playable plan, LocalNodes& nodes, const OpObserver& observer,
                            WaitMode wait) {
  std::vector<std::unique_ptr<CpuExecutor>> executors;
  std::vector<CpuExecutor*> armed;
  for (uint32_t node = 0; node < plan.header().nodes; ++node) {
    executors.push_back(
        std::make_unique<CpuExecutor>(plan, NodeId(node), nodes.endpoint(NodeId(node)), observer));
    executors.back()->Prepare(nodes.memory(NodeId(node)));
    executors.back()->Arm();
    armed.push_back(executors.back().get());
  }
  return PlayHosts(armed, wait, nodes.wake());
}

void ExpectDelivers(const Engine& engine, const VerifiedPlan& plan, PlayOptions options) {
  SCOPED_TRACE(testing::Message() << engine.name << ", " << Name(options.scheduler) << " seed "
                                  << options.seed << ", " << Name(options.wait) << ", rings of "
                                  << options.ring_wqes_max << ", " << Name(options.lower.mode));
  Transfer transfer(plan.header());
  OpTrace order(plan);
  if (engine.IsObserved(options)) options.observer = order.Observer();
  const Result<RunReport> report = engine.Play(
      plan, local::MulticastMemory(plan.header(), transfer.message(), transfer.buffers()), options);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  Random random(options.seed);
  const auto expected = Deliver(plan, transfer.message(), random);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  transfer.ExpectHolds(*expected);
  transfer.ExpectDelivered();
  if (engine.IsObserved(options)) order.ExpectPlanOrder();
}

}  // namespace prepost::test
