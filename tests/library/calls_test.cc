// SPDX-License-Identifier: Apache-2.0
//
// Calls of collectives in groups whose members are threads of this process, against what plain
// loops make of the inputs.
#include "tests/library/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/tcp_disturbance.h"

namespace prepost::calls_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// So many members, which copy from each other's memory, or talk over connections, sealed or not.
enum class CallsOver { kTcp, kMemory, kSealed };
constexpr const char* kCallsOverNames[] = {"OverTcp", "Copying", "Sealed"};
class CallsOf : public ::testing::TestWithParam<std::tuple<uint32_t, CallsOver>> {};

SessionOptions Copying(bool local_copies) {
  SessionOptions options = Patient({});
  options.local_copies = local_copies;
  return options;
}

// Every collective, any root, sizes about those of a block and a share, in place and not, many
// under way: catches calls that mix, memory of a call that the next one writes, roots that are
// nodes, and shares that are cut wrongly. Members stand in another order than their numbers.
TEST_P(CallsOf, AllKindsTogether) {
  const auto [n, over] = GetParam();
  const bool local_copies = over == CallsOver::kMemory;
  GroupOptions options = kCalls;
  options.seal = over == CallsOver::kSealed;
  test::Random random(test::TestSeed());
  std::vector<uint32_t> members = Members(n);
  std::ranges::rotate(members, members.begin() + n / 2);
  for (const bool is_disturbed : {false, true}) {
    SCOPED_TRACE(is_disturbed);
    test::TcpDisturbance disturbance(test::TestSeed());
    Sessions sessions(n, Copying(local_copies), is_disturbed ? &disturbance : nullptr);
    sessions.Create(kGroup, members, members[n - 1], options);
    for (const bool is_in_place : {false, true}) {
      SCOPED_TRACE(is_in_place);
      std::vector<Collective> collectives;
      const uint64_t large = local_copies ? 150'000u : 70'000u;  // each share is copied
      for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{1000}, large}) {
        for (const CollectiveKind kind : kKinds) {
          const CombineOp op =
              std::vector{CombineOp::kSum, CombineOp::kMax, CombineOp::kXor}[random.Below(3)];
          const auto root = static_cast<uint32_t>(random.Below(n));
          collectives.push_back(MakeCollective(kind, n, root, count, op, random));
        }
      }
      ExpectAll(sessions, members, collectives, is_in_place);
    }
    const Result<PeerPaths> paths = sessions[n - 1].Paths(kGroup);  // an alltoall has used all
    ASSERT_TRUE(paths.ok());
    EXPECT_EQ(local_copies ? paths->memory : paths->network, n - 1);
    for (const uint32_t member : members) EXPECT_TRUE(sessions[member].DestroyGroup(kGroup).ok());
    EXPECT_TRUE(
        sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.closed == 1; }));
  }
}
INSTANTIATE_TEST_SUITE_P(CallsTest, CallsOf,
                         ::testing::Combine(::testing::Values(1u, 2u, 3u, 4u, 5u, 8u),
                                            ::testing::Values(CallsOver::kTcp, CallsOver::kMemory,
                                                              CallsOver::kSealed)),
                         [](const auto& it) {
                           return std::to_string(std::get<0>(it.param)) + "Members" +
                                  kCallsOverNames[static_cast<size_t>(std::get<1>(it.param))];
                         });

/// Over memory copies, and over TCP.
class CallsWays : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(CallsTest, CallsWays, ::testing::Bool(),
                         [](const auto& it) { return it.param ? "Copying" : "OverTcp"; });

