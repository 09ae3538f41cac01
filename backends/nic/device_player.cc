// SPDX-License-Identifier: Apache-2.0
#include "prepost/backends/nic/device_player.h"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

#include "prepost/backends/nic/armed_node.h"
#include "prepost/backends/nic/device_endpoint.h"
#include "prepost/backends/nic/exchange.h"
#include "prepost/backends/nic/object_table.h"

namespace prepost::nic {
namespace {

constexpr uint8_t kRetryForEver = 7;  // peers start when the group does, each in its own time

bool IsReadable(int fd) {
  pollfd it = {.fd = fd, .events = POLLIN, .revents = 0};
  return fd >= 0 && poll(&it, 1, 0) == 1;
}

class PrepostedPlayer final : public Player {
 public:
  PrepostedPlayer(Device& device, ArmedNode node, std::vector<TcpSocket> sockets, uint64_t bytes,
                  int wake_fd)
      : device_(device),
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
  uint64_t progress() const override {
    return device_.counters().cqes_read + node_.wqes_written() + (is_done_ ? 1 : 0);
  }
  std::string Waiting(size_t) const override {
    return fmt::format("{} WQEs are preposted, the final completion has not come",
                       node_.wqes_written());
  }
  std::optional<NodeId> lost_peer() const override { return std::nullopt; }

 private:
  Status Look(std::chrono::milliseconds timeout) {
    const Result<bool> done = node_.Poll(timeout, wake_fd_);
    if (!done.ok()) return done.status();
    is_woken_ = IsReadable(wake_fd_);
    if (!*done) return {};
    PREPOST_RETURN_IF_ERROR(node_.CheckAll());
    is_done_ = true;
    return {};
  }

  void MoveToError() {
    for (size_t i = 0; i < node_.program().qps.size(); ++i) {
      static_cast<void>(device_.MoveToError(node_.qp(QpId::FromIndex(i)).number));
    }
  }

  Device& device_;
  ArmedNode node_;
  std::vector<TcpSocket> sockets_;  // open to the end, so that peers see when this node is gone
  uint64_t bytes_;
  int wake_fd_;
  bool is_done_ = false;
  bool is_woken_ = false;
  DeviceCounters before_;
  DeviceCounters started_;
};

/// The CPU executor, and what must live as long.
class DrivenPlayer final : public Player {
 public:
  DrivenPlayer(const Plan& plan, NodeId node, std::unique_ptr<Endpoint> endpoint,
               std::vector<TcpSocket> sockets, const PlayerContext& context)
      : sockets_(std::move(sockets)), player_(plan, node, std::move(endpoint), context) {}

  void Start() override { player_.Start(); }
  Status Poll(std::chrono::milliseconds timeout) override { return player_.Poll(timeout); }
  bool done() const override { return player_.done(); }
  bool woken() const override { return player_.woken(); }
  NodeReport report() const override { return player_.report(); }
  uint64_t progress() const override { return player_.progress(); }
  std::string Waiting(size_t ops_max) const override { return player_.Waiting(ops_max); }
  std::optional<NodeId> lost_peer() const override { return player_.lost_peer(); }

 private:
  std::vector<TcpSocket> sockets_;
  CpuPlayer player_;
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
  return std::unique_ptr<Player>(std::make_unique<PrepostedPlayer>(
      device, *std::move(node), std::move(sockets), context.memory.target.size(), context.wake_fd));
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
  return std::unique_ptr<Player>(std::make_unique<DrivenPlayer>(plan, node, *std::move(endpoint),
                                                                std::move(sockets), context));
}

}  // namespace prepost::nic
