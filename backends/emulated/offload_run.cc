// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/emulated/offload_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "prepost/backends/emulated/fabric.h"
#include "prepost/backends/emulated/stuck_report.h"
#include "prepost/backends/nic/armed_node.h"
#include "prepost/runtime/clock.h"
#include "prepost/runtime/wait_policy.h"

namespace prepost::emulated {
namespace {

Status CheckInputs(const Plan& plan, const nic::QueueProgram& program,
                   std::span<const std::byte> message,
                   std::span<const std::span<std::byte>> node_buffers) {
  const PlanHeader& header = plan.header();
  bool all_nodes = program.nodes.size() == header.nodes;
  for (size_t i = 0; all_nodes && i < program.nodes.size(); ++i) {
    all_nodes = program.nodes[i].node == NodeId::FromIndex(i);
  }
  if (!all_nodes) {
    return Rejected(fmt::format("the queue program is not that of nodes 0 to {}, in this order",
                                header.nodes - 1));
  }
  if (message.size() != header.message.bytes) {
    return Rejected(fmt::format("the message has {} bytes, the plan is for {}", message.size(),
                                header.message.bytes));
  }
  if (node_buffers.size() != header.nodes) {
    return Rejected(fmt::format("{} node buffers were given, the plan has {} nodes",
                                node_buffers.size(), header.nodes));
  }
  for (size_t node = 0; node < node_buffers.size(); ++node) {
    if (NodeId::FromIndex(node) != header.root && node_buffers[node].size() != message.size()) {
      return Rejected(fmt::format("the buffer of node {} has {} bytes, the message has {}", node,
                                  node_buffers[node].size(), message.size()));
    }
  }
  return {};
}

/// What `event` of a queue of `qp` means for an op; none when it is about no op.
std::optional<OpEvent> OpEventOf(const NicEvent& event, const nic::QueuePair& qp) {
  const bool send = event.opcode == nic::Opcode::kSend || event.opcode == nic::Opcode::kSendImm;
  if (!send) return std::nullopt;
  const auto of_send = [&](OpEvent::Kind kind) {
    return OpEvent{event.node, qp.sends[event.wqe_index].op, kind};
  };
  const auto of_receive = [&](OpEvent::Kind kind) {
    return OpEvent{event.node, qp.receives[event.wqe_index].op, kind};
  };
  switch (event.kind) {
    case NicEvent::Kind::kStart:
      return of_send(OpEvent::Kind::kStart);
    case NicEvent::Kind::kRetire:
      return of_send(OpEvent::Kind::kComplete);
    case NicEvent::Kind::kArrive:
      return of_receive(OpEvent::Kind::kStart);
    case NicEvent::Kind::kReceive:
      return of_receive(OpEvent::Kind::kComplete);
    case NicEvent::Kind::kPark:
    case NicEvent::Kind::kError:
      return std::nullopt;
  }
  return std::nullopt;
}

/// One run: arm, start, wait, check.
class OffloadRun {
 public:
  OffloadRun(const Plan& plan, const nic::QueueProgram& program, const OffloadOptions& options)
      : plan_(plan),
        program_(program),
        options_(options),
        fabric_(plan.header().nodes, {.scheduler = options.scheduler,
                                      .seed = options.seed,
                                      .log = options.trace != nullptr || options.observer,
                                      .faults = options.faults}) {}

  Status Arm(std::span<const std::byte> message,
             std::span<const std::span<std::byte>> node_buffers) {
    for (const nic::NodeProgram& program : program_.nodes) {
      const bool root = program.node == plan_.header().root;
      Result<nic::ArmedNode> node =
          nic::ArmedNode::Make(fabric_.device(program.node), program,
                               {.message = root ? message : node_buffers[program.node.index()],
                                .writable = !root,
                                .rnr_retry = program_.rnr_retry,
                                .epoch = options_.epoch});
      if (!node.ok()) return node.status();
      nodes_.push_back(*std::move(node));
    }
    PREPOST_RETURN_IF_ERROR(Connect());
    // The barrier: every receive everywhere is posted before any doorbell anywhere.
    for (nic::ArmedNode& node : nodes_) {
      PREPOST_RETURN_IF_ERROR(node.Arm());
      NotePosted(node.program().node);
    }
    return {};
  }

  /// Rings the doorbells. The NICs are switched on after them, so that a seed gives the same run
  /// every time.
  void Start() {
    report_.executor = "offload";
    report_.detail = "emulated";
    report_.wait = Name(WaitMode::kInterrupt);
    report_.nodes.resize(nodes_.size());
    start_ns_ = MonotonicNs();
    if (options_.trace != nullptr) options_.trace->start_ns = start_ns_;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].Start();
      report_.nodes[i].node = nodes_[i].program().node;
      started_.push_back(fabric_.device(report_.nodes[i].node).counters());
    }
    fabric_.Start(options_.cancel);
  }

  /// Sleeps until every node's final completion.
  Status Wait() {
    for (size_t left = nodes_.size(); left != 0;) {
      const Fabric::Waited waited = fabric_.Wait();
      switch (waited.outcome) {
        case Fabric::Outcome::kEvents:
          break;
        case Fabric::Outcome::kIdle:
          fabric_.Stop();
          return Stuck();
        case Fabric::Outcome::kCancelled:
          return {StatusCode::kInterrupted, "interrupted"};
      }
      for (const CqEvent& event : waited.events) {
        NodeReport& node = report_.nodes[event.node.index()];
        if (node.elapsed_ns != 0) continue;  // one more event of a node that is done
        const Result<bool> done = nodes_[event.node.index()].PollFinal();
        if (!done.ok()) return done.status();
        if (!*done) continue;
        ReportDone(node, event.time_ns);
        --left;
      }
    }
    return {};
  }

