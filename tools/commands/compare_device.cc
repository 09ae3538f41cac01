// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/compare_device.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "backends/registry.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/memory_file.h"
#include "runtime/device/player_device.h"
#include "runtime/files/message_file.h"
#include "runtime/run/local_group.h"

namespace prepost::tools {
namespace {

using local::TransferSample;
using local::Way;

/// A file in memory of random bytes. `owner` keeps it.
Result<MappedInput> RandomInput(uint64_t bytes, uint64_t seed, FileDescriptor* owner) {
  Result<FileDescriptor> file = MakeMemoryFile("prepost-compare", bytes);
  if (!file.ok()) return file.status();
  *owner = *std::move(file);
  std::mt19937_64 random(seed);
  std::vector<uint64_t> piece(8192);
  for (uint64_t written = 0; written < bytes;) {
    std::ranges::generate(piece, random);
    const size_t size = std::min<uint64_t>(bytes - written, piece.size() * sizeof(uint64_t));
    const ssize_t got = write(owner->get(), piece.data(), size);
    if (got <= 0)
      return SystemError(StatusCode::kEnvironment, "cannot write a file in memory", errno);
    written += static_cast<uint64_t>(got);
  }
  return MappedInput::Open(fmt::format("/proc/self/fd/{}", owner->get()));
}

/// Processes that never sleep, for as long as this lives.
class BusyProcesses {
 public:
  explicit BusyProcesses(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const pid_t process = fork();
      if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::atomic<uint64_t> turns{0};
        for (;;) turns.fetch_add(1, std::memory_order_relaxed);
      }
      if (process > 0) processes_.push_back(process);
    }
  }
  BusyProcesses(const BusyProcesses&) = delete;
  BusyProcesses& operator=(const BusyProcesses&) = delete;
  ~BusyProcesses() {
    for (const pid_t process : processes_) kill(process, SIGKILL);
    for (const pid_t process : processes_) waitpid(process, nullptr, 0);
  }

 private:
  std::vector<pid_t> processes_;
};

TransferSample SampleOf(const RunReport& report, uint64_t prepared) {
  TransferSample sample;
  sample.before.work_requests = prepared;
  for (const NodeReport& node : report.nodes) {
    sample.latency_ns.push_back(node.elapsed_ns);
    sample.host_cpu_ns += node.cpu_ns;
    sample.during.wakeups += node.host_wakeups;
    sample.during.cqes_read += node.host_completions;
    if (prepared == 0) {
      sample.before.work_requests += node.host_posts - node.host_posts_during;
      sample.during.work_requests += node.host_posts_during;
    } else {
      sample.at_start.work_requests += node.host_posts - node.host_posts_during;
      sample.during.work_requests += node.host_posts_during;
    }
  }
  const auto [first, last] = std::ranges::minmax(sample.latency_ns);
  sample.completion_ns = last;
  sample.skew_ns = last - first;
  return sample;
}

}  // namespace

Result<local::Comparison> CompareOverDevice(const VerifiedPlan& plan, const std::string& name,
                                            const local::CompareOptions& options) {
  const auto device = OpenPlayerDevice(name, {.needs_offload = true, .lower = &options.lower});
  if (!device.ok()) return device.status();
  const Result<DevicePrograms> programs = LowerAll(**device, plan);
  if (!programs.ok()) return programs.status();
  uint64_t prepared = 0;
  for (const auto& program : *programs) prepared += program->work_requests();
  FileDescriptor file;
  const Result<MappedInput> input = RandomInput(plan.header().payload.bytes, options.seed, &file);
  if (!input.ok()) return input.status();
  const BusyProcesses busy(options.stress_threads);
  const auto transfer = [&](Way way) -> Result<TransferSample> {
    LocalGroupOptions group;
    group.wait = options.wait;
    group.no_progress_max = options.no_progress_max;
    group.interrupt_fd = options.interrupt_fd;
    group.detail = name;
    group.make_player = [&](NodeId node, std::unique_ptr<PeerLinks> links,
                            const PlayerContext& context) {
      return MakeDevicePlayer(**device,
                              way == Way::kCpuDriven ? nullptr : (*programs)[node.index()].get(),
                              {.plan = plan,
                               .node = node,
                               .links = std::move(links),
                               .context = context,
                               .answer_max = options.no_progress_max});
    };
    const Result<LocalRun> run = RunLocalGroup(plan, *input, nullptr, group);
    if (!run.ok()) return run.status();
    return SampleOf(run->report, way == Way::kPreposted ? prepared : 0);
  };
  local::Comparison comparison;
  // The first pair is not kept; then A B, B A, ...
  for (uint32_t i = 0; i <= options.repetitions; ++i) {
    if (options.progress && i > 0) options.progress(i - 1);
    std::array<Way, 2> order = {Way::kCpuDriven, Way::kPreposted};
    if (i % 2 != 0) std::ranges::reverse(order);
    for (const Way way : order) {
      Result<TransferSample> sample = transfer(way);
      if (!sample.ok()) {
        return Status(sample.status().code(),
                      fmt::format("{}: {}", Name(way), sample.status().message()),
                      sample.status().where());
      }
      if (i > 0) comparison.ways[static_cast<size_t>(way)].push_back(*std::move(sample));
    }
  }
  return comparison;
}

}  // namespace prepost::tools
