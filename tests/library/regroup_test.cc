// SPDX-License-Identifier: Apache-2.0
//
// Several members that die together, and the next group of the survivors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "prepost/prepost.h"
#include "tests/support/machines.h"
#include "tests/support/sessions.h"

namespace prepost::regroup_test {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::GroupLog;
using test::Machines;
using test::Members;
using test::Sessions;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

bool IsOpen(const GroupLog& log) { return log.opened == 1; }
bool HasFailed(const GroupLog& log) { return log.failures.size() == 1; }

SessionOptions WithFailureMax(milliseconds failure_max) {
  SessionOptions options;
  options.failure_max = failure_max;
  return options;
}

// Catches survivors that hear of one of them only, and then wait for the other.
TEST(RegroupTest, FailedNamesAllThatAreGone) {
  Sessions sessions(4, WithFailureMax(milliseconds(10'000)));  // of which 0.05 is time to die in
  const std::vector<uint32_t> survivors = {0, 2};
  sessions.Create(1, Members(4), 0);
  ASSERT_TRUE(sessions.Wait(1, Members(4), IsOpen));
  std::vector<std::thread> deaths;
  for (const uint32_t member : {1u, 3u})
    deaths.emplace_back([&sessions, member] { sessions.Kill(member); });
  for (std::thread& death : deaths) death.join();
  ASSERT_TRUE(sessions.Wait(1, survivors, HasFailed));
  for (const uint32_t member : survivors) {
    const GroupLog log = sessions.LogOf(member, 1);
    EXPECT_THAT(log.failed_members, UnorderedElementsAre(1, 3));
    EXPECT_EQ(log.failed_member, log.failed_members.front());
    EXPECT_THAT(log.failures.front(), HasSubstr(std::to_string(*log.failed_member)));
  }
  sessions.Create(2, survivors, 2);
  ExpectDelivery(sessions, 2, survivors, 2, {Bytes(100, 1)});
}

// Neither closes anything: both fall silent. Catches a list that ends with the first that is
// missed.
TEST(RegroupTest, AMachineIsGoneWithAllOfItsMembers) {
  const std::unique_ptr<Machines> machines = Machines::Make(3);
  if (machines == nullptr) GTEST_SKIP() << "no link is cut: needs root and ip";
  SessionOptions options = WithFailureMax(milliseconds(1000));
  for (const uint32_t machine : {0u, 1u, 2u})
    options.members.push_back({.host = Machines::AddressOf(machine)});
  options.members.push_back({.host = Machines::AddressOf(2), .port = 7812});
  Sessions sessions(4, options, nullptr,
                    [&](const SessionOptions& own) { machines->Enter(std::min(own.self, 2u)); });
  sessions.Create(1, Members(4), 0);
  ASSERT_TRUE(sessions.Wait(1, Members(4), IsOpen));
  machines->SetLink(2, false);
  ASSERT_TRUE(sessions.Wait(1, {0, 1}, HasFailed));
  for (const uint32_t member : {0u, 1u})
    EXPECT_THAT(sessions.LogOf(member, 1).failed_members, UnorderedElementsAre(2, 3));
}

// One that was still there when the group failed, and was not named: whoever is to be called, calls
// or leads.
TEST(RegroupTest, AMemberThatDiedUnnoticedIsMissedSoon) {
  Sessions sessions(5, WithFailureMax(milliseconds(1000)));
  sessions.Create(1, Members(5), 0);
  ASSERT_TRUE(sessions.Wait(1, Members(5), IsOpen));
  sessions.Kill(1);
  ASSERT_TRUE(sessions.Wait(1, {0, 2, 3, 4}, HasFailed));
  EXPECT_THAT(sessions.LogOf(4, 1).failed_members, ElementsAre(1));
  sessions.Kill(2);
  sessions.Kill(3);
  const auto create = [&](uint64_t number, const std::vector<uint32_t>& members, uint32_t root) {
    for (const uint32_t member : members) {
      if (!sessions.is_alive(member)) continue;
      const GroupCallbacks callbacks = sessions.Callbacks(member, number);
      ASSERT_TRUE(sessions[member].CreateGroup(number, members, root, {}, callbacks).ok());
    }
  };
  create(2, {0, 2, 4}, 0);
  create(3, {2, 0, 4}, 2);
  create(4, {4, 0, 2}, 0);
  create(5, {0, 2, 3, 4}, 4);
  for (const uint64_t number : {2u, 3u, 4u, 5u}) {
    SCOPED_TRACE(number);
    ASSERT_TRUE(sessions.Wait(number, {0, 4}, HasFailed));
    for (const uint32_t member : {0u, 4u}) {
      const GroupLog log = sessions.LogOf(member, number);
      EXPECT_THAT(log.failures.front(), HasSubstr("was there and is gone"));
      EXPECT_THAT(log.failed_members.front(), AnyOf(2u, number == 5 ? 3u : 2u));
    }
  }
  // Only the root calls both.
  EXPECT_THAT(sessions.LogOf(0, 5).failed_members, UnorderedElementsAre(2, 3));
}

// Catches members that are taken for dead because their programs take their time.
TEST(RegroupTest, AMemberThatIsLateIsNotMissed) {
  constexpr milliseconds kFailureMax{1000};
  Sessions sessions(3, WithFailureMax(kFailureMax));
  sessions.Create(1, Members(3), 0);
  ASSERT_TRUE(sessions.Wait(1, Members(3), IsOpen));
  ASSERT_TRUE(sessions[0].AbortGroup(1, "").ok());
  ASSERT_TRUE(sessions.Wait(1, Members(3), HasFailed));
  const auto create = [&](uint32_t member, uint32_t root) {
    const GroupCallbacks callbacks = sessions.Callbacks(member, 2 + root);
    ASSERT_TRUE(sessions[member].CreateGroup(2 + root, Members(3), root, {}, callbacks).ok());
  };
  for (const uint32_t root : Members(3)) {
    for (const uint32_t member : {0u, 2u}) create(member, root);
  }
  std::this_thread::sleep_for(kFailureMax);  // more than 0.6 of it
  for (const uint32_t root : Members(3)) {
    create(1, root);
    ExpectDelivery(sessions, 2 + root, Members(3), root, {Bytes(100, 1)});
  }
}

}  // namespace
}  // namespace prepost::regroup_test
