// SPDX-License-Identifier: Apache-2.0
#include "backends/fabric/fabric_endpoint.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace prepost::fabric {
namespace {

/// While something is held back, or where a provider does nothing unasked, it is asked so often: its
/// file may not say that a peer wants to connect.
constexpr std::chrono::milliseconds kAskAgain{1};
constexpr char kDone = 'd';

}  // namespace

FabricEndpoint::FabricEndpoint(std::unique_ptr<Endpoints> endpoints, std::vector<TcpSocket> sockets,
                               int wake_fd)
    : endpoints_(std::move(endpoints)),
      wake_fd_(wake_fd),
      queues_(endpoints_->ends().size()),
      sockets_(std::move(sockets)) {
  waits_.reserve(2 + queues_.size());
  for (const ChannelEnd& end : endpoints_->ends()) {
    open_ops_ += end.ops.size();
    if (endpoints_->is_automatic()) continue;
    const auto is_peer = [&](const TcpSocket* it) { return it->peer == end.peer; };
    const auto socket = std::ranges::find(sockets_, end.peer, &TcpSocket::peer);
    if (socket != sockets_.end() && std::ranges::none_of(peers_, is_peer))
      peers_.push_back(&*socket);
  }
}

/// Ops of an end are posted in channel order, so that counts say which.
void FabricEndpoint::Post(OpId op) {
  const Endpoints::Place place = endpoints_->PlaceOf(op);
  Queue& queue = queues_[place.end];
  PREPOST_CHECK(place.position == queue.posted);
  ++queue.posted;
  ++held_back_;
  Submit(place.end);
}

void FabricEndpoint::Submit(uint32_t end) {
  Queue& queue = queues_[end];
  const ChannelEnd& of = endpoints_->ends()[end];
  while (queue.taken < queue.posted && failure_.ok()) {
    const OpId op = of.ops[queue.taken];
    iovec piece;
    void* key = nullptr;
    fi_msg message;
    endpoints_->Describe(op, &piece, &key, &message);
    // Nothing has to be in place of what has no bytes, and the provider shm would never say so.
    const uint64_t when = endpoints_->BytesOf(op) == 0 ? 0 : FI_DELIVERY_COMPLETE;
    fid_ep* const endpoint = endpoints_->EndpointOf(op);
    const ssize_t error =
        of.is_send ? fi_sendmsg(endpoint, &message, FI_COMPLETION | FI_REMOTE_CQ_DATA | when)
                   : fi_recvmsg(endpoint, &message, FI_COMPLETION);
    if (error == -FI_EAGAIN) return;
    if (error != 0) {
      failure_ =
          endpoints_->Failed(op, FabricError(StatusCode::kRejected, "post it", error).message());
      lost_peer_ = of.peer;
      return;
    }
    ++queue.taken;
    --held_back_;
  }
}

Status FabricEndpoint::Retry() {
  for (uint32_t end = 0; end < queues_.size() && held_back_ != 0; ++end) Submit(end);
  return failure_;
}

Status FabricEndpoint::Lost(const TcpSocket& peer) {
  lost_peer_ = peer.peer;
  return Rejected(fmt::format("lost its connection to node {}", peer.peer.value));
}

/// Says, when all ops have completed, that they have, and hears who else is done.
Status FabricEndpoint::Part() {
  if (open_ops_ != 0 || peers_.empty()) return {};
  if (!std::exchange(has_said_, true)) {
    for (const TcpSocket* const peer : peers_) {
      if (send(peer->fd.get(), &kDone, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) return Lost(*peer);
    }
  }
  Status lost;
  std::erase_if(peers_, [&](const TcpSocket* peer) {
    char byte = 0;
    const ssize_t got = recv(peer->fd.get(), &byte, 1, MSG_DONTWAIT);
    if (got == 1 && byte == kDone) return true;
    if (got >= 0 || (errno != EAGAIN && errno != EINTR)) lost = Lost(*peer);
    return false;
  });
  return lost;
}

Result<size_t> FabricEndpoint::Read(std::span<OpId> completed) {
  size_t count = 0;
  const Result<size_t> read = endpoints_->Read(completed.size(), [&](OpId op) {
    completed[count++] = op;
    --open_ops_;
    counters_.bytes_moved += endpoints_->BytesOf(op);
  });
  if (!read.ok()) {
    lost_peer_ = endpoints_->lost_peer();
    return read;
  }
  if (held_back_ != 0) PREPOST_RETURN_IF_ERROR(Retry());
  PREPOST_RETURN_IF_ERROR(Part());
  return read;
}

Result<PollOutcome> FabricEndpoint::Poll(std::span<OpId> completed,
                                         std::chrono::milliseconds timeout) {
  PREPOST_RETURN_IF_ERROR(failure_);
  PollOutcome outcome;
  const auto look = [&]() -> Status {
    const Result<size_t> read = Read(completed);
    if (read.ok()) outcome.completed = *read;
    return read.status();
  };
  const auto has_something = [&] {
    return outcome.completed != 0 || (open_ops_ == 0 && peers_.empty());
  };
  PREPOST_RETURN_IF_ERROR(look());
  if (has_something() || timeout.count() == 0) return outcome;
  if (!endpoints_->MayWait()) {
    PREPOST_RETURN_IF_ERROR(look());
    if (has_something()) return outcome;
  }
  const int file = endpoints_->queue_file();
  const bool asks_again = held_back_ != 0 || !endpoints_->is_automatic() || file < 0;
  if (asks_again && (timeout.count() < 0 || timeout > kAskAgain)) timeout = kAskAgain;
  waits_.assign({pollfd{.fd = file, .events = POLLIN, .revents = 0},
                 pollfd{.fd = wake_fd_, .events = POLLIN, .revents = 0}});
  for (const TcpSocket* const peer : peers_) {
    if (open_ops_ == 0) waits_.push_back({.fd = peer->fd.get(), .events = POLLIN, .revents = 0});
  }
  const int limit =
      timeout.count() < 0 ? -1 : static_cast<int>(std::min<int64_t>(timeout.count(), 1'000'000));
  if (poll(waits_.data(), waits_.size(), limit) < 0 && errno != EINTR)
    return SystemError(StatusCode::kEnvironment, "cannot wait for completions", errno);
  ++counters_.wakeups;
  outcome.woken = (waits_[1].revents & POLLIN) != 0;
  PREPOST_RETURN_IF_ERROR(look());
  return outcome;
}

}  // namespace prepost::fabric