// A root that sends small blocks alone may be ahead of the others by any number of calls, also on
// connections that few of them use, once it has them: what it has sent waits there. Catches notes
// that are waited for, and starts that are refused as too far ahead.
TEST_P(CallsWays, ARootOfSmallCallsIsFarAhead) {
  constexpr uint32_t kMembers = 5;
  constexpr size_t kCallsAhead = 60;
  test::Random random(test::TestSeed());
  Sessions sessions(kMembers, Copying(GetParam()));
  sessions.Create(kGroup, Members(kMembers), 0, kCalls);
  std::vector<Collective> first = {
      MakeCollective(CollectiveKind::kAlltoall, kMembers, 0, 1, CombineOp::kSum, random)};
  ExpectAll(sessions, Members(kMembers), first, /*is_in_place=*/false);
  std::vector<Values> sent, received;
  std::vector<std::future<Status>> futures;
  for (size_t call = 0; call < kCallsAhead; ++call) {
    // Every twentieth is of parts, which take all of its connections.
    const bool is_scatter = call % 20 == 19;
    Values& values = sent.emplace_back(is_scatter ? kMembers : 1);
    for (int32_t& value : values) value = static_cast<int32_t>(random.Below(1u << 31));
  }
  received.assign(kCallsAhead * kMembers, Values(1));
  const auto make = [&](uint32_t member, size_t call) {
    const bool is_scatter = sent[call].size() == kMembers;
    return sessions[member].Await(
        kGroup,
        {.kind = is_scatter ? CollectiveKind::kScatter : CollectiveKind::kMulticast,
         .root = 0,
         .input = member == 0 ? sent[call].data() : nullptr,
         .output = member == 0 && !is_scatter ? nullptr : received[call * kMembers + member].data(),
         .count = 1,
         .type = ElementType::kInt32});
  };
  for (size_t call = 0; call < kCallsAhead; ++call) {
    std::future<Status> made = make(0, call);
    ASSERT_EQ(made.wait_for(std::chrono::seconds(20)), std::future_status::ready) << call;
    ASSERT_TRUE(made.get().ok()) << call;
  }
  for (uint32_t member = kMembers - 1; member > 0; --member)
    for (size_t call = 0; call < kCallsAhead; ++call) futures.push_back(make(member, call));
  for (std::future<Status>& made : futures) {
    const Status status = made.get();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  for (size_t call = 0; call < kCallsAhead; ++call) {
    for (uint32_t member = 1; member < kMembers; ++member) {
      const int32_t expected = sent[call].size() == kMembers ? sent[call][member] : sent[call][0];
      EXPECT_EQ(received[call * kMembers + member], Values{expected}) << call << " at " << member;
    }
  }
}

// Blocks about the size from which on they are copied and have notes, with a smaller one behind
// larger ones, over one stream and several. Catches a send that waits for a note that does not
// come, or completes by that of another.
TEST_P(CallsWays, BlocksAboutTheSizeThatHasNotes) {
  constexpr uint32_t kMembers = 4;
  constexpr uint64_t kNoted = (64 << 10) / sizeof(int32_t);
  test::Random random(test::TestSeed());
  for (const uint16_t streams : std::initializer_list<uint16_t>{1, 3}) {
    SCOPED_TRACE(streams);
    SessionOptions options = Copying(GetParam());
    options.paths.streams = streams;
    Sessions sessions(kMembers, options);
    sessions.Create(kGroup, Members(kMembers), 0, kCalls);
    std::vector<Collective> collectives;
    for (const CollectiveKind kind : kKinds) {
      for (const uint64_t blocks : std::initializer_list<uint64_t>{1, 3, 8}) {
        const uint64_t count = blocks * kNoted + random.Below(3) - 1;
        const auto root = static_cast<uint32_t>(random.Below(kMembers));
        collectives.push_back(MakeCollective(kind, kMembers, root, count, CombineOp::kSum, random));
      }
    }
    ExpectAll(sessions, Members(kMembers), collectives, /*is_in_place=*/false);
  }
}

// Parts of any sizes, none among them, with gaps between them.
TEST_P(CallsWays, UnevenAlltoall) {
  constexpr uint32_t kMembers = 4;
  test::Random random(test::TestSeed());
  const std::vector<uint32_t> members = Members(kMembers);
  Sessions sessions(kMembers, Copying(GetParam()));
  sessions.Create(kGroup, members, 0, kCalls);
  for (int round = 0; round < 4; ++round) {
    uint64_t counts[kMembers][kMembers];
    for (auto& row : counts)
      for (uint64_t& count : row) count = random.Below(3) == 0 ? 0 : random.Below(60'000);
    std::vector<Values> inputs(kMembers), outputs(kMembers);
    std::vector<std::future<Status>> futures;
    std::vector<Call> calls(kMembers);
    for (uint32_t m = 0; m < kMembers; ++m) {
      Call& call = calls[m];
      call.kind = CollectiveKind::kAlltoall;
      call.type = ElementType::kInt32;
      uint64_t sent = 0, received = 5;
      for (uint32_t peer = 0; peer < kMembers; ++peer) {
        call.send_counts.push_back(counts[m][peer]);
        sent += counts[m][peer];
        call.receive_counts.push_back(counts[peer][m]);
        call.receive_places.push_back(received);
        received += counts[peer][m] + 3;
      }
      for (uint64_t i = 0; i < sent; ++i)
        inputs[m].push_back(static_cast<int32_t>(random.Below(1000)));
      outputs[m].assign(received, -7);
    }
    for (uint32_t m = 0; m < kMembers; ++m) {
      calls[m].input = inputs[m].data();
      calls[m].output = outputs[m].data();
      futures.push_back(sessions[m].Await(kGroup, calls[m]));
    }
    for (auto& future : futures) ASSERT_TRUE(future.get().ok());
    for (uint32_t m = 0; m < kMembers; ++m) {
      Values expected(outputs[m].size(), -7);
      for (uint32_t peer = 0; peer < kMembers; ++peer) {
        uint64_t begin = 0;
        for (uint32_t before = 0; before < m; ++before) begin += counts[peer][before];
        std::copy_n(inputs[peer].begin() + static_cast<ptrdiff_t>(begin), counts[peer][m],
                    expected.begin() + static_cast<ptrdiff_t>(calls[m].receive_places[peer]));
      }
      EXPECT_EQ(outputs[m], expected) << m;
    }
  }
}

// Two members do not agree on what one sends the other: an error that names the call, both members
// and both sizes.
TEST(CallsTest, UnequalCountsEndTheGroup) {
  Sessions sessions(2, {});
  sessions.Create(kGroup, {0, 1}, 0, kCalls);
  std::vector<int32_t> in(8), out[2] = {Values(8), Values(8)};
  std::vector<std::future<Status>> futures;
  for (uint32_t m = 0; m < 2; ++m) {
    futures.push_back(
        sessions[m].Await(kGroup, {.kind = CollectiveKind::kAlltoall,
                                   .input = in.data(),
                                   .output = out[m].data(),
                                   .type = ElementType::kInt32,
                                   .send_counts = {1, m == 0 ? uint64_t{2} : uint64_t{1}},
                                   .receive_counts = {1, 1}}));
  }
  EXPECT_TRUE(
      sessions.Wait(kGroup, {0, 1}, [](const GroupLog& log) { return log.failures.size() == 1; }));
  EXPECT_THAT(sessions.LogOf(0, kGroup).failures[0],
              HasSubstr("call 0 is alltoall of parts of any sizes, in which member 0 sends 8 bytes "
                        "to member 1, and member 1 expects 4 bytes"));
  for (auto& future : futures) static_cast<void>(future.get());
}

// A product of 2x2 matrices does not commute: catches operands that are swapped, and an operation
// that is called for one member's part twice.
TEST_P(CallsWays, OwnOperations) {
  struct Matrix {
    int64_t at[4];
    bool operator==(const Matrix&) const = default;
  };
  const auto times = [](const Matrix& a, const Matrix& b) {
    constexpr int64_t kPrime = 1'000'003;
    const auto element = [&](int row, int column) {
      return (a.at[2 * row] * b.at[column] + a.at[2 * row + 1] * b.at[2 + column]) % kPrime;
    };
    return Matrix{{element(0, 0), element(0, 1), element(1, 0), element(1, 1)}};
  };
  for (const uint32_t n : {2u, 3u, 5u, 8u}) {
    test::Random random(test::TestSeed());
    const std::vector<uint32_t> members = Members(n);
    Sessions sessions(n, Copying(GetParam()));
    sessions.Create(kGroup, members, 0, kCalls);
    constexpr size_t kMatrices = 2100;  // a block is copied
    std::vector<std::vector<Matrix>> inputs(n, std::vector<Matrix>(kMatrices)), outputs = inputs;
    std::vector<Matrix> expected(kMatrices);
    for (size_t i = 0; i < kMatrices; ++i) {
      for (uint32_t m = 0; m < n; ++m) {
        for (int64_t& value : inputs[m][i].at) value = static_cast<int64_t>(random.Below(1000));
        expected[i] = m == 0 ? inputs[m][i] : times(expected[i], inputs[m][i]);
      }
    }
    // Elements are of 8 bytes, and blocks whole elements, not whole matrices: so one block.
    const auto call = [&](CollectiveKind kind, uint32_t root) {
      std::vector<std::future<Status>> futures;
      for (uint32_t m = 0; m < n; ++m) {
        futures.push_back(sessions[m].Await(
            kGroup,
            {.kind = kind,
             .root = root,
             .input = inputs[m].data(),
             .output = outputs[m].data(),
             .count = 4 * kMatrices,
             .type = ElementType::kInt64,
             .op = CombineOp::kUserOrdered,
             .operation = [&](void* out, const void* own, const void* other, uint64_t count) {
               for (size_t i = 0; i < count / 4; ++i) {
                 const Matrix product = times(static_cast<const Matrix*>(own)[i],
                                              static_cast<const Matrix*>(other)[i]);
                 std::memcpy(static_cast<Matrix*>(out) + i, &product, sizeof(product));
               }
             }}));
      }
      for (auto& future : futures) EXPECT_TRUE(future.get().ok());
    };
    call(CollectiveKind::kAllreduce, 0);
    for (uint32_t m = 0; m < n; ++m) EXPECT_TRUE(outputs[m] == expected) << m << " of " << n;
    for (const uint32_t root : {0u, n / 2, n - 1}) {
      outputs[root].assign(kMatrices, Matrix{});
      call(CollectiveKind::kReduce, members[root]);
      EXPECT_TRUE(outputs[root] == expected) << "to " << root << " of " << n;
    }
  }
}

// Sums of floats: the same at all members and in every run; in a deterministic group also the same
// in messages of another size.
TEST(CallsTest, SumsOfFloatsAreTheSame) {
  constexpr uint32_t kMembers = 6;
  const std::vector<uint32_t> members = Members(kMembers);
  constexpr size_t kLarge = 300'000;
  std::vector<std::vector<float>> inputs(kMembers, std::vector<float>(kLarge));
  test::Random random(test::TestSeed());
  for (auto& input : inputs)
    for (float& value : input) value = static_cast<float>(random.Below(1u << 30)) * 1e-7f;
  for (const bool is_deterministic : {false, true}) {
    SCOPED_TRACE(is_deterministic);
    Sessions sessions(kMembers, Patient({}));
    GroupOptions options = kCalls;
    options.deterministic = is_deterministic;
    sessions.Create(kGroup, members, 0, options);
    std::vector<std::vector<float>> results;
    for (const size_t count : {kLarge, kLarge, size_t{1001}}) {
      std::vector<std::vector<float>> outputs(kMembers, std::vector<float>(count));
      std::vector<std::future<Status>> futures;
      for (uint32_t m = 0; m < kMembers; ++m)
        futures.push_back(sessions[m].Allreduce(kGroup, inputs[m].data(), outputs[m].data(), count,
                                                ElementType::kFloat32, CombineOp::kSum));
      for (auto& future : futures) ASSERT_TRUE(future.get().ok());
      for (const auto& output : outputs)
        EXPECT_EQ(std::memcmp(output.data(), outputs[0].data(), count * 4), 0);
      results.push_back(outputs[0]);
    }
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), kLarge * 4), 0);
    if (is_deterministic) {
      EXPECT_EQ(std::memcmp(results[0].data(), results[2].data(), 1001 * 4), 0);
    }
  }
}

