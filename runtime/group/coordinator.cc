// SPDX-License-Identifier: Apache-2.0
//
// All members go through the same steps together: ready, start, delivered, sum, then the launcher's
// own, then release. "Ready" before "start" is the barrier that
// `ready: barrier` asks for. Sums are computed after everyone has delivered, so that they cost no
// member's transfer any time, and copies get their names only when all sums are equal.
//
// Who notices what:
//
// A member that fails says so (kFailed) and waits to be ended.
//
// A member that dies shows on its DeathWatch, where there is one, and by the end of its control
// connection. A member that loses a peer sees its connection end. Lost connections have a cause
// that may show up elsewhere (a death, a failure), so it is given kCauseWait to do so, and the lost
// connection is reported only if it does not.
//
// A member that hangs keeps everything from moving although members are asked once a second: the
// report says who waits for what. One that does not answer ends the run even while others move on.
//
// Time is counted in ticks, so that time during which the leader itself was stopped does not count.
#include "runtime/group/coordinator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "ir/count.h"
#include "runtime/files/node_buffer.h"
#include "runtime/interrupt.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTickMax{1000};
constexpr milliseconds kCauseWait{500};  ///< for the cause of a lost connection to show up
/// How long members may take to go once the end is sent to them; they have nothing left to do.
constexpr milliseconds kDismissMax{1000};
constexpr size_t kStalledNodesMax = 4;  ///< named when nothing moves
/// A group that stands still is reported as such before its member that does not answer.
constexpr uint32_t kUnansweredSlackTicks = 2;

milliseconds LeftUntil(std::chrono::steady_clock::time_point due) {
  const auto left = std::chrono::ceil<milliseconds>(due - std::chrono::steady_clock::now());
  return std::max(left, milliseconds(0));
}

}  // namespace

Coordinator::Coordinator(uint32_t nodes, NodeId leader, Options options)
    : leader_(leader),
      options_(std::move(options)),
      tick_(std::clamp(options_.no_progress_max / 4, milliseconds(1), kTickMax)),
      members_(nodes) {
  for (uint32_t node = 0; node < nodes; ++node) members_[node].node = NodeId(node);
}

void Coordinator::Join(NodeId node, ControlSocket control, DeathWatch death) {
  Member& member = members_[node.index()];
  PREPOST_CHECK(!member.control);
  member.control = std::move(control);
  member.death = std::move(death);
  Ask(member);  // it hears at once that it is led
}

Status Coordinator::Lead(const std::function<uint64_t()>& start_ns) {
  PREPOST_RETURN_IF_ERROR(Await(Kind::kReady));
  Broadcast({.kind = Kind::kStart, .start_ns = start_ns()});
  PREPOST_RETURN_IF_ERROR(Await(Kind::kDelivered));
  Broadcast({.kind = Kind::kSum});
  PREPOST_RETURN_IF_ERROR(Await(Kind::kSummed));
  return CompareSums();
}

Status Coordinator::Await(Kind kind) {
  awaited_ = kind;
  idle_ = milliseconds(0);
  for (Member& member : members_) member.reached = false;
  Clock::time_point next_tick = Clock::now() + tick_;
  while (loss_ || !std::ranges::all_of(members_, &Member::reached)) {
    const Clock::time_point wake = loss_ ? std::min(next_tick, loss_due_) : next_tick;
    PREPOST_RETURN_IF_ERROR(WaitForEvents(LeftUntil(wake)));
    if (loss_ && Clock::now() >= loss_due_) return *loss_;
    if (Clock::now() >= next_tick) {
      PREPOST_RETURN_IF_ERROR(AfterTick());
      next_tick = Clock::now() + tick_;
    }
  }
  return {};
}

