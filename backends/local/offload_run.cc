// SPDX-License-Identifier: Apache-2.0
#include "backends/local/offload_run.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "backends/emulated/fabric.h"
#include "backends/local/armed_group.h"
#include "backends/nic/host/preposted_host.h"
#include "backends/nic/host/queue_watch.h"
#include "backends/nic/validate/object_table.h"
#include "runtime/base/clock.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/interrupt.h"
#include "runtime/executor/wait_policy.h"

namespace prepost::local {
namespace {

// What an epoll event is about: a node, or one of these.
constexpr uint32_t kEngineEnded = 0xffffffff;
constexpr uint32_t kInterrupt = 0xfffffffe;
/// How long no host has an event before the NICs' progress is checked.
constexpr int kLookMs = 50;
constexpr int kLooks = 10;      // within the time that nothing may move
constexpr int kLooksMs = 1000;  // at most between two of these
/// Open files besides the NICs' own.
constexpr size_t kOwnFiles = 32;

Status CheckTransfer(const Plan& plan, const MessageBuffers& transfer) {
  const PlanHeader& header = plan.header();
  const auto [message, node_buffers] = transfer;
  if (message.size() != header.payload.bytes) {
    return Rejected(fmt::format("the message has {} bytes, the plan is for {}", message.size(),
                                header.payload.bytes));
  }
  if (node_buffers.size() != header.nodes) {
    return Rejected(fmt::format("{} node buffers were given, the plan has {} nodes",
                                node_buffers.size(), header.nodes));
  }
  for (size_t node = 0; node < node_buffers.size(); ++node) {
    if (header.roles().IsTarget(NodeId::FromIndex(node)) &&
        node_buffers[node].size() != message.size()) {
      return Rejected(fmt::format("the buffer of node {} has {} bytes, the message has {}", node,
                                  node_buffers[node].size(), message.size()));
    }
  }
  return {};
}

/// A QP's queues as the log runs through them. Indices in the log have 16 bits; those of one queue
/// come nearly in order.
struct LoggedQueues {
  const nic::QueuePair* qp = nullptr;
  uint16_t sq_base = 0;  ///< index of the first send WQE
  uint64_t sends_at = 0;
  uint64_t receives_at = 0;

  /// The op of the WQE or receive `index`, given the one that the last call was about.
  template <typename Entry>
  static OpId OpAt(const std::vector<Entry>& entries, uint64_t* at, uint16_t index) {
    const auto ahead = static_cast<int16_t>(index - static_cast<uint16_t>(*at));
    *at += static_cast<uint64_t>(int64_t{ahead});
    return entries[*at % entries.size()].op;
  }
};

/// What `event` of a queue means for an op; none when it is about no op.
std::optional<OpEvent> OpEventOf(const emulated::NicEvent& event, LoggedQueues& queues) {
  if (!nic::IsSend(event.opcode)) return std::nullopt;
  const auto of_send = [&](OpEvent::Kind kind) {
    const OpId op = queues.OpAt(queues.qp->sends, &queues.sends_at,
                                static_cast<uint16_t>(event.wqe_index - queues.sq_base));
    return OpEvent{event.node, op, kind};
  };
  const auto of_receive = [&](OpEvent::Kind kind) {
    const OpId op = queues.OpAt(queues.qp->receives, &queues.receives_at, event.wqe_index);
    return OpEvent{event.node, op, kind};
  };
  switch (event.kind) {
    case emulated::NicEvent::Kind::kStart:
      return of_send(OpEvent::Kind::kStart);
    case emulated::NicEvent::Kind::kRetire:
      return of_send(OpEvent::Kind::kComplete);
    case emulated::NicEvent::Kind::kArrive:
      return of_receive(OpEvent::Kind::kStart);
    case emulated::NicEvent::Kind::kReceive:
      return of_receive(OpEvent::Kind::kComplete);
    case emulated::NicEvent::Kind::kPark:
    case emulated::NicEvent::Kind::kError:
      return std::nullopt;
  }
  return std::nullopt;
}

/// One run: arm, start, wait, check.
class OffloadRun {
 public:
  OffloadRun(const VerifiedPlan& plan, const nic::QueueProgram& program,
             const OffloadOptions& options)
      : plan_(plan),
        program_(program),
        options_(options),
        fabric_(plan.header().nodes, {.scheduler = options.scheduler,
                                      .seed = options.seed,
                                      .log = options.trace != nullptr || options.observer,
                                      .faults = options.faults}) {}