// Members that call different things: an error that names both calls and both members, wherever the
// two meet, or do not meet at all. Catches waits without an end.
TEST(CallsTest, DifferentCallsEndTheGroup) {
  struct Case {
    Call first, other;  // member 0 and 1 call the first, 2 the other
    std::string a, b;
  };
  int32_t memory[64] = {}, out[3 * 64] = {};
  const auto reduce = [&](CollectiveKind kind, uint64_t count, uint32_t root = 0) {
    return Call{.kind = kind,
                .root = root,
                .input = memory,
                .output = out,
                .count = count,
                .type = ElementType::kInt32};
  };
  const Call barrier = {};
  const std::vector<Case> cases = {
      {reduce(CollectiveKind::kAllreduce, 10), reduce(CollectiveKind::kAllreduce, 11),
       "allreduce sum:int32 of 40 bytes", "allreduce sum:int32 of 44 bytes"},
      {barrier, reduce(CollectiveKind::kAllreduce, 1), "barrier", "allreduce sum:int32 of 4 bytes"},
      {reduce(CollectiveKind::kReduce, 8, 0), reduce(CollectiveKind::kReduce, 8, 1),
       "reduce sum:int32 of 32 bytes to member 0", "reduce sum:int32 of 32 bytes to member 1"},
      // Member 2 sends its part and is through; the others wait for it.
      {barrier, reduce(CollectiveKind::kGather, 8, 0), "barrier",
       "gather of parts of 32 bytes to member 0"},
      {reduce(CollectiveKind::kScatter, 8, 0), reduce(CollectiveKind::kMulticast, 8, 2),
       "scatter of parts of 32 bytes from member 0", "broadcast of 32 bytes from member 2"}};
  for (const Case& it : cases) {
    SCOPED_TRACE(it.a + " and " + it.b);
    const std::vector<uint32_t> members = Members(3);
    Sessions sessions(3, Quick());
    sessions.Create(kGroup, members, 0, kCalls);
    ASSERT_TRUE(
        sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.opened == 1; }));
    std::vector<std::vector<int32_t>> outs(3, std::vector<int32_t>(3 * 64));
    std::vector<std::future<Status>> futures;
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t m = 0; m < 3; ++m) {
      Call call = m == 2 ? it.other : it.first;
      if (call.kind != CollectiveKind::kBarrier) call.output = outs[m].data();
      futures.push_back(sessions[m].Await(kGroup, call));
    }
    EXPECT_TRUE(sessions.Wait(kGroup, members,
                              [](const GroupLog& log) { return log.failures.size() == 1; }));
    const auto passed = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(passed, milliseconds(2500));
    bool has_failed = false;
    for (auto& future : futures) has_failed |= !future.get().ok();
    EXPECT_TRUE(has_failed);
    for (const uint32_t member : members) {
      const GroupLog log = sessions.LogOf(member, kGroup);
      ASSERT_EQ(log.failures.size(), 1u);
      EXPECT_THAT(log.failures[0], HasSubstr(it.a));
      EXPECT_THAT(log.failures[0], HasSubstr(it.b));
      EXPECT_THAT(log.failures[0], HasSubstr("member 2"));
      EXPECT_THAT(log.failures[0], AnyOf(HasSubstr("member 0"), HasSubstr("member 1")));
      EXPECT_TRUE(log.failed_members.empty());  // who is wrong nobody knows
    }
  }
}

