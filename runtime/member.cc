// SPDX-License-Identifier: Apache-2.0
#include "prepost/runtime/member.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "prepost/runtime/clock.h"
#include "prepost/runtime/interrupt.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

constexpr size_t kWaitingOpsMax = 2;  ///< named in an answer to kQuery
/// A leader that says when it will speak again is given this many times as long.
constexpr uint32_t kIntervalsMissed = 4;
constexpr milliseconds kForever{-1};

/// The sooner of two timeouts, of which a negative one is for ever.
milliseconds Sooner(milliseconds a, milliseconds b) {
  return a < milliseconds(0) ? b : b < milliseconds(0) ? a : std::min(a, b);
}

}  // namespace

Member::Member(MemberTask task)
    : task_(std::move(task)),
      is_root_(task_.node == task_.plan.header().root),
      wake_(epoll_create1(EPOLL_CLOEXEC)),
      heard_(Clock::now()),
      silence_max_(task_.first_word_max) {}

Status Member::Run() {
  PREPOST_RETURN_IF_ERROR(Prepare());
  task_.control.Send({.kind = Kind::kReady});
  const Result<ControlMessage> start = Await(Kind::kStart);
  if (!start.ok()) return start.status();
  PREPOST_RETURN_IF_ERROR(Transfer(start->start_ns != 0 ? start->start_ns : MonotonicNs()));
  PREPOST_RETURN_IF_ERROR(Await(Kind::kSum).status());
  PREPOST_RETURN_IF_ERROR(Sum());
  task_.control.Send({.kind = Kind::kSummed, .sum = sum_});
  if (task_.commit) {
    PREPOST_RETURN_IF_ERROR(Await(Kind::kCommit).status());
    PREPOST_RETURN_IF_ERROR(task_.commit());
    task_.control.Send({.kind = Kind::kCommitted});
  }
  return Await(Kind::kRelease).status();
}

Status Member::Prepare() {
  for (const int fd : {task_.control.fd(), task_.interrupt_fd}) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    if (fd >= 0 && epoll_ctl(wake_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return SystemError(StatusCode::kEnvironment, "cannot watch the control connection", errno);
    }
  }
  NodeMemory memory;
  if (is_root_) {
    memory.source = task_.input->bytes();
  } else {
    PREPOST_RETURN_IF_ERROR(task_.buffer->Reserve(Answering()));
    memory = {.source = task_.buffer->bytes(), .target = task_.buffer->bytes()};
  }
  Result<std::unique_ptr<Endpoint>> endpoint = task_.connect(wake_.get(), Answering());
  if (!endpoint.ok()) return endpoint.status();
  endpoint_ = std::move(*endpoint);
  executor_ = std::make_unique<CpuExecutor>(
      task_.plan, task_.node, *endpoint_,
      task_.trace != nullptr ? task_.trace->Observer() : OpObserver());
  executor_->Prepare(memory);
  executor_->Arm();
  return {};
}

Status Member::Transfer(uint64_t start_ns) {
  WaitPacer pacer(task_.wait);
  const uint64_t cpu_before_ns = ThreadCpuNs();
  executor_->Start();
  while (!executor_->done()) {
    const milliseconds timeout = Sooner(pacer.Timeout(executor_->progress()), SilenceLeft());
    const Status status = executor_->Poll(timeout);
    if (!status.ok()) {
      if (task_.input != nullptr) PREPOST_RETURN_IF_ERROR(task_.input->CheckStillWhole());
      return status;
    }
    if (executor_->woken() || timeout > milliseconds(0)) PREPOST_RETURN_IF_ERROR(AnswerQueries());
  }
  report_ = executor_->report();
  report_.elapsed_ns = MonotonicNs() - start_ns;
  report_.cpu_ns = ThreadCpuNs() - cpu_before_ns;
  task_.control.Send({.kind = Kind::kDelivered, .report = report_});
  return {};
}

Status Member::Sum() {
  const Result<MessageSum> sum =
      is_root_ ? task_.input->Sum(Answering()) : task_.buffer->Sum(Answering());
  if (!sum.ok()) return sum.status();
  sum_ = *sum;
  return {};
}