  Status Arm(std::span<const MessageBuffers> transfers) {
    PREPOST_RETURN_IF_ERROR(RaiseFileLimit(program_.nodes.size() + kOwnFiles));
    if (options_.make_device) {
      PREPOST_RETURN_IF_ERROR(fabric_.MakeDevices(options_.make_device));
    }
    Result<ArmedGroup> group =
        ArmedGroup::Make(fabric_, plan_, program_, transfers, options_.first);
    if (!group.ok()) return group.status();
    left_.assign(program_.nodes.size(), transfers.size());
    hosts_act_ = transfers.size() > 1 ||
                 std::ranges::any_of(program_.nodes, [](const nic::NodeProgram& node) {
                   return node.rearms() != 0;
                 });
    group_.emplace(*std::move(group));
    for (nic::ArmedNode& node : group_->nodes()) {
      PREPOST_RETURN_IF_ERROR(CheckInterrupt());
      PREPOST_RETURN_IF_ERROR(node.Arm());
      NotePosted(node.program().node);
    }
    return {};
  }

  /// Validates what is armed and rings the doorbells. The NICs are switched on after them, so that
  /// a seed gives the same run every time.
  Status Start() {
    report_.executor = "offload";
    report_.detail = options_.device;
    report_.wait = Name(WaitMode::kInterrupt);
    report_.nodes.resize(group_->nodes().size());
    PREPOST_RETURN_IF_ERROR(Watch());
    if (options_.validate) {
      PREPOST_RETURN_IF_ERROR(group_->Validate([this] { return CheckInterrupt(); }));
    }
    charged_ns_ = ThreadCpuNs();
    start_ns_ = MonotonicNs();
    if (options_.trace != nullptr) options_.trace->start_ns = start_ns_;
    for (size_t i = 0; i < group_->nodes().size(); ++i) {
      nic::ArmedNode& node = group_->nodes()[i];
      if (options_.trace != nullptr)
        node.ObserveWakeups([this, id = node.program().node] { NoteWakeup(id); });
      hosts_.emplace_back(fabric_.device(node.program().node), node).Start();
      Charge(report_.nodes[i]);
    }
    PREPOST_RETURN_IF_ERROR(fabric_.Start(IsEndSeen() ? emulated::Fabric::Until::kIdle
                                                      : emulated::Fabric::Until::kStopped));
    watches_.resize(group_->nodes().size());
    moved_ns_ = MonotonicNs();
    return Watch(fabric_.ended_fd(), kEngineEnded);
  }

  /// Sleeps until every node's final completion.
  Status Wait() {
    for (size_t left = group_->nodes().size(); left != 0;) {
      std::array<epoll_event, 64> events;
      const int count = epoll_wait(epoll_.get(), events.data(), events.size(), LookMs());
      if (count < 0 && errno != EINTR) {
        return SystemError(StatusCode::kEnvironment, "cannot wait for the NICs", errno);
      }
      PREPOST_RETURN_IF_ERROR(CheckInterrupt());
      if (count < 0) {
        for (const nic::ArmedNode& node : group_->nodes()) {
          fabric_.device(node.program().node).CountWakeup();
          NoteWakeup(node.program().node);
        }
        continue;
      }
      if (count == 0 && IsOverdue()) return StuckFor(options_.no_progress_max);
      if (count == 0 && !IsStandingStill()) continue;
      bool is_stuck = true;  // the engine has ended, and no host has an event left
      for (const epoll_event& event : std::span(events).first(static_cast<size_t>(count))) {
        if (event.data.u32 == kEngineEnded) continue;
        is_stuck = false;
        const Result<bool> done = TakeEvent(event.data.u32);
        if (!done.ok()) return CauseOf(done.status());
        if (*done) --left;
      }
      if (is_stuck) {
        fabric_.Stop();
        return group_->Stuck();
      }
    }
    return {};
  }

  /// After the end: was everything as planned?
  Status Check() {
    fabric_.Stop();
    PREPOST_RETURN_IF_ERROR(group_->Check());
    for (NodeReport& node : report_.nodes) {
      node.retries = fabric_.engine().rnr_retries(node.node);
      node.bytes_received =
          plan_.header().roles().IsTarget(node.node) ? plan_.header().payload.bytes : 0;
      std::ranges::copy(group_->nodes()[node.node.index()].queue_rearms(),
                        std::back_inserter(report_.queue_rearms));
    }
    return {};
  }

