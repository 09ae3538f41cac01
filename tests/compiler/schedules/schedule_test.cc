// SPDX-License-Identifier: Apache-2.0
//
// The schedules against closed forms written out a second time, the golden vectors of the RDMC
// pipeline, the formulas for the round count, and a simulation that checks what every schedule must
// hold.
#include "compiler/schedules/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "tests/support/random.h"
#include "tests/support/sample.h"

namespace prepost::schedule_test {
namespace {

/// All transfers of one round as "from>to:block", by sender.
std::vector<std::string> RoundOf(const Schedule& schedule, Extent extent, uint32_t round) {
  std::vector<std::string> transfers;
  for (uint32_t node = 0; node < extent.nodes; ++node) {
    const auto out = schedule.ForNode(extent, node)->Outgoing(round);
    if (out) transfers.push_back(fmt::format("{}>{}:{}", node, out->peer, out->block));
  }
  return transfers;
}

std::string Write(const Schedule& schedule, Extent extent) {
  std::string text;
  for (uint32_t round = 0; round < schedule.Rounds(extent); ++round) {
    if (round > 0) text += " |";
    for (const std::string& transfer : RoundOf(schedule, extent, round)) text += " " + transfer;
  }
  return text.empty() ? text : text.substr(1);
}

TEST(BinomialPipelineTest, GoldenVectors) {
  const Schedule& pipeline = BinomialPipelineSchedule();
  EXPECT_EQ(
      Write(pipeline, {.nodes = 8, .blocks = 4}),
      "0>1:0 | 0>2:1 1>3:0 | 0>4:2 1>5:0 2>6:1 3>7:0 | 0>1:3 2>3:1 3>2:0 4>5:2 5>4:0 6>7:1 7>6:0 | "
      "0>2:3 1>3:3 3>1:1 4>6:2 5>7:2 6>4:1 7>5:1 | 0>4:3 1>5:3 2>6:3 3>7:3 5>1:2 6>2:2 7>3:2");
  EXPECT_EQ(Write(pipeline, {.nodes = 5, .blocks = 3}),
            "0>1:0 | 0>2:1 1>3:0 | 0>4:2 2>3:1 3>2:0 | 0>2:2 1>4:0 3>1:1 4>3:2 | 1>4:1 4>1:2");
  EXPECT_EQ(Write(pipeline, {.nodes = 6, .blocks = 3}),
            "0>1:0 | 0>2:1 1>3:0 | 0>4:2 2>3:1 3>5:0 | 0>5:2 1>4:0 3>1:1 4>3:2 5>2:0 | 1>4:1 2>5:1 "
            "4>1:2 5>2:2");
  EXPECT_EQ(Write(pipeline, {.nodes = 7, .blocks = 3}),
            "0>1:0 | 0>2:1 1>6:0 | 0>4:2 2>3:1 6>5:0 | 0>5:2 1>4:0 3>1:1 4>6:2 5>2:0 6>3:0 | "
            "1>4:1 2>5:1 3>6:1 4>1:2 5>2:2 6>3:2");
}

TEST(ScheduleTest, WorkedExamples) {
  const Extent four{.nodes = 4, .blocks = 2};
  EXPECT_EQ(Write(SequentialSchedule(), four), "0>1:0 | 0>1:1 | 0>2:0 | 0>2:1 | 0>3:0 | 0>3:1");
  EXPECT_EQ(Write(ChainSchedule(), four), "0>1:0 | 0>1:1 1>2:0 | 1>2:1 2>3:0 | 2>3:1");
  EXPECT_EQ(Write(KaryChainSchedule(), {.nodes = 4, .blocks = 2, .fanout = 2}),
            "0>1:0 | 0>2:0 1>3:0 | 0>1:1 | 0>2:1 1>3:1");
  EXPECT_EQ(Write(KaryTreeSchedule(), four), "0>1:0 | 0>2:0 1>3:0 | 0>1:1 | 0>2:1 1>3:1");
  EXPECT_EQ(Write(BinomialTreeSchedule(), four), "0>1:0 | 0>1:1 | 0>2:0 1>3:0 | 0>2:1 1>3:1");
  EXPECT_EQ(Write(BinomialPipelineSchedule(), four), "0>1:0 | 0>2:1 1>3:0 | 0>1:1 2>3:1 3>2:0");
  EXPECT_EQ(Write(CirculantSchedule(), four), "0>2:0 | 0>1:1 2>3:0 | 0>2:1 1>3:1 3>1:0");
  EXPECT_EQ(Write(TwoTreeSchedule(), four), "0>2:0 | 0>1:1 2>3:0 | 1>3:1 2>1:0 | 1>2:1");
  const uint32_t racks[] = {0, 2};
  const Extent two_by_two{.nodes = 4, .blocks = 2, .racks = racks};
  EXPECT_EQ(Write(RackChainSchedule(), two_by_two), "0>2:0 | 0>1:0 2>3:0 | 0>2:1 | 0>1:1 2>3:1");
  EXPECT_EQ(Write(RackHybridSchedule(), two_by_two), "0>2:0 | 0>2:1 | 0>1:0 2>3:0 | 0>1:1 2>3:1");
  EXPECT_EQ(Write(RackCirculantSchedule(), two_by_two),
            "0>1:0 | 0>1:1 1>2:0 | 1>2:1 2>3:0 | 2>3:1");
  EXPECT_EQ(Write(ScatterAllgatherSchedule(), {.nodes = 4, .blocks = 4}),
            "0>2:2 | 0>2:3 | 0>1:1 2>3:3 | 0>1:0 1>2:1 2>3:2 | 0>1:3 1>2:0 2>3:1 | 0>1:2 2>3:0");
}

/// (round, from, to, block) of a whole schedule.
using Transfers = std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>>;

/// The pipeline's closed form, written out per vertex and round with tables instead of arithmetic.
Transfers PipelineByTables(uint32_t n, uint32_t k) {
  Transfers all;
  if (n == 1) return all;
  uint32_t l = 0;
  while (2u << l <= n) ++l;
  const uint32_t vertices = 1u << l;
  const bool twins = n != vertices;
  const uint32_t rounds = twins ? k + l : k + l - 1;
  const auto bit = [&](uint32_t v, uint32_t j) { return (v >> (j % l)) & 1; };
  // flips, receiver and outside block of every vertex and round
  std::vector<std::vector<uint32_t>> flips(vertices, std::vector<uint32_t>(rounds + 1));
  std::vector<std::vector<uint32_t>> receiver(vertices, std::vector<uint32_t>(rounds + 1)),
      other = receiver;
  std::vector<std::vector<int64_t>> b(vertices, std::vector<int64_t>(rounds + 1, -1));
  for (uint32_t v = 0; v < vertices; ++v) {
    const bool shared = v != 0 && v + vertices - 1 < n;
    for (uint32_t j = 0; j <= rounds; ++j) {
      for (uint32_t s = 0; s < j; ++s) flips[v][j] += bit(v, s);
      const bool swapped = shared && flips[v][j] % 2 == 1;
      receiver[v][j] = swapped ? v + vertices - 1 : v;
      other[v][j] = !shared ? v : swapped ? v : v + vertices - 1;
      int64_t g = 0;
      if (bit(v, j)) {
        g = 1;
        while (!bit(v, j + static_cast<uint32_t>(g))) ++g;
      }
      const int64_t block = int64_t{j} - l + g;
      if (v != 0 && block >= 0) b[v][j] = std::min<int64_t>(block, k - 1);
    }
  }
  const auto intra = [&](uint32_t v, uint32_t j) -> int64_t {
    if (flips[v][j] == 0) return -1;
    if (flips[v][j] == flips[v][j - 1]) return b[v][j - 1];
    if (flips[v][j] < 2) return -1;
    for (uint32_t s = j; s-- > 0;) {
      if (flips[v][s] + 2 == flips[v][j]) return b[v][s];
    }
    return -1;
  };
  const auto add = [&](uint32_t j, uint32_t from, uint32_t to, int64_t block) {
    if (block >= 0) all.insert({j, from, to, static_cast<uint32_t>(block)});
  };
  const uint32_t outside = k + l - 1;
  for (uint32_t v = 1; v < vertices; ++v) {
    const bool shared = v + vertices - 1 < n;
    for (uint32_t j = 0; j < outside; ++j) {
      add(j, other[v ^ (1u << j % l)][j], receiver[v][j], b[v][j]);
      if (shared) add(j, receiver[v][j], other[v][j], intra(v, j));
    }
    if (!twins || !shared) continue;
    const uint32_t j = rounds - 1;
    if (k == 1) {
      add(j, other[v ^ 1][j], receiver[v][j], 0);
      continue;
    }
    add(j, receiver[v][j], other[v][j], intra(v, j));
    for (uint32_t s = j; s-- > 0;) {
      if (receiver[v][s] == other[v][j]) {
        add(j, other[v][j], receiver[v][j], b[v][s]);
        break;
      }
    }
  }
  return all;
}

/// None for those whose vectors and invariants hold them.
std::optional<Transfers> ByFormula(const std::string& name, uint32_t n, uint32_t k) {
  if (name == "circulant" || name == "two_tree" || name == "scatter_allgather") return std::nullopt;
  if (name == "binomial_pipeline") return PipelineByTables(n, k);
  Transfers all;
  for (uint32_t block = 0; block < k; ++block) {
    for (uint32_t node = 1; node < n; ++node) {
      if (name == "sequential") all.insert({(node - 1) * k + block, 0, node, block});
      if (name == "chain") all.insert({node - 1 + block, node - 1, node, block});
      if (name == "kary_chain") {
        const uint32_t chains = std::min(4u, n - 1);
        const uint32_t from = node > chains ? node - chains : 0;
        all.insert({chains * block + (node - 1) % chains + (node - 1) / chains, from, node, block});
      }
      if (name == "kary_tree") {
        uint32_t steps = 0;  // a left child is one step from its parent, a right one two
        for (uint32_t v = node; v != 0; v = (v - 1) / 2) steps += n == 2 ? 1 : 2 - v % 2;
        all.insert({(n == 2 ? 1 : 2) * block + steps - 1, (node - 1) / 2, node, block});
      }
      if (name == "binomial_tree") {
        uint32_t stage = 0;
        while (2u << stage <= node) ++stage;
        all.insert({stage * k + block, node - (1u << stage), node, block});
      }
    }
  }
  return all;
}

/// None where the formula is a bound only.
std::optional<uint32_t> RoundsByFormula(const std::string& name, uint32_t n, uint32_t k) {
  if (n == 1) return 0;
  uint32_t log_up = 0;
  while (1u << log_up < n) ++log_up;
  if (name == "two_tree" || name == "scatter_allgather") return std::nullopt;
  if (name.starts_with("kary")) return std::nullopt;  // the last round is that of ByFormula()
  if (name == "sequential") return k * (n - 1);
  if (name == "chain") return k + n - 2;
  if (name == "binomial_tree") return k * log_up;
  return k - 1 + log_up;
}

// All n <= 40 with all k <= 24, more n with fewer k: the transfers are those of the closed forms,
// seen from the sender and from the receiver, nothing happens outside the active rounds, and the
// round count is the formula's.
TEST(ScheduleTest, MatchesTheClosedForms) {
  for (const Schedule* schedule : Schedules()) {
    if (schedule->NeedsWholeRacks()) continue;  // they are made of others: rack_schedules_test.cc
    const std::string name(schedule->name());
    for (uint32_t n = 1; n <= 140; ++n) {
      for (uint32_t k = 1; k <= 24; k += n <= 40 || k < 3 ? 1 : 7) {
        const Extent extent{.nodes = n, .blocks = k};
        if (const std::optional<uint32_t> rounds = RoundsByFormula(name, n, k)) {
          ASSERT_EQ(schedule->Rounds(extent), *rounds) << name << " n=" << n << " k=" << k;
        }
        Transfers sent, received;
        uint32_t last_round = 0;
        for (uint32_t node = 0; node < n; ++node) {
          const auto part = schedule->ForNode(extent, node);
          const RoundRange rounds = part->ActiveRounds();
          for (uint32_t round = rounds.begin; round < rounds.end; ++round) {
            if (const auto out = part->Outgoing(round))
              sent.insert({round, node, out->peer, out->block});
            if (const auto in = part->Incoming(round)) {
              received.insert({round, in->peer, node, in->block});
              last_round = std::max(last_round, round + 1);
            }
          }
        }
        const std::optional<Transfers> expected = ByFormula(name, n, k);
        ASSERT_EQ(sent, expected.value_or(received)) << name << " n=" << n << " k=" << k;
        ASSERT_EQ(received, sent) << name << " n=" << n << " k=" << k;
        ASSERT_EQ(last_round, schedule->Rounds(extent)) << name << " n=" << n << " k=" << k;
      }
    }
  }
}

// What every schedule must hold: one transfer in and out per node and round, blocks sent only after
// they came in an earlier round, every block once at every node.
TEST(ScheduleTest, IsCausalAndOnePort) {
  for (const Schedule* schedule : Schedules()) {
    for (const uint32_t n : {1u,  2u,  3u,  4u,  5u,  6u,   7u,   8u,   9u,   12u,  16u,
                             17u, 31u, 33u, 63u, 64u, 100u, 127u, 129u, 257u, 1000u}) {
      for (const uint32_t k : {1u, 2u, 3u, 7u, 16u, 33u}) {
        const Extent extent{.nodes = n, .blocks = k};
        std::map<std::pair<uint32_t, uint32_t>, uint32_t> has_since;  // (node, block) -> round
        std::set<std::pair<uint32_t, uint32_t>> in_ports;             // (round, node)
        std::vector<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>> transfers;
        for (uint32_t node = 0; node < n; ++node) {
          const auto part = schedule->ForNode(extent, node);
          const RoundRange rounds = part->ActiveRounds();
          for (uint32_t round = rounds.begin; round < rounds.end; ++round) {
            if (const auto out = part->Outgoing(round)) {
              transfers.emplace_back(round, node, out->peer, out->block);
            }
          }
        }
        for (const auto& [round, from, to, block] : transfers) {
          ASSERT_NE(to, 0u);
          ASSERT_TRUE(has_since.try_emplace({to, block}, round).second) << "received twice";
          ASSERT_TRUE(in_ports.insert({round, to}).second) << "two receives in a round";
        }
        for (const auto& [round, from, to, block] : transfers) {
          if (from == 0) continue;
          const auto since = has_since.find({from, block});
          ASSERT_TRUE(since != has_since.end() && since->second < round)
              << schedule->name() << " n=" << n << " k=" << k << " node " << from << " round "
              << round;
        }
        ASSERT_EQ(transfers.size(), size_t{k} * (n - 1));
      }
    }
  }
}

// With one block the pipeline is the binomial tree (RDMC, appendix A).
TEST(BinomialPipelineTest, OneBlockIsTheTree) {
  for (const uint32_t n : {2u, 4u, 8u, 16u, 32u, 64u}) {
    EXPECT_EQ(Write(BinomialPipelineSchedule(), {n, 1}), Write(BinomialTreeSchedule(), {n, 1}));
  }
}

/// What `node` receives and sends by phase, R and S of the circulant's essay, read from rounds in
/// which every list entry is a block.
struct PhaseLists {
  std::vector<int> receives, sends;  // but those to the root
  std::vector<uint32_t> receivers;   // of `sends`
};
PhaseLists ListsOf(uint32_t n, uint32_t node) {
  uint32_t q = 0;
  while (1u << q < n) ++q;
  // k - 1 is a multiple of q, so that round 0 is of phase 0; and the end is far away.
  const auto part = CirculantSchedule().ForNode({.nodes = n, .blocks = 4 * q + 1}, node);
  PhaseLists lists;
  for (uint32_t j = 0; j < q; ++j) {
    const int base = static_cast<int>(2 * q);
    if (const auto in = part->Incoming(2 * q + j))
      lists.receives.push_back(static_cast<int>(in->block) - base);
    if (const auto out = part->Outgoing(2 * q + j)) {
      lists.sends.push_back(static_cast<int>(out->block) - base);
      lists.receivers.push_back(out->peer);
    }
  }
  return lists;
}

TEST(CirculantTest, GoldenVectors) {
  using Lists = std::vector<std::vector<int>>;
  const auto receives = [](uint32_t n) {
    Lists all;
    for (uint32_t node = 1; node < n; ++node) all.push_back(ListsOf(n, node).receives);
    return all;
  };
  EXPECT_EQ(receives(3), (Lists{{0, -1}, {-2, 1}}));
  EXPECT_EQ(receives(5), (Lists{{0, -1, -2}, {-3, 1, -1}, {-2, -3, 2}, {-1, -2, 0}}));
  EXPECT_EQ(receives(6), (Lists{{0, -2, -1}, {-3, 1, -1}, {-2, -3, 2}, {-1, -2, 0}, {-3, -1, 1}}));
  EXPECT_EQ(receives(9), (Lists{{0, -2, -3, -1},
                                {-4, 1, -2, -1},
                                {-3, -4, 2, -1},
                                {-2, -3, 0, -1},
                                {-4, -2, -3, 3},
                                {-1, -2, -3, 0},
                                {-4, -1, -2, 1},
                                {-3, -4, -1, 2}}));
  // A send to the root is left out: what the vectors say of it does not show.
  const auto sends = [](uint32_t n) {
    Lists all;
    for (uint32_t node = 0; node < n; ++node) all.push_back(ListsOf(n, node).sends);
    return all;
  };
  EXPECT_EQ(sends(3), (Lists{{0, 1}, {-2}, {-1}}));
  EXPECT_EQ(sends(5), (Lists{{0, 1, 2}, {-3, -3, 0}, {-2, -2}, {-1, -2}, {-1, -1}}));
  EXPECT_EQ(sends(9), (Lists{{0, 1, 2, 3},
                             {-4, -4, 0, 0},
                             {-3, -3, -3, 1},
                             {-2, -2, -3, 2},
                             {-4, -2, -2},
                             {-1, -1, -1, -1},
                             {-4, -4, -1},
                             {-3, -3, -1},
                             {-2, -2, -1}}));
  EXPECT_EQ(Write(CirculantSchedule(), {.nodes = 5, .blocks = 3}),
            "0>2:0 | 0>3:1 | 0>1:2 2>3:0 3>4:1 | 0>2:2 2>4:0 4>1:1 | 0>3:2 1>4:2 3>1:0 4>2:1");
}

/// The rules that make the lists right together, whatever n is. `skips[j]`: how far phase j sends.
void ExpectInvariants(uint32_t n, uint32_t node, const std::vector<uint32_t>& skips) {
  const auto q = static_cast<int>(skips.size());
  const auto bit = [&](int block) { return uint64_t{1} << (block + q); };
  const auto where = [&] { return fmt::format("{} nodes, node {}", n, node); };
  const PhaseLists lists = ListsOf(n, node);
  ASSERT_EQ(lists.receives.size(), skips.size()) << where();
  int own = 0;  // the block of this period that comes in it
  for (const int block : lists.receives) {
    ASSERT_TRUE(block >= -q && block < q) << where() << ": " << block;
    if (block >= 0) own = block;
  }
  uint64_t received = 0;  // in the phases so far
  for (size_t j = 0, sent = 0; j < skips.size(); ++j) {
    const auto to = static_cast<uint32_t>((uint64_t{node} + skips[j]) % n);
    if (to != 0) {  // the root has all
      ASSERT_LT(sent, lists.sends.size()) << where();
      ASSERT_EQ(lists.receivers[sent], to) << where();
      const int block = lists.sends[sent++];
      ASSERT_TRUE(block >= -q && block < q) << where() << ": " << block;
      ASSERT_TRUE(block == own - q || (received & bit(block)) != 0)
          << where() << ", phase " << j << ": " << block;
    }
    received |= bit(lists.receives[j]);
  }
  EXPECT_EQ(received, ((uint64_t{1} << q) - 1) ^ bit(own - q) ^ bit(own)) << where();
  const auto direct = std::ranges::find(skips, node);
  if (direct == skips.end()) return;
  const auto j = static_cast<size_t>(direct - skips.begin());
  EXPECT_EQ(lists.receives[j], static_cast<int>(j)) << where();  // what the root sends new
}

std::vector<uint32_t> SkipsOf(uint32_t n) {
  std::vector<uint32_t> skips;
  for (uint32_t skip = n; skip > 1;) skips.push_back(skip = (skip + 1) / 2);
  std::ranges::reverse(skips);
  return skips;
}

// For every n <= 1,100: a node receives each block of a period once, one of them in that period,
// and sends what it has; in phase j what the root sends new.
TEST(CirculantTest, ListsHoldTheInvariants) {
  for (uint32_t n = 2; n <= 1100; ++n) {
    const std::vector<uint32_t> skips = SkipsOf(n);
    for (uint32_t node = 1; node < n; ++node) ExpectInvariants(n, node, skips);
    ASSERT_FALSE(HasFailure()) << n;
  }
}

// The same beyond, up to a million nodes. Catches what shows only with long lists.
TEST(CirculantTest, ListsHoldTheInvariantsAtRandom) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  test::Random random(seed);
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    const auto n = static_cast<uint32_t>(random.Between(1101, 1u << 20));
    const std::vector<uint32_t> skips = SkipsOf(n);
    for (const uint32_t skip : skips) ExpectInvariants(n, skip, skips);
    for (int j = 0; j < 10; ++j) {
      ExpectInvariants(n, static_cast<uint32_t>(random.Between(1, n - 1)), skips);
    }
  }
}