// Both send, neither receives, and both go on to a call that they have in common: what the other
// has sent comes when the call that it belongs to is over. Catches causes that name one call or
// blame one member.
TEST(CallsTest, TwoThatOnlySendDiffer) {
  for (const uint16_t streams : std::initializer_list<uint16_t>{1, 3}) {
    SCOPED_TRACE(streams);
    SessionOptions options = Quick();
    options.local_copies = false;
    options.paths.streams = streams;
    const std::vector<uint32_t> members = Members(2);
    Sessions sessions(2, options);
    sessions.Create(kGroup, members, 0, kCalls);
    for (uint32_t m = 0; m < 2; ++m) EXPECT_TRUE(sessions[m].Barrier(kGroup, [] {}).ok());
    ASSERT_TRUE(
        sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.opened == 1; }));
    int32_t value = 7;
    std::vector<std::future<Status>> futures;
    for (uint32_t m = 0; m < 2; ++m) {
      futures.push_back(sessions[m].Broadcast(kGroup, m, &value, sizeof(value)));
      futures.push_back(sessions[m].Barrier(kGroup));
    }
    EXPECT_TRUE(sessions.Wait(kGroup, members,
                              [](const GroupLog& log) { return log.failures.size() == 1; }));
    for (const uint32_t member : members) {
      const GroupLog log = sessions.LogOf(member, kGroup);
      ASSERT_EQ(log.failures.size(), 1u);
      EXPECT_THAT(log.failures[0], HasSubstr("call 1 is broadcast of 4 bytes from member "));
      EXPECT_THAT(log.failures[0], HasSubstr("and broadcast of 4 bytes from member "));
      EXPECT_THAT(log.failures[0], HasSubstr("at member 0"));
      EXPECT_THAT(log.failures[0], HasSubstr("at member 1"));
      EXPECT_TRUE(log.failed_members.empty());
    }
  }
}

