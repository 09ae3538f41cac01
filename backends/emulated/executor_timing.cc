// SPDX-License-Identifier: Apache-2.0
//
// Three calls are timed, each inside the one before it:
//
//     CpuExecutor::Start(), Poll()
//       Endpoint::PostSend(), PostRecv()     TimedEndpoint
//         Device::RingDoorbell()             TimedDevice
//
// and each one's own time is what is left without those inside and without the stopwatch's looks
// at the clock. The emulated NICs run between two polls, a step at a time, so that a look mostly
// finds one completion.
#include "prepost/backends/emulated/executor_timing.h"

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

#include "prepost/backends/emulated/device.h"
#include "prepost/backends/emulated/driven_group.h"
#include "prepost/backends/emulated/fabric.h"
#include "prepost/runtime/clock.h"
#include "prepost/runtime/mapping.h"

namespace prepost::emulated {
namespace {

constexpr std::chrono::milliseconds kNoWait(0);
constexpr uint64_t kStepsAtOnce = 1;

enum Step : uint8_t { kPoll, kCompletion, kCredit, kPostSend, kPostReceive, kStart, kSteps };
constexpr std::array<const char*, kSteps> kStepNames = {
    "looks that find nothing", "completions of blocks", "completions of credits",
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
  /// Times `call`; what is timed inside of it is not counted, nor what a look at the clock takes, which
  /// is measured right before: a machine is not as fast at all times. One time alone may be less than
  /// 0; the mean is right.
  template <typename Call>
  double Own(Call&& call) {
    const double inside_before = std::exchange(inside_, 0);
    const uint64_t before = MonotonicNs();
    const uint64_t start = MonotonicNs();
    call();
    const uint64_t end = MonotonicNs();
    const auto look = static_cast<double>(start - before);
    const double own = static_cast<double>(end - start) - inside_ - look;
    // From the middle of the first look to that of the last one, and a half at both ends.
    inside_ = inside_before + static_cast<double>(end - before) + look;
    return own;
  }
  void Add(Step step, double ns) { samples_[step].push_back(ns); }
  const std::vector<double>& samples(Step step) const { return samples_[step]; }

 private:
  double inside_ = 0;
  std::array<std::vector<double>, kSteps> samples_;
};

/// A doorbell is one store; here it is the emulated NIC's work.
class TimedDevice final : public EmulatedDevice {
 public:
  TimedDevice(Nic& nic, Stopwatch& watch) : EmulatedDevice(nic), watch_(watch) {}
  void RingDoorbell(uint64_t first_bytes) override {
    register_ = first_bytes;
    watch_.Own([&] { EmulatedDevice::RingDoorbell(first_bytes); });
  }

 private:
  Stopwatch& watch_;
  volatile uint64_t register_ = 0;
};

class TimedEndpoint final : public Endpoint {
 public:
  TimedEndpoint(nic::DeviceEndpoint& endpoint, const Plan& part, Stopwatch& watch)
      : endpoint_(endpoint), ops_(part.ops(part.programs().front())), watch_(watch) {}

  void PostRecv(const RecvRequest& request) override {
    watch_.Add(kPostReceive, watch_.Own([&] { endpoint_.PostRecv(request); }));
  }
  void PostSend(const SendRequest& request) override {
    watch_.Add(kPostSend, watch_.Own([&] { endpoint_.PostSend(request); }));
  }
  Result<PollOutcome> Poll(std::span<OpId> completed, std::chrono::milliseconds timeout) override {
    Result<PollOutcome> outcome = endpoint_.Poll(completed, timeout);
    blocks_ = credits_ = 0;
    if (!outcome.ok()) return outcome;
    for (const OpId op : completed.first(outcome->completed)) {
      ++(ops_[op.index()].block == kNoBlock ? credits_ : blocks_);
    }
    return outcome;
  }
  Status Flush() override { return endpoint_.Flush(); }
  bool quiet() const override { return endpoint_.quiet(); }
  std::optional<NodeId> lost_peer() const override { return endpoint_.lost_peer(); }
  EndpointCounters counters() const override { return endpoint_.counters(); }
  void Stop() override { endpoint_.Stop(); }

