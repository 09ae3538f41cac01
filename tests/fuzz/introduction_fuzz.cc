// SPDX-License-Identifier: Apache-2.0
//
// Two introductions, and an attacker between them who changes what they say, or says something
// himself: none of the two takes anything for the other's that the other has not said.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/session/introduction.h"

using prepost::FileDescriptor;
using prepost::GroupKey;
using prepost::Introduction;
using prepost::TcpSocket;
using State = prepost::Introduction::State;

namespace {

const GroupKey& Key() {
  static const prepost::Result<GroupKey> key = GroupKey::FromSecret("a secret of 24 letters..", "");
  PREPOST_CHECK(key.ok());
  return *key;
}

struct End {
  explicit End(bool is_connector) {
    std::array<int, 2> fds;
    PREPOST_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
    socket.fd = FileDescriptor(fds[0]);
    line = FileDescriptor(fds[1]);
    socket.key = Key();
    socket.is_connector = is_connector;
    introduction.emplace(socket, /*is_wanted=*/true);
  }
  /// What it has to say.
  std::vector<std::byte> Send() {
    state = introduction->Step();
    std::vector<std::byte> said(4096);
    const ssize_t got = recv(line.get(), said.data(), said.size(), MSG_DONTWAIT);
    said.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return said;
  }
  void Receive(std::span<const std::byte> said) const {
    if (!said.empty()) PREPOST_CHECK(send(line.get(), said.data(), said.size(), MSG_NOSIGNAL) >= 0);
  }

  TcpSocket socket;
  FileDescriptor line;
  std::optional<Introduction> introduction;
  State state = State::kTalking;
};

}  // namespace

// Of each round, three bytes: whose words are changed, where, how. What is left is said to the
// first end by an attacker who has no key.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  End first(true), second(false);
  bool is_changed = false;
  const size_t rounds = std::min<size_t>(size / 3, 4);
  for (size_t round = 0; round < 4; ++round) {
    std::vector<std::byte> to_second = first.Send(), to_first = second.Send();
    if (round < rounds) {
      const uint8_t* const how = data + 3 * round;
      std::vector<std::byte>& words = how[0] % 2 == 0 ? to_second : to_first;
      if (how[0] % 4 < 2 && !words.empty()) {
        words[how[1] % words.size()] ^= std::byte{how[2]};
        is_changed |= how[2] != 0;
      } else if (how[0] % 4 == 3 && !to_second.empty()) {
        to_first = to_second;  // its own words come back
        is_changed = true;
      }
    }
    first.Receive(to_first);
    second.Receive(to_second);
  }
  static_cast<void>(first.Send());
  static_cast<void>(second.Send());
  PREPOST_CHECK(!first.introduction->local().can_read && !second.introduction->local().can_read);
  if (!is_changed) {
    PREPOST_CHECK(first.state == State::kDone && second.state == State::kDone);
  } else {
    PREPOST_CHECK(first.state != State::kDone || second.state != State::kDone);
  }
  End alone(true);
  alone.Receive(std::as_bytes(std::span(data + 3 * rounds, size - 3 * rounds)));
  static_cast<void>(alone.Send());
  PREPOST_CHECK(alone.state != State::kDone);
  return 0;
}
