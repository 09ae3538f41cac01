// SPDX-License-Identifier: Apache-2.0
//
// One transfer, either way:
//
//     clean    every node's buffer is overwritten, so that the last transfer's bytes prove nothing
//     arm      fresh NICs, queues and keys; receives posted (preposted: everything)
//     gate     a thread per node waits for the common start
//     clock    each host starts, waits by the policy, and notes when it is done
//     check    CQEs, misuses, counts, and every byte at every node
//
// Only "clock" is measured. Ways alternate A B, B A, ... and a pair that nobody measures comes
// first, so that slow drifts of the machine meet both. Differences within a pair are what counts.
//
// Who ends a transfer that does not end by itself: the watching thread. It sleeps until the last
// host is done, is woken by the interrupt, and checks every kTick whether anything has moved on the
// fabric: devices belong to the hosts' threads, so it may not ask them (nic::QueueWatch).
// CPU-driven, or where hosts write rings again on the way, standing still is given a bound of time,
// since NICs are idle whenever hosts think. Preposted as a whole, NICs that are idle after every
// host has started will never do anything again: hosts poll one last time for a completion that
// they have not noticed yet, and who has none is stuck.
#include "backends/local/comparison.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "backends/local/armed_group.h"
#include "backends/local/driven_group.h"
#include "backends/nic/host/preposted_host.h"
#include "runtime/base/clock.h"
#include "runtime/base/event_fd.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/thread.h"
#include "runtime/files/node_buffer.h"

namespace prepost::local {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{100};       ///< between two checks whether anything has moved
constexpr size_t kStandingNodesMax = 4;  ///< named when nothing moves
constexpr size_t kStandingOpsMax = 2;    ///< named of each
constexpr std::byte kUnwritten{0xee};

// The hosts: what a node's thread does, either way, behind the same five functions.

HostCounts CountsOf(const nic::DeviceCounters& counters, uint64_t work_requests,
                    uint64_t rearms = 0) {
  return {.work_requests = work_requests,
          .doorbells = counters.doorbells,
          .event_requests = counters.event_requests,
          .wakeups = counters.wakeups,
          .cqes_read = counters.cqes_read,
          .rearms = rearms};
}

class DrivenHost {
 public:
  DrivenHost(CpuExecutor& executor, const nic::Device& device)
      : executor_(executor), device_(device) {}

  void Start() { executor_.Start(); }
  Status Poll(milliseconds timeout) { return executor_.Poll(timeout); }
  bool done() const { return executor_.done(); }
  uint64_t progress() const { return executor_.progress(); }
  HostCounts counts() const { return CountsOf(device_.counters(), executor_.report().host_posts); }

 private:
  CpuExecutor& executor_;
  const nic::Device& device_;
};

class PrepostedHost {
 public:
  PrepostedHost(nic::ArmedNode& node, nic::Device& device, int wake_fd)
      : host_(device, node), device_(device), wake_fd_(wake_fd) {}

  void Start() { host_.Start(); }
  Status Poll(milliseconds timeout) { return host_.Poll(timeout, wake_fd_).status(); }
  bool done() const { return host_.done(); }
  uint64_t progress() const { return host_.done() ? 1 : 0; }
  HostCounts counts() const {
    const nic::ArmedNode& node = host_.node();
    return CountsOf(device_.counters(), node.wqes_written(), node.feed().rearms());
  }

 private:
  nic::PrepostedHost host_;
  const nic::Device& device_;
  int wake_fd_;
};

/// What a host's thread noted.
struct HostRecord {
  HostCounts before;
  HostCounts started;
  HostCounts ended;
  uint64_t end_ns = 0;
  uint64_t cpu_ns = 0;
  bool done = false;
  Status status;
};

/// Threads of one transfer, and their watching.
class HostThreads {
 public:
  enum class End : uint8_t { kAllEnded, kInterrupted, kStoodStill };

