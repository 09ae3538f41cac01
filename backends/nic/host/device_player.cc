// SPDX-License-Identifier: Apache-2.0
#include "backends/nic/host/device_player.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "backends/nic/host/armed_node.h"
#include "backends/nic/host/device_endpoint.h"
#include "backends/nic/host/exchange.h"
#include "backends/nic/host/preposted_host.h"
#include "backends/nic/host/queue_watch.h"
#include "backends/nic/host/stuck_report.h"
#include "backends/nic/validate/object_table.h"

namespace prepost::nic {
namespace {

bool IsReadable(int fd) {
  pollfd it = {.fd = fd, .events = POLLIN, .revents = 0};
  return fd >= 0 && poll(&it, 1, 0) == 1;
}

class PrepostedPlayer final : public Player {
 public:
  PrepostedPlayer(Device& device, const Plan& plan, ArmedNode node, const PlayerContext& context)
      : plan_(plan),
        node_(std::move(node)),
        host_(device, node_),
        bytes_(context.memory.target.size()),
        wake_fd_(context.wake_fd) {
    if (!context.observer) return;
    node_.ObserveWakeups([observer = context.observer, id = node_.program().node] {
      observer({.node = id, .op = {}, .kind = OpEvent::Kind::kWakeup});
    });
  }

  void Start() override { host_.Start(); }

  Status Poll(std::chrono::milliseconds timeout) override {
    const Status status = PollNode(timeout);
    if (!status.ok()) node_.MoveToError();
    return status;
  }
  bool done() const override { return is_done_; }
  bool woken() const override { return is_woken_; }

  NodeReport report() const override {
    NodeReport report = host_.report();
    report.bytes_received = is_done_ ? bytes_ : 0;
    return report;
  }
  std::vector<QueueRearms> queue_rearms() const override { return node_.queue_rearms(); }
  uint64_t progress() const override {
    return node_.cqes_read() + node_.wqes_written() + (is_done_ ? 1 : 0);
  }
  uint64_t AskProgress() override {
    has_moved_ = !is_done_ && watch_.HasMoved(node_);
    moves_ += has_moved_ ? 1 : 0;
    return progress() + moves_;
  }
  std::string Waiting(size_t) const override {
    std::string text = fmt::format("{} WQEs are preposted, the final completion has not come",
                                   node_.wqes_written());
    const std::string stuck_at = is_done_ || has_moved_ ? "" : StuckAt(plan_, node_);
    if (!stuck_at.empty()) text += ": " + stuck_at;
    return text;
  }
  void Stop() override { node_.MoveToError(); }
  /// The peer that does not answer. The cause lies elsewhere, and other nodes may know it.
  std::optional<NodeId> lost_peer() const override {
    const std::optional<Failure>& failure = node_.failure();
    if (!failure || failure->kind != FailureKind::kNoAnswer) return std::nullopt;
    return node_.program().qps[failure->qp.index()].peer;
  }

 private:
  Status PollNode(std::chrono::milliseconds timeout) {
    const Result<bool> done = host_.Poll(timeout, wake_fd_);
    if (!done.ok()) return done.status();
    is_woken_ = IsReadable(wake_fd_);
    if (!*done) return {};
    PREPOST_RETURN_IF_ERROR(node_.CheckAll());
    is_done_ = true;
    return {};
  }

  const Plan& plan_;
  ArmedNode node_;
  PrepostedHost host_;  // of node_
  uint64_t bytes_;
  int wake_fd_;
  QueueWatch watch_;
  uint64_t moves_ = 0;      // times that it saw something move
  bool has_moved_ = false;  // the last time
  bool is_done_ = false;    // and checked
  bool is_woken_ = false;
};

}  // namespace

Result<std::unique_ptr<Player>> MakePrepostedPlayer(Device& device, const Plan& plan,
                                                    const NodeProgram& program, PeerLinks& links,
                                                    const PlayerContext& context,
                                                    std::chrono::milliseconds answer_max) {
  PREPOST_RETURN_IF_ERROR(device.EventFile().status());
  Result<ArmedNode> node = ArmedNode::Make(device, program,
                                           {.messages = {context.memory.source},
                                            .writable = !context.memory.target.empty(),
                                            .rnr_retry = RnrRetryOfMember(plan.header())});
  if (!node.ok()) return node.status();
  PREPOST_RETURN_IF_ERROR(ExchangeAddresses(node->open_node(), links, context.checkpoint,
                                            context.checkpoint_interval, answer_max));
  PREPOST_RETURN_IF_ERROR(node->Arm());
  PREPOST_RETURN_IF_ERROR(node->RequestEvents());
  PREPOST_RETURN_IF_ERROR(ValidateArmed(plan, *node));
  return std::unique_ptr<Player>(
      std::make_unique<PrepostedPlayer>(device, plan, *std::move(node), context));
}

Result<std::unique_ptr<Player>> MakeDrivenPlayer(Device& device, const VerifiedPlan& plan,
                                                 NodeId node, PeerLinks& links,
                                                 const PlayerContext& context,
                                                 std::chrono::milliseconds answer_max,
                                                 const DeviceProfile& limits) {
  const NodeMemory& memory = context.memory;
  const std::array<DeviceEndpointConfig::Room, 4> rooms = {{{memory.source, false},
                                                            {memory.target, true},
                                                            {memory.scratch, true},
                                                            {memory.staging, true}}};
  Result<std::unique_ptr<DeviceEndpoint>> endpoint = DeviceEndpoint::Make(
      device, plan, node,
      {.message = memory.source,
       .writable = !memory.target.empty(),
       .rooms = rooms,
       .ring_wqes_max = std::bit_floor(std::min(limits.sq_wqebbs, limits.rq_wqes)),
       .cq_entries_max = std::bit_floor(limits.cq_entries),
       .wake_fd = context.wake_fd});
  if (!endpoint.ok()) return endpoint.status();
  PREPOST_RETURN_IF_ERROR(ExchangeAddresses((*endpoint)->open_node(), links, context.checkpoint,
                                            context.checkpoint_interval, answer_max));
  return std::unique_ptr<Player>(
      std::make_unique<CpuPlayer>(plan, node, *std::move(endpoint), context));
}

}  // namespace prepost::nic