// One member makes a call less, and destroys the group.
TEST(CallsTest, OneCallIsMissing) {
  const std::vector<uint32_t> members = Members(2);
  Sessions sessions(2, Quick());
  sessions.Create(kGroup, members, 0, kCalls);
  std::future<Status> waiting = sessions[0].Session::Barrier(kGroup);
  EXPECT_TRUE(sessions[0].DestroyGroup(kGroup).ok());
  EXPECT_TRUE(sessions[1].DestroyGroup(kGroup).ok());
  EXPECT_THAT(
      waiting.get().ToString(),
      HasSubstr("call 0 is barrier at member 0, and member 1 destroys the group after 0 calls"));
  EXPECT_TRUE(
      sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.failures.size() == 1; }));
}

// A member dies in the middle: calls under way end with the cause, before `failed`; those that are
// made later are errors.
TEST(CallsTest, AMemberDies) {
  const std::vector<uint32_t> members = Members(3);
  Sessions sessions(3, Quick());
  sessions.Create(kGroup, members, 0, kCalls);
  std::vector<int32_t> memory(1000, 1), out(1000);
  std::vector<std::future<Status>> futures;
  for (int i = 0; i < 3; ++i) {
    for (const uint32_t m : {0u, 1u}) {
      futures.push_back(sessions[m].Allreduce(kGroup, memory.data(),
                                              m == 0 ? out.data() : memory.data(), memory.size(),
                                              ElementType::kInt32, CombineOp::kSum));
    }
  }
  ASSERT_TRUE(sessions.Wait(kGroup, members, [](const GroupLog& log) { return log.opened == 1; }));
  sessions.Kill(2);
  for (auto& future : futures) {
    const Status status = future.get();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.ToString(), HasSubstr("member 2"));
  }
  ASSERT_TRUE(
      sessions.Wait(kGroup, {0, 1}, [](const GroupLog& log) { return log.failures.size() == 1; }));
  EXPECT_FALSE(sessions[0].Session::Barrier(kGroup).get().ok());
}