  static Result<std::unique_ptr<HostThreads>> Make(const CompareOptions& options) {
    std::unique_ptr<HostThreads> threads(new HostThreads(options));
    for (EventFd* event : {&threads->wake_, &threads->all_ended_}) {
      Result<EventFd> made = EventFd::Make();
      if (!made.ok()) return made.status();
      *event = *std::move(made);
    }
    return threads;
  }
  int wake_fd() const { return wake_.fd(); }
  const std::vector<HostRecord>& records() const { return records_; }
  uint64_t start_ns() const { return start_ns_; }

  /// Starts a thread per host; returns when all are at the gate. `hosts` must live until Race()
  /// returns. After an error no thread is left.
  template <typename Host>
  Status Gather(std::vector<Host>& hosts) {
    records_.resize(hosts.size());
    at_gate_.emplace(static_cast<ptrdiff_t>(hosts.size()));
    for (size_t i = 0; i < hosts.size(); ++i) {
      Result<std::jthread> thread = StartThread<std::jthread>(
          "the thread of a host", [this, &host = hosts[i], &record = records_[i]] {
            at_gate_->count_down();
            gate_.wait(false);
            if (!stop_) Play(host, record);
            // Also one that another has stopped before it began.
            if (ended_.fetch_add(1, std::memory_order_acq_rel) + 1 == records_.size())
              all_ended_.Signal();
          });
      if (!thread.ok()) {
        StopAll();
        OpenGate();
        threads_.clear();  // joins
        return thread.status();
      }
      threads_.push_back(*std::move(thread));
    }
    at_gate_->wait();
    return {};
  }

  /// Starts the clock and returns when all threads are at their end.
  End Race(emulated::Fabric& fabric, bool is_idle_the_end) {
    start_ns_ = MonotonicNs();
    OpenGate();
    const End end = Watch(fabric, is_idle_the_end);
    StopAll();
    threads_.clear();  // joins
    return end;
  }

 private:
  explicit HostThreads(const CompareOptions& options) : options_(options) {}

  template <typename Host>
  void Play(Host& host, HostRecord& record) {
    const uint64_t cpu_before_ns = ThreadCpuNs();
    record.before = host.counts();
    host.Start();
    record.started = host.counts();
    started_.fetch_add(1, std::memory_order_release);
    WaitPacer pacer(options_.wait);
    while (!host.done()) {
      const bool is_last_poll = stop_.load(std::memory_order_acquire);
      record.status = host.Poll(is_last_poll ? milliseconds(0) : pacer.Timeout(host.progress()));
      if (!record.status.ok()) StopAll();
      if (!record.status.ok() || is_last_poll) break;
    }
    record.end_ns = MonotonicNs();
    record.cpu_ns = ThreadCpuNs() - cpu_before_ns;
    record.ended = host.counts();
    record.done = host.done();
  }

  End Watch(const emulated::Fabric& fabric, bool is_idle_the_end) {
    uint64_t progress = 0;
    milliseconds still{0};
    while (true) {
      pollfd waits[] = {{.fd = all_ended_.fd(), .events = POLLIN, .revents = 0},
                        {.fd = options_.interrupt_fd, .events = POLLIN, .revents = 0}};
      const int count = poll(waits, 2, static_cast<int>(kTick.count()));
      if (count > 0 && waits[1].revents != 0) return End::kInterrupted;
      if (count > 0 && waits[0].revents != 0) return End::kAllEnded;
      still =
          progress == std::exchange(progress, fabric.progress()) ? still + kTick : milliseconds(0);
      const bool all_started = started_.load(std::memory_order_acquire) == records_.size();
      if (is_idle_the_end && all_started && fabric.is_idle()) return End::kStoodStill;
      if (still >= options_.no_progress_max) return End::kStoodStill;
    }
  }

  void OpenGate() {
    gate_.store(true);
    gate_.notify_all();
  }
  void StopAll() {
    stop_.store(true, std::memory_order_release);
    wake_.Signal();
  }

