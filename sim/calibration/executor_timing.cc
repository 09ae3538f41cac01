// SPDX-License-Identifier: Apache-2.0
//
// Calls are timed, each inside the one before it:
//
//     CpuExecutor::Start(), Poll()
//       Endpoint::PostSend(), PostRecv()     TimedEndpoint
//         Device::RingDoorbell()             TimedDevice, over NICs
//       Endpoint::Poll(), Flush()            TimedEndpoint, over TCP
//
// and each one's own time is what is left without those inside and without the stopwatch reading
// the clock. The emulated NICs run between two polls, a step at a time, so that a poll mostly
// finds one completion. Over TCP a post makes no system call: polls do, before and after they wait.
#include "sim/calibration/executor_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backends/emulated/device.h"
#include "backends/emulated/fabric.h"
#include "backends/local/driven_group.h"
#include "runtime/base/clock.h"
#include "runtime/base/mapping.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/program.h"
#include "runtime/transport/tcp/tcp_endpoint.h"
#include "runtime/transport/tcp/tcp_mesh.h"

namespace prepost::sim {
namespace {

constexpr std::chrono::milliseconds kNoWait(0);
constexpr uint64_t kStepsAtOnce = 1;

enum Step : uint8_t { kPoll, kCompletion, kCredit, kPostSend, kPostReceive, kStart, kSteps };
constexpr std::array<const char*, kSteps> kStepNames = {
    "polls that find nothing", "completions of blocks", "completions of credits",
    "posts of sends",          "posts of receives",     "starts"};

/// The mean of the middle half: interrupts do not move it, and it is finer than the clock's ticks.
double MiddleMean(std::vector<double> samples) {
  std::ranges::sort(samples);
  const size_t cut = samples.size() / 4;
  const auto middle = std::span(samples).subspan(cut, samples.size() - 2 * cut);
  return std::accumulate(middle.begin(), middle.end(), 0.0) / static_cast<double>(middle.size());
}

/// All times so far, in ns, and what is inside of the interval that is open now.
class Stopwatch {
 public:
  /// Times `call`; what is timed inside of it is not counted, nor what reading the clock takes,
  /// which is measured right before: a machine is not as fast at all times. One time alone may be
  /// less than 0; the mean is right.
  template <typename Call>
  double Own(Call&& call) {
    const double inside_before = std::exchange(inside_, 0);
    const uint64_t before = MonotonicNs();
    const uint64_t start = MonotonicNs();
    call();
    const uint64_t end = MonotonicNs();
    const auto reading = static_cast<double>(start - before);
    const double own = static_cast<double>(end - start) - inside_ - reading;
    // From the middle of the first reading to that of the last one, and a half at both ends.
    inside_ = inside_before + static_cast<double>(end - before) + reading;
    return own;
  }
  void Add(Step step, double ns) { samples_[step].push_back(ns); }
  const std::vector<double>& samples(Step step) const { return samples_[step]; }

 private:
  double inside_ = 0;
  std::array<std::vector<double>, kSteps> samples_;
};

/// A doorbell is one store; here it is the emulated NIC's work.
class TimedDevice final : public emulated::EmulatedDevice {
 public:
  TimedDevice(emulated::Nic& nic, Stopwatch& watch)
      : emulated::EmulatedDevice(nic), watch_(watch) {}
  void RingDoorbell(uint64_t first_bytes) override {
    register_ = first_bytes;
    watch_.Own([&] { emulated::EmulatedDevice::RingDoorbell(first_bytes); });
  }

 private:
  Stopwatch& watch_;
  volatile uint64_t register_ = 0;
};

class TimedEndpoint final : public Endpoint {
 public:
  /// `ops` are the node's. Of an endpoint over TCP what polls take is not counted.
  TimedEndpoint(Endpoint& endpoint, std::span<const Op> ops, TimedTransport transport,
                Stopwatch& watch)
      : endpoint_(endpoint),
        ops_(ops),
        counts_polls_(transport == TimedTransport::kNics),
        watch_(watch) {}