/// An interrupt counts before deaths: Ctrl-C and `timeout` signal all processes at once.
Status Coordinator::WaitForEvents(milliseconds timeout) {
  constexpr size_t kOwnPolls = 1;
  std::vector<pollfd> polls;
  polls.push_back({.fd = options_.interrupt_fd, .events = POLLIN, .revents = 0});
  for (const Member& member : members_) {
    const int control_fd = member.is_open() ? member.control->fd() : -1;
    polls.push_back({.fd = control_fd, .events = POLLIN, .revents = 0});
    polls.push_back({.fd = member.death.fd, .events = POLLIN, .revents = 0});
  }
  if (poll(polls.data(), polls.size(), static_cast<int>(timeout.count())) <= 0) return {};
  for (size_t i = 0; i < members_.size(); ++i) {
    const bool spoke = polls[kOwnPolls + 2 * i].revents != 0;
    const bool died = polls[kOwnPolls + 2 * i + 1].revents != 0;
    Status status;
    if (members_[i].control && (spoke || died)) status = Drain(members_[i]);
    if (status.ok() && died) status = members_[i].death.cause();
    if (!status.ok()) return IsInterrupted(options_.interrupt_fd) ? Interrupted() : status;
  }
  return IsInterrupted(options_.interrupt_fd) ? Interrupted() : Status();
}

/// Takes what a member has said; what is more waits for the next visit, as others do.
Status Coordinator::Drain(Member& member) {
  constexpr int kMessagesPerVisit = 64;
  for (int i = 0; i < kMessagesPerVisit; ++i) {
    const std::optional<ControlMessage> message = member.control->Receive();
    if (!message) break;
    PREPOST_RETURN_IF_ERROR(Handle(member, *message));
  }
  if (!member.control->closed()) return {};
  if (!member.control->nonsense().empty()) return Nonsense(member, member.control->nonsense());
  return NoteLoss(
      Rejected(fmt::format("node {} is gone: its control connection ended", member.node.value)));
}

Status Coordinator::Handle(Member& member, const ControlMessage& message) {
  switch (message.kind) {
    case Kind::kFailed:
      if (message.code == StatusCode::kInterrupted) {
        return Rejected(fmt::format("node {} was interrupted", member.node.value));
      }
      if (message.lost_peer) return NoteLoss(Rejected(message.text));
      return {message.code, fmt::format("node {}: {}", member.node.value, message.text)};
    case Kind::kProgress:
      member.asked = false;
      member.unanswered = 0;
      member.progress = message.progress;
      member.waiting = message.text;
      // Its counters so far; when it has delivered, they are final, and it may count no more.
      if (awaited_ == Kind::kDelivered && !member.reached) member.report = message.report;
      return {};
    case Kind::kReady:
    case Kind::kDelivered:
    case Kind::kSummed:
      if (message.kind != awaited_ || member.reached) break;
      member.reached = true;
      if (message.kind == Kind::kDelivered) member.report = message.report;
      if (message.kind == Kind::kSummed) member.sum = message.sum;
      return {};
    case Kind::kStart:
    case Kind::kSum:
    case Kind::kCommit:
    case Kind::kRelease:
    case Kind::kQuery:
    case Kind::kAbort:
    case Kind::kHave:
    case Kind::kArrived:
    case Kind::kDone:
    case Kind::kPassed:
    case Kind::kLast:
    case Kind::kDevice:
    case Kind::kNext:
    case Kind::kPrepared:
    case Kind::kArm:
    case Kind::kWhole:
    case Kind::kJoined:
    case Kind::kStalled:
    case Kind::kGone:
    case Kind::kWaiting:
      break;
  }
  return Nonsense(member, fmt::format("\"{}\" out of turn", Name(message.kind)));
}

Status Coordinator::Nonsense(const Member& member, const std::string& what) const {
  return Rejected(fmt::format("node {} sent nonsense over its control connection: {}",
                              member.node.value, what));
}

Status Coordinator::NoteLoss(Status loss) {
  if (!loss_) {
    loss_ = std::move(loss);
    loss_due_ = Clock::now() + kCauseWait;
  }
  return {};
}

Status Coordinator::AfterTick() {
  uint64_t progress = 0;
  uint64_t bytes_received = 0;
  const auto unanswered_max =
      static_cast<uint64_t>(options_.no_progress_max / tick_) + kUnansweredSlackTicks;
  for (Member& member : members_) {
    progress += member.progress + (member.reached ? 1 : 0);
    bytes_received += member.report.bytes_received;
    if (member.asked && ++member.unanswered > unanswered_max) {
      return Stalled(fmt::format("no answer for {} ms", options_.no_progress_max.count()));
    }
  }
  idle_ = progress == std::exchange(progress_, progress) ? idle_ + tick_ : milliseconds(0);
  if (idle_ >= options_.no_progress_max) {
    return Stalled(fmt::format("no progress for {} ms", options_.no_progress_max.count()));
  }
  if (options_.progress && awaited_ == Kind::kDelivered) options_.progress(bytes_received);
  for (Member& member : members_) Ask(member);
  return {};
}

