// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/message_endpoint.h"

#include <fmt/format.h>

#include "ir/base/count.h"
#include "runtime/session/group_call.h"

namespace prepost {

std::string Describe(const MessageStart& start) {
  if (const std::optional<CallShape> call = CallOf(start)) return Describe(*call);
  return fmt::format("message {}, {}", start.number, Count(start.bytes, "byte"));
}

}  // namespace prepost