// For every n <= 1,100: the least rounds there are, causal, one port, each block once.
TEST(CirculantTest, IsOptimalForEveryNumberOfNodes) {
  test::Sample sample(1100);
  for (uint32_t n = 1; n <= 1100; ++n) {
    if (!sample.Takes()) continue;
    uint32_t q = 0;
    while (1u << q < n) ++q;
    for (const uint32_t k : {1u, 2u, 5u, 3u * q + 4u}) {
      const Extent extent{.nodes = n, .blocks = k};
      const uint32_t rounds = CirculantSchedule().Rounds(extent);
      ASSERT_EQ(rounds, n == 1 ? 0 : k - 1 + q);
      std::vector<std::unique_ptr<NodeSchedule>> parts;
      for (uint32_t node = 0; node < n; ++node)
        parts.push_back(CirculantSchedule().ForNode(extent, node));
      std::vector<bool> has(size_t{n} * k, false);
      for (uint32_t block = 0; block < k; ++block) has[block] = true;
      std::vector<size_t> came;
      for (uint32_t round = 0; round < rounds; ++round) {
        came.clear();
        for (uint32_t node = 0; node < n; ++node) {
          const auto out = parts[node]->Outgoing(round);
          if (!out) continue;
          ASSERT_TRUE(has[size_t{node} * k + out->block]) << n << " " << k << " round " << round;
          ASSERT_EQ(parts[out->peer]->Incoming(round), (Transfer{node, out->block}));
          came.push_back(size_t{out->peer} * k + out->block);
        }
        for (const size_t place : came) {
          ASSERT_FALSE(has[place]) << n << " " << k << " round " << round << ": twice";
          has[place] = true;
        }
      }
      ASSERT_EQ(std::count(has.begin(), has.end(), false), 0) << n << " " << k;
    }
  }
}