/// How far it is, unless it has not answered that yet.
void Coordinator::Ask(Member& member) {
  if (!member.is_open() || std::exchange(member.asked, true)) return;
  Send(member, {.kind = Kind::kQuery, .interval_ms = static_cast<uint32_t>(tick_.count())});
}

void Coordinator::Send(Member& member, const ControlMessage& message) {
  if (!member.is_open()) return;
  member.control->Send(message);
  if (member.control->closed()) {
    static_cast<void>(NoteLoss(
        Rejected(fmt::format("node {} is gone: it takes no more messages", member.node.value))));
  }
}

/// A loss that is known is the cause. Else nodes that do not answer come first: they are the likely
/// one.
Status Coordinator::Stalled(const std::string& what) const {
  if (loss_) return *loss_;
  std::vector<std::string> reasons;
  for (const Member& member : members_) {
    if (!member.control) {
      reasons.push_back(fmt::format("node {} has not come", member.node.value));
    } else if (member.asked) {
      reasons.push_back(fmt::format("node {} does not answer", member.node.value));
    }
  }
  for (const Member& member : members_) {
    if (!member.reached && !member.asked && !member.waiting.empty())
      reasons.push_back(member.waiting);
  }
  if (reasons.empty()) reasons.push_back("no node has said yet what it waits for");
  if (reasons.size() > kStalledNodesMax) {
    const size_t more = reasons.size() - kStalledNodesMax;
    reasons.resize(kStalledNodesMax);
    reasons.push_back(fmt::format("and {} more", Count(more, "node")));
  }
  return Rejected(fmt::format("{}: {}", what, fmt::join(reasons, "; ")));
}

Status Coordinator::CompareSums() const {
  std::vector<std::optional<MessageSum>> expected;
  if (options_.expected) {
    Result<std::vector<std::optional<MessageSum>>> sums = options_.expected();
    if (!sums.ok()) return sums.status();
    expected = *std::move(sums);
  }
  for (const Member& member : members_) {
    if (!options_.expected) {
      PREPOST_RETURN_IF_ERROR(CheckCopy(member.node, member.sum, sum()));
      continue;
    }
    const std::optional<MessageSum>& wanted = expected[member.node.index()];
    if (wanted && *wanted != member.sum) {
      return Rejected(fmt::format(
          "the output of node {} has the BLAKE2b-256 sum {}, and the plan makes {} of the inputs",
          member.node.value, member.sum.ToString(), wanted->ToString()));
    }
  }
  return {};
}

void Coordinator::Broadcast(const ControlMessage& message) {
  for (Member& member : members_) Send(member, message);
}

void Coordinator::Release() { Dismiss({.kind = Kind::kRelease}); }

void Coordinator::Abort(const std::string& cause) {
  ControlMessage message = {.kind = Kind::kAbort};
  message.SetText(cause);
  Dismiss(message);
}

/// What members say now changes nothing. Those that have not answered are not waited for.
void Coordinator::Dismiss(const ControlMessage& message) {
  Broadcast(message);
  const Clock::time_point due = Clock::now() + kDismissMax;
  for (Member& member : members_) {
    while (member.is_open() && member.unanswered == 0) {
      while (member.control->Receive()) {
      }
      if (member.control->closed()) break;
      pollfd left = {.fd = member.control->fd(), .events = POLLIN, .revents = 0};
      if (poll(&left, 1, static_cast<int>(LeftUntil(due).count())) == 0) break;
    }
  }
}

RunReport Coordinator::report() const {
  RunReport report;
  for (const Member& member : members_) {
    report.nodes.push_back(member.report);
    report.nodes.back().node = member.node;
    report.elapsed_ns = std::max(report.elapsed_ns, member.report.elapsed_ns);
  }
  return report;
}

}  // namespace prepost