/// Waits for `kind`, answering queries; the message.
Result<ControlMessage> Member::Await(Kind kind) {
  for (;;) {
    const std::optional<ControlMessage> message = Receive();
    if (message && message->kind == kind) return *message;
    PREPOST_RETURN_IF_ERROR(message ? Handle(*message) : WaitForControl());
  }
}

/// Answers what is there and returns.
Status Member::AnswerQueries() {
  while (const std::optional<ControlMessage> message = Receive()) {
    PREPOST_RETURN_IF_ERROR(Handle(*message));
  }
  return CheckLeader();
}

std::optional<ControlMessage> Member::Receive() {
  std::optional<ControlMessage> message = task_.control.Receive();
  if (!message) return message;
  heard_ = Clock::now();
  silence_max_ = task_.silence_max;
  return message;
}

Status Member::Handle(const ControlMessage& message) {
  if (message.kind == Kind::kAbort) {
    is_aborted_ = true;
    return Rejected(message.text);
  }
  if (message.kind != Kind::kQuery) {
    return Rejected(fmt::format("{} sent nonsense over its control connection: \"{}\" out of turn",
                                task_.leader, Name(message.kind)));
  }
  if (task_.silence_max > milliseconds(0)) {
    silence_max_ = std::max(task_.silence_max, milliseconds(uint64_t{message.interval_ms} *
                                                            uint64_t{kIntervalsMissed}));
  }
  ControlMessage answer = {.kind = Kind::kProgress, .progress = checkpoints_};
  if (executor_ != nullptr) {
    answer.report = executor_->report();
    answer.progress += endpoint_->counters().bytes_moved;
    answer.SetText(executor_->Waiting(kWaitingOpsMax));
  }
  task_.control.Send(answer);
  return {};
}

/// When nothing more can be read.
Status Member::CheckLeader() const {
  if (IsInterrupted(task_.interrupt_fd)) return Interrupted();
  if (!task_.control.nonsense().empty()) {
    return Rejected(fmt::format("{} sent nonsense over its control connection: {}", task_.leader,
                                task_.control.nonsense()));
  }
  if (task_.control.closed()) return Rejected(fmt::format("{} is gone", task_.leader));
  if (SilenceLeft() == milliseconds(0)) {
    return Rejected(
        fmt::format("{} has said nothing for {} ms", task_.leader, silence_max_.count()));
  }
  return {};
}

Status Member::WaitForControl() {
  PREPOST_RETURN_IF_ERROR(CheckLeader());
  pollfd polls[] = {{.fd = task_.control.fd(), .events = POLLIN, .revents = 0},
                    {.fd = task_.interrupt_fd, .events = POLLIN, .revents = 0}};
  poll(polls, std::size(polls), static_cast<int>(SilenceLeft().count()));
  return {};
}

milliseconds Member::SilenceLeft() const {
  if (silence_max_ == milliseconds(0)) return kForever;
  const auto left = std::chrono::ceil<milliseconds>(heard_ + silence_max_ - Clock::now());
  return std::max(left, milliseconds(0));
}

Checkpoint Member::Answering() {
  return [this] {
    ++checkpoints_;
    return AnswerQueries();
  };
}

Status Member::ReportFailure(const Status& failure, milliseconds max) {
  if (is_aborted_) return failure;
  ControlMessage message = {.kind = Kind::kFailed, .code = failure.code()};
  message.lost_peer = endpoint_ != nullptr && endpoint_->lost_peer().has_value();
  message.SetText(failure.ToString());
  task_.control.Send(message);
  const Clock::time_point due = Clock::now() + max;
  Status cause = failure;
  while (!task_.control.closed()) {
    while (const std::optional<ControlMessage> said = task_.control.Receive()) {
      if (said->kind == Kind::kAbort && message.lost_peer) cause = Rejected(said->text);
      if (said->kind == Kind::kAbort) return cause;
    }
    const auto left = std::chrono::ceil<milliseconds>(due - Clock::now());
    const int timeout_ms = max < milliseconds(0) ? -1 : static_cast<int>(left.count());
    if (max >= milliseconds(0) && left <= milliseconds(0)) break;
    pollfd control = {.fd = task_.control.fd(), .events = POLLIN, .revents = 0};
    if (!task_.control.closed()) poll(&control, 1, timeout_ms);
  }
  return cause;
}

}  // namespace prepost