  void PostRecv(const RecvRequest& request) override {
    watch_.Add(kPostReceive, watch_.Own([&] { endpoint_.PostRecv(request); }));
  }
  void PostSend(const SendRequest& request) override {
    watch_.Add(kPostSend, watch_.Own([&] { endpoint_.PostSend(request); }));
  }
  Result<PollOutcome> Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) override {
    Result<PollOutcome> outcome = PollOutcome();
    // Bytes are there at once: one by one, or most would come together.
    if (!counts_polls_) completed = completed.first(1);
    TimePoll([&] { outcome = endpoint_.Poll(completed, timeout); });
    blocks_ = credits_ = 0;
    if (!outcome.ok()) return outcome;
    for (const OpId op : completed.first(outcome->completed)) {
      ++(ops_[op.index()].block == kNoBlock ? credits_ : blocks_);
    }
    return outcome;
  }
  Status Flush() override {
    Status status;
    TimePoll([&] { status = endpoint_.Flush(); });
    return status;
  }
  bool quiet() const override { return endpoint_.quiet(); }
  std::optional<NodeId> lost_peer() const override { return endpoint_.lost_peer(); }
  EndpointCounters counters() const override { return endpoint_.counters(); }
  void Stop() override { endpoint_.Stop(); }

  // Of the last Poll().
  size_t blocks() const { return blocks_; }
  size_t credits() const { return credits_; }
  size_t completions() const { return blocks_ + credits_; }

 private:
  template <typename Call>
  void TimePoll(Call&& call) {
    if (counts_polls_) return call();
    watch_.Own(call);
  }

  Endpoint& endpoint_;
  std::span<const Op> ops_;
  const bool counts_polls_;
  Stopwatch& watch_;
  size_t blocks_ = 0;
  size_t credits_ = 0;
};

/// The memory of all nodes, and the message's.
class TimedMemory {
 public:
  Status Make(const PlanHeader& header) {
    for (uint32_t i = 0; i <= header.nodes; ++i) {
      Result<Mapping> memory = Mapping::Anonymous(header.payload.bytes);
      if (!memory.ok()) return memory.status();
      mappings_.push_back(*std::move(memory));
      buffers_.push_back(mappings_.back().bytes());
    }
    return {};
  }
  std::span<std::byte> message() const { return buffers_.back(); }
  std::span<const std::span<std::byte>> buffers() const {
    return std::span(buffers_).first(buffers_.size() - 1);
  }

 private:
  std::vector<Mapping> mappings_;
  std::vector<std::span<std::byte>> buffers_;
};

/// One transfer over NICs, all hosts on this thread.
class NicTransfer {
 public:
  static constexpr bool kPollsOn = false;  ///< until it finds nothing; most polls do anyway

  NicTransfer(const VerifiedPlan& plan, Stopwatch& watch)
      : plan_(plan), watch_(watch), fabric_(plan.header().nodes, {}) {}

  Status Make() {
    uint32_t next = 0;
    PREPOST_RETURN_IF_ERROR(
        fabric_.MakeDevices([&](nic::NicModel&) -> Result<std::unique_ptr<nic::Device>> {
          return std::unique_ptr<nic::Device>(
              std::make_unique<TimedDevice>(fabric_.nic(NodeId(next++)), watch_));
        }));
    PREPOST_RETURN_IF_ERROR(memory_.Make(plan_.header()));
    const auto wrap = [&](NodeId, nic::DeviceEndpoint& endpoint, const Plan& part) -> Endpoint& {
      return endpoints_.emplace_back(endpoint, part.ops(part.programs().front()),
                                     TimedTransport::kNics, watch_);
    };
    Result<local::DrivenGroup> group = local::DrivenGroup::Make(
        fabric_, plan_,
        local::MulticastMemory(plan_.header(), memory_.message(), memory_.buffers()),
        {.may_sleep = false, .wrap = wrap});
    if (!group.ok()) return group.status();
    group_.emplace(*std::move(group));
    return {};
  }
  void RunBetweenLooks() { fabric_.RunSome(kStepsAtOnce); }
  CpuExecutor& executor(NodeId node) { return group_->executor(node); }
  const TimedEndpoint& endpoint(NodeId node) const { return endpoints_[node.index()]; }

 private:
  const VerifiedPlan& plan_;
  Stopwatch& watch_;
  TimedMemory memory_;
  emulated::Fabric fabric_;
  std::deque<TimedEndpoint> endpoints_;      // by node
  std::optional<local::DrivenGroup> group_;  // uses all of the above
};

/// The same over TCP.
class TcpTransfer {
 public:
  static constexpr bool kPollsOn = true;

  TcpTransfer(const VerifiedPlan& plan, Stopwatch& watch) : plan_(plan), watch_(watch) {}

