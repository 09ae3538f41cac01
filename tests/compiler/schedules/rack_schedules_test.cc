// SPDX-License-Identifier: Apache-2.0
//
// Schedules over racks: what every schedule must hold, and what racks are for: how often a block
// enters a rack, what goes through a rack's uplink in a round, and how many rounds it takes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/schedules/circulant_graph.h"
#include "compiler/schedules/schedule.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"

namespace prepost::rack_schedules_test {
namespace {

using Sizes = std::vector<uint32_t>;  // of racks, the root's first

std::vector<uint32_t> BeginsOf(const Sizes& sizes) {
  std::vector<uint32_t> begins(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), 0u);
  return begins;
}

uint32_t LogUp(uint32_t n) { return static_cast<uint32_t>(std::bit_width(n - 1)); }

/// What goes between racks.
struct Crossings {
  uint32_t up_max = 0;  // blocks that a rack sends in one round, at most
  uint32_t down_max = 0;
  uint32_t entries_max = 0;  // how often one block enters one rack, at most
};

/// Plays a schedule round by round, from senders and receivers: both give the same transfers, one
/// port each way, blocks are passed on after they came, each comes once, and Rounds() is when the
/// last comes.
class Play {
 public:
  Play(const Schedule& schedule, const Sizes& sizes, uint32_t blocks)
      : begins_(BeginsOf(sizes)),
        extent_{.nodes = std::accumulate(sizes.begin(), sizes.end(), 0u),
                .blocks = blocks,
                .racks = begins_},
        label_(fmt::format("{} of {} nodes in {} racks, first {}, {} blocks", schedule.name(),
                           extent_.nodes, sizes.size(), sizes[0], blocks)),
        has_(size_t{extent_.nodes} * blocks, 0),
        entries_(sizes.size() * blocks, 0),
        rounds_(schedule.Rounds(extent_)) {
    for (uint32_t node = 0; node < extent_.nodes; ++node)
      parts_.push_back(schedule.ForNode(extent_, node));
    std::fill_n(has_.begin(), blocks, 1);
  }

  Crossings Run() {
    for (uint32_t round = 0; round < rounds_ && !testing::Test::HasFatalFailure(); ++round)
      PlayRound(round);
    EXPECT_EQ(std::ranges::count(has_, 0), 0) << label_;
    EXPECT_TRUE(extent_.nodes == 1 || came_in_last_) << label_ << ": ends before its last round";
    crossings_.entries_max = *std::ranges::max_element(entries_);
    return crossings_;
  }
  uint32_t rounds() const { return rounds_; }

 private:
  bool IsActive(uint32_t node, uint32_t round) const {
    const RoundRange range = parts_[node]->ActiveRounds();
    return round >= range.begin && round < range.end;
  }
  uint32_t RackOf(uint32_t node) const {
    return static_cast<uint32_t>(std::ranges::upper_bound(begins_, node) - begins_.begin()) - 1;
  }

  void PlayRound(uint32_t round) {
    std::vector<size_t> came;
    std::vector<uint32_t> up(begins_.size()), down(begins_.size());
    uint32_t incoming = 0;
    for (uint32_t node = 0; node < extent_.nodes; ++node) {
      if (!IsActive(node, round)) continue;
      incoming += parts_[node]->Incoming(round).has_value();
      const std::optional<Transfer> out = parts_[node]->Outgoing(round);
      if (!out) continue;
      const auto at =
          fmt::format("{}: round {}: {}>{}:{}", label_, round, node, out->peer, out->block);
      ASSERT_TRUE(has_[size_t{node} * extent_.blocks + out->block]) << at << " sent before it came";
      ASSERT_TRUE(IsActive(out->peer, round)) << at;
      ASSERT_EQ(parts_[out->peer]->Incoming(round), (Transfer{node, out->block})) << at;
      came.push_back(size_t{out->peer} * extent_.blocks + out->block);
      const uint32_t from = RackOf(node), to = RackOf(out->peer);
      if (from == to) continue;
      crossings_.up_max = std::max(crossings_.up_max, ++up[from]);
      crossings_.down_max = std::max(crossings_.down_max, ++down[to]);
      ++entries_[size_t{to} * extent_.blocks + out->block];
    }
    ASSERT_EQ(incoming, came.size()) << label_ << ": round " << round << ": receives without sends";
    for (const size_t place : came) {
      ASSERT_FALSE(has_[place]) << label_ << ": round " << round << ": a block comes twice";
      has_[place] = 1;
    }
    came_in_last_ = !came.empty();
  }

