// SPDX-License-Identifier: Apache-2.0
//
// Faults at random moments in groups on NICs, in software or of libibverbs, whose members are
// sessions of this process: every survivor hears of a failure once, in time; what was reported
// complete is right, in order and never reported twice; after the failure no NIC touches memory; a
// group without the victim goes on; and the survivors make a new group at once. Prints its seed;
// each kind of fault, one of them twice, or two hundred faults with PREPOST_TEST_LONG.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backends/registry.h"
#include "prepost/prepost.h"
#include "tests/support/lateness.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"
#include "tests/support/sessions.h"
#include "tests/support/verbs_device.h"

namespace prepost::device_faults_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::GroupLog;
using test::Random;
using test::Sessions;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kFailureMax{2000};
constexpr uint64_t kBytesMax = 1 << 18;
constexpr std::byte kTaken{0xee};

enum class Fault : uint8_t { kKill, kNoMemory, kCloseSocket };
constexpr const char* kNames[] = {"kill", "no_memory", "close_socket"};

/// One of the connections of the member at `host` is closed behind its back; false: it has none.
bool ShutDownOne(const std::string& host, Random& random) {
  std::vector<int> found;
  for (int fd = 3; fd < 4096; ++fd) {
    sockaddr_in own = {}, peer = {};
    socklen_t own_bytes = sizeof(own), peer_bytes = sizeof(peer);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_bytes) != 0 ||
        own.sin_family != AF_INET ||
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) != 0) {
      continue;
    }
    for (const sockaddr_in& end : {own, peer}) {
      char text[INET_ADDRSTRLEN];
      if (host == inet_ntop(AF_INET, &end.sin_addr, text, sizeof(text))) found.push_back(fd);
    }
  }
  return !found.empty() && shutdown(found[random.Below(found.size())], SHUT_RDWR) == 0;
}

/// Messages of one group: parts of one array, so that all members know them.
class Stream {
 public:
  explicit Stream(uint64_t seed) : seed_(seed), bytes_(Bytes(kBytesMax + 1024, seed)) {}
  std::span<const std::byte> operator[](uint64_t message) const {
    Random random(seed_ * 1000003 + message);
    const uint64_t begin = random.Below(1024);
    return std::span(bytes_).subspan(begin,
                                     random.Coin() ? random.Below(100) : random.Below(kBytesMax));
  }

 private:
  const uint64_t seed_;
  const std::vector<std::byte> bytes_;
};

/// One fault.
class Scene {
 public:
  Scene(Fault fault, uint64_t seed) : random_(seed), first_(seed), other_(seed + 1), fault_(fault) {
    members_ = static_cast<uint32_t>(3 + random_.Below(3));
    root_ = static_cast<uint32_t>(random_.Below(members_));
    victim_ = static_cast<uint32_t>(random_.Below(members_));
    if (fault_ == Fault::kNoMemory && victim_ == root_) victim_ = (victim_ + 1) % members_;
    if (fault_ == Fault::kCloseSocket) victim_ = root_;  // others mostly dial it
    for (uint32_t i = 0; i < members_; ++i) {
      if (i != victim_) survivors_.push_back(i);
    }
    options_ = {.algorithm = random_.Coin() ? "chain" : "auto",
                .device = random_.Pick(SoftwareDeviceNames()),
                .executor = random_.Coin() ? "offload" : "cpu"};
    if (const std::string device = test::VerbsDeviceOfTests(); !device.empty()) {
      options_.device = device;
      options_.executor = "cpu";
    }
    delay_ = milliseconds(random_.Below(150));
    refused_ = random_.Below(20);
  }

  std::string ToString() const {
    return fmt::format("{}: {} members, root {}, victim {}, {} over {}, after {} ms or message {}",
                       kNames[static_cast<size_t>(fault_)], members_, root_, victim_,
                       options_.executor, options_.device, delay_.count(), refused_);
  }

