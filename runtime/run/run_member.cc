// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/run_member.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/interrupt.h"
#include "runtime/transport/tcp/tcp_watch.h"

namespace prepost {
namespace {

using std::chrono::milliseconds;

constexpr GroupSerial kSerial = RunControl::kSerial;
constexpr milliseconds kCauseMax{1000};  ///< beyond failure_max, for the cause of a failure

}  // namespace

RunMember::RunMember(RunMemberTask task)
    : task_(std::move(task)),
      node_(task_.group.self),
      leader_node_(task_.group.leader),
      is_formed_(!task_.group.controls.empty()),
      failure_max_(task_.keeper.failure_max),
      tick_(failure_max_ / 8),
      interval_(task_.make_player ? DeviceInterval(failure_max_) : tick_),
      attention_(tick_),
      part_(PartTask()) {}

NodePartTask RunMember::PartTask() {
  NodePartTask part = task_.part;
  part.make_player = [this](const PlayerContext& context) { return MakePlayer(context); };
  part.in_memory = static_cast<bool>(task_.make_player);
  return part;
}

Status RunMember::Open() {
  KeeperOptions options = std::move(task_.keeper);
  options.attention = [this] { return attention_.Get(); };
  options.describe = [this] { return Describe(); };
  const Status opened = control_.Open(std::move(options), task_.interrupt_fd,
                                      [this](KeeperEvent& event) { return Take(event); });
  if (!opened.ok() && is_formed_) {
    ControlSocket(std::move(task_.group.controls.front()))
        .Send(control::Failed{.code = opened.code(), .cause = ControlText(opened.ToString())});
  }
  PREPOST_RETURN_IF_ERROR(opened);
  if (task_.leads) leader_.emplace(task_.part.plan.header(), control_, *task_.leads);
  return {};
}

Status RunMember::Run() {
  const Status status = Play();
  if (status.ok()) return {};
  return control_.EndFailed(status, part_.Stop(), failure_max_ + kCauseMax);
}

Status RunMember::Play() {
  control_.keeper().Add(std::move(task_.group));
  // From then on its failure is everyone's.
  if (!leader_ && !is_formed_) PREPOST_RETURN_IF_ERROR(Await(is_let_in_));
  PREPOST_RETURN_IF_ERROR(part_.Prepare(control_.wake_fd(), Checking()));
  Publish();
  control_.keeper().Arrive(kSerial, Gate::kArmed, 0);
  PREPOST_RETURN_IF_ERROR(Await(may_start_));
  PREPOST_RETURN_IF_ERROR(Transfer());
  control_.keeper().SendRunMessage(kSerial,
                                   control::Report{.report = part_.report(), .nonce = nonce_});
  control_.keeper().Arrive(kSerial, Gate::kMoved, 0);
  PREPOST_RETURN_IF_ERROR(Await(may_sum_));
  const Result<MessageSum> sum = part_.Sum(Checking());
  if (!sum.ok()) return sum.status();
  sum_ = *sum;
  control::Summed summed = {.sum = sum_};
  if (task_.prover != nullptr)
    summed.proof = task_.prover->Prove(OwnSum(ProvenSum::Sender::kMember));
  control_.keeper().SendRunMessage(kSerial, summed);
  PREPOST_RETURN_IF_ERROR(Await(may_commit_));
  if (leader_) {
    leader_->LetCommit();
  } else {
    PREPOST_RETURN_IF_ERROR(CheckLeadersSum());
  }
  if (task_.commit) PREPOST_RETURN_IF_ERROR(task_.commit());
  control_.keeper().Close(kSerial, 1);
  while (!control_.is_closed()) PREPOST_RETURN_IF_ERROR(control_.Wait(tick_));
  return {};
}

Status RunMember::Transfer() {
  next_tick_ = Clock::now() + interval_;
  const auto wait_max = [this] {
    return std::max(std::chrono::ceil<milliseconds>(next_tick_ - Clock::now()), milliseconds(0));
  };
  is_playing_ = true;
  // Processes of one machine have one clock.
  const uint64_t start_ns = is_formed_ ? start_ns_ : MonotonicNs();
  PREPOST_RETURN_IF_ERROR(part_.Play(
      start_ns, wait_max, [this] { return CheckPeers(); }, &attention_));
  is_playing_ = false;
  Publish();
  return {};
}

Result<std::unique_ptr<Player>> RunMember::MakePlayer(const PlayerContext& context) {
  if (!is_formed_) PREPOST_RETURN_IF_ERROR(Await(is_connected_));
  if (task_.make_player) return task_.make_player(context, std::move(sockets_));
  auto endpoint = task_.make_endpoint(context, std::move(sockets_));
  if (!endpoint.ok()) return endpoint.status();
  endpoint_ = endpoint->get();
  return std::unique_ptr<Player>(
      std::make_unique<CpuPlayer>(task_.part.plan, node_, std::move(*endpoint), context));
}

/// Until `condition`, which an event of the keeper makes true.
Status RunMember::Await(const bool& condition) {
  PREPOST_RETURN_IF_ERROR(control_.TakeEvents());
  while (!condition) {
    PREPOST_RETURN_IF_ERROR(control_.Wait(tick_));
    if (endpoint_ != nullptr) PREPOST_RETURN_IF_ERROR(CheckPeers());
  }
  return {};
}

Checkpoint RunMember::Checking() {
  return [this] {
    ++checkpoints_;
    Publish();
    return control_.Wait(milliseconds(0));
  };
}

/// During the transfer, and while others are at it.
Status RunMember::CheckPeers() {
  if (IsInterrupted(task_.interrupt_fd)) return Interrupted();
  PREPOST_RETURN_IF_ERROR(control_.TakeEvents());
  if (Clock::now() < next_tick_) return {};
  next_tick_ = Clock::now() + interval_;
  Publish();
  if (endpoint_ == nullptr || part_.player() == nullptr) return {};
  PREPOST_RETURN_IF_ERROR(endpoint_->CheckPeers(PeerSilenceMax(failure_max_)));
  if (!is_playing_ || part_.player()->done()) return {};
  if (const auto silent = endpoint_->AskPeers(PeerAnswerMax(failure_max_)))
    control_.keeper().Stalled(kSerial, *silent);
  return {};
}

/// What this node has done so far, for the keeper's next answer.
void RunMember::Publish() {
  Player* const player = part_.player();
  const uint64_t progress = checkpoints_ + (player == nullptr ? 0 : player->AskProgress());
  const std::lock_guard lock(mutex_);
  progress_ = progress;
  if (player == nullptr) return;
  so_far_ = player->report();
  waits_for_ = player->Waiting(kWaitingOpsMax);
}

/// By the keeper's thread.
control::Progress RunMember::Describe() {
  const std::lock_guard lock(mutex_);
  return {.steps = progress_, .so_far = so_far_, .waits_for = ControlText(waits_for_)};
}

Status RunMember::Take(KeeperEvent& event) {
  switch (event.kind) {
    case KeeperEvent::Kind::kLetIn:
      is_let_in_ = true;
      break;
    case KeeperEvent::Kind::kConnected:
      sockets_ = std::move(event.sockets);
      for (const TcpSocket& socket : sockets_) BoundRetries(socket.fd.get(), failure_max_);
      is_connected_ = true;
      break;
    case KeeperEvent::Kind::kPassed:
      if (event.gate != Gate::kArmed) break;
      may_start_ = true;
      start_ns_ = event.start_ns;
      break;
    case KeeperEvent::Kind::kRunMessage:
      if (leader_) break;
      if (const auto* sum = std::get_if<control::Sum>(&event.message)) {
        leader_nonce_ = sum->nonce;
        may_sum_ = true;
      } else if (const auto* commit = std::get_if<control::Commit>(&event.message)) {
        commit_ = *commit;
        may_commit_ = true;
      }
      break;
    case KeeperEvent::Kind::kClosed:
    case KeeperEvent::Kind::kFailed:
    case KeeperEvent::Kind::kDelivered:
    case KeeperEvent::Kind::kPlace:
    case KeeperEvent::Kind::kNext:
    case KeeperEvent::Kind::kClaim:
    case KeeperEvent::Kind::kLast:
      break;  // of groups that move many messages, or not for this
  }
  if (!leader_) return {};
  PREPOST_RETURN_IF_ERROR(leader_->Take(event));
  leader_nonce_ = leader_->nonce();
  may_sum_ = leader_->may_sum();
  may_commit_ = leader_->may_commit();
  return {};
}

ProvenSum RunMember::OwnSum(ProvenSum::Sender sender) const {
  return {.sender = sender,
          .node = node_,
          .member_nonce = nonce_,
          .leader_nonce = leader_nonce_,
          .sum = sum_};
}

/// Without it, who can change the leader's words could have this node name what it has received
/// although the leader knows better.
Status RunMember::CheckLeadersSum() const {
  if (task_.prover == nullptr) return {};
  if (commit_.sum == sum_ &&
      task_.prover->Verify(commit_.proof, OwnSum(ProvenSum::Sender::kLeader))) {
    return {};
  }
  return Rejected(fmt::format(
      "the sum of node {}, the {}, is not proved to be that of this copy: its control messages "
      "were changed on the way",
      leader_node_.value, HasRoot(task_.part.plan.header().collective.kind) ? "root" : "leader"));
}

}  // namespace prepost