  std::vector<uint32_t> begins_;
  Extent extent_;
  std::string label_;
  std::vector<std::unique_ptr<NodeSchedule>> parts_;
  std::vector<char> has_;          // by node, block
  std::vector<uint32_t> entries_;  // by rack, block
  uint32_t rounds_;
  Crossings crossings_;
  bool came_in_last_ = false;
};

const Schedule* const kRackSchedules[] = {&RackChainSchedule(), &RackHybridSchedule(),
                                          &RackCirculantSchedule()};

/// No more rounds than the essay of each says; `sizes` holds at least two racks.
uint32_t BoundOf(const Schedule& schedule, const Sizes& sizes, uint32_t k) {
  const auto racks = static_cast<uint32_t>(sizes.size());
  const uint32_t q = LogUp(std::ranges::max(sizes));
  if (&schedule == &RackChainSchedule()) return std::max(k + racks - 2 + q, 2 * k - 3 + racks + q);
  if (&schedule == &RackHybridSchedule()) return 2 * k - 2 + LogUp(racks) + q;
  // D <= q + 2 of every rack of at most 48 nodes, 0 in a rack of one.
  const uint32_t lag = q == 0 ? 0 : q + 2;
  return k + lag + (lag + 1) * (LogUp(racks) - 1) + q;
}

/// Plays all rack schedules and holds them to their bounds.
void Check(const Sizes& sizes, uint32_t k) {
  for (const Schedule* schedule : kRackSchedules) {
    Play play(*schedule, sizes, k);
    const Crossings crossings = play.Run();
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_LE(crossings.up_max, 1u) << schedule->name();
    ASSERT_LE(crossings.down_max, 1u) << schedule->name();
    ASSERT_LE(crossings.entries_max, 1u) << schedule->name();
    ASSERT_LE(play.rounds(), BoundOf(*schedule, sizes, k))
        << fmt::format("{} of racks {} with {} blocks", schedule->name(), sizes.size(), k);
  }
}

// 2 to 9 racks of 1 to 20 nodes, equal and mixed, up to 90 blocks: a wrong egress, lag or offset
// shows as a block sent before it came or a port used twice. Long runs take 20 times as many.
TEST(RackSchedulesTest, HoldForAnyRacks) {
  const uint32_t cases = test::SweepCases(5000, 240);
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (uint32_t i = 0; i < cases; ++i) {
    SCOPED_TRACE(fmt::format("seed {} case {}", seed, i));
    Sizes sizes(random.Between(2, 9), random.Between(1, 20));
    if (i % 2 == 1) {
      for (uint32_t& size : sizes) size = random.Between(1, 20);
    }
    Check(sizes, i % 4 == 0 ? random.Between(1, 6) : random.Between(1, 90));
    if (HasFatalFailure()) return;
  }
}

// All small ones, where first and last rounds meet.
TEST(RackSchedulesTest, HoldForAllSmallRacks) {
  for (uint32_t first = 1; first <= 4; ++first) {
    for (uint32_t second = 1; second <= 4; ++second) {
      for (const uint32_t third : {0u, 1u, 2u, 3u}) {
        for (const uint32_t k : {1u, 2u, 3u, 4u, 5u, 8u, 9u}) {
          Check(third == 0 ? Sizes{first, second} : Sizes{first, second, third}, k);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// The figures of docs/compiler.md: racks of 16 and 32 nodes cost a few rounds, not a second copy.
TEST(RackSchedulesTest, RoundCounts) {
  const auto rounds = [](const Schedule& schedule, uint32_t racks, uint32_t size, uint32_t blocks) {
    const std::vector<uint32_t> begins = BeginsOf(Sizes(racks, size));
    return schedule.Rounds({.nodes = racks * size, .blocks = blocks, .racks = begins});
  };
  // k + D + d (ceil(log2 R) - 1) + ceil(log2 n), D = log2 n, d = D + 1
  EXPECT_EQ(rounds(RackCirculantSchedule(), 4, 16, 256), 256u + 4 + 5 + 4);
  EXPECT_EQ(rounds(RackCirculantSchedule(), 8, 16, 256), 256u + 4 + 2 * 5 + 4);
  EXPECT_EQ(rounds(RackCirculantSchedule(), 16, 32, 1024), 1024u + 5 + 3 * 6 + 5);
  EXPECT_EQ(rounds(RackCirculantSchedule(), 4, 8, 128), 128u + 3 + 4 + 3);
  EXPECT_EQ(rounds(RackHybridSchedule(), 8, 16, 256), 2u * 256 - 2 + 3 + 4);
  EXPECT_EQ(rounds(RackChainSchedule(), 8, 16, 256), 2u * 256 - 3 + 8 + 4);
}

// One rack, or racks of one node: what the schedules are made of, transfer by transfer.
TEST(RackSchedulesTest, DegenerateToWhatTheyAreMadeOf) {
  const auto same = [](const Schedule& a, const Schedule& b, uint32_t n, uint32_t k,
                       std::span<const uint32_t> racks) {
    const Extent flat{.nodes = n, .blocks = k};
    const Extent racked{.nodes = n, .blocks = k, .racks = racks};
    ASSERT_EQ(a.Rounds(racked), b.Rounds(flat)) << a.name() << " n=" << n << " k=" << k;
    for (uint32_t node = 0; node < n; ++node) {
      const auto part = a.ForNode(racked, node), expected = b.ForNode(flat, node);
      for (uint32_t round = 0; round < b.Rounds(flat); ++round) {
        ASSERT_EQ(part->Outgoing(round), expected->Outgoing(round)) << a.name() << " n=" << n;
        ASSERT_EQ(part->Incoming(round), expected->Incoming(round)) << a.name() << " n=" << n;
      }
    }
  };
  for (uint32_t n = 1; n <= 20; ++n) {
    for (const uint32_t k : {1u, 2u, 7u}) {
      same(RackChainSchedule(), BinomialPipelineSchedule(), n, k, {});
      same(RackHybridSchedule(), BinomialPipelineSchedule(), n, k, {});
      same(RackCirculantSchedule(), CirculantSchedule(), n, k, {});
      const std::vector<uint32_t> begins = BeginsOf(Sizes(n, 1));
      same(RackChainSchedule(), ChainSchedule(), n, k, begins);
      same(RackHybridSchedule(), BinomialPipelineSchedule(), n, k, begins);
      same(RackCirculantSchedule(), CirculantSchedule(), n, k, begins);
    }
  }
}

}  // namespace
}  // namespace prepost::rack_schedules_test