  const CompareOptions& options_;
  EventFd wake_;
  EventFd all_ended_;
  std::optional<std::latch> at_gate_;
  std::atomic<bool> gate_ = false;
  std::atomic<bool> stop_ = false;
  std::atomic<size_t> started_ = 0;
  std::atomic<size_t> ended_ = 0;
  uint64_t start_ns_ = 0;
  std::vector<HostRecord> records_;
  std::vector<std::jthread> threads_;  // last: joined first
};

/// Busy threads, as other work of a loaded host would be.
class Stress {
 public:
  Status Start(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      Result<std::jthread> thread = StartThread<std::jthread>("a busy thread", Spin);
      if (!thread.ok()) return thread.status();
      threads_.push_back(*std::move(thread));
    }
    return {};
  }

 private:
  static void Spin(const std::stop_token& stop) {
    volatile uint64_t state = 1;
    while (!stop.stop_requested()) state = state * 6364136223846793005u + 1442695040888963407u;
  }

  std::vector<std::jthread> threads_;
};

/// What Linux thinks can be had without swapping; no bound where it does not say.
uint64_t AvailableMemoryBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  uint64_t kib = 0;
  for (std::string unit; file >> key >> kib; std::getline(file, unit)) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return UINT64_MAX;
}

uint64_t RearmsOf(const nic::QueueProgram& program) {
  uint64_t rearms = 0;
  for (const nic::NodeProgram& node : program.nodes) rearms += node.rearms();
  return rearms;
}

class Comparer {
 public:
  Comparer(const VerifiedPlan& plan, const nic::QueueProgram& program,
           const CompareOptions& options)
      : plan_(plan), program_(program), options_(options) {}