  void Play() {
    SessionOptions options;
    options.failure_max = kFailureMax;
    sessions_ = std::make_unique<Sessions>(members_, options);
    Create(1, test::Members(members_), root_, first_);
    Create(2, survivors_, survivors_.back(), other_);
    ASSERT_TRUE(sessions_->Wait(1, test::Members(members_), [](const GroupLog& log) {
      return log.opened == 1 || !log.failures.empty();
    }));
    std::this_thread::sleep_for(delay_);
    const test::Lateness lateness;
    const auto begin = Clock::now();
    if (fault_ == Fault::kKill) sessions_->Kill(victim_);
    // Where it has dialled all others no address says which connections are its own.
    if (fault_ == Fault::kCloseSocket && !ShutDownOne(test::LoopbackAddress(victim_), random_)) {
      std::cout << ToString() << ": not played, no connection has its address" << std::endl;
      return End();
    }
    const std::vector<uint32_t> hear =
        fault_ == Fault::kKill ? survivors_ : test::Members(members_);
    // A connection that no NIC needs any more may be missed by nobody: then all messages go on.
    const size_t many = fault_ != Fault::kCloseSocket
                            ? SIZE_MAX
                            : sessions_->LogOf(root_, 1).completed.size() + 100;
    ASSERT_TRUE(sessions_->Wait(1, hear, [&](const GroupLog& log) {
      return !log.failures.empty() || log.completed.size() > many;
    }));
    const bool goes_on = std::ranges::all_of(
        hear, [&](uint32_t member) { return sessions_->LogOf(member, 1).failures.empty(); });
    if (goes_on) {
      std::cout << ToString() << ": the group goes on" << std::endl;
      return End();
    }
    lateness.ExpectInTime(ToString(), Clock::now() - begin, kFailureMax);
    const size_t before = sessions_->LogOf(survivors_.back(), 2).completed.size();
    EXPECT_TRUE(sessions_->Wait(
        2, survivors_, [&](const GroupLog& log) { return log.completed.size() > before + 3; }));
    sessions_->Create(3, survivors_, survivors_.front(), options_);
    test::ExpectDelivery(*sessions_, 3, survivors_, survivors_.front(),
                         {Bytes(70000, 3), Bytes(0, 4), Bytes(5, 5)});
    for (const uint32_t member : hear) {
      SCOPED_TRACE(fmt::format("member {}", member));
      const GroupLog log = sessions_->LogOf(member, 1);
      EXPECT_EQ(log.failures.size(), 1u);
      if (fault_ != Fault::kCloseSocket) {  // which may be seen from its other end
        EXPECT_THAT(log.failures.front(), HasSubstr(fmt::format("member {}", victim_)));
      }
      ExpectOrder(log);
    }
    for (const uint32_t member : survivors_) {
      EXPECT_TRUE(sessions_->LogOf(member, 2).failures.empty());
      ExpectOrder(sessions_->LogOf(member, 2));
      EXPECT_TRUE(
          std::ranges::all_of(*memory_[{member, 1}], [](std::byte it) { return it == kTaken; }))
          << "memory of member " << member << " is written after the failure";
    }
    End();
  }

 private:
  void End() {
    sessions_.reset();
    EXPECT_EQ(wrong_, 0u) << "messages have other bytes";
  }

  void Create(uint64_t group, const std::vector<uint32_t>& members, uint32_t root,
              const Stream& stream) {
    Session* const session = &(*sessions_)[root];  // also while it is destroyed
    for (const uint32_t member : members) {
      auto& memory = memory_[{member, group}];
      memory = std::make_unique<std::vector<std::byte>>(kBytesMax);
      GroupCallbacks callbacks = sessions_->Callbacks(member, group);
      const bool refuses = fault_ == Fault::kNoMemory && group == 1 && member == victim_;
      callbacks.incoming = [this, refuses, at = memory->data()](uint64_t message,
                                                                uint64_t bytes) -> void* {
        return refuses && message >= refused_ && bytes > 0 ? nullptr : at;
      };
      callbacks.complete = [this, group, member, root, &stream, session,
                            complete = callbacks.complete](uint64_t message, void* at,
                                                           uint64_t bytes) {
        const auto expected = stream[message];
        const bool is_right =
            bytes == expected.size() &&
            (member == root || bytes == 0 || std::memcmp(at, expected.data(), bytes) == 0);
        if (!is_right) ++wrong_;
        complete(message, nullptr, 0);
        if (member == root) SendNext(*session, group, stream[message + 1]);
      };
      callbacks.failed = [at = memory.get(), failed = callbacks.failed](
                             const Status& cause, const FailedMembers& where) {
        std::ranges::fill(*at, kTaken);
        failed(cause, where);
      };
      const Status status =
          (*sessions_)[member].CreateGroup(group, members, root, options_, std::move(callbacks));
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    SendNext(*session, group, stream[0]);
  }
  /// Of a group that has failed meanwhile nothing is sent.
  static void SendNext(Session& session, uint64_t group, std::span<const std::byte> message) {
    static_cast<void>(session.Send(group, message.data(), message.size()));
  }
  static void ExpectOrder(const GroupLog& log) {
    for (size_t i = 0; i < log.completed.size(); ++i) EXPECT_EQ(log.completed[i], i);
  }

  Random random_;
  const Stream first_, other_;
  const Fault fault_;
  uint32_t members_ = 3, root_ = 0, victim_ = 1;
  std::vector<uint32_t> survivors_;
  GroupOptions options_;
  milliseconds delay_{0};
  uint64_t refused_ = 0;
  std::atomic<uint32_t> wrong_{0};
  std::map<std::pair<uint32_t, uint64_t>, std::unique_ptr<std::vector<std::byte>>> memory_;
  std::unique_ptr<Sessions> sessions_;
};

TEST(DeviceFaultsTest, AtRandomMoments) {
  const uint64_t seed = test::TestSeed();
  const uint32_t faults = test::SweepCases(200, 4);
  for (uint32_t i = 0; i < faults && !HasFailure(); ++i) {
    Scene scene(static_cast<Fault>((4 * seed + i) % std::size(kNames)), seed * 7919 + i);
    SCOPED_TRACE(scene.ToString());
    scene.Play();
  }
}

}  // namespace
}  // namespace prepost::device_faults_test
