// SPDX-License-Identifier: Apache-2.0
#include "tools/push/reach.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include "runtime/base/file_descriptor.h"
#include "runtime/transport/tcp/tcp_address.h"

namespace prepost::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCheckMs = 100;

struct Try {
  size_t receiver = 0;
  std::string address;
  FileDescriptor fd;
};

std::string WhyNot(const std::string& address, int error) {
  return fmt::format("{}: {}", address, std::system_category().message(error));
}

/// What this machine lacks says nothing of the other one.
bool IsOwn(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL || error == EAGAIN;
}

/// Connecting; what fails at once stands in `*why`, and who cannot be tried in `*reached`.
std::vector<Try> StartTries(const std::vector<PushReceiver*>& receivers,
                            std::vector<std::string>* why, std::set<size_t>* reached) {
  std::vector<Try> tries;
  for (size_t i = 0; i < receivers.size(); ++i) {
    for (const TcpAddress& host : receivers[i]->addresses) {
      const TcpAddress address = host.WithPort(receivers[i]->port.value_or(0));
      int error = 0;
      FileDescriptor fd = StartConnect(address, &error);
      if (fd.valid()) {
        tries.push_back({.receiver = i, .address = address.ToString(), .fd = std::move(fd)});
      } else if (IsOwn(error)) {
        reached->insert(i);
      } else {
        (*why)[i] = WhyNot(address.ToString(), error);
      }
    }
  }
  return tries;
}

}  // namespace

Result<std::vector<Unreached>> FindUnreached(const std::vector<PushReceiver*>& receivers,
                                             std::chrono::milliseconds max,
                                             const std::function<Status()>& check) {
  std::vector<std::string> why(receivers.size(), "it has no address");
  std::set<size_t> reached, silent;  // silent: has not refused
  std::vector<Try> tries = StartTries(receivers, &why, &reached);
  for (const Clock::time_point due = Clock::now() + max; !tries.empty() && Clock::now() < due;) {
    PREPOST_RETURN_IF_ERROR(check());
    std::vector<pollfd> polls;
    for (const Try& it : tries)
      polls.push_back({.fd = it.fd.get(), .events = POLLOUT, .revents = 0});
    poll(polls.data(), polls.size(), kCheckMs);
    for (size_t i = 0; i < tries.size(); ++i) {
      if (polls[i].revents == 0) continue;
      int error = 0;
      socklen_t bytes = sizeof(error);
      getsockopt(tries[i].fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
      if (error == 0) reached.insert(tries[i].receiver);
      if (error != 0) why[tries[i].receiver] = WhyNot(tries[i].address, error);
      if (error != 0 && error != ECONNREFUSED) silent.insert(tries[i].receiver);
      tries[i].fd.Close();
    }
    std::erase_if(tries, [&reached](const Try& it) {
      return !it.fd.valid() || reached.contains(it.receiver);
    });
  }
  for (const Try& it : tries) {
    why[it.receiver] = it.address + ": no answer";
    silent.insert(it.receiver);
  }
  std::vector<Unreached> unreached;
  for (size_t i = 0; i < receivers.size(); ++i) {
    if (reached.contains(i)) continue;
    unreached.push_back(
        {.receiver = receivers[i], .why = why[i], .is_refused = !silent.contains(i)});
  }
  return unreached;
}

}  // namespace prepost::tools