  /// Reports what the NICs logged to the trace and the observer.
  void ReportOps() {
    fabric_.Stop();
    if (fabric_.engine().log().empty()) return;
    std::vector<std::unordered_map<uint32_t, LoggedQueues>> queues(group_->nodes().size());
    for (const nic::ArmedNode& node : group_->nodes()) {
      for (size_t i = 0; i < node.program().qps.size(); ++i) {
        queues[node.program().node.index()][node.qp(nic::QpId::FromIndex(i)).number] = {
            .qp = &node.program().qps[i], .sq_base = options_.first.sq_index};
      }
    }
    for (const emulated::NicEvent& event : fabric_.engine().log()) {
      const std::optional<OpEvent> op = OpEventOf(event, queues[event.node.index()].at(event.qpn));
      if (!op) continue;
      if (options_.trace != nullptr) options_.trace->Record(*op, event.time_ns);
      if (options_.observer) options_.observer(*op);
    }
  }

  RunReport TakeReport() { return std::move(report_); }

 private:
  Status CheckInterrupt() const {
    return IsInterrupted(options_.interrupt_fd) ? Interrupted() : Status();
  }

  /// Asks for every node's event and watches for it, and for the interrupt.
  Status Watch() {
    epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    for (nic::ArmedNode& node : group_->nodes()) {
      const NodeId id = node.program().node;
      const Result<int> events = fabric_.device(id).EventFile();
      if (!events.ok()) return events.status();
      PREPOST_RETURN_IF_ERROR(Watch(*events, id.value));
      PREPOST_RETURN_IF_ERROR(node.RequestEvents());
    }
    return options_.interrupt_fd < 0 ? Status() : Watch(options_.interrupt_fd, kInterrupt);
  }

  Status Watch(int fd, uint32_t token) {
    epoll_event event = {.events = EPOLLIN, .data = {.u32 = token}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
    return SystemError(StatusCode::kEnvironment, "cannot watch the NICs", errno);
  }

  /// Hosts have nothing to do on the way, and the NICs' end is an event.
  bool IsEndSeen() const { return !hosts_act_ && options_.sees_idle; }

  /// How long to wait for events before checking whether anything moves; -1: for ever.
  int LookMs() const {
    const auto max_ms = static_cast<int>(options_.no_progress_max.count());
    const int timeout_ms = max_ms == 0 ? -1 : std::clamp(max_ms / kLooks, 1, kLooksMs);
    if (IsEndSeen()) return timeout_ms;
    return timeout_ms == -1 ? kLookMs : std::min(kLookMs, timeout_ms);
  }

  /// Whether no queue has moved for too long, which any device can report.
  bool IsOverdue() {
    if (options_.no_progress_max.count() == 0) return false;
    const uint64_t now_ns = MonotonicNs();
    for (size_t i = 0; i < watches_.size(); ++i) {
      if (watches_[i].HasMoved(group_->nodes()[i])) moved_ns_ = now_ns;
    }
    return now_ns - moved_ns_ >=
           1'000'000 * static_cast<uint64_t>(options_.no_progress_max.count());
  }

  Status StuckFor(std::chrono::milliseconds time) {
    return group_->Stuck(fmt::format("no progress for {} ms", time.count()));
  }

  /// With hosts that act meanwhile the NICs may be idle and nothing be wrong, unless it stays so.
  bool IsStandingStill() {
    if (!options_.sees_idle) return false;
    const uint64_t before = std::exchange(progress_, fabric_.progress());
    return before == progress_ && fabric_.is_idle();
  }

  /// Stops the group at the first thing that is wrong anywhere.
  Status CauseOf(const Status& seen) {
    const Status cause = seen.code() == StatusCode::kRejected ? group_->Fail() : seen;
    return cause.ok() ? seen : cause;
  }

  /// True when this was the node's last message; it is not watched any more.
  Result<bool> TakeEvent(size_t index) {
    nic::PrepostedHost& host = hosts_[index];
    nic::ArmedNode& node = host.node();
    Result<bool> done = host.TakeEvents();
    while (done.ok() && *done && --left_[index] != 0) {
      PREPOST_RETURN_IF_ERROR(node.CheckAll());
      PREPOST_RETURN_IF_ERROR(node.Arm());
      PREPOST_RETURN_IF_ERROR(node.RequestEvents());
      if (options_.validate) PREPOST_RETURN_IF_ERROR(nic::ValidateArmed(plan_, node));
      host.Start();
      done = host.Poll(std::chrono::milliseconds(0), /*wake_fd=*/-1);
    }
    Charge(report_.nodes[index]);
    if (!done.ok() || !*done) return done;
    ReportDone(index, MonotonicNs());
    const Result<int> events = fabric_.device(report_.nodes[index].node).EventFile();
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, *events, nullptr);
    return true;
  }