/// Calls back when the copies of all members together have come to a number.
class CountedCopies final : public TcpHook {
 public:
  explicit CountedCopies(int until) : left_(until) {}
  size_t Limit(const TcpWay& way, size_t bytes) override {
    if (!way.is_copy) return bytes;
    if (--left_ == 0) reached_.set_value();
    return std::min<size_t>(bytes, 4096);
  }
  void Wait() { reached_.get_future().wait(); }

 private:
  std::atomic<int> left_;
  std::promise<void> reached_;
};

// A member goes, or its group is aborted, while others copy from its memory, and that is written at
// once. Catches memory that is read when it is its caller's again: a call that succeeds has the
// right values. Of large vectors, in calls that send from inputs, outputs, scratch buffers and
// staging.
TEST(CallsTest, AMemberGoesWhileOthersCopyFromIt) {
  constexpr uint32_t kMembers = 3;
  constexpr size_t kCount = 100'000;
  const std::vector<uint32_t> members = Members(kMembers);
  test::Random random(test::TestSeed());
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const bool is_abort = round % 2 == 1;
    CountedCopies hook(static_cast<int>(1 + random.Below(300)));
    Sessions sessions(kMembers, Quick(), &hook);
    sessions.Create(kGroup, members, 0, kCalls);
    std::vector<std::vector<Values>> inputs(kMembers), outputs(kMembers);
    std::vector<std::vector<std::future<Status>>> futures(kMembers);
    const std::vector<CollectiveKind> kinds = {
        CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kAlltoall};
    for (uint32_t m = 0; m < kMembers; ++m) {
      for (const CollectiveKind kind : kinds) {
        inputs[m].emplace_back(kMembers * kCount, static_cast<int32_t>(m + 1));
        outputs[m].emplace_back(kMembers * kCount, -1);
        futures[m].push_back(sessions[m].Await(kGroup, {.kind = kind,
                                                        .input = inputs[m].back().data(),
                                                        .output = outputs[m].back().data(),
                                                        .count = kCount,
                                                        .type = ElementType::kInt32}));
      }
    }
    hook.Wait();
    if (is_abort) {
      EXPECT_TRUE(sessions[2].AbortGroup(kGroup, "for a test").ok());
    } else {
      sessions.Kill(2);
    }
    for (size_t c = 0; c < kinds.size(); ++c) {
      futures[2][c].wait();
      std::ranges::fill(inputs[2][c], -5);
      std::ranges::fill(outputs[2][c], -5);
    }
    for (const uint32_t m : {0u, 1u}) {
      for (size_t c = 0; c < kinds.size(); ++c) {
        if (!futures[m][c].get().ok()) continue;
        for (size_t i = 0; i < kCount * (c == 0 ? 1 : kMembers); ++i) {
          const auto expected = c == 0 ? 6 : static_cast<int32_t>(i / kCount + 1);
          ASSERT_EQ(outputs[m][c][i], expected) << "call " << c << " at " << m;
        }
      }
    }
  }
}

