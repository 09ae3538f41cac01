// SPDX-License-Identifier: Apache-2.0
//
// FindUnreached(): which receivers this machine cannot connect to, and why.
#ifndef PREPOST_TOOLS_PUSH_REACH_H_
#define PREPOST_TOOLS_PUSH_REACH_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "ir/base/status.h"
#include "tools/push/push_receivers.h"

namespace prepost::tools {

struct Unreached {
  PushReceiver* receiver = nullptr;
  std::string why;          ///< "10.0.0.3:7811: Connection refused", of the last of its addresses
  bool is_refused = false;  ///< by all of them, or there is no way to one
};

/// Connects to all addresses of all `receivers`, which listen, at once, and closes what comes. Who
/// has not answered for `max` is not reached; who cannot be tried here counts as reached. Errors:
/// those of `check`, called some times a second.
Result<std::vector<Unreached>> FindUnreached(const std::vector<PushReceiver*>& receivers,
                                             std::chrono::milliseconds max,
                                             const std::function<Status()>& check);

}  // namespace prepost::tools

#endif  // PREPOST_TOOLS_PUSH_REACH_H_
