// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/queued_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "runtime/base/file_descriptor.h"

namespace prepost {
namespace {

/// While something is held back, or where queues do nothing unasked, they are asked so often: their
/// file may not say that a peer wants to connect.
constexpr std::chrono::milliseconds kAskAgain{1};
constexpr char kDone = 'd';
/// A host that polls looks for what is no completion at every so many polls: it takes a system
/// call.
constexpr uint32_t kPollsPerGlance = 64;

}  // namespace

QueuedEndpoint::QueuedEndpoint(std::shared_ptr<ChannelQueues> queues,
                               std::unique_ptr<PeerLinks> links, int wake_fd)
    : queues_(std::move(queues)),
      wake_fd_(wake_fd),
      posts_(queues_->ends().size()),
      links_(std::move(links)),
      open_ops_(queues_->ends().ops()) {
  waits_.reserve(2 + posts_.size());
  for (const ChannelEnd& end : queues_->ends().all()) {
    if (queues_->is_automatic()) break;
    const bool is_known = std::ranges::find(peers_, end.peer) != peers_.end();
    if (!is_known && links_->Has(end.peer)) peers_.push_back(end.peer);
  }
}

QueuedEndpoint::~QueuedEndpoint() {
  if (open_ops_ != 0 || held_back_ != 0) Stop();
  if (queues_ != nullptr) queues_->Release();
}

void QueuedEndpoint::Stop() {
  if (queues_ != nullptr) queues_->Stop();
  queues_ = nullptr;
}

/// Ops of an end are posted in channel order, so that counts say which.
void QueuedEndpoint::Post(OpId op) {
  const ChannelEnds::Place place = queues_->ends().PlaceOf(op);
  Posts& posts = posts_[place.end];
  PREPOST_CHECK(place.position == posts.posted);
  ++posts.posted;
  ++held_back_;
  Submit(place.end);
}

void QueuedEndpoint::Submit(uint32_t end) {
  Posts& posts = posts_[end];
  const ChannelEnd& of = queues_->ends()[end];
  while (posts.taken < posts.posted && failure_.ok()) {
    const Result<bool> is_taken = queues_->Post(of.ops[posts.taken]);
    if (!is_taken.ok()) {
      failure_ = is_taken.status();
      lost_peer_ = queues_->lost_peer();
      return;
    }
    if (!*is_taken) return;
    ++posts.taken;
    --held_back_;
  }
}

Status QueuedEndpoint::Retry() {
  for (uint32_t end = 0; end < posts_.size() && held_back_ != 0; ++end) Submit(end);
  return failure_;
}

Status QueuedEndpoint::Lost(NodeId peer) {
  lost_peer_ = peer;
  return Rejected(fmt::format("lost its connection to node {}", peer.value));
}

/// Says, when all ops have completed, that they have, and hears who else is done.
Status QueuedEndpoint::SayGoodbye() {
  if (open_ops_ != 0 || peers_.empty()) return {};
  if (!std::exchange(has_said_, true)) {
    for (const NodeId peer : peers_) {
      const Result<size_t> sent = links_->Send(peer, std::as_bytes(std::span(&kDone, 1)));
      if (!sent.ok() || *sent != 1) return Lost(peer);
    }
  }
  Status lost;
  std::erase_if(peers_, [&](NodeId peer) {
    char byte = 0;
    const Result<size_t> got = links_->Receive(peer, std::as_writable_bytes(std::span(&byte, 1)));
    if (got.ok() && *got == 0) return false;
    if (got.ok() && byte == kDone) return true;
    lost = Lost(peer);
    return false;
  });
  return lost;
}

Result<size_t> QueuedEndpoint::Read(std::span<OpId> completed) {
  const Result<size_t> read = queues_->Read(completed);
  if (!read.ok()) {
    lost_peer_ = queues_->lost_peer();
    return read;
  }
  open_ops_ -= *read;
  for (const OpId op : completed.first(*read)) counters_.bytes_moved += queues_->ends().BytesOf(op);
  if (held_back_ != 0) PREPOST_RETURN_IF_ERROR(Retry());
  PREPOST_RETURN_IF_ERROR(SayGoodbye());
  return read;
}

/// What else there may be for a host that does not wait.
Status QueuedEndpoint::Glance(bool* woken) {
  if (++polls_ % kPollsPerGlance != 0) return {};
  std::array<pollfd, 2> files = {pollfd{.fd = queues_->file(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  if (poll(files.data(), files.size(), 0) <= 0) return {};
  *woken = (files[1].revents & POLLIN) != 0;
  return (files[0].revents & POLLIN) != 0 ? queues_->TakeEvents() : Status();
}

Result<PollOutcome> QueuedEndpoint::Poll(std::span<OpId> completed,
                                         std::chrono::milliseconds timeout) {
  PREPOST_RETURN_IF_ERROR(failure_);
  PollOutcome outcome;
  PREPOST_RETURN_IF_ERROR(Glance(&outcome.woken));
  const auto read_some = [&]() -> Status {
    const Result<size_t> read = Read(completed);
    if (read.ok()) outcome.completed = *read;
    return read.status();
  };
  const auto has_something = [&] {
    return outcome.completed != 0 || (open_ops_ == 0 && peers_.empty());
  };
  PREPOST_RETURN_IF_ERROR(read_some());
  if (has_something() || outcome.woken || timeout.count() == 0) return outcome;
  if (!queues_->MayWait()) {
    PREPOST_RETURN_IF_ERROR(read_some());
    if (has_something()) return outcome;
  }
  const int file = queues_->file();
  const bool is_held_back = held_back_ != 0 && !queues_->has_room_on_completion();
  const bool asks_again = is_held_back || !queues_->is_automatic() || file < 0;
  if (asks_again && (timeout.count() < 0 || timeout > kAskAgain)) timeout = kAskAgain;
  waits_.assign({pollfd{.fd = file, .events = POLLIN, .revents = 0},
                 pollfd{.fd = wake_fd_, .events = POLLIN, .revents = 0}});
  for (const NodeId peer : peers_) {
    if (open_ops_ == 0)
      waits_.push_back({.fd = links_->File(peer), .events = POLLIN, .revents = 0});
  }
  const int limit =
      timeout.count() < 0 ? -1 : static_cast<int>(std::min<int64_t>(timeout.count(), 1'000'000));
  if (poll(waits_.data(), waits_.size(), limit) < 0 && errno != EINTR)
    return SystemError(StatusCode::kEnvironment, "cannot wait for completions", errno);
  ++counters_.wakeups;
  if (on_wakeup_) on_wakeup_();
  outcome.woken = (waits_[1].revents & POLLIN) != 0;
  if ((waits_[0].revents & POLLIN) != 0) PREPOST_RETURN_IF_ERROR(queues_->TakeEvents());
  PREPOST_RETURN_IF_ERROR(read_some());
  return outcome;
}

}  // namespace prepost