  /// After the end: was everything as planned?
  Status Check() {
    fabric_.Stop();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      PREPOST_RETURN_IF_ERROR(nodes_[i].CheckAll());
      const bool root = nodes_[i].program().node == plan_.header().root;
      report_.nodes[i].retries = fabric_.engine().rnr_retries(report_.nodes[i].node);
      report_.nodes[i].bytes_received = root ? 0 : plan_.header().message.bytes;
    }
    if (!fabric_.engine().misuses().empty()) {
      return Rejected("the emulated NICs were misused: " + fabric_.engine().misuses().front());
    }
    return {};
  }

  /// Tells the trace and the observer what the NICs logged.
  void Tell() {
    fabric_.Stop();
    if (fabric_.engine().log().empty()) return;
    std::vector<std::unordered_map<uint32_t, const nic::QueuePair*>> queues(nodes_.size());
    for (const nic::ArmedNode& node : nodes_) {
      for (size_t i = 0; i < node.program().qps.size(); ++i) {
        queues[node.program().node.index()][node.qp(nic::QpId::FromIndex(i)).number] =
            &node.program().qps[i];
      }
    }
    for (const NicEvent& event : fabric_.engine().log()) {
      const std::optional<OpEvent> op = OpEventOf(event, *queues[event.node.index()].at(event.qpn));
      if (!op) continue;
      if (options_.trace != nullptr) options_.trace->Record(*op, event.time_ns);
      if (options_.observer) options_.observer(*op);
    }
  }

  RunReport TakeReport() { return std::move(report_); }

 private:
  /// The node's part of the report, from what its device counted.
  void ReportDone(NodeReport& node, uint64_t time_ns) {
    const nic::DeviceCounters& before = started_[node.node.index()];
    const nic::DeviceCounters now = fabric_.device(node.node).counters();
    node.host_posts_during =
        now.doorbells - before.doorbells + now.event_requests - before.event_requests;
    node.host_posts = before.doorbells + node.host_posts_during;
    node.host_wakeups = now.wakeups - before.wakeups;
    node.host_completions = now.cqes_read - before.cqes_read;
    // Never 0, which means not done, whatever the clock's resolution.
    node.elapsed_ns = std::max<uint64_t>(1, time_ns - start_ns_);
    report_.elapsed_ns = std::max(report_.elapsed_ns, node.elapsed_ns);
  }

  Status Connect() {
    for (nic::ArmedNode& node : nodes_) {
      for (size_t i = 0; i + 1 < node.program().qps.size(); ++i) {  // all but the loopback QP
        const nic::QueuePair& qp = node.program().qps[i];
        const nic::ArmedNode& peer = nodes_[qp.peer.index()];
        const Result<nic::QpId> back = nic::FindQp(peer.program(), node.program().node, qp.lane);
        if (!back.ok()) return back.status();
        PREPOST_RETURN_IF_ERROR(
            node.Connect(nic::QpId::FromIndex(i), {qp.peer, peer.qp(*back).number}));
      }
    }
    return {};
  }

  Status Stuck() {
    // A receive that was flushed, or a stale one, explains more than what waits for it.
    for (const nic::ArmedNode& node : nodes_) {
      if (Status wrong = node.CheckSoFar(); !wrong.ok()) return wrong;
    }
    return Rejected(StuckReport(plan_, nodes_, fabric_.engine().Parked()));
  }

  /// All WQEs of `node` have just been written.
  void NotePosted(NodeId node) {
    if (options_.trace == nullptr) return;
    const uint64_t now_ns = MonotonicNs();
    for (OpTimes& op : options_.trace->times(node)) op.posted_ns = now_ns;
  }

  const Plan& plan_;
  const nic::QueueProgram& program_;
  const OffloadOptions& options_;
  Fabric fabric_;
  std::vector<nic::ArmedNode> nodes_;         // in the order of node ids
  std::vector<nic::DeviceCounters> started_;  // by node: when its doorbells were rung
  uint64_t start_ns_ = 0;
  RunReport report_;
};

}  // namespace

Result<RunReport> RunOffload(const Plan& plan, std::span<const std::byte> message,
                             std::span<const std::span<std::byte>> node_buffers,
                             const OffloadOptions& options) {
  Result<nic::QueueProgram> program =
      nic::Lower(plan, {.limits = options.limits, .node = std::nullopt});
  if (!program.ok()) return program.status();
  return RunQueueProgram(plan, *program, message, node_buffers, options);
}

Result<RunReport> RunQueueProgram(const Plan& plan, const nic::QueueProgram& program,
                                  std::span<const std::byte> message,
                                  std::span<const std::span<std::byte>> node_buffers,
                                  const OffloadOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckInputs(plan, program, message, node_buffers));
  OffloadRun run(plan, program, options);
  PREPOST_RETURN_IF_ERROR(run.Arm(message, node_buffers));
  run.Start();
  Status status = run.Wait();
  if (status.ok()) status = run.Check();
  run.Tell();
  if (!status.ok()) return status;
  return run.TakeReport();
}

}  // namespace prepost::emulated
