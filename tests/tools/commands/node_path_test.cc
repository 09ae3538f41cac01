// SPDX-License-Identifier: Apache-2.0
//
// `prepost node` with a stranger on the path between node 1 and the root, who has no secret but can
// change what passes after the hellos: the message, and what the two say about it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/files/message_sum.h"
#include "runtime/group/control_socket.h"
#include "runtime/group/hello.h"
#include "runtime/group/peers_file.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "tests/support/command.h"
#include "tests/support/loopback.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"

namespace prepost::node_path_test {
namespace {

using test::Command;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kPollMs = 20;
constexpr size_t kBytes = 2'000'000;
constexpr size_t kChangedByte = 1'000'000;  ///< of what passes to node 1: in the middle of a block

/// What it does with what the two say about the message that it changes.
enum class Lie : uint8_t {
  kNone,
  kSum,     ///< the member has the root's sum
  kCommit,  ///< the root has the member's sum, and all is well
  kSealed   ///< none: it cannot read what they say
};

/// Listens at an address of its own in place of the root's.
class ManInTheMiddle {
 public:
  ManInTheMiddle(std::string own, std::string root, Lie lie, const MessageSum& root_sum)
      : root_(std::move(root)), lie_(lie), root_sum_(root_sum) {
    int error = 0;
    listener_ = Listen(NumericAddress(own)->WithPort(kDefaultPort), &error);
    EXPECT_TRUE(listener_.valid()) << own;
    accepting_ = std::thread([this] { Accept(); });
  }
  ~ManInTheMiddle() {
    is_over_ = true;
    accepting_.join();
    for (std::thread& connection : connections_) connection.join();
  }
  bool has_changed_data() const { return has_changed_data_; }
  bool has_lied() const { return has_lied_; }

 private:
  struct Ends {
    FileDescriptor member, root;
  };

  /// Whether one of them can be read, or has ended.
  bool Wait(std::array<pollfd, 2>* polls) const {
    while (!is_over_) {
      if (poll(polls->data(), polls->size(), kPollMs) > 0) return true;
    }
    return false;
  }
  static bool SendAll(int to, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes = bytes.subspan(static_cast<size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      pollfd writable = {.fd = to, .events = POLLOUT, .revents = 0};
      if (!bytes.empty()) poll(&writable, 1, kPollMs);
    }
    return true;
  }
  /// Exactly so many bytes, which it passes on as they are.
  bool Pass(int from, int to, std::span<std::byte> bytes) const {
    for (size_t got = 0; got < bytes.size();) {
      std::array<pollfd, 2> polls = {{{.fd = from, .events = POLLIN}, {.fd = -1}}};
      if (!Wait(&polls)) return false;
      const ssize_t more = recv(from, bytes.data() + got, bytes.size() - got, MSG_DONTWAIT);
      if (more == 0 || (more < 0 && errno != EAGAIN)) return false;
      if (more > 0) got += static_cast<size_t>(more);
    }
    return SendAll(to, bytes);
  }

