// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/run_job.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/local/offload_run.h"
#include "planning/flags/play_flags.h"
#include "planning/text/messages.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/mapping.h"
#include "runtime/device/player_device.h"
#include "runtime/files/message_file.h"
#include "runtime/files/node_buffer.h"
#include "runtime/run/local_group.h"

namespace prepost::tools {

// As a local group of processes, with its progress shown.
Result<LocalRun> RunCpu(const RunJob& job) {
  LocalGroupOptions options;
  options.transport = job.transport;
  options.is_sealed = job.is_sealed;
  options.wait = job.wait;
  options.trace = job.trace;
  options.no_progress_max = job.no_progress_max;
  options.failure_max = job.failure_max;
  options.interrupt_fd = job.interrupt_fd;
  options.progress = DeliveryProgress(job.plan.header(), job.show_progress);
  Result<LocalRun> run = RunLocalGroup(job.plan.playable(), job.input, job.outputs, options);
  ClearProgress(job.show_progress);
  return run;
}

Result<DeviceRun> RunOverDevice(const RunJob& job) {
  const VerifiedPlan& plan = *job.plan.flat();
  auto device =
      OpenPlayerDevice(job.player_device, {.needs_offload = job.executor == Executor::kOffload});
  if (!device.ok()) return device.status();
  const auto choice = ChooseExecutor<DevicePrograms>(
      {.executor = job.executor, .device = job.player_device, .cpu_because = ""}, plan,
      [&] { return LowerAll(**device, plan); });
  if (!choice.ok()) return choice.status();
  LocalGroupOptions options;
  options.wait = job.wait;
  options.trace = job.trace;
  options.no_progress_max = job.no_progress_max;
  options.failure_max = job.failure_max;
  options.interrupt_fd = job.interrupt_fd;
  options.progress = DeliveryProgress(job.plan.header(), job.show_progress);
  options.executor = choice->name();
  options.detail = job.player_device;
  options.make_player = [&](NodeId node, std::unique_ptr<PeerLinks> links,
                            const PlayerContext& context) {
    return MakeDevicePlayer(**device,
                            choice->program ? (*choice->program)[node.index()].get() : nullptr,
                            {.plan = plan,
                             .node = node,
                             .links = std::move(links),
                             .context = context,
                             .answer_max = job.no_progress_max});
  };
  Result<LocalRun> run = RunLocalGroup(job.plan.playable(), job.input, job.outputs, options);
  ClearProgress(job.show_progress);
  if (!run.ok()) return run.status();
  return DeviceRun{.run = *std::move(run), .note = choice->note()};
}

namespace {

/// `status`, of what memory was wanted for, with what must fit into it.
Status WithNeeds(const Status& status, const PlanHeader& header) {
  if (status.code() != StatusCode::kEnvironment) return status;
  return {
      status.code(),
      fmt::format("{}; preposted, the message and {} copies of {} bytes must fit into memory, with "
                  "--executor cpu they need not",
                  status.message(), header.nodes - 1, header.payload.bytes),
      status.where()};
}

/// A receiver's copy, its file's space reserved before anything moves.
Result<NodeBuffer> MakeCopy(const RunJob& job, NodeId node, const Checkpoint& checkpoint) {
  Result<NodeBuffer> copy = NodeBuffer::Open(node, job.plan.header().payload.bytes, job.outputs);
  if (!copy.ok()) return copy;
  const PlanHeader& header = job.plan.header();
  PREPOST_RETURN_IF_ERROR(WithNeeds(copy->KeepApart(), header));
  const Status reserved = copy->Reserve(checkpoint);
  if (!reserved.ok()) return job.outputs == nullptr ? WithNeeds(reserved, header) : reserved;
  return copy;
}

}  // namespace

Result<LocalRun> RunOffloaded(const RunJob& job) {
  const PlanHeader& header = job.plan.header();
  const Checkpoint checkpoint = [&] {
    return IsInterrupted(job.interrupt_fd) ? Interrupted() : Status();
  };
  const Result<Mapping> message = job.input.Read(checkpoint);
  if (!message.ok()) return WithNeeds(message.status(), header);

  constexpr size_t kFilesPerNode = 3;  // a copy, its memory, and the event file of its NIC
  constexpr size_t kOwnFiles = 32;
  PREPOST_RETURN_IF_ERROR(RaiseFileLimit(kFilesPerNode * header.nodes + kOwnFiles));
  std::vector<NodeBuffer> copies(header.nodes);  // the root's stays empty
  std::vector<std::span<std::byte>> memory(header.nodes);
  for (uint32_t node = 0; node < header.nodes; ++node) {
    if (!header.roles().IsTarget(NodeId(node))) continue;
    Result<NodeBuffer> copy = MakeCopy(job, NodeId(node), checkpoint);
    if (!copy.ok()) return copy.status();
    copies[node] = std::move(*copy);
    memory[node] = copies[node].bytes();
  }

  Result<RunReport> report = [&] {
    const Ticker ticker("the NICs are at work");
    return local::RunQueueProgram(*job.plan.flat(), *job.program, message->bytes(), memory,
                                  {.device = job.device.name,
                                   .make_device = job.device.make,
                                   .scheduler = job.scheduler,
                                   .seed = job.seed,
                                   .no_progress_max = job.no_progress_max,
                                   .interrupt_fd = job.interrupt_fd,
                                   .trace = job.trace});
  }();
  if (!report.ok()) return report.status();

  const Result<MessageSum> sum = SumMemory(message->bytes(), checkpoint);
  if (!sum.ok()) return sum.status();
  for (uint32_t node = 0; node < header.nodes; ++node) {
    if (!header.roles().IsTarget(NodeId(node))) continue;
    PREPOST_RETURN_IF_ERROR(copies[node].Store(checkpoint));
    const Result<MessageSum> copy_sum = copies[node].Sum(checkpoint);
    if (!copy_sum.ok()) return copy_sum.status();
    PREPOST_RETURN_IF_ERROR(CheckCopy(NodeId(node), *copy_sum, *sum));
  }
  for (NodeBuffer& copy : copies) PREPOST_RETURN_IF_ERROR(copy.GiveName());
  if (job.outputs != nullptr) PREPOST_RETURN_IF_ERROR(job.outputs->Commit());
  return LocalRun{.report = std::move(*report), .sum = *sum};
}

}  // namespace prepost::tools