// Every node has one sender and at most two receivers per tree, and the rounds are within the
// bound.
TEST(TwoTreeTest, IsWithinItsBoundWithFourNeighbours) {
  for (uint32_t n = 2; n <= 600; n += n < 70 ? 1 : 13) {
    uint32_t q = 0;
    while (1u << q < n) ++q;
    for (const uint32_t k : {1u, 2u, 5u, 24u}) {
      const Extent extent{.nodes = n, .blocks = k};
      const uint32_t rounds = TwoTreeSchedule().Rounds(extent);
      EXPECT_LE(rounds, k + 2 * q) << n << " " << k;
      for (uint32_t node = 0; node < n; ++node) {
        const auto part = TwoTreeSchedule().ForNode(extent, node);
        std::set<uint32_t> senders, receivers;
        for (uint32_t round = 0; round < rounds; ++round) {
          if (const auto in = part->Incoming(round)) senders.insert(in->peer);
          if (const auto out = part->Outgoing(round)) receivers.insert(out->peer);
        }
        ASSERT_LE(senders.size(), 2u) << n << " node " << node;
        ASSERT_LE(receivers.size(), 2u) << n << " node " << node;
      }
    }
  }
}

// k (n - 1) / n rounds for each half. Of two nodes the first half is all that the second needs not.
TEST(ScatterAllgatherTest, TakesAboutTwoCopies) {
  for (const uint32_t n : {2u, 3u, 4u, 7u, 16u, 33u}) {
    const uint32_t k = 100 * n;
    const uint32_t rounds = ScatterAllgatherSchedule().Rounds({.nodes = n, .blocks = k});
    EXPECT_EQ(rounds, n == 2 ? k : 2 * (n - 1) * 100) << n;
  }
}

