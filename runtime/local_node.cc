// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/local_node.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "prepost/runtime/clock.h"
#include "prepost/runtime/executor.h"

namespace prepost {
namespace {

constexpr size_t kWaitingOpsMax = 2;  ///< named in an answer to kQuery

class LocalNode {
 public:
  explicit LocalNode(LocalNodeTask task)
      : task_(std::move(task)), is_root_(task_.node == task_.plan.header().root) {}

  /// From preparation to release.
  Status Run();
  void ReportFailure(const Status& failure);
  /// Ends the process because the launcher is gone.
  [[noreturn]] void Abandon();

 private:
  using Kind = ControlMessage::Kind;

  Status Prepare();
  Status Transfer(uint64_t start_ns);
  Result<MessageSum> Sum();
  /// Waits for `kind`, answering queries; the message.
  Result<ControlMessage> Await(Kind kind);
  /// Answers what is there and returns; an error if the launcher is gone.
  Status AnswerQueries();
  Status Handle(const std::optional<ControlMessage>& message);
  Checkpoint Answering() {
    return [this] {
      ++checkpoints_;
      return AnswerQueries();
    };
  }

  LocalNodeTask task_;
  const bool is_root_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<CpuExecutor> executor_;
  uint64_t checkpoints_ = 0;  ///< progress outside of the transfer
};

Status LocalNode::Run() {
  PREPOST_RETURN_IF_ERROR(Prepare());
  task_.control.Send({.kind = Kind::kReady});
  const Result<ControlMessage> start = Await(Kind::kStart);
  if (!start.ok()) return start.status();
  PREPOST_RETURN_IF_ERROR(Transfer(start->start_ns));
  PREPOST_RETURN_IF_ERROR(Await(Kind::kSum).status());
  const Result<MessageSum> sum = Sum();
  if (!sum.ok()) return sum.status();
  task_.control.Send({.kind = Kind::kSummed, .sum = *sum});
  return Await(Kind::kRelease).status();
}

Status LocalNode::Prepare() {
  NodeMemory memory;
  if (is_root_) {
    memory.source = task_.input.bytes();
  } else {
    PREPOST_RETURN_IF_ERROR(task_.buffer.Reserve(Answering()));
    memory = {.source = task_.buffer.bytes(), .target = task_.buffer.bytes()};
  }
  Result<std::unique_ptr<Endpoint>> endpoint =
      task_.transport.MakeEndpoint(task_.node, task_.control.fd(), Answering());
  if (!endpoint.ok()) return endpoint.status();
  endpoint_ = std::move(*endpoint);
  executor_ = std::make_unique<CpuExecutor>(
      task_.plan, task_.node, *endpoint_,
      task_.trace != nullptr ? task_.trace->Observer() : OpObserver());
  executor_->Prepare(memory);
  executor_->Arm();
  return {};
}

Status LocalNode::Transfer(uint64_t start_ns) {
  WaitPacer pacer(task_.wait);
  const uint64_t cpu_before_ns = ThreadCpuNs();
  executor_->Start();
  while (!executor_->done()) {
    const Status status = executor_->Poll(pacer.Timeout(executor_->progress()));
    if (!status.ok()) {
      PREPOST_RETURN_IF_ERROR(task_.input.CheckStillWhole());  // would be the cause
      return status;
    }
    if (executor_->woken()) PREPOST_RETURN_IF_ERROR(AnswerQueries());
  }
  ControlMessage delivered = {.kind = Kind::kDelivered, .report = executor_->report()};
  delivered.report.elapsed_ns = MonotonicNs() - start_ns;
  delivered.report.cpu_ns = ThreadCpuNs() - cpu_before_ns;
  task_.control.Send(delivered);
  return {};
}

Result<MessageSum> LocalNode::Sum() {
  return is_root_ ? task_.input.Sum(Answering()) : task_.buffer.Sum(Answering());
}

Result<ControlMessage> LocalNode::Await(Kind kind) {
  for (;;) {
    const std::optional<ControlMessage> message = task_.control.Receive(/*wait=*/true);
    if (message && message->kind == kind) return *message;
    PREPOST_RETURN_IF_ERROR(Handle(message));
  }
}

Status LocalNode::AnswerQueries() {
  const std::optional<ControlMessage> message = task_.control.Receive(/*wait=*/false);
  return message || task_.control.closed() ? Handle(message) : Status();
}

Status LocalNode::Handle(const std::optional<ControlMessage>& message) {
  if (!message) return Rejected("the launching process is gone");
  PREPOST_CHECK(message->kind == Kind::kQuery);
  ControlMessage answer = {.kind = Kind::kProgress, .progress = checkpoints_};
  if (executor_ != nullptr) {
    answer.report = executor_->report();
    answer.progress += endpoint_->counters().bytes_moved;
    answer.SetText(executor_->Waiting(kWaitingOpsMax));
  }
  task_.control.Send(answer);
  return {};
}

void LocalNode::ReportFailure(const Status& failure) {
  ControlMessage message = {.kind = Kind::kFailed, .code = failure.code()};
  message.lost_peer = endpoint_ != nullptr && endpoint_->lost_peer().has_value();
  message.SetText(failure.ToString());
  task_.control.Send(message);
  while (!task_.control.closed()) task_.control.Receive(/*wait=*/true);
}

/// The launcher may have committed the copies before it died, so nothing is said about those.
void LocalNode::Abandon() {
  if (task_.outputs != nullptr) task_.outputs->Remove();
  char byte;
  if (read(task_.last_word_fd, &byte, 1) == 1) {
    dprintf(STDERR_FILENO,
            "prepost: the launching process died before it could report; unfinished files were "
            "removed\n");
  }
  _exit(static_cast<int>(StatusCode::kRejected));
}

}  // namespace

void RunLocalNode(LocalNodeTask task) {
  LocalNode node(std::move(task));
  const Status status = node.Run();
  if (status.ok()) _exit(0);
  node.ReportFailure(status);
  node.Abandon();
}

}  // namespace prepost