  Status Make() {
    PREPOST_RETURN_IF_ERROR(memory_.Make(plan_.header()));
    Result<TcpMesh> mesh = MakeTcpMesh(plan_);
    if (!mesh.ok()) return mesh.status();
    for (uint32_t i = 0; i < plan_.header().nodes; ++i) {
      const NodeId node(i);
      Result<std::unique_ptr<TcpEndpoint>> own =
          TcpEndpoint::Make(plan_, node, std::move((*mesh)[i]), /*wake_fd=*/-1);
      if (!own.ok()) return own.status();
      own_.push_back(*std::move(own));
      endpoints_.emplace_back(*own_.back(), plan_.ops(ProgramOf(plan_, node)), TimedTransport::kTcp,
                              watch_);
      CpuExecutor& executor = executors_.emplace_back(plan_, node, endpoints_.back());
      const std::span<std::byte> buffer = memory_.buffers()[i];
      executor.Prepare(plan_.header().roles().IsSource(node)
                           ? NodeMemory{.source = memory_.message(), .target = {}}
                           : NodeMemory{.source = buffer, .target = buffer});
      executor.Arm();
    }
    return {};
  }
  void RunBetweenLooks() {}  // the kernel does
  CpuExecutor& executor(NodeId node) { return executors_[node.index()]; }
  const TimedEndpoint& endpoint(NodeId node) const { return endpoints_[node.index()]; }

 private:
  const VerifiedPlan& plan_;
  Stopwatch& watch_;
  TimedMemory memory_;
  std::vector<std::unique_ptr<TcpEndpoint>> own_;  // by node, as the next
  std::deque<TimedEndpoint> endpoints_;
  std::deque<CpuExecutor> executors_;  // use all of the above
};

template <typename Transfer>
Status PollOnce(Transfer& transfer, NodeId node, Stopwatch& watch) {
  Status status;
  const double took = watch.Own([&] { status = transfer.executor(node).Poll(kNoWait); });
  if (!status.ok()) return status;
  const TimedEndpoint& endpoint = transfer.endpoint(node);
  if (endpoint.completions() > 1) return {};
  watch.Add(endpoint.blocks() != 0 ? kCompletion : endpoint.credits() != 0 ? kCredit : kPoll, took);
  return {};
}

template <typename Transfer>
Status Play(const VerifiedPlan& plan, Stopwatch& watch, const Checkpoint& checkpoint) {
  Transfer transfer(plan, watch);
  PREPOST_RETURN_IF_ERROR(transfer.Make());
  for (uint32_t i = 0; i < plan.header().nodes; ++i) {
    const double start = watch.Own([&] { transfer.executor(NodeId(i)).Start(); });
    if (plan.header().roles().IsSource(NodeId(i))) watch.Add(kStart, start);
  }
  for (bool is_done = false; !is_done;) {
    PREPOST_RETURN_IF_ERROR(Check(checkpoint));
    transfer.RunBetweenLooks();
    is_done = true;
    for (uint32_t i = 0; i < plan.header().nodes; ++i) {
      const NodeId node(i);
      do {
        if (transfer.executor(node).done()) break;
        PREPOST_RETURN_IF_ERROR(PollOnce(transfer, node, watch));
        is_done = false;
      } while (Transfer::kPollsOn && transfer.endpoint(node).completions() != 0);
    }
  }
  return {};
}

}  // namespace

Result<ExecutorTimes> TimeExecutor(const VerifiedPlan& plan, uint32_t transfers,
                                   TimedTransport transport, const Checkpoint& checkpoint) {
  Stopwatch watch;
  const auto play = transport == TimedTransport::kNics ? Play<NicTransfer> : Play<TcpTransfer>;
  for (uint32_t i = 0; i < transfers; ++i) {
    PREPOST_RETURN_IF_ERROR(play(plan, watch, checkpoint));
  }
  ExecutorTimes times;
  times.samples = watch.samples(kPoll).size();
  std::array<double, kSteps> seconds = {};
  for (size_t step = 0; step < kSteps; ++step) {
    const std::vector<double>& samples = watch.samples(static_cast<Step>(step));
    if (samples.empty()) return Rejected(fmt::format("the plan has no {}", kStepNames[step]));
    seconds[step] = std::max(0.0, MiddleMean(samples)) * 1e-9;
    if (step != kStart) times.samples = std::min<uint64_t>(times.samples, samples.size());
  }
  times.poll = seconds[kPoll];
  // What finds something has polled, too.
  times.completion = std::max(0.0, seconds[kCompletion] - times.poll);
  times.credit = std::max(0.0, seconds[kCredit] - times.poll);
  times.post_send = seconds[kPostSend];
  times.post_receive = seconds[kPostReceive];
  times.start = seconds[kStart];
  return times;
}

}  // namespace prepost::sim
