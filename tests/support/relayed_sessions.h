// SPDX-License-Identifier: Apache-2.0
//
// RelayedSessions: sessions whose member 1 reaches member 0 through a man in the middle
// (tcp_relay.h).
#ifndef PREPOST_TESTS_SUPPORT_RELAYED_SESSIONS_H_
#define PREPOST_TESTS_SUPPORT_RELAYED_SESSIONS_H_

#include <memory>
#include <utility>

#include "tests/support/sessions.h"
#include "tests/support/tcp_relay.h"

namespace prepost::test {

class RelayedSessions {
 public:
  RelayedSessions(uint32_t members, SessionOptions options, TcpRelay::Attack attack)
      : relay_(LoopbackAddress(kRelay), std::move(attack)) {
    options.members = SessionAddresses(members);
    sessions_ = std::make_unique<Sessions>(members, options, nullptr, [this](SessionOptions& own) {
      if (own.self == 1) own.members[0] = {.host = LoopbackAddress(kRelay), .port = relay_.port()};
    });
    relay_.Start(LoopbackAddress(0), (*sessions_)[0].port());
  }

  Sessions& operator*() { return *sessions_; }
  Sessions* operator->() { return sessions_.get(); }

 private:
  static constexpr uint32_t kRelay = 31;

  TcpRelay relay_;
  std::unique_ptr<Sessions> sessions_;
};

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_RELAYED_SESSIONS_H_
