// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/shm_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "compiler/compile.h"

namespace prepost::shm_board_test {
namespace {

using ::testing::UnorderedElementsAre;

constexpr NodeId kRoot{0};

ShmBoard::Counter Answer(uint32_t channel) {
  return {.channel = ChannelId(channel), .writer = ShmBoard::End::kTo};
}

class ShmBoardTest : public ::testing::Test {
 protected:
  /// Node 0 sends to each of the others, over a channel each.
  explicit ShmBoardTest(uint32_t nodes = 9)
      : plan_(Compile({.nodes = nodes, .message_bytes = 1, .algorithm = "sequential"}).value()),
        board_(ShmBoard::Make(plan_).value()) {}

  std::vector<uint32_t> News() {
    std::vector<uint32_t> channels;
    board_.TakeNews(kRoot,
                    [&](ShmBoard::Counter counter) { channels.push_back(counter.channel.value); });
    return channels;
  }
  bool IsRung() const {
    uint64_t rings = 0;
    return read(board_.bell(kRoot), &rings, sizeof(rings)) == ssize_t{sizeof(rings)};
  }

  const VerifiedPlan plan_;
  ShmBoard board_;
};

// Notified twice, found once; and notified again after it was found.
TEST_F(ShmBoardTest, NewsAreFoundOnceEach) {
  board_.Notify(Answer(2));
  board_.Notify(Answer(5));
  board_.Notify(Answer(2));
  EXPECT_THAT(News(), UnorderedElementsAre(2, 5));
  EXPECT_THAT(News(), UnorderedElementsAre());
  board_.Notify(Answer(2));
  EXPECT_THAT(News(), UnorderedElementsAre(2));
}

// Catches a bell for a node that is awake, which would be a system call per message, and a second
// one for a node that is being woken already.
TEST_F(ShmBoardTest, OnlyASleeperIsRungAndOnlyOnce) {
  board_.Notify(Answer(1));
  EXPECT_FALSE(IsRung());
  EXPECT_FALSE(board_.FallAsleep(kRoot));  // there is news
  News();
  EXPECT_TRUE(board_.FallAsleep(kRoot));
  board_.Notify(Answer(1));
  board_.Notify(Answer(2));
  uint64_t rings = 0;
  ASSERT_EQ(read(board_.bell(kRoot), &rings, sizeof(rings)), ssize_t{sizeof(rings)});
  EXPECT_EQ(rings, 1u);
  EXPECT_THAT(News(), UnorderedElementsAre(1, 2));
}

// A node that woke up for another reason is awake: catches a bell that rings for nothing later.
TEST_F(ShmBoardTest, TakingNewsEndsTheSleep) {
  ASSERT_TRUE(board_.FallAsleep(kRoot));
  EXPECT_THAT(News(), UnorderedElementsAre());
  board_.Notify(Answer(1));
  EXPECT_FALSE(IsRung());
}

// Eight writers and a reader that sleeps whenever it may: catches a lost wake-up (the test hangs
// and CTest ends it) and a value that was stored before the reader polled and is not seen.
TEST_F(ShmBoardTest, NothingIsLostBetweenTellingAndFallingAsleep) {
  constexpr uint32_t kValues = 20'000;
  std::vector<std::thread> writers;
  for (uint32_t channel = 0; channel < 8; ++channel) {
    writers.emplace_back([this, channel] {
      for (uint32_t value = 1; value <= kValues; ++value) {
        board_.Store(Answer(channel), value);
        board_.Notify(Answer(channel));
        if (value % 64 == channel) std::this_thread::yield();
      }
    });
  }
  std::vector<uint32_t> seen(8, 0);
  const auto all_seen = [&] {
    return std::ranges::all_of(seen, [](uint32_t value) { return value == kValues; });
  };
  while (!all_seen()) {
    board_.TakeNews(kRoot, [&](ShmBoard::Counter counter) {
      seen[counter.channel.index()] = board_.Load(counter);
    });
    if (all_seen() || !board_.FallAsleep(kRoot)) continue;
    pollfd bell = {.fd = board_.bell(kRoot), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&bell, 1, /*timeout=*/-1), 1);
    IsRung();  // makes it quiet again; endpoints wait for edges instead
  }
  for (std::thread& writer : writers) writer.join();
}

// Counters and bells are shared with processes that are forked later, and survive their death.
TEST_F(ShmBoardTest, ReachesOtherProcesses) {
  ASSERT_TRUE(board_.FallAsleep(kRoot));
  const pid_t child = fork();
  if (child == 0) {
    board_.Store(Answer(3), 7);
    board_.Notify(Answer(3));
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(IsRung());
  EXPECT_THAT(News(), UnorderedElementsAre(3));
  EXPECT_EQ(board_.Load(Answer(3)), 7u);
}

}  // namespace
}  // namespace prepost::shm_board_test
