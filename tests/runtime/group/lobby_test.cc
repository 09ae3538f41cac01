// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/lobby.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <vector>

#include "runtime/transport/tcp/tcp_address.h"
#include "tests/support/loopback.h"

namespace prepost::lobby_test {
namespace {

class LobbyTest : public testing::Test, public Lobby::Owner {
 protected:
  std::optional<Refusal> Judge(const LinkName& /*name*/, const GroupTerms& /*terms*/,
                               const TcpAddress& /*from*/) override {
    return std::nullopt;  // a group that is not here yet
  }
  void NoteRefused(const LinkName&, const std::string&, const std::string&) override {}
  void Admit(const LinkName&, const GroupTerms&, FileDescriptor, LinkKeys) override {}

  void Open(size_t parked_guests_max) {
    Result<std::unique_ptr<Lobby>> lobby =
        Lobby::Open({.who = "node 0",
                     .own = {.host = test::LoopbackAddress(0), .ports = {.first = 0, .last = 0}},
                     .bind = "",
                     .ports = {},
                     .key = *key_,
                     .terms = {},
                     .parked_max = std::chrono::seconds(60),
                     .parked_guests_max = parked_guests_max},
                    *this);
    ASSERT_TRUE(lobby.ok()) << lobby.status().ToString();
    lobby_ = *std::move(lobby);
  }

  void Serve() {
    std::vector<pollfd> polls;
    lobby_->AddPolls(&polls);
    poll(polls.data(), polls.size(), 10);
    ASSERT_TRUE(lobby_->Serve().ok());
  }

  /// A member at the index-th address that has proved the secret.
  FileDescriptor Park(uint32_t index) {
    FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const TcpAddress from = NumericAddress(test::LoopbackAddress(index))->WithPort(0);
    EXPECT_EQ(bind(fd.get(), from.generic(), from.bytes), 0);
    const TcpAddress to = NumericAddress(test::LoopbackAddress(0))->WithPort(lobby_->port());
    EXPECT_EQ(connect(fd.get(), to.generic(), to.bytes), 0);
    HelloConnector hello(*key_, RandomNonce(), {.from = NodeId(1), .to = NodeId(0)}, {});
    std::vector<std::byte> said = hello.Begin();
    while (!said.empty() || !hello.has_proved()) {
      EXPECT_EQ(send(fd.get(), said.data(), said.size(), 0), static_cast<ssize_t>(said.size()));
      said.clear();
      std::vector<std::byte> heard(hello.wanted());
      for (size_t got = 0; !hello.has_proved() && got < heard.size();) {
        Serve();
        const ssize_t bytes = recv(fd.get(), heard.data() + got, heard.size() - got, MSG_DONTWAIT);
        if (bytes > 0) got += static_cast<size_t>(bytes);
      }
      if (!hello.has_proved()) said = hello.Take(heard);
    }
    for (int i = 0; i < 3; ++i) Serve();
    return fd;
  }

  static bool IsThere(const FileDescriptor& fd) {
    std::byte byte;
    return recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
  }

  const Result<GroupKey> key_ = GroupKey::FromSecret("0123456789abcdef", "");
  std::unique_ptr<Lobby> lobby_;
};

// Catches a member that has as many sockets of another one as it likes, and one that crowds out
// others.
TEST_F(LobbyTest, WhoParksWithoutEndCrowdsOutItself) {
  Open(/*parked_guests_max=*/3);
  const FileDescriptor other = Park(2);
  std::vector<FileDescriptor> many;
  for (int i = 0; i < 8; ++i) many.push_back(Park(1));
  EXPECT_TRUE(IsThere(other));
  EXPECT_FALSE(IsThere(many.front()));
  EXPECT_TRUE(IsThere(many.back()));
  int there = 0;
  for (const FileDescriptor& fd : many) there += IsThere(fd);
  EXPECT_LE(there, 3);
}

}  // namespace
}  // namespace prepost::lobby_test