  void Accept() {
    std::array<pollfd, 2> polls = {{{.fd = listener_.get(), .events = POLLIN}, {.fd = -1}}};
    while (Wait(&polls)) {
      int error = 0;
      Ends ends = {
          .member = FileDescriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)),
          .root = StartConnect(NumericAddress(root_)->WithPort(kDefaultPort), &error)};
      connections_.emplace_back([this, ends = std::move(ends)]() mutable { Serve(ends); });
    }
  }
  void Serve(Ends& ends) {
    pollfd connected = {.fd = ends.root.get(), .events = POLLOUT, .revents = 0};
    poll(&connected, 1, /*timeout=*/10'000);
    std::array<std::byte, kHelloBytes> hello;
    std::array<std::byte, kChallengeBytes> challenge;
    std::array<std::byte, kProofBytes> proof;
    std::array<std::byte, kVerdictBytes> verdict;
    const int member = ends.member.get(), root = ends.root.get();
    if (!Pass(member, root, hello) || !Pass(root, member, challenge) ||
        !Pass(member, root, proof) || !Pass(root, member, verdict)) {
      return;
    }
    const bool is_control = hello[kPrefixBytes] == std::byte(LinkPurpose::kControl);
    is_control&& lie_ != Lie::kSealed ? ServeControl(ends) : ServeBytes(ends, !is_control);
  }

  void ServeBytes(const Ends& ends, bool changes_data) {
    const std::array<int, 2> files = {ends.member.get(), ends.root.get()};
    std::vector<std::byte> bytes(65536);
    for (size_t passed = 0;;) {
      std::array<pollfd, 2> polls = {
          {{.fd = files[0], .events = POLLIN}, {.fd = files[1], .events = POLLIN}}};
      if (!Wait(&polls)) return;
      for (size_t from = 0; from < 2; ++from) {
        if (polls[from].revents == 0) continue;
        const ssize_t got = recv(files[from], bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) continue;
        if (got <= 0) return;
        const auto part = std::span(bytes).first(static_cast<size_t>(got));
        if (from == 1 && changes_data) {
          if (passed <= kChangedByte && kChangedByte < passed + part.size()) {
            part[kChangedByte - passed] ^= std::byte{1};
            has_changed_data_ = true;
          }
          passed += part.size();
        }
        if (!SendAll(files[1 - from], part)) return;
      }
    }
  }

  void ServeControl(Ends& ends) {
    ControlSocket member(std::move(ends.member)), root(std::move(ends.root));
    while (!member.closed() && !root.closed()) {
      std::array<pollfd, 2> polls = {
          {{.fd = member.fd(), .events = POLLIN}, {.fd = root.fd(), .events = POLLIN}}};
      if (!Wait(&polls)) return;
      while (std::optional<ControlMessage> message = member.Receive()) {
        if (auto* const summed = std::get_if<control::Summed>(&*message)) {
          member_sum_ = summed->sum;
          if (lie_ == Lie::kSum) {
            summed->sum = root_sum_;
            has_lied_ = true;
          }
        }
        const bool is_commit = lie_ == Lie::kCommit;
        if (is_commit && std::holds_alternative<control::Failed>(*message))
          return;  // both see the other go
        if (is_commit && std::holds_alternative<control::Done>(*message)) {
          member.Send(control::Release());
        } else {
          root.Send(*message);
        }
      }
      while (std::optional<ControlMessage> message = root.Receive()) {
        if (lie_ == Lie::kCommit && std::holds_alternative<control::Abort>(*message)) {
          message = control::Commit{.sum = member_sum_};
          has_lied_ = true;
        }
        member.Send(*message);
      }
      if (root.closed() && lie_ == Lie::kCommit) AwaitCommitted(member);
    }
  }
  /// The root is gone, which the member is not to hear.
  void AwaitCommitted(ControlSocket& member) const {
    while (!member.closed()) {
      std::array<pollfd, 2> polls = {{{.fd = member.fd(), .events = POLLIN}, {.fd = -1}}};
      if (!Wait(&polls)) return;
      while (const std::optional<ControlMessage> message = member.Receive()) {
        if (std::holds_alternative<control::Failed>(*message)) return;
        if (std::holds_alternative<control::Done>(*message)) member.Send(control::Release());
      }
    }
  }

  const std::string root_;
  const Lie lie_;
  const MessageSum root_sum_;
  MessageSum member_sum_;  ///< of the control connection's thread
  FileDescriptor listener_;
  std::atomic<bool> is_over_ = false, has_changed_data_ = false, has_lied_ = false;
  std::vector<std::thread> connections_;  ///< of accepting_, until it has ended
  std::thread accepting_;
};

std::string NameOf(const ::testing::TestParamInfo<Lie>& info) {
  constexpr std::array kNames = {"None", "Sum", "Commit", "Sealed"};
  return kNames[static_cast<size_t>(info.param)];
}

class NodePathTest : public ::testing::TestWithParam<Lie> {};
INSTANTIATE_TEST_SUITE_P(Lies, NodePathTest,
                         ::testing::Values(Lie::kNone, Lie::kSum, Lie::kCommit, Lie::kSealed),
                         NameOf);

// Catches a sum that is believed because it came, by the root and by the other node.
TEST_P(NodePathTest, ChangedMessageIsNoticedWhateverIsSaidAboutIt) {
  const test::TempFolder folder;
  const std::vector<std::byte> message = test::RandomBytes(kBytes);
  test::WriteBytes(folder / "image", message);
  std::ofstream(folder / "secret") << "the secret of this test\n";
  ASSERT_EQ(chmod((folder / "secret").c_str(), 0600), 0);
  const auto write_peers = [&](const std::string& path, uint32_t root) {
    std::ofstream(path) << fmt::format("0 {}\n1 {}\n", test::LoopbackAddress(root),
                                       test::LoopbackAddress(1));
  };
  write_peers(folder / "peers-0", 0);
  write_peers(folder / "peers-1", 2);
  Command compile({"compile", "--nodes", "2", "--message", folder / "image", "--block-bytes",
                   "256KiB", "-o", folder / "plan.json"});
  ASSERT_EQ(compile.Wait(), 0) << compile.err();

  ManInTheMiddle between(test::LoopbackAddress(2), test::LoopbackAddress(0), GetParam(),
                         *SumMemory(message));
  const auto arguments = [&](const std::string& node, const std::string& flag,
                             const std::string& path) {
    std::vector<std::string> words = {"node",
                                      folder / "plan.json",
                                      "--node",
                                      node,
                                      "--peers",
                                      folder / ("peers-" + node),
                                      "--secret-file",
                                      folder / "secret",
                                      flag,
                                      path};
    if (GetParam() == Lie::kSealed) words.push_back("--seal");
    return words;
  };
  Command root(arguments("0", "--input", folder / "image"));
  Command member(arguments("1", "--output", folder / "copy"));
  EXPECT_EQ(root.Wait(), 1) << root.out();
  EXPECT_EQ(member.Wait(), 1) << member.out();
  EXPECT_TRUE(between.has_changed_data());
  EXPECT_EQ(between.has_lied(), GetParam() == Lie::kSum || GetParam() == Lie::kCommit);
  EXPECT_FALSE(std::filesystem::exists(folder / "copy"));
  if (GetParam() == Lie::kSealed) {
    const char* const cause =
        "a record over the connection of node 1 to node 0 is not authentic: it was changed, lost "
        "or "
        "repeated on the way";
    EXPECT_THAT(root.err(), AllOf(HasSubstr("node 1 ("), HasSubstr(cause)));
    EXPECT_THAT(member.err(), HasSubstr(cause));
    return;
  }
  EXPECT_THAT(root.err(),
              HasSubstr(GetParam() == Lie::kSum ? "the sum of node 1 is not proved to be its own"
                                                : "the copy of node 1 has the BLAKE2b-256 sum"));
  if (GetParam() == Lie::kCommit) {
    EXPECT_THAT(member.err(), HasSubstr("the sum of node 0, the root, is not proved"));
  }
}

}  // namespace
}  // namespace prepost::node_path_test
