// SPDX-License-Identifier: Apache-2.0
//
// The offload executor in virtual time against what is known of times without any simulation:
// rounds, lower bounds, sums of costs, and what must not matter. And against what a multicast is: a
// lowering that forwards too early, or puts a block in the wrong place, is caught by tags alone.
#include "sim/runs/preposted.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/schedules/schedule.h"
#include "ir/analysis/bounds.h"
#include "tests/support/networks.h"
#include "tests/support/plans.h"
#include "tests/support/preposted_alone.h"
#include "tests/support/random.h"
#include "tests/support/sample.h"

namespace prepost::virtual_offload_test {
namespace {

using emulated::Picoseconds;
using nic::LoweringMode;
using sim::NicCosts;
using sim::PortSharing;
using sim::PrepostedAlone;
using sim::PrepostedOptions;
using sim::RunPrepostedAlone;
using test::CompileOrDie;
using testing::HasSubstr;

constexpr std::array kModes = {LoweringMode::kInline, LoweringMode::kManaged};
constexpr double kRate = 12.5e9;
constexpr Picoseconds kPerByte = 80;
constexpr uint64_t kBlockBytes = 1000;

Network OneRack(uint32_t nodes, double latency = 0) { return test::OneRack(nodes, kRate, latency); }

/// Window 1 both ways: no port is shared.
Spec RoundSpec(const std::string& algorithm, uint32_t nodes, uint32_t blocks) {
  return test::WithRacks({.nodes = nodes,
                          .root = NodeId(nodes / 3),
                          .message_bytes = blocks * kBlockBytes,
                          .block_bytes = kBlockBytes,
                          .algorithm = algorithm,
                          .ready = *ParseReady("window=1"),
                          .send_window = *ParseSendWindow("1")},
                         1 + nodes % 5);
}

Result<PrepostedAlone> RunModelled(const VerifiedPlan& plan, const Network& network,
                                   LoweringMode mode, const NicCosts& costs = {}) {
  return RunPrepostedAlone(plan, network, {.costs = costs, .lower = {.mode = mode}});
}

std::vector<Picoseconds> Completions(const PrepostedAlone& run) {
  std::vector<Picoseconds> times;
  for (const PrepostedAlone::Node& node : run.nodes) times.push_back(node.completion);
  return times;
}

NicCosts RandomCosts(test::Random& random) {
  return {.wqe = random.Coin() ? random.Below(200'000) : 0,
          .wait = random.Coin() ? random.Below(200'000) : 0,
          .cqe = random.Coin() ? random.Below(300'000) : 0,
          .doorbell = random.Coin() ? random.Below(500'000) : 0,
          .doorbell_interval = random.Coin() ? random.Below(500'000) : 0,
          .message_overhead_bytes = random.Coin() ? random.Below(200) : 0};
}

class PrepostedRounds : public testing::TestWithParam<std::string> {};

// Without overheads and with windows of 1 a run takes its rounds, to the picosecond,
// or its longest chain of blocks where rounds have slack.
TEST_P(PrepostedRounds, TimeIsRoundsTimesBlockTime) {
  const std::string schedule = test::ScheduleInTurn(GetParam());
  test::Sample sample(2 * 64);
  for (uint32_t nodes = 1; nodes <= 64; ++nodes) {
    for (const uint32_t blocks : {1u, 2 + nodes % 7}) {
      if (!sample.Takes()) continue;
      const VerifiedPlan plan = CompileOrDie(RoundSpec(schedule, nodes, blocks));
      if (plan.header().ports != 1) continue;
      const Picoseconds block = kPerByte * Picoseconds{kBlockBytes};
      const Picoseconds least = static_cast<Picoseconds>(test::BlockTimesOf(plan)) * block;
      for (const LoweringMode mode : kModes) {
        for (const PortSharing sharing : {PortSharing::kPerQp, PortSharing::kFifo}) {
          SCOPED_TRACE(fmt::format("n {} k {} {} {}", nodes, blocks, Name(mode),
                                   sharing == PortSharing::kFifo ? "fifo" : "per QP"));
          const auto run = RunModelled(plan, OneRack(nodes), mode, {.port_sharing = sharing});
          ASSERT_TRUE(run.ok()) << run.status().ToString();
          // A master starts sends in the order of ops, which is that of rounds.
          const bool has_master = mode == LoweringMode::kManaged;
          ASSERT_GE(run->completion, least);
          ASSERT_LE(run->completion, has_master ? plan.header().rounds * block : least);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PrepostedRounds, testing::ValuesIn(test::ScheduleParameters()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '=', '_');
                           return name;
                         });

// Every small plan, window and ready mode arrives, whichever way it is lowered, and with rings that
// hosts have to write again.
TEST(PrepostedTest, SmallPlansDeliver) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  const nic::DeviceProfile tiny = {.name = "tiny", .sq_wqebbs = 16, .rq_wqes = 16};
  uint64_t rearms = 0;
  for (int i = 0; i < 600; ++i) {
    const Spec spec = test::RandomSpec(random, {.nodes_max = 12, .blocks_max = 40});
    const VerifiedPlan plan = CompileOrDie(spec);
    PrepostedOptions options{.costs = RandomCosts(random),
                             .lower = {.mode = random.Pick(kModes)},
                             .keep_cqes = random.Coin()};
    const bool at_once = plan.header().ready.mode == ReadyMode::kBarrier ||
                         plan.header().ready.mode == ReadyMode::kChannel;
    if (!at_once && random.Coin()) options.lower.profile = tiny;
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, test::Label(spec)));
    const auto run = RunPrepostedAlone(plan, OneRack(plan.header().nodes, 1e-6), options);
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    for (const PrepostedAlone::Node& node : run->nodes) rearms += node.rearms;
  }
  EXPECT_GT(rearms, 100u);
}

TEST(PrepostedTest, SaysWhatHostsCannotBe) {
  const VerifiedPlan plan = CompileOrDie({.nodes = 2, .message_bytes = 10, .block_bytes = 10});
  const auto error = [&](const PrepostedOptions& options) {
    return RunPrepostedAlone(plan, OneRack(2, 1e-6), options).status().ToString();
  };
  EXPECT_EQ(error({.host = {.poll = -1}}),
            "a host's step takes -1 ps, expected from 0 to 3600000000000000");
  EXPECT_EQ(error({.delays = {{NodeId(2), 0, 1}}}), "a delay of host 2 at 0 ps for 1 ps");
  EXPECT_EQ(error({.neighbours = {{NodeId(2), 1, 1}}}), "neighbours of host 2");
  EXPECT_EQ(error({.preemptions = {{NodeId(2), 1, 1}}}), "preemptions of host 2");
}

// What the cuts of the network carry at most holds for any executor.
TEST(PrepostedTest, NeverBelowTheBound) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 300; ++i) {
    const Spec spec = test::RandomSpecOnRacks(random);
    const VerifiedPlan plan = CompileOrDie(spec);
    Network network = *spec.topology->First(spec.nodes);
    if (random.Coin()) test::SlowRandomPairs(random, &network);
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, test::Label(spec)));
    NicCosts costs = RandomCosts(random);
    costs.port_sharing = random.Coin() ? PortSharing::kFifo : PortSharing::kPerQp;
    const auto run = RunModelled(plan, network, random.Pick(kModes), costs);
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    const double bound = BoundNetwork(network, spec.root, *spec.message_bytes).seconds;
    ASSERT_GE(static_cast<double>(run->completion), bound * 1e12 * (1 - 1e-9));
  }
}

// The same multicast with other numbers for nodes. Doorbells are rung, and WAITs that stand one
// after the other are ordered, by numbers, so neither costs anything here.
TEST(PrepostedTest, RelabellingNodesPermutesTimes) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 150; ++i) {
    const Network topology = test::RandomTopology(random, 5);
    const auto nodes = static_cast<uint32_t>(topology.nodes.size());
    const Network network = *topology.First(nodes);
    std::vector<uint32_t> new_node(nodes);
    std::iota(new_node.begin(), new_node.end(), 0u);
    random.Shuffle(new_node);
    Network other = network;
    Spec spec{.nodes = nodes,
              .message_bytes = random.Between(1, 12) * 10'000,
              .block_bytes = 10'000,
              .algorithm = random.Pick(std::array{"chain", "binomial_tree", "binomial_pipeline",
                                                  "circulant", "scatter_allgather"}),
              .ready = *ParseReady(random.Pick(std::array{"window=1", "window=3", "channel"})),
              .send_window = *ParseSendWindow(random.Pick(std::array{"none", "1", "2"}))};
    Spec other_spec = spec;
    other_spec.root = NodeId(new_node[0]);
    for (uint32_t n = 0; n < nodes; ++n) {
      other.nodes[new_node[n]] = network.nodes[n];
      spec.order.push_back(NodeId(n));
      other_spec.order.push_back(NodeId(new_node[n]));
    }
    NicCosts costs = RandomCosts(random);
    costs.doorbell_interval = costs.wait = 0;
    SCOPED_TRACE(fmt::format("seed {} case {}: {}", seed, i, test::Label(spec)));
    const LoweringMode mode = random.Pick(kModes);
    const auto run = RunModelled(CompileOrDie(spec), network, mode, costs);
    const auto other_run = RunModelled(CompileOrDie(other_spec), other, mode, costs);
    ASSERT_TRUE(run.ok() && other_run.ok());
    for (uint32_t n = 0; n < nodes; ++n) {
      ASSERT_EQ(other_run->nodes[new_node[n]].completion, run->nodes[n].completion) << "node " << n;
    }
  }
}

TEST(PrepostedTest, TheSameRunIsTheSame) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  const Network topology = test::RandomTopology(random, {5, 7, 3});
  Spec spec = RoundSpec("binomial_pipeline", 15, 20);
  spec.ready = *ParseReady("window=4");
  spec.send_window = *ParseSendWindow("none");
  const VerifiedPlan plan = CompileOrDie(spec);
  for (const LoweringMode mode : kModes) {
    const NicCosts costs = RandomCosts(random);
    const Network network = *topology.First(15);
    const auto first = RunModelled(plan, network, mode, costs);
    const auto again = RunModelled(plan, network, mode, costs);
    ASSERT_TRUE(first.ok() && again.ok());
    EXPECT_EQ(Completions(*first), Completions(*again));
    ASSERT_EQ(first->links.size(), again->links.size());
    for (size_t i = 0; i < first->links.size(); ++i) {
      EXPECT_EQ(first->links[i].use.busy, again->links[i].use.busy);
      EXPECT_EQ(first->links[i].use.bytes, again->links[i].use.bytes);
    }
    // Whether CQEs are kept changes what the host can poll, and no time.
    const auto short_cqs = RunPrepostedAlone(
        plan, network, {.costs = costs, .lower = {.mode = mode}, .keep_cqes = false});
    ASSERT_TRUE(short_cqs.ok()) << short_cqs.status().ToString();
    EXPECT_EQ(Completions(*first), Completions(*short_cqs));
  }
}

