// SPDX-License-Identifier: Apache-2.0
//
// A control connection out of which an attacker takes bytes, and in which he changes one: what was
// said before arrives, and nothing of what comes after is taken for a message.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "runtime/group/control_socket.h"

using prepost::ControlMessage;
using prepost::ControlSocket;
using prepost::kControlMessageBytes;

namespace {

constexpr size_t kSealedBytes = kControlMessageBytes + ControlSocket::kCheckBytes;

std::vector<std::byte> Received(const ControlSocket& socket) {
  std::vector<std::byte> bytes(kSealedBytes);
  PREPOST_CHECK(recv(socket.fd(), bytes.data(), bytes.size(), MSG_WAITALL) ==
                static_cast<ssize_t>(bytes.size()));
  return bytes;
}

}  // namespace

// Where something is taken out (2), how much of it (2), how the next byte changes (1); messages.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 5) return 0;
  auto from = ControlSocket::MakePair(), to = ControlSocket::MakePair();
  PREPOST_CHECK(from.ok() && to.ok());
  std::vector<ControlMessage> said;
  std::vector<std::byte> stream;
  std::span<const std::byte> rest = std::as_bytes(std::span(data + 5, size - 5));
  while (!rest.empty() && said.size() < 32) {
    std::array<std::byte, kControlMessageBytes> one = {};
    std::ranges::copy(rest.first(std::min(rest.size(), one.size())), one.begin());
    rest = rest.subspan(std::min(rest.size(), one.size()));
    const auto message = prepost::DecodeControlMessage(one);
    if (!message.ok()) continue;
    from->first.Send(*message);
    said.push_back(*message);
    std::ranges::copy(Received(from->second), std::back_inserter(stream));
  }
  const size_t at = std::min<size_t>(size_t{data[0]} | size_t{data[1]} << 8, stream.size());
  const size_t taken = std::min<size_t>(size_t{data[2]} | size_t{data[3]} << 8, stream.size() - at);
  stream.erase(stream.begin() + static_cast<ptrdiff_t>(at),
               stream.begin() + static_cast<ptrdiff_t>(at + taken));
  if (at < stream.size()) stream[at] ^= std::byte{data[4]};
  const bool is_whole = taken == 0 && (data[4] == 0 || at == stream.size());
  PREPOST_CHECK(send(to->first.fd(), stream.data(), stream.size(), 0) ==
                static_cast<ssize_t>(stream.size()));
  size_t got = 0;
  while (const std::optional<ControlMessage> message = to->second.Receive()) {
    PREPOST_CHECK(got < said.size());
    std::array<std::byte, kControlMessageBytes> a = {}, b = {};
    prepost::EncodeControlMessage(*message, a);
    prepost::EncodeControlMessage(said[got++], b);
    PREPOST_CHECK(a == b);
  }
  PREPOST_CHECK(got == (is_whole ? said.size() : at / kSealedBytes));
  return 0;
}
