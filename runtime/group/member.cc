// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/member.h"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

#include "runtime/clock.h"

namespace prepost {
namespace {

constexpr std::chrono::milliseconds kForever{-1};

}  // namespace

Member::Member(NodePartTask part, ControlSocket control, std::string leader)
    : control_(std::move(control)), leader_(std::move(leader)), part_(std::move(part)) {}

Status Member::Run() {
  PREPOST_RETURN_IF_ERROR(part_.Prepare(control_.fd(), Answering()));
  control_.Send({.kind = Kind::kReady});
  const Result<ControlMessage> start = Await(Kind::kStart);
  if (!start.ok()) return start.status();
  PREPOST_RETURN_IF_ERROR(Transfer(start->start_ns != 0 ? start->start_ns : MonotonicNs()));
  PREPOST_RETURN_IF_ERROR(Await(Kind::kSum).status());
  const Result<MessageSum> sum = part_.Sum(Answering());
  if (!sum.ok()) return sum.status();
  control_.Send({.kind = Kind::kSummed, .sum = *sum});
  return Await(Kind::kRelease).status();
}

Status Member::Transfer(uint64_t start_ns) {
  PREPOST_RETURN_IF_ERROR(part_.Play(
      start_ns, [] { return kForever; }, [this] { return AnswerQueries(); }));
  control_.Send({.kind = Kind::kDelivered, .report = part_.report()});
  return {};
}

/// Waits for `kind`, answering queries; the message.
Result<ControlMessage> Member::Await(Kind kind) {
  for (;;) {
    const std::optional<ControlMessage> message = control_.Receive();
    if (message && message->kind == kind) return *message;
    PREPOST_RETURN_IF_ERROR(message ? Handle(*message) : WaitForControl());
  }
}

/// Answers what is there and returns.
Status Member::AnswerQueries() {
  while (const std::optional<ControlMessage> message = control_.Receive()) {
    PREPOST_RETURN_IF_ERROR(Handle(*message));
  }
  return CheckLeader();
}

Status Member::Handle(const ControlMessage& message) {
  if (message.kind == Kind::kAbort) {
    is_aborted_ = true;
    return Rejected(message.text);
  }
  if (message.kind != Kind::kQuery) {
    return Rejected(fmt::format("{} sent nonsense over its control connection: \"{}\" out of turn",
                                leader_, Name(message.kind)));
  }
  ControlMessage answer = {.kind = Kind::kProgress, .progress = checkpoints_};
  if (Player* const player = part_.player(); player != nullptr) {
    answer.report = player->report();
    answer.progress += player->AskProgress();
    answer.SetText(player->Waiting(kWaitingOpsMax));
  }
  control_.Send(answer);
  return {};
}

/// When nothing more can be read.
Status Member::CheckLeader() {
  if (!control_.nonsense().empty()) {
    return Rejected(fmt::format("{} sent nonsense over its control connection: {}", leader_,
                                control_.nonsense()));
  }
  is_leader_lost_ = control_.closed();
  return is_leader_lost_ ? Rejected(fmt::format("{} is gone", leader_)) : Status();
}

Status Member::WaitForControl() {
  PREPOST_RETURN_IF_ERROR(CheckLeader());
  pollfd control = {.fd = control_.fd(), .events = POLLIN, .revents = 0};
  poll(&control, 1, /*timeout=*/-1);
  return {};
}

Checkpoint Member::Answering() {
  return [this] {
    ++checkpoints_;
    return AnswerQueries();
  };
}

Status Member::ReportFailure(const Status& failure) {
  const bool lost_peer = part_.Stop().has_value();
  if (is_aborted_ || is_leader_lost_) return failure;
  ControlMessage message = {.kind = Kind::kFailed, .code = failure.code()};
  message.lost_peer = lost_peer;
  message.SetText(failure.ToString());
  control_.Send(message);
  for (;;) {
    while (const std::optional<ControlMessage> said = control_.Receive()) {
      if (said->kind == Kind::kAbort) return lost_peer ? Rejected(said->text) : failure;
    }
    const Status leader = WaitForControl();
    if (!leader.ok()) return lost_peer ? leader : failure;
  }
}

}  // namespace prepost