// Where no switch link is shared, nothing gets faster by costing more, whatever else costs. But for
// bytes of overhead, with which credits take room: what keeps a credit back may then leave a block
// alone on its port for longer.
TEST(PrepostedTest, MonotoneInEveryCostButOverhead) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  const std::vector<std::string> algorithms = test::SchedulesToRun();
  for (int i = 0; i < 100; ++i) {
    const VerifiedPlan plan = CompileOrDie(
        RoundSpec(random.Pick(algorithms), random.Between(2, 20), random.Between(1, 12)));
    if (plan.header().ports != 1) continue;
    const uint32_t nodes = plan.header().nodes;
    const LoweringMode mode = random.Pick(kModes);
    NicCosts costs = RandomCosts(random);
    costs.message_overhead_bytes = 0;
    double latency = random.Below(3) * 1e-6;
    const auto run = [&] {
      return RunModelled(plan, OneRack(nodes, latency), mode, costs)->completion;
    };
    Picoseconds last = run();
    for (int step = 0; step < 12; ++step) {
      const Picoseconds more = random.Between(1, 400'000);
      Picoseconds* const raised[] = {&costs.wqe, &costs.wait, &costs.cqe, &costs.doorbell,
                                     &costs.doorbell_interval};
      if (const size_t which = static_cast<size_t>(step) % 6; which < std::size(raised)) {
        *raised[which] += more;
      } else {
        latency += 1e-12 * static_cast<double>(more);
      }
      const Picoseconds now = run();
      ASSERT_GE(now, last) << "seed " << seed << " case " << i << " step " << step;
      last = now;
    }
  }
}

