// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <iostream>
#include <optional>
#include <thread>
#include <vector>

#include "prepost/backends/emulated/offload_run.h"
#include "prepost/runtime/file_descriptor.h"
#include "prepost/runtime/interrupt.h"
#include "prepost/runtime/mapping.h"
#include "prepost/runtime/node_buffer.h"
#include "tools/run_job.h"

namespace prepost::tools {
namespace {

/// Waits on a thread of its own for the interrupt, so that the run's host can sleep on its
/// completions only.
class InterruptWatcher {
 public:
  explicit InterruptWatcher(const RunJob& job)
      : job_(job), stop_(eventfd(0, EFD_CLOEXEC)), thread_([this] { Watch(); }) {}
  ~InterruptWatcher() {
    const uint64_t one = 1;
    if (write(stop_.get(), &one, sizeof one) != sizeof one) std::abort();  // an eventfd takes a 1
    thread_.join();
  }
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

  const std::atomic<bool>* cancel() const { return &cancel_; }

 private:
  void Watch() {
    constexpr int kProgressMs = 1000;
    for (int seconds = 1;; ++seconds) {
      pollfd waits[] = {{.fd = stop_.get(), .events = POLLIN},
                        {.fd = job_.interrupt_fd, .events = POLLIN}};
      if (poll(waits, 2, kProgressMs) < 0) continue;  // EINTR
      if (waits[0].revents != 0) break;
      if (waits[1].revents != 0) {
        cancel_ = true;
        break;
      }
      if (job_.show_progress) std::cerr << fmt::format("\rthe NICs are at work, {} s ", seconds);
    }
    if (job_.show_progress) std::cerr << "\r\033[K";
  }

  const RunJob& job_;
  std::atomic<bool> cancel_ = false;
  FileDescriptor stop_;
  std::thread thread_;
};

}  // namespace

Result<LocalRun> RunOffloaded(const RunJob& job) {
  const PlanHeader& header = job.plan.header();
  const Checkpoint checkpoint = [&] {
    return IsInterrupted(job.interrupt_fd) ? Interrupted() : Status();
  };
  const Result<Mapping> message = job.input.Read(checkpoint);
  if (!message.ok()) return message.status();

  std::vector<std::optional<NodeBuffer>> buffers(header.nodes);
  std::vector<std::span<std::byte>> memory(header.nodes);
  for (uint32_t node = 0; node < header.nodes; ++node) {
    if (NodeId(node) == header.root) continue;
    Result<NodeBuffer> buffer = NodeBuffer::Create(job.plan, NodeId(node), job.outputs, checkpoint);
    if (!buffer.ok()) return buffer.status();
    buffers[node].emplace(std::move(*buffer));
    memory[node] = buffers[node]->bytes();
  }

  Result<RunReport> report = [&] {
    const InterruptWatcher watcher(job);
    return emulated::RunOffload(
        job.plan, message->bytes(), memory,
        {.scheduler = job.scheduler, .seed = job.seed, .cancel = watcher.cancel()});
  }();
  if (!report.ok()) return report.status();

  const Result<MessageSum> sum = SumMemory(message->bytes(), checkpoint);
  if (!sum.ok()) return sum.status();
  for (uint32_t node = 0; node < header.nodes; ++node) {
    if (!buffers[node]) continue;
    const Result<MessageSum> copy = buffers[node]->Sum(checkpoint);
    if (!copy.ok()) return copy.status();
    PREPOST_RETURN_IF_ERROR(CheckCopy(NodeId(node), *copy, *sum));
  }
  if (job.outputs != nullptr) PREPOST_RETURN_IF_ERROR(job.outputs->Commit());
  return LocalRun{.report = std::move(*report), .sum = *sum};
}

}  // namespace prepost::tools