  Status Prepare() {
    PREPOST_RETURN_IF_ERROR(CheckMemory());
    constexpr size_t kOwnFiles = 64;
    PREPOST_RETURN_IF_ERROR(RaiseFileLimit(2 * size_t{plan_.header().nodes} + kOwnFiles));
    const uint64_t bytes = plan_.header().payload.bytes;
    Result<Mapping> message = Mapping::Anonymous(bytes);
    if (!message.ok()) return message.status();
    message_ = *std::move(message);
    PREPOST_RETURN_IF_ERROR(FillMessage());
    buffers_.resize(plan_.header().nodes);
    spans_.resize(plan_.header().nodes);
    for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
      if (!plan_.header().roles().IsTarget(NodeId(node))) continue;
      Result<NodeBuffer> buffer = NodeBuffer::Open(NodeId(node), bytes, /*outputs=*/nullptr);
      if (!buffer.ok()) return buffer.status();
      buffers_[node] = *std::move(buffer);
      PREPOST_RETURN_IF_ERROR(buffers_[node].Reserve(Checkpoints()));
      spans_[node] = buffers_[node].bytes();
    }
    return {};
  }

  Result<TransferSample> Transfer(Way way) {
    PREPOST_RETURN_IF_ERROR(Clean());
    emulated::Fabric fabric(plan_.header().nodes, {.faults = options_.faults});
    Result<std::unique_ptr<HostThreads>> threads = HostThreads::Make(options_);
    if (!threads.ok()) return threads.status();
    Result<TransferSample> sample =
        way == Way::kCpuDriven ? Drive(fabric, **threads) : Prepost(fabric, **threads);
    if (!sample.ok()) return sample;
    PREPOST_RETURN_IF_ERROR(CheckBytes(way));
    return sample;
  }

 private:
  using End = HostThreads::End;

  Checkpoint Checkpoints() const {
    return [this] { return IsInterrupted(options_.interrupt_fd) ? Interrupted() : Status(); };
  }

  Status CheckMemory() const {
    uint64_t needed = 0;
    const uint64_t available = AvailableMemoryBytes();
    const bool is_too_large = __builtin_mul_overflow(plan_.header().payload.bytes,
                                                     uint64_t{plan_.header().nodes}, &needed);
    if (!is_too_large && needed <= available) return {};
    return EnvironmentError(
        fmt::format("a message of {} bytes at {} nodes of one machine does not fit its memory, {} "
                    "bytes are available",
                    plan_.header().payload.bytes, plan_.header().nodes, available));
  }

  /// Calls `step` with an offset and a size for all of `bytes`, piece by piece, so that an
  /// interrupt is seen in between.
  template <typename Step>
  Status InSteps(uint64_t bytes, Step step) const {
    constexpr uint64_t kStepBytes = uint64_t{64} << 20;
    for (uint64_t offset = 0; offset < bytes; offset += kStepBytes) {
      PREPOST_RETURN_IF_ERROR(Check(Checkpoints()));
      PREPOST_RETURN_IF_ERROR(step(offset, std::min(bytes - offset, kStepBytes)));
    }
    return {};
  }

  /// With bytes of the seed.
  Status FillMessage() {
    std::mt19937_64 random(options_.seed);
    return InSteps(message_.bytes().size(), [&](uint64_t offset, uint64_t bytes) -> Status {
      for (uint64_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t draw = random();
        std::memcpy(message_.bytes().data() + offset + i, &draw,
                    std::min(bytes - i, uint64_t{sizeof(draw)}));
      }
      return {};
    });
  }

  Status Clean() {
    for (const std::span<std::byte> span : spans_) {
      PREPOST_RETURN_IF_ERROR(InSteps(span.size(), [&](uint64_t offset, uint64_t bytes) -> Status {
        std::ranges::fill(span.subspan(offset, bytes), kUnwritten);
        return {};
      }));
    }
    return {};
  }

  Result<TransferSample> Drive(emulated::Fabric& fabric, HostThreads& threads) {
    const uint64_t arm_from_ns = ThreadCpuNs();
    Result<DrivenGroup> group =
        DrivenGroup::Make(fabric, plan_, MulticastMemory(plan_.header(), message_.bytes(), spans_),
                          {.wake_fd = threads.wake_fd()});
    if (!group.ok()) return group.status();
    const uint64_t arm_ns = ThreadCpuNs() - arm_from_ns;
    std::vector<DrivenHost> hosts;
    for (uint32_t node = 0; node < plan_.header().nodes; ++node) {
      PREPOST_RETURN_IF_ERROR(PrepareToSleep(fabric, NodeId(node), group->endpoint(NodeId(node))));
      hosts.emplace_back(group->executor(NodeId(node)), fabric.device(NodeId(node)));
    }
    Result<TransferSample> sample = Measure(fabric, threads, hosts, /*is_idle_the_end=*/false);
    if (!sample.ok()) return sample;
    sample->arm_cpu_ns = arm_ns;
    if (!AllDone(threads)) return StandsStill(*group);
    PREPOST_RETURN_IF_ERROR(CheckMisuses(fabric));
    return sample;
  }

  Result<TransferSample> Prepost(emulated::Fabric& fabric, HostThreads& threads) {
    const uint64_t arm_from_ns = ThreadCpuNs();
    Result<ArmedGroup> group =
        ArmedGroup::Make(fabric, plan_, program_,
                         std::array{MessageBuffers{message_.bytes(), spans_}}, FirstNumbers());
    if (!group.ok()) return group.status();
    for (nic::ArmedNode& node : group->nodes()) PREPOST_RETURN_IF_ERROR(node.Arm());
    const uint64_t arm_ns = ThreadCpuNs() - arm_from_ns;
    std::vector<PrepostedHost> hosts;
    for (nic::ArmedNode& node : group->nodes()) {
      const NodeId id = node.program().node;
      PREPOST_RETURN_IF_ERROR(PrepareToSleep(fabric, id, node));
      hosts.emplace_back(node, fabric.device(id), threads.wake_fd());
    }
    PREPOST_RETURN_IF_ERROR(group->Validate(Checkpoints()));
    Result<TransferSample> sample =
        Measure(fabric, threads, hosts, /*is_idle_the_end=*/RearmsOf(program_) == 0);
    if (sample.status().code() == StatusCode::kRejected) PREPOST_RETURN_IF_ERROR(group->Fail());
    if (!sample.ok()) return sample;
    sample->arm_cpu_ns = arm_ns;
    if (!AllDone(threads)) return group->Stuck();
    PREPOST_RETURN_IF_ERROR(group->Check());
    const HostCounts& during = sample->during;
    if (RearmsOf(program_) == 0 &&
        during.work_requests + during.doorbells + during.event_requests != 0) {
      return Rejected(
          fmt::format("preposted hosts posted during the transfer: {} work requests, {} "
                      "doorbells, {} requests for events",
                      during.work_requests, during.doorbells, during.event_requests));
    }
    return sample;
  }

  /// A host that may sleep asks for its first event before the start, in both ways.
  template <typename Host>
  Status PrepareToSleep(emulated::Fabric& fabric, NodeId node, Host& host) const {
    PREPOST_RETURN_IF_ERROR(fabric.device(node).EventFile().status());
    return options_.wait.mode == WaitMode::kPolling ? Status() : host.RequestEvents();
  }

  /// Clocks one transfer. Errors: interrupted, or what the first host to fail says; that all are
  /// done is still to be seen.
  template <typename Host>
  Result<TransferSample> Measure(emulated::Fabric& fabric, HostThreads& threads,
                                 std::vector<Host>& hosts, bool is_idle_the_end) const {
    PREPOST_RETURN_IF_ERROR(fabric.Start(emulated::Fabric::Until::kStopped));
    PREPOST_RETURN_IF_ERROR(threads.Gather(hosts));
    const uint64_t engine_before_ns = fabric.engine_cpu_ns();
    const End end = threads.Race(fabric, is_idle_the_end);
    const uint64_t engine_ns = fabric.engine_cpu_ns() - engine_before_ns;
    fabric.Stop();
    if (end == End::kInterrupted) return Interrupted();
    const HostRecord* failed = nullptr;
    for (const HostRecord& record : threads.records()) {
      const bool is_first = failed == nullptr || record.end_ns < failed->end_ns;
      if (!record.status.ok() && is_first) failed = &record;
    }
    if (failed != nullptr) return failed->status;
    TransferSample sample = SampleOf(threads);
    sample.engine_cpu_ns = engine_ns;
    sample.rnr_retries = fabric.engine().counters().rnr_retries;
    return sample;
  }

  static TransferSample SampleOf(const HostThreads& threads) {
    TransferSample sample;
    uint64_t first_ns = UINT64_MAX;
    for (const HostRecord& record : threads.records()) {
      sample.before += record.before;
      sample.at_start += record.started - record.before;
      sample.during += record.ended - record.started;
      sample.host_cpu_ns += record.cpu_ns;
      sample.latency_ns.push_back(record.end_ns - threads.start_ns());
      sample.completion_ns = std::max(sample.completion_ns, sample.latency_ns.back());
      first_ns = std::min(first_ns, sample.latency_ns.back());
    }
    sample.skew_ns = sample.completion_ns - first_ns;
    return sample;
  }

  static bool AllDone(const HostThreads& threads) {
    return std::ranges::all_of(threads.records(), &HostRecord::done);
  }

  Status StandsStill(DrivenGroup& group) const {
    std::string text = fmt::format("no progress for {} ms: ", options_.no_progress_max.count());
    size_t named = 0;
    for (uint32_t node = 0; node < plan_.header().nodes && named < kStandingNodesMax; ++node) {
      const CpuExecutor& executor = group.executor(NodeId(node));
      if (executor.done()) continue;
      if (named++ != 0) text += "; ";
      text += executor.Waiting(kStandingOpsMax);
    }
    return Rejected(text);
  }

  Status CheckBytes(Way way) const {
    const std::span<const std::byte> message = message_.bytes();
    for (size_t node = 0; node < spans_.size(); ++node) {
      if (!plan_.header().roles().IsTarget(NodeId::FromIndex(node))) continue;
      PREPOST_RETURN_IF_ERROR(
          InSteps(message.size(), [&](uint64_t offset, uint64_t bytes) -> Status {
            const auto copy = std::span<const std::byte>(spans_[node]).subspan(offset, bytes);
            const auto sent = message.subspan(offset, bytes);
            if (std::memcmp(copy.data(), sent.data(), bytes) == 0) return {};
            const auto differ = std::ranges::mismatch(copy, sent);
            return Rejected(
                fmt::format("{}: the copy of node {} differs from the root's at byte {}", Name(way),
                            node, offset + static_cast<uint64_t>(differ.in2 - sent.begin())));
          }));
    }
    return {};
  }

  const VerifiedPlan& plan_;
  const nic::QueueProgram& program_;
  const CompareOptions& options_;
  Mapping message_;
  std::vector<NodeBuffer> buffers_;          // by node; the root's is empty
  std::vector<std::span<std::byte>> spans_;  // of these
};

}  // namespace