// A session that goes resolves what it has not played.
TEST(CallsTest, FuturesEndWithTheSession) {
  Sessions sessions(2, Quick());
  sessions.Create(kGroup, {0, 1}, 0, kCalls);
  std::future<Status> waiting = sessions[0].Session::Barrier(kGroup);
  sessions.Kill(0);
  EXPECT_THAT(waiting.get().ToString(), HasSubstr("the session has ended"));
}

// What is wrong at one member is an error there, with what would do.
TEST(CallsTest, WrongCallsAreRefused) {
  Sessions sessions(2, Quick());
  sessions.Create(kGroup, {0, 1}, 0, kCalls);
  sessions.Create(4, {0, 1}, 0);
  double memory[64] = {};
  const auto refuse = [&](uint64_t group, const Call& call, const std::string& why) {
    const Status status = sessions[0].Await(group, call).get();
    EXPECT_EQ(status.code(), StatusCode::kUsage) << why;
    EXPECT_THAT(status.message(), HasSubstr(why));
  };
  const Call good = {.kind = CollectiveKind::kAllreduce,
                     .input = memory,
                     .output = memory + 32,
                     .count = 8,
                     .type = ElementType::kFloat64};
  const auto with = [&](auto change) {
    Call call = good;
    change(call);
    return call;
  };
  refuse(4, good, "is for messages, not for calls");
  refuse(kGroup, with([](Call& call) { call.kind = static_cast<CollectiveKind>(99); }),
         "99, 1, 12");
  refuse(kGroup, with([](Call& call) { call.op = static_cast<CombineOp>(200); }), "2, 200, 12");
  refuse(kGroup, with([](Call& call) { call.type = static_cast<ElementType>(201); }), "2, 1, 201");
  refuse(9, good, "there is none of this number");
  refuse(kGroup, with([](Call& it) { it.op = CombineOp::kXor; }), "xor");
  refuse(kGroup, with([](Call& it) { it.op = CombineOp::kNone; }), "none");
  refuse(kGroup, with([](Call& it) { it.type = ElementType::kNone; }), "a type is missing");
  refuse(kGroup, with([](Call& it) { it.input = nullptr; }), "64 bytes of input have no memory");
  refuse(kGroup, with([](Call& it) { it.output = nullptr; }), "64 bytes of output have no memory");
  refuse(kGroup, with([&](Call& it) { it.output = memory + 1; }), "input and output overlap");
  refuse(kGroup, with([](Call& it) { it.op = CombineOp::kUser; }), "its operation is missing");
  refuse(kGroup, with([](Call& it) { it.count = UINT64_MAX / 4; }), "256 TiB at most");
  refuse(kGroup, with([](Call& it) { it.send_counts = {1, 2}; }), "are an alltoall's");
  refuse(kGroup, with([&](Call& it) {
           it.kind = CollectiveKind::kAlltoall;
           it.output = memory;
         }),
         "an alltoall cannot be in place");
  refuse(kGroup, with([&](Call& it) {
           it.kind = CollectiveKind::kAlltoall;
           it.send_counts = {1, 2};
           it.receive_counts = {1};
         }),
         "1 counts and 0 places for 2 members");
  refuse(kGroup, with([&](Call& it) {
           it.kind = CollectiveKind::kAlltoall;
           it.send_counts = {2, 2};
           it.receive_counts = {2, 2};
           it.receive_places = {0, 1};
         }),
         "two received parts overlap");
  refuse(kGroup, with([](Call& it) {
           it.kind = CollectiveKind::kReduce;
           it.root = 7;
         }),
         "its root, member 7, is not in it");
  EXPECT_THAT(sessions[0].Send(kGroup, memory, 8).status().message(), HasSubstr("it is for calls"));
  EXPECT_THAT(
      sessions[0].CreateGroup(5, {0, 1}, 0, {.algorithm = "chain", .calls = true}, {}).message(),
      HasSubstr("a group for calls has not an algorithm"));
  // Nothing of it has disturbed the group.
  std::future<Status> a = sessions[0].Session::Barrier(kGroup);
  std::future<Status> b = sessions[1].Session::Barrier(kGroup);
  EXPECT_TRUE(a.get().ok());
  EXPECT_TRUE(b.get().ok());
}

}  // namespace
}  // namespace prepost::calls_test
