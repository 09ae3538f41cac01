// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/run_control.h"

#include <poll.h>
#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "runtime/base/interrupt.h"

namespace prepost {

using std::chrono::milliseconds;

Status RunControl::Open(KeeperOptions options, int interrupt_fd,
                        std::function<Status(KeeperEvent&)> take) {
  take_ = std::move(take);
  interrupt_fd_ = interrupt_fd;
  Result<EventFd> event = EventFd::Make();
  if (!event.ok()) return event.status();
  event_ = *std::move(event);
  wake_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  PREPOST_RETURN_IF_ERROR(Watch(event_.fd()));
  PREPOST_RETURN_IF_ERROR(Watch(interrupt_fd));
  options.notify = [this] { event_.Signal(); };
  Result<std::unique_ptr<Keeper>> keeper = Keeper::Start(std::move(options));
  if (!keeper.ok()) return keeper.status();
  keeper_ = *std::move(keeper);
  return {};
}

Status RunControl::Watch(int fd) {
  epoll_event watched = {.events = EPOLLIN, .data = {.fd = fd}};
  if (fd >= 0 && epoll_ctl(wake_.get(), EPOLL_CTL_ADD, fd, &watched) != 0)
    return SystemError(StatusCode::kEnvironment, "cannot watch the group", errno);
  return {};
}

Status RunControl::TakeEvents() {
  event_.Take();
  Status status;
  for (KeeperEvent& event : keeper_->TakeEvents()) {
    if (event.kind == KeeperEvent::Kind::kClosed) {
      is_closed_ = true;
    } else if (event.kind == KeeperEvent::Kind::kFailed) {
      ended_ = event.status;
      if (event.members.size() == 1 && event.is_own_finding) lost_ = NodeId(event.members.front());
    } else if (!is_ending_ && status.ok()) {
      status = take_(event);
    }
  }
  return ended_.value_or(status);
}

Status RunControl::Wait(milliseconds timeout) {
  pollfd wake = {.fd = wake_.get(), .events = POLLIN, .revents = 0};
  poll(&wake, 1, static_cast<int>(timeout.count()));
  if (IsInterrupted(interrupt_fd_)) return Interrupted();
  return TakeEvents();
}

Status RunControl::EndFailed(const Status& failure, std::optional<NodeId> lost_peer,
                             milliseconds due) {
  if (ended_) return *ended_;
  if (keeper_ == nullptr) return failure;
  is_ending_ = true;
  keeper_->Fail(kSerial, failure, lost_peer, /*differs=*/false);
  const auto end = std::chrono::steady_clock::now() + due;
  while (!ended_ && !is_closed_ && std::chrono::steady_clock::now() < end) {
    pollfd event = {.fd = event_.fd(), .events = POLLIN, .revents = 0};
    poll(&event, 1, /*timeout=*/100);
    static_cast<void>(TakeEvents());
  }
  return lost_peer && ended_ ? *ended_ : failure;
}

}  // namespace prepost