// The example of docs/simulate.md, with its numbers: credits of 112 bytes share ports with blocks
// of 1000, and a path that is longer makes the run shorter.
// Catches a change of the model that makes it vanish while that page still describes it.
TEST(PrepostedTest, WithOverheadALongerPathCanTakeLess) {
  const VerifiedPlan plan = test::PlanWithWindowsOf1("binomial_pipeline", 17, 4, 1000);
  const auto time = [&](double latency) {
    return RunModelled(plan, test::OneRack(17, 1e9, latency), LoweringMode::kInline,
                       {.message_overhead_bytes = 112})
        ->completion;
  };
  EXPECT_EQ(time(0), 10'968'000);
  EXPECT_EQ(time(60e-9), 10'752'000 + 60'000);  // until the last acknowledgement
}

// One message to one node, by hand: docs/simulate.md.
TEST(PrepostedTest, CostsAddUp) {
  const NicCosts costs{.wqe = 1'000,
                       .wait = 20'000,
                       .cqe = 300'000,
                       .doorbell = 4'000'000,
                       .doorbell_interval = 6'000'000,
                       .message_overhead_bytes = 60};
  const Picoseconds latency = 50'000'000;
  const Picoseconds wire = (700 + 60) * kPerByte;
  const VerifiedPlan plan = CompileOrDie({.nodes = 2,
                                          .message_bytes = 700,
                                          .block_bytes = kBlockBytes,
                                          .algorithm = "chain",
                                          .ready = *ParseReady("barrier"),
                                          .send_window = *ParseSendWindow("none")});
  const auto run = RunModelled(plan, OneRack(2, 50e-6), LoweringMode::kInline, costs);
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  // The receiver's CQE, then the WAIT for it and the NOP on the loopback queue.
  const Picoseconds end = costs.wait + costs.wqe + costs.cqe;
  const Picoseconds received = costs.doorbell + costs.wqe + wire + latency + costs.cqe;
  EXPECT_EQ(run->nodes[1].completion, received + end);
  EXPECT_EQ(run->nodes[0].completion, received + latency + end);
  EXPECT_EQ(run->nodes[0].doorbells, costs.doorbell + costs.doorbell_interval);
  EXPECT_EQ(run->nodes[1].doorbells, costs.doorbell);
  EXPECT_EQ(run->doorbells, costs.doorbell + costs.doorbell_interval);
  ASSERT_EQ(run->links.size(), 2u);
  EXPECT_EQ(run->links[0].resource, (Resource{ResourceKind::kNodeOut, 0}));
  EXPECT_EQ(run->links[0].use.bytes, 760u);
  EXPECT_EQ(run->links[0].use.busy, wire);
  EXPECT_EQ(run->links[1].resource, (Resource{ResourceKind::kNodeIn, 1}));

  // Managed, the WAITs and the SEND_EN are on the master: its doorbell is the only one.
  const auto managed = RunModelled(plan, OneRack(2, 50e-6), LoweringMode::kManaged, costs);
  ASSERT_TRUE(managed.ok()) << managed.status().ToString();
  EXPECT_EQ(managed->nodes[0].doorbells, costs.doorbell);
  EXPECT_EQ(managed->nodes[1].completion, received + costs.wqe + end);
}

// An error of the run, with a plain word for what went wrong.
class PrepostedErrors : public testing::TestWithParam<LoweringMode> {
 protected:
  nic::QueueProgram Program() const { return *nic::Lower(plan_, {.mode = GetParam()}); }
  /// Without the validation of bytes or CQEs that would find most of it first.
  std::string ErrorOf(const nic::QueueProgram& program) const {
    return RunPrepostedAlone(plan_, program, OneRack(4, 1e-6),
                             {.validate = false, .keep_cqes = false})
        .status()
        .ToString();
  }
  /// The data queue of `node` that has the most of what `entries` names.
  template <typename Entry>
  static std::vector<Entry>& Most(nic::NodeProgram& node,
                                  std::vector<Entry> nic::QueuePair::*entries) {
    const auto most = std::ranges::max_element(node.qps, {}, [&](const nic::QueuePair& qp) {
      return qp.loopback || qp.lane != Lane::kBlocks ? size_t{0} : (qp.*entries).size();
    });
    return (*most).*entries;
  }

  const VerifiedPlan plan_ = CompileOrDie(RoundSpec("chain", 4, 6));
};

TEST_P(PrepostedErrors, RightProgramsHaveNone) { EXPECT_EQ(ErrorOf(Program()), ""); }

TEST_P(PrepostedErrors, ABlockInTheWrongPlace) {
  nic::QueueProgram program = Program();
  std::vector<nic::ReceiveEntry>& receives = Most(program.nodes[2], &nic::QueuePair::receives);
  std::swap(receives[1].offset, receives[3].offset);
  EXPECT_THAT(ErrorOf(program), testing::ContainsRegex("block . came where block . belongs"));
}

TEST_P(PrepostedErrors, ABlockSentTwice) {
  nic::QueueProgram program = Program();
  std::vector<nic::SendEntry>& sends = Most(program.nodes[1], &nic::QueuePair::sends);
  std::vector<nic::SendEntry*> blocks;
  for (nic::SendEntry& send : sends) {
    if (send.opcode == nic::Opcode::kSendImm) blocks.push_back(&send);
  }
  ASSERT_GE(blocks.size(), 3u);
  blocks[2]->offset = blocks[1]->offset;
  // Node 1 sends in the order of its blocks.
  EXPECT_THAT(ErrorOf(program), HasSubstr("node 2: QP"));
  EXPECT_THAT(ErrorOf(program), HasSubstr("block 1 came where block 2 belongs"));
}

TEST_P(PrepostedErrors, AWaitThatIsMissing) {
  const auto of_receive = [](const nic::NodeProgram& node, const nic::SendEntry& send) {
    return send.opcode == nic::Opcode::kWait &&
           node.cqs[send.cq.index()].role == nic::CompletionQueue::Role::kReceives &&
           node.qps[node.cqs[send.cq.index()].qp.index()].lane == Lane::kBlocks;
  };
  int caught = 0;
  for (nic::NodeProgram& node : Program().nodes) {
    nic::QueueProgram program = Program();
    nic::NodeProgram& it = program.nodes[node.node.index()];
    for (nic::QueuePair& qp : it.qps) {
      if (qp.loopback && GetParam() == LoweringMode::kInline) continue;
      for (nic::SendEntry& send : qp.sends) {
        if (of_receive(it, send)) send = {.opcode = nic::Opcode::kNop};
      }
    }
    const std::string error = ErrorOf(program);
    if (error.find("a block that was not there yet came") != std::string::npos) ++caught;
  }
  EXPECT_GE(caught, 2);  // nodes in the middle of the chain
}

TEST_P(PrepostedErrors, ARunThatIsStuck) {
  nic::QueueProgram program = Program();
  for (nic::SendEntry& send :
       Most(program.nodes[plan_.header().collective.root.index()], &nic::QueuePair::sends)) {
    if (send.opcode == nic::Opcode::kSendImm) {
      send = {.opcode = nic::Opcode::kNop, .signaled = send.signaled};
      break;
    }
  }
  // Node 1, the root, does not send its first block, and node 2 waits for it.
  EXPECT_THAT(ErrorOf(program), HasSubstr("stuck: nothing can happen any more"));
  EXPECT_THAT(ErrorOf(program), HasSubstr("waits for node 2 op 1 (recv 1>2:0)"));
}

INSTANTIATE_TEST_SUITE_P(Modes, PrepostedErrors, testing::ValuesIn(kModes),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST(PrepostedTest, RefusesWhatItCannotModel) {
  const VerifiedPlan plan = CompileOrDie(RoundSpec("chain", 3, 2));
  const auto error = [&](const Network& network, const NicCosts& costs) {
    return RunPrepostedAlone(plan, network, {.costs = costs}).status().ToString();
  };
  EXPECT_THAT(error(OneRack(4), {}), HasSubstr("a network of 4 nodes for a plan of 3"));
  EXPECT_THAT(error(OneRack(3), {.wait = -5}), HasSubstr("a NIC's step takes -5 ps"));
  EXPECT_THAT(error(OneRack(3), {.rnr_timer = 0}), HasSubstr("a timer of 0 ps"));
}

}  // namespace
}  // namespace prepost::virtual_offload_test
