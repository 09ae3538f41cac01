// SPDX-License-Identifier: Apache-2.0
//
// HookedSession: a session whose connections a test stands in the way of.
#ifndef PREPOST_LIBRARY_HOOKED_SESSION_H_
#define PREPOST_LIBRARY_HOOKED_SESSION_H_

#include <memory>

#include "prepost/prepost.h"
#include "runtime/transport/tcp/tcp_hook.h"

namespace prepost {

struct HookedSession {
  /// As Session::Open(). `hook`, which may be null, must outlive the session.
  static Result<std::unique_ptr<Session>> Open(const SessionOptions& options, TcpHook* hook);
};

}  // namespace prepost

#endif  // PREPOST_LIBRARY_HOOKED_SESSION_H_