  // Of the last Poll().
  size_t blocks() const { return blocks_; }
  size_t credits() const { return credits_; }

 private:
  nic::DeviceEndpoint& endpoint_;
  std::span<const Op> ops_;
  Stopwatch& watch_;
  size_t blocks_ = 0;
  size_t credits_ = 0;
};

/// One transfer, all hosts on this thread.
class TimedTransfer {
 public:
  TimedTransfer(const Plan& plan, Stopwatch& watch)
      : plan_(plan), watch_(watch), fabric_(plan.header().nodes, {}) {}

  Status Play(const Checkpoint& checkpoint) {
    PREPOST_RETURN_IF_ERROR(MakeGroup());
    for (uint32_t i = 0; i < plan_.header().nodes; ++i) {
      const double start = watch_.Own([&] { group_->executor(NodeId(i)).Start(); });
      if (NodeId(i) == plan_.header().root) watch_.Add(kStart, start);
    }
    for (bool is_done = false; !is_done;) {
      PREPOST_RETURN_IF_ERROR(Check(checkpoint));
      fabric_.RunSome(kStepsAtOnce);
      is_done = true;
      for (uint32_t i = 0; i < plan_.header().nodes; ++i) {
        if (group_->executor(NodeId(i)).done()) continue;
        PREPOST_RETURN_IF_ERROR(Look(i));
        is_done = false;
      }
    }
    return {};
  }

 private:
  Status MakeGroup() {
    uint32_t next = 0;
    PREPOST_RETURN_IF_ERROR(
        fabric_.MakeDevices([&](nic::NicModel&) -> Result<std::unique_ptr<nic::Device>> {
          return std::unique_ptr<nic::Device>(
              std::make_unique<TimedDevice>(fabric_.nic(NodeId(next++)), watch_));
        }));
    std::vector<std::span<std::byte>> buffers;
    for (uint32_t i = 0; i <= plan_.header().nodes; ++i) {
      Result<Mapping> memory = Mapping::Anonymous(plan_.header().message.bytes);
      if (!memory.ok()) return memory.status();
      memory_.push_back(*std::move(memory));
      buffers.push_back(memory_.back().bytes());
    }
    const auto wrap = [&](NodeId, nic::DeviceEndpoint& endpoint, const Plan& part) -> Endpoint& {
      return endpoints_.emplace_back(endpoint, part, watch_);
    };
    Result<DrivenGroup> group = DrivenGroup::Make(fabric_, plan_, buffers.back(),
                                                  std::span(buffers).first(plan_.header().nodes),
                                                  {.may_sleep = false, .wrap = wrap});
    if (!group.ok()) return group.status();
    group_.emplace(*std::move(group));
    return {};
  }

  Status Look(uint32_t i) {
    Status status;
    const double took = watch_.Own([&] { status = group_->executor(NodeId(i)).Poll(kNoWait); });
    if (!status.ok()) return status;
    const TimedEndpoint& endpoint = endpoints_[i];
    if (endpoint.blocks() + endpoint.credits() > 1) return {};
    watch_.Add(endpoint.blocks() != 0    ? kCompletion
               : endpoint.credits() != 0 ? kCredit
                                         : kPoll,
               took);
    return {};
  }

  const Plan& plan_;
  Stopwatch& watch_;
  std::vector<Mapping> memory_;  // by node, and the message
  Fabric fabric_;
  std::deque<TimedEndpoint> endpoints_;  // by node
  std::optional<DrivenGroup> group_;     // uses all of the above
};

}  // namespace

Result<ExecutorTimes> TimeExecutor(const Plan& plan, uint32_t transfers,
                                   const Checkpoint& checkpoint) {
  Stopwatch watch;
  for (uint32_t i = 0; i < transfers; ++i) {
    PREPOST_RETURN_IF_ERROR(TimedTransfer(plan, watch).Play(checkpoint));
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
  // What finds something has looked, too.
  times.completion = std::max(0.0, seconds[kCompletion] - times.poll);
  times.credit = std::max(0.0, seconds[kCredit] - times.poll);
  times.post_send = seconds[kPostSend];
  times.post_receive = seconds[kPostReceive];
  times.start = seconds[kStart];
  return times;
}

}  // namespace prepost::emulated
