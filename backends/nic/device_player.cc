// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/nic/device_player.h"

#include <fmt/format.h>
#include <poll.h>

#include <string>
#include <utility>

#include "prepost/backends/nic/armed_node.h"
#include "prepost/backends/nic/device_endpoint.h"
#include "prepost/backends/nic/exchange.h"
#include "prepost/backends/nic/object_table.h"
#include "prepost/backends/nic/stuck_report.h"

namespace prepost::nic {
namespace {

constexpr uint8_t kRetryForEver = 7;  // peers start when the group does, each in its own time

bool IsReadable(int fd) {
  pollfd it = {.fd = fd, .events = POLLIN, .revents = 0};
  return fd >= 0 && poll(&it, 1, 0) == 1;
}

class PrepostedPlayer final : public Player {
 public:
  PrepostedPlayer(Device& device, const Plan& plan, ArmedNode node, std::vector<TcpSocket> sockets,
                  uint64_t bytes, int wake_fd)
      : device_(device),
        plan_(plan),
        node_(std::move(node)),
        sockets_(std::move(sockets)),
        bytes_(bytes),
        wake_fd_(wake_fd) {}

  void Start() override {
    before_ = device_.counters();
    node_.Start();
    started_ = device_.counters();
  }

  Status Poll(std::chrono::milliseconds timeout) override {
    const Status status = Look(timeout);
    if (!status.ok()) MoveToError();
    return status;
  }
  bool done() const override { return is_done_; }
  bool woken() const override { return is_woken_; }

  NodeReport report() const override {
    const DeviceCounters now = device_.counters();
    return {.node = node_.program().node,
            .host_posts =
                now.doorbells - before_.doorbells + now.event_requests - before_.event_requests,
            .host_posts_during =
                now.doorbells - started_.doorbells + now.event_requests - started_.event_requests,
            .host_wakeups = now.wakeups - before_.wakeups,
            .host_completions = now.cqes_read - before_.cqes_read,
            .rearms = node_.feed().rearms(),
            .rearms_max = node_.program().rearms(),
            .bytes_received = is_done_ ? bytes_ : 0};
  }
  uint64_t progress() const override { return seen_by_host() + moved_ + (is_done_ ? 1 : 0); }
  std::string Waiting(size_t) const override {
    return fmt::format("{} WQEs are preposted, the final completion has not come{}{}",
                       node_.wqes_written(), stuck_at_.empty() ? "" : ": ", stuck_at_);
  }
  std::optional<NodeId> lost_peer() const override { return std::nullopt; }

 private:
  Status Look(std::chrono::milliseconds timeout) {
    const Result<bool> done = node_.Poll(timeout, wake_fd_);
    if (!done.ok()) return done.status();
    is_woken_ = IsReadable(wake_fd_);
    if (!*done) {
      if (is_woken_) AskDevice();
      return {};
    }
    PREPOST_RETURN_IF_ERROR(node_.CheckAll());
    is_done_ = true;
    return {};
  }

  uint64_t seen_by_host() const { return device_.counters().cqes_read + node_.wqes_written(); }

  /// Commands that may take long, so only where the host knows nothing itself. What cannot be asked
  /// has not moved.
  void AskDevice() {
    stuck_at_.clear();
    if (std::exchange(seen_at_asking_, seen_by_host()) != seen_by_host()) return;
    const Result<NodePosition> position = node_.Position();
    if (!position.ok()) return;
    uint64_t moved = 0;
    for (const QueuePosition& queue : position->qps) {
      moved += uint64_t{queue.sends_fetched} + queue.receives_taken;
    }
    for (const uint32_t cqes : position->cqes) moved += cqes;
    if (std::exchange(moved_, moved) == moved) stuck_at_ = StuckAt(plan_, node_);
  }

  void MoveToError() {
    for (size_t i = 0; i < node_.program().qps.size(); ++i) {
      static_cast<void>(device_.MoveToError(node_.qp(QpId::FromIndex(i)).number));
    }
  }

  Device& device_;
  const Plan& plan_;
  ArmedNode node_;
  std::vector<TcpSocket> sockets_;  // open to the end, so that peers see when this node is gone
  uint64_t bytes_;
  int wake_fd_;
  bool is_done_ = false;
  bool is_woken_ = false;
  uint64_t seen_at_asking_ = 0;
  uint64_t moved_ = 0;    ///< by the device, when it was asked last
  std::string stuck_at_;  ///< empty: something has moved between the last two times
  DeviceCounters before_;
  DeviceCounters started_;
};

}  // namespace

Result<std::unique_ptr<Player>> MakePrepostedPlayer(Device& device, const Plan& plan,
                                                    const NodeProgram& program,
                                                    std::vector<TcpSocket> sockets,
                                                    const PlayerContext& context,
                                                    std::chrono::milliseconds answer_max) {
  const bool is_root = context.memory.target.empty();
  PREPOST_RETURN_IF_ERROR(device.EventFile().status());
  Result<ArmedNode> node = ArmedNode::Make(
      device, program,
      {.messages = {context.memory.source}, .writable = !is_root, .rnr_retry = kRetryForEver});
  if (!node.ok()) return node.status();
  PREPOST_RETURN_IF_ERROR(
      ExchangeAddresses(node->open_node(), sockets, context.checkpoint, answer_max));
  PREPOST_RETURN_IF_ERROR(node->Arm());
  PREPOST_RETURN_IF_ERROR(node->RequestEvents());
  PREPOST_RETURN_IF_ERROR(ValidateArmed(plan, *node));
  return std::unique_ptr<Player>(
      std::make_unique<PrepostedPlayer>(device, plan, *std::move(node), std::move(sockets),
                                        context.memory.target.size(), context.wake_fd));
}

Result<std::unique_ptr<Player>> MakeDrivenPlayer(Device& device, const Plan& plan, NodeId node,
                                                 std::vector<TcpSocket> sockets,
                                                 const PlayerContext& context,
                                                 std::chrono::milliseconds answer_max) {
  Result<std::unique_ptr<DeviceEndpoint>> endpoint =
      DeviceEndpoint::Make(device, plan, node,
                           {.message = context.memory.source,
                            .writable = !context.memory.target.empty(),
                            .wake_fd = context.wake_fd});
  if (!endpoint.ok()) return endpoint.status();
  PREPOST_RETURN_IF_ERROR(
      ExchangeAddresses((*endpoint)->open_node(), sockets, context.checkpoint, answer_max));
  // The sockets stay open to the end, so that peers see when this node is gone.
  return std::unique_ptr<Player>(std::make_unique<KeepingPlayer>(
      std::make_unique<CpuPlayer>(plan, node, *std::move(endpoint), context),
      std::make_shared<std::vector<TcpSocket>>(std::move(sockets))));
}

}  // namespace prepost::nic
