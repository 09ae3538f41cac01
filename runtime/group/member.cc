// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/member.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/clock.h"
#include "runtime/interrupt.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

constexpr size_t kWaitingOpsMax = 2;  ///< named in an answer to kQuery
/// A leader that says when it will speak again is given this many times as long.
constexpr uint32_t kIntervalsMissed = 4;

/// The sooner of two timeouts, of which a negative one is for ever.
milliseconds Sooner(milliseconds a, milliseconds b) {
  return a < milliseconds(0) ? b : b < milliseconds(0) ? a : std::min(a, b);
}

}  // namespace

Member::Member(MemberTask task)
    : task_(std::move(task)),
      wake_(epoll_create1(EPOLL_CLOEXEC)),
      heard_(Clock::now()),
      silence_max_(task_.first_word_max) {}

Status Member::Run() {
  PREPOST_RETURN_IF_ERROR(Prepare());
  if (task_.prover) nonce_ = RandomNonce();
  task_.control.Send({.kind = Kind::kReady, .proof = nonce_});
  const Result<ControlMessage> start = Await(Kind::kStart);
  if (!start.ok()) return start.status();
  PREPOST_RETURN_IF_ERROR(Transfer(start->start_ns != 0 ? start->start_ns : MonotonicNs()));
  const Result<ControlMessage> sum = Await(Kind::kSum);
  if (!sum.ok()) return sum.status();
  leader_nonce_ = sum->proof;
  PREPOST_RETURN_IF_ERROR(Sum());
  ControlMessage summed = {.kind = Kind::kSummed, .sum = sum_};
  if (task_.prover) summed.proof = task_.prover->Prove(SumFrom(ProvenSum::Sender::kMember));
  task_.control.Send(summed);
  if (task_.commit) {
    const Result<ControlMessage> commit = Await(Kind::kCommit);
    if (!commit.ok()) return commit.status();
    PREPOST_RETURN_IF_ERROR(CheckLeadersSum(*commit));
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
  const Result<NodeMemory> memory = PrepareMemory();
  if (!memory.ok()) return memory.status();
  Result<std::unique_ptr<Player>> player = task_.make_player(
      {.memory = *memory,
       .wake_fd = wake_.get(),
       .checkpoint = Answering(),
       .observer = task_.trace != nullptr ? task_.trace->Observer() : OpObserver()});
  if (!player.ok()) return player.status();
  player_ = std::move(*player);
  return {};
}

Result<NodeMemory> Member::PrepareMemory() {
  if (task_.plan.header().collective.kind != CollectiveKind::kMulticast) return PrepareRooms();
  if (is_target()) {
    if (task_.in_memory) PREPOST_RETURN_IF_ERROR(task_.buffer->KeepApart());
    PREPOST_RETURN_IF_ERROR(task_.buffer->Reserve(Answering()));
    return NodeMemory{.source = task_.buffer->bytes(), .target = task_.buffer->bytes()};
  }
  if (!task_.in_memory) return NodeMemory{.source = task_.input->bytes()};
  Result<Mapping> message = task_.input->Read(Answering());
  if (!message.ok()) return message.status();
  message_ = *std::move(message);
  return NodeMemory{.source = message_.bytes()};
}

/// Input, output and scratch buffers.
Result<NodeMemory> Member::PrepareRooms() {
  const PlanHeader& header = task_.plan.header();
  const NodeBytes bytes = NodeBytesOf(header, task_.node);
  NodeMemory memory;
  // The processor itself reads it, which must not end where somebody cuts the file short.
  if (task_.input != nullptr) {
    Result<Mapping> input = task_.input->Read(task_.input_offset, bytes.input, Answering());
    if (!input.ok()) return input.status();
    message_ = *std::move(input);
    memory.source = message_.bytes();
  }
  if (is_target()) {
    if (task_.in_memory) PREPOST_RETURN_IF_ERROR(task_.buffer->KeepApart());
    PREPOST_RETURN_IF_ERROR(task_.buffer->Reserve(Answering()));
    memory.target = task_.buffer->bytes();
  }
  PREPOST_RETURN_IF_ERROR(task_.scratch->Reserve(Answering()));
  memory.scratch = task_.scratch->bytes();
  if (task_.in_memory) {
    places_ = task_.plan.PlacesOf(task_.node);
    memory.places = places_.get();
    Result<Mapping> staging = Mapping::Anonymous(places_->staging_bytes());
    if (!staging.ok()) return staging.status();
    staging_ = *std::move(staging);
    memory.staging = staging_.bytes();
  }
  if (!header.combine.is_none()) memory.combine = CombineFunctionOf(header.combine);
  return memory;
}

Status Member::Transfer(uint64_t start_ns) {
  WaitPacer pacer(task_.wait);
  const uint64_t cpu_before_ns = ThreadCpuNs();
  if (task_.trace != nullptr) task_.trace->start_ns = start_ns;
  player_->Start();
  while (!player_->done()) {
    const Status status = player_->Poll(Sooner(pacer.Timeout(player_->progress()), SilenceLeft()));
    if (!status.ok()) {
      const bool plays_file = task_.input != nullptr && !task_.in_memory;
      if (plays_file) PREPOST_RETURN_IF_ERROR(task_.input->CheckStillWhole());
      return status;
    }
    if (player_->woken() || SilenceLeft() == milliseconds(0)) {
      PREPOST_RETURN_IF_ERROR(AnswerQueries());
    }
  }
  report_ = player_->report();
  queue_rearms_ = player_->queue_rearms();
  report_.elapsed_ns = MonotonicNs() - start_ns;
  report_.cpu_ns = ThreadCpuNs() - cpu_before_ns;
  task_.control.Send({.kind = Kind::kDelivered, .report = report_});
  return {};
}

Status Member::Sum() {
  const bool is_multicast = task_.plan.header().collective.kind == CollectiveKind::kMulticast;
  if (!is_multicast && !is_target()) {
    sum_ = RunningSum().Get();  // of nothing
    return {};
  }
  if (is_target()) PREPOST_RETURN_IF_ERROR(task_.buffer->Store(Answering()));
  const Result<MessageSum> sum = is_target()       ? task_.buffer->Sum(Answering())
                                 : task_.in_memory ? SumMemory(message_.bytes(), Answering())
                                                   : task_.input->Sum(Answering());
  if (!sum.ok()) return sum.status();
  sum_ = *sum;
  return {};
}

ProvenSum Member::SumFrom(ProvenSum::Sender sender) const {
  return {.sender = sender,
          .node = task_.node,
          .member_nonce = nonce_,
          .leader_nonce = leader_nonce_,
          .sum = sum_};
}

/// Without it, who can change the leader's words could have this node name what it has received
/// although the leader knows better.
Status Member::CheckLeadersSum(const ControlMessage& commit) const {
  if (!task_.prover || (commit.sum == sum_ &&
                        task_.prover->Verify(commit.proof, SumFrom(ProvenSum::Sender::kLeader)))) {
    return {};
  }
  return Rejected(
      fmt::format("the sum of {} is not proved to be that of this copy: its control messages were "
                  "changed on the way",
                  task_.leader));
}

/// Waits for `kind`, answering queries; the message.
Result<ControlMessage> Member::Await(Kind kind) {
  for (;;) {
    const std::optional<ControlMessage> message = Receive();
    if (message && message->kind == kind) return *message;
    PREPOST_RETURN_IF_ERROR(message ? Handle(*message) : WaitForControl(Clock::time_point::max()));
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
  if (player_ != nullptr) {
    answer.report = player_->report();
    answer.progress += player_->AskProgress();
    answer.SetText(player_->Waiting(kWaitingOpsMax));
  }
  task_.control.Send(answer);
  return {};
}

/// When nothing more can be read.
Status Member::CheckLeader() {
  if (IsInterrupted(task_.interrupt_fd)) return Interrupted();
  if (!task_.control.nonsense().empty()) {
    return Rejected(fmt::format("{} sent nonsense over its control connection: {}", task_.leader,
                                task_.control.nonsense()));
  }
  const bool is_silent = SilenceLeft() == milliseconds(0);
  is_leader_lost_ = task_.control.closed() || is_silent;
  if (!is_leader_lost_) return {};
  return Rejected(
      is_silent ? fmt::format("{} has said nothing for {} ms", task_.leader, silence_max_.count())
                : fmt::format("{} is gone", task_.leader));
}

/// Up to `due`, to hear more from the leader or to be interrupted.
Status Member::WaitForControl(Clock::time_point due) {
  PREPOST_RETURN_IF_ERROR(CheckLeader());
  milliseconds timeout = SilenceLeft();
  if (due != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<milliseconds>(due - Clock::now());
    timeout = Sooner(timeout, std::max(left, milliseconds(0)));
  }
  pollfd polls[] = {{.fd = task_.control.fd(), .events = POLLIN, .revents = 0},
                    {.fd = task_.interrupt_fd, .events = POLLIN, .revents = 0}};
  poll(polls, std::size(polls), static_cast<int>(timeout.count()));
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
  const bool lost_peer = player_ != nullptr && player_->lost_peer().has_value();
  if (player_ != nullptr) player_->Stop();
  if (is_aborted_ || is_leader_lost_) return failure;
  task_.interrupt_fd = -1;  // what follows is bounded, and an interrupt may be what is reported
  ControlMessage message = {.kind = Kind::kFailed, .code = failure.code()};
  message.lost_peer = lost_peer;
  message.SetText(failure.ToString());
  task_.control.Send(message);
  const Clock::time_point due =
      max < milliseconds(0) ? Clock::time_point::max() : Clock::now() + max;
  Status leader;
  while (leader.ok() && Clock::now() < due) {
    while (const std::optional<ControlMessage> said = task_.control.Receive()) {
      if (said->kind != Kind::kAbort) continue;
      return message.lost_peer ? Rejected(said->text) : failure;
    }
    leader = WaitForControl(due);
  }
  if (!message.lost_peer) return failure;
  if (!leader.ok()) return leader;
  return Rejected(fmt::format("{}, and {} does not say why", failure.message(), task_.leader));
}

}  // namespace prepost