// The steps of the ring are as long as the largest segment. Catches a scatter or a ring that takes
// longer where k is no multiple of n, or much smaller.
TEST(ScatterAllgatherTest, IsWithinItsBound) {
  for (uint32_t n = 2; n <= 300; n += n < 40 ? 1 : 13) {
    uint32_t q = 0;
    while (1u << q < n) ++q;
    for (const uint32_t k : {1u, 2u, n - 1u, n, n + 1u, 2u * n + 1u, 7u * n + 5u, 10u * n - 1u}) {
      const uint32_t rounds = ScatterAllgatherSchedule().Rounds({.nodes = n, .blocks = k});
      EXPECT_LE(rounds, k + q + (n - 1) * ((k + n - 1) / n)) << n << " " << k;
      EXPECT_GE(rounds, k) << n << " " << k;
    }
  }
}

TEST(ScheduleTest, IsFoundByName) {
  EXPECT_EQ(FindAlgorithm("chain")->schedule, &ChainSchedule());
  EXPECT_FALSE(FindAlgorithm("chains").ok());
  EXPECT_EQ(ScheduleNames(), (std::vector<std::string>{
                                 "sequential", "chain", "kary_chain", "binomial_tree", "kary_tree",
                                 "binomial_pipeline", "circulant", "two_tree", "scatter_allgather",
                                 "rack_chain", "rack_hybrid", "rack_circulant"}));
  EXPECT_EQ(FindAlgorithm("kary_chain")->fanout, 4u);
  EXPECT_EQ(FindAlgorithm("kary_chain=7")->fanout, 7u);
  for (const char* wrong :
       {"chain=2", "kary_chain=", "kary_chain=0", "kary_chain=x", "kary_chian=2"})
    EXPECT_FALSE(FindAlgorithm(wrong).ok()) << wrong;
}

// A fan-out of one is a chain; rounds are the last transfer's for any fan-out.
TEST(ScheduleTest, FanOutsOfAnySize) {
  for (const Schedule* schedule : {&KaryChainSchedule(), &KaryTreeSchedule()}) {
    for (uint32_t n = 2; n <= 90; ++n) {
      EXPECT_EQ(Write(*schedule, {.nodes = n, .blocks = 3, .fanout = 1}),
                Write(ChainSchedule(), {.nodes = n, .blocks = 3}));
      for (const uint32_t fanout : {2u, 3u, 5u, 8u, 100u}) {
        const Extent extent{.nodes = n, .blocks = 3, .fanout = fanout};
        uint32_t last = 0;
        for (uint32_t node = 0; node < n; ++node) {
          const auto part = schedule->ForNode(extent, node);
          for (uint32_t round = 0; round < part->ActiveRounds().end; ++round) {
            if (part->Incoming(round)) last = std::max(last, round + 1);
          }
        }
        ASSERT_EQ(schedule->Rounds(extent), last) << n << " " << fanout;
      }
    }
  }
}

}  // namespace
}  // namespace prepost::schedule_test