  /// This thread is the host of all nodes: its time since the last call was spent for this one.
  void Charge(NodeReport& node) {
    const uint64_t now_ns = ThreadCpuNs();
    node.cpu_ns += now_ns - std::exchange(charged_ns_, now_ns);
  }

  void ReportDone(size_t index, uint64_t now_ns) {
    NodeReport& node = report_.nodes[index];
    const uint64_t cpu_ns = node.cpu_ns;
    node = hosts_[index].report();
    node.cpu_ns = cpu_ns;
    node.elapsed_ns = now_ns - start_ns_;
    report_.elapsed_ns = std::max(report_.elapsed_ns, node.elapsed_ns);
  }

  /// All WQEs of `node` have just been written.
  void NotePosted(NodeId node) {
    if (options_.trace == nullptr) return;
    const uint64_t now_ns = MonotonicNs();
    for (OpTimes& op : options_.trace->times(node)) op.posted_ns = now_ns;
  }

  void NoteWakeup(NodeId node) {
    if (options_.trace == nullptr) return;
    options_.trace->Record({.node = node, .op = {}, .kind = OpEvent::Kind::kWakeup}, MonotonicNs());
  }

  const VerifiedPlan& plan_;
  const nic::QueueProgram& program_;
  const OffloadOptions& options_;
  emulated::Fabric fabric_;
  std::optional<ArmedGroup> group_;
  std::vector<nic::PrepostedHost> hosts_;  // by node, of the group
  std::vector<size_t> left_;               // by node: messages
  bool hosts_act_ = false;                 // between the first doorbells and the end
  uint64_t progress_ = 0;                  // of the NICs when last checked
  std::vector<nic::QueueWatch> watches_;   // by node
  uint64_t moved_ns_ = 0;                  // when one of these last saw something move
  FileDescriptor epoll_;
  uint64_t start_ns_ = 0;
  uint64_t charged_ns_ = 0;  // of this thread's processor time
  RunReport report_;
};

}  // namespace

Result<RunReport> RunOffload(const VerifiedPlan& plan, std::span<const std::byte> message,
                             std::span<const std::span<std::byte>> node_buffers,
                             const OffloadOptions& options) {
  Result<nic::QueueProgram> program = nic::Lower(plan, options.lower);
  if (!program.ok()) return program.status();
  return RunQueueProgram(plan, *program, message, node_buffers, options);
}

Result<RunReport> RunQueueProgram(const VerifiedPlan& plan, const nic::QueueProgram& program,
                                  std::span<const std::byte> message,
                                  std::span<const std::span<std::byte>> node_buffers,
                                  const OffloadOptions& options) {
  return RunQueueProgram(plan, program, std::array{MessageBuffers{message, node_buffers}}, options);
}

Result<RunReport> RunQueueProgram(const VerifiedPlan& plan, const nic::QueueProgram& program,
                                  std::span<const MessageBuffers> transfers,
                                  const OffloadOptions& options) {
  PREPOST_RETURN_IF_ERROR(CheckProgram(plan, program));
  for (const MessageBuffers& transfer : transfers) {
    PREPOST_RETURN_IF_ERROR(CheckTransfer(plan, transfer));
  }
  OffloadRun run(plan, program, options);
  PREPOST_RETURN_IF_ERROR(run.Arm(transfers));
  PREPOST_RETURN_IF_ERROR(run.Start());
  Status status = run.Wait();
  if (status.ok()) status = run.Check();
  run.ReportOps();
  if (!status.ok()) return status;
  return run.TakeReport();
}

}  // namespace prepost::local