HostCounts& HostCounts::operator+=(const HostCounts& other) {
  work_requests += other.work_requests;
  doorbells += other.doorbells;
  event_requests += other.event_requests;
  wakeups += other.wakeups;
  cqes_read += other.cqes_read;
  rearms += other.rearms;
  return *this;
}

HostCounts operator-(const HostCounts& a, const HostCounts& b) {
  return {.work_requests = a.work_requests - b.work_requests,
          .doorbells = a.doorbells - b.doorbells,
          .event_requests = a.event_requests - b.event_requests,
          .wakeups = a.wakeups - b.wakeups,
          .cqes_read = a.cqes_read - b.cqes_read,
          .rearms = a.rearms - b.rearms};
}

Result<Comparison> Compare(const VerifiedPlan& plan, const CompareOptions& options) {
  if (plan.header().nodes > kCompareNodesMax) {
    return Rejected(fmt::format("the plan has {} nodes; compare runs a thread for each, at most {}",
                                plan.header().nodes, kCompareNodesMax));
  }
  const Result<nic::QueueProgram> program = nic::Lower(plan, options.lower);
  if (!program.ok()) return program.status();
  Comparer comparer(plan, *program, options);
  PREPOST_RETURN_IF_ERROR(comparer.Prepare());
  Stress stress;
  PREPOST_RETURN_IF_ERROR(stress.Start(options.stress_threads));
  Comparison comparison;
  comparison.rearms_max = RearmsOf(*program);
  for (uint32_t pair = 0; pair <= options.repetitions; ++pair) {  // the first warms up
    if (options.progress && pair != 0) options.progress(pair - 1);
    for (uint32_t turn = 0; turn < 2; ++turn) {
      const Way way = (pair + turn) % 2 == 1 ? Way::kCpuDriven : Way::kPreposted;
      Result<TransferSample> sample = comparer.Transfer(way);
      if (!sample.ok()) return sample.status();
      if (pair != 0) comparison.ways[static_cast<size_t>(way)].push_back(*std::move(sample));
    }
  }
  return comparison;
}

CompareRatio RatioOf(const Comparison& comparison) {
  const std::vector<TransferSample>& driven = comparison.of(Way::kCpuDriven);
  const std::vector<TransferSample>& preposted = comparison.of(Way::kPreposted);
  PREPOST_CHECK(driven.size() == preposted.size());
  std::vector<double> ratios;
  std::array<std::vector<double>, 2> times;
  for (size_t i = 0; i < driven.size(); ++i) {
    const auto a = static_cast<double>(driven[i].completion_ns);
    const auto b = static_cast<double>(std::max<uint64_t>(preposted[i].completion_ns, 1));
    times[0].push_back(a);
    times[1].push_back(b);
    ratios.push_back(a / b);
  }
  if (ratios.empty()) return {};
  return {.of_medians = Summarise(times[0]).median / Summarise(times[1]).median,
          .of_pairs = Summarise(ratios)};
}

}  // namespace prepost::local
