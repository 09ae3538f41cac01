// SPDX-License-Identifier: Apache-2.0
//
// Links between two members that are cut without a word, while both still hear the root: nobody
// closes a connection, so that only what is not acknowledged says it. Each member is on a machine
// of its own (machines.h); without root there is none, and the tests are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "prepost/prepost.h"
#include "tests/support/lateness.h"
#include "tests/support/machines.h"
#include "tests/support/sessions.h"

namespace prepost::cut_links_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::GroupLog;
using test::Machines;
using test::Members;
using test::Sessions;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr uint32_t kMembers = 4;
constexpr milliseconds kFailureMax{2000};
/// The kernel's questions come once a second, and there are two.
constexpr milliseconds kQuestionTime{2500};

class CutLinksTest : public testing::Test {
 protected:
  void SetUp() override {
    machines_ = Machines::Make(kMembers);
    if (machines_ == nullptr) GTEST_SKIP() << "no link is cut: needs root and ip";
    Open(kFailureMax);
  }

  void Open(milliseconds failure_max) {
    sessions_.reset();
    SessionOptions options;
    options.failure_max = failure_max;
    for (uint32_t i = 0; i < kMembers; ++i)
      options.members.push_back({.host = Machines::AddressOf(i)});
    sessions_ = std::make_unique<Sessions>(
        kMembers, options, nullptr,
        [this](const SessionOptions& own) { machines_->Enter(own.self); });
  }

  void Create(uint32_t member, GroupCallbacks callbacks) {
    const Status status = (*sessions_)[member].CreateGroup(
        1, Members(kMembers), 0, {.algorithm = "chain", .block_bytes = 65536},
        std::move(callbacks));
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void Create(uint32_t member) { Create(member, sessions_->Callbacks(member, 1)); }

  /// One after another, until the group ends; a few have been received everywhere.
  void MoveMessages() {
    for (const uint32_t member : Members(kMembers)) {
      GroupCallbacks callbacks = sessions_->Callbacks(member, 1);
      callbacks.incoming = [memory = std::make_shared<std::vector<std::byte>>()](uint64_t,
                                                                                 uint64_t bytes) {
        memory->resize(bytes);
        return memory->data();
      };
      callbacks.complete = [this, member, complete = callbacks.complete](uint64_t number, void*,
                                                                         uint64_t) {
        if (member == 0)
          static_cast<void>((*sessions_)[0].Send(1, message_.data(), message_.size()));
        if (number < 3) complete(number, nullptr, 0);
      };
      Create(member, callbacks);
    }
    ASSERT_TRUE((*sessions_)[0].Send(1, message_.data(), message_.size()).ok());
    ASSERT_TRUE(sessions_->Wait(1, Members(kMembers), [](const GroupLog& log) {
      return log.completed.size() == 3 || !log.failures.empty();
    }));
  }

  void Cut() {
    ASSERT_TRUE(machines_->SetPair(1, 2, false));
    cut_ = std::chrono::steady_clock::now();
  }
  /// `more`: beyond failure_max.
  void ExpectFailure(milliseconds failure_max = kFailureMax, milliseconds more = milliseconds(0)) {
    ASSERT_TRUE(sessions_->Wait(1, Members(kMembers),
                                [](const GroupLog& log) { return !log.failures.empty(); }));
    lateness_.ExpectInTime("cut", std::chrono::steady_clock::now() - cut_, failure_max, more);
    for (const uint32_t member : Members(kMembers)) {
      const GroupLog log = sessions_->LogOf(member, 1);
      ASSERT_EQ(log.failures.size(), 1u);
      EXPECT_THAT(log.failures.front(), AnyOf(HasSubstr("lost its connection to member 1"),
                                              HasSubstr("lost its connection to member 2")));
      EXPECT_THAT(log.failed_member, AnyOf(1u, 2u));
    }
  }

  const std::vector<std::byte> message_ = Bytes(1 << 20, 1);
  std::unique_ptr<Machines> machines_;
  std::unique_ptr<Sessions> sessions_;
  std::chrono::steady_clock::time_point cut_;
  test::Lateness lateness_;
};

// Members of one machine in network namespaces of their own are reached over the network alone: a
// name there may mean another process here.
TEST_F(CutLinksTest, NoMemoryIsReadAcrossNamespaces) {
  for (const uint32_t member : Members(kMembers)) Create(member);
  ASSERT_TRUE(
      sessions_->Wait(1, Members(kMembers), [](const GroupLog& log) { return log.opened == 1; }));
  for (const uint32_t member : Members(kMembers)) {
    const Result<PeerPaths> paths = (*sessions_)[member].Paths(1);
    ASSERT_TRUE(paths.ok()) << paths.status().ToString();
    EXPECT_EQ(paths->memory, 0u);
    EXPECT_EQ(paths->network, member % (kMembers - 1) == 0 ? 1u : 2u);
  }
}

TEST_F(CutLinksTest, WhileMessagesMove) {
  MoveMessages();
  Cut();
  ExpectFailure();
}

// Three retransmissions, which take 1.4 s, are not waited for.
TEST_F(CutLinksTest, WithinAShortFailureMax) {
  constexpr milliseconds kShort{1000};
  Open(kShort);
  MoveMessages();
  if (HasFatalFailure()) return;
  Cut();
  ExpectFailure(kShort);
}

// A receiver that has no buffer takes nothing. Catches questions of the kernel that do not count,
// and that come seldom after a while.
TEST_F(CutLinksTest, WhileAReceiverHasNoBuffer) {
  auto pool = MemoryPool::Make(/*buffer_bytes=*/16 << 20, /*buffers=*/1);
  ASSERT_TRUE(pool.ok()) << pool.status().ToString();
  std::vector<std::byte> message = Bytes(16 << 20, 1);
  for (const uint32_t member : Members(kMembers)) {
    GroupCallbacks callbacks = sessions_->Callbacks(member, 1);
    if (member == 2) {
      callbacks.incoming = nullptr;
      callbacks.pool = *pool;
    }
    Create(member, callbacks);  // which does not give the buffer back
  }
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE((*sessions_)[0].Send(1, message.data(), message.size()).ok());
  ASSERT_TRUE(
      sessions_->Wait(1, {1, 2, 3}, [](const GroupLog& log) { return log.completed.size() == 1; }));
  std::this_thread::sleep_for(milliseconds(3000));
  for (const uint32_t member : Members(kMembers))
    EXPECT_TRUE(sessions_->LogOf(member, 1).failures.empty()) << "who waits has not failed";
  Cut();
  ExpectFailure(kFailureMax, kQuestionTime);
}

// Members 1 and 2 have a connection, and member 1 has introduced itself, while member 2 still waits
// for member 3. Catches members that wait for each other's introduction for ever.
TEST_F(CutLinksTest, WhileTheGroupForms) {
  for (const uint32_t member : {0u, 1u, 2u}) Create(member);
  std::this_thread::sleep_for(milliseconds(1500));
  Cut();
  Create(3);
  ExpectFailure();
}

}  // namespace
}  // namespace prepost::cut_links_test
