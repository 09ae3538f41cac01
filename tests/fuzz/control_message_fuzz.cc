// SPDX-License-Identifier: Apache-2.0
//
// A control message from a member that has gone mad: refused, or exactly what its bytes say.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/group/control_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::array<std::byte, prepost::kControlMessageBytes> in = {};
  std::ranges::copy(std::as_bytes(std::span(data, std::min(size, in.size()))), in.begin());
  const prepost::Result<prepost::ControlMessage> message = prepost::DecodeControlMessage(in);
  if (!message.ok()) {
    PREPOST_CHECK(!message.status().message().empty());
    return 0;
  }
  std::array<std::byte, prepost::kControlMessageBytes> out = {};
  prepost::EncodeControlMessage(*message, out);
  PREPOST_CHECK(out == in);
  return 0;
}
