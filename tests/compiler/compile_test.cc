// SPDX-License-Identifier: Apache-2.0
//
// Compile and its passes: goldens for small plans, and the definitions of the passes checked on
// every small plan.
#include "compiler/compile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "compiler/roll.h"
#include "compiler/schedules/node_order.h"
#include "compiler/schedules/schedule.h"
#include "ir/messages.h"
#include "ir/verify/verify.h"
#include "tests/support/golden.h"
#include "tests/support/local_closure.h"
#include "tests/support/plans.h"

namespace prepost::compile_test {
namespace {

using ::testing::HasSubstr;

Spec SpecOf(const std::string& algorithm, uint32_t nodes, uint32_t blocks, const std::string& ready,
            const std::string& send_window = "auto", uint32_t root = 0) {
  return {.nodes = nodes,
          .root = NodeId(root),
          .message_bytes = blocks * 10ull - 3,  // the last block is short
          .block_bytes = 10,
          .algorithm = algorithm,
          .ready = *ParseReady(ready),
          .send_window = *ParseSendWindow(send_window)};
}

/// Calls `check` with every schedule x ready mode x send window for small n, k and a few roots.
template <typename Check>
void ForSmallSpecs(Check check) {
  for (const Spec& spec : test::AllSmallSpecs()) check(spec);
}

TEST(CompileTest, Goldens) {
  for (const std::string& algorithm : ScheduleNames()) {
    for (const uint32_t nodes : {1u, 2u, 4u, 5u}) {
      for (const char* ready : {"auto", "channel"}) {
        const Result<VerifiedPlan> plan =
            Compile(test::WithRacks(SpecOf(algorithm, nodes, 3, ready), 2));
        ASSERT_TRUE(plan.ok()) << plan.status().ToString();
        test::ExpectGolden(fmt::format("plans/{}_n{}_k3_{}.txt", algorithm, nodes, ready),
                           Dump(*plan));
      }
    }
  }
}

TEST(CompileTest, EverySmallPlanIsValidWithTheScheduleRounds) {
  ForSmallSpecs([](const Spec& spec) {
    const Result<VerifiedPlan> plan = Compile(spec);  // verifies after every pass
    ASSERT_TRUE(plan.ok()) << test::Label(spec) << plan.status().ToString();
    const std::vector<uint32_t> racks = OrderNodes(spec).rack_begin;
    const Extent extent{
        .nodes = spec.nodes, .blocks = plan->header().payload.blocks, .racks = racks};
    ASSERT_EQ(plan->header().rounds, FindAlgorithm(spec.algorithm)->schedule->Rounds(extent))
        << test::Label(spec);
  });
}

TEST(CompileTest, EmptyMessageIsOneEmptyBlock) {
  const Result<VerifiedPlan> plan = Compile({.nodes = 3, .message_bytes = 0});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->header().payload.blocks, 1u);
  EXPECT_EQ(plan->header().payload.BlockSize(0), 0u);
}

TEST(CompileTest, AnyRootOnlyRenamesNodes) {
  const VerifiedPlan at_zero = *Compile(SpecOf("binomial_pipeline", 7, 4, "barrier", "none", 0));
  const VerifiedPlan at_five = *Compile(SpecOf("binomial_pipeline", 7, 4, "barrier", "none", 5));
  const auto messages = [](const Plan& plan, uint32_t shift) {
    std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>> all;
    for (const Op& op : plan.ops()) {
      const Channel& channel = plan.channels()[op.channel.index()];
      all.insert(
          {op.round, (channel.from.value + shift) % 7, (channel.to.value + shift) % 7, op.block});
    }
    return all;
  };
  EXPECT_EQ(messages(at_zero, 5), messages(at_five, 0));
}

// Op ids at every node are the restriction of the plan's one order: round, credits first, from, to,
// lane, block.
TEST(CompileTest, OpsStandInThePlansOrder) {
  ForSmallSpecs([](const Spec& spec) {
    const VerifiedPlan plan = *Compile(spec);
    for (const Program& program : plan.programs()) {
      std::tuple<uint32_t, bool, NodeId, NodeId, Lane, uint32_t> last{};
      for (const Op& op : plan.ops(program)) {
        const Channel& channel = plan.channels()[op.channel.index()];
        const auto key =
            std::tuple(op.round, !op.is_credit(), channel.from, channel.to, channel.lane, op.block);
        ASSERT_LE(last, key) << test::Label(spec) << "\n" << Dump(plan);
        last = key;
      }
    }
  });
}

// ready, as defined: which credits there are, what each waits for, and which sends wait for them.
TEST(ReadyPassTest, CreditsAreAsDefined) {
  ForSmallSpecs([](const Spec& spec) {
    const VerifiedPlan plan = *Compile(spec, {.skip_passes = {"thin"}});
    const Ready ready = plan.header().ready;
    const MessageTable messages(plan);
    std::map<std::pair<NodeId, NodeId>, uint32_t> receives, grants;
    for (const Program& program : plan.programs()) {
      std::vector<OpId> recvs;  // block receives of the node, in order
      std::vector<std::pair<uint32_t, const Op*>> credits;
      for (uint32_t i = 0; i < program.op_count; ++i) {
        const Op& op = plan.ops(program)[i];
        const Channel& channel = plan.channels()[op.channel.index()];
        if (op.is_credit() && op.is_send()) {
          credits.emplace_back(i, &op);
          grants[{channel.to, channel.from}] += op.grants;
        }
        if (!op.is_credit() && !op.is_send()) {
          recvs.push_back(OpId(i));
          ++receives[{channel.from, channel.to}];
        }
      }
      if (ready.mode == ReadyMode::kBarrier || ready.mode == ReadyMode::kRetry) {
        ASSERT_TRUE(credits.empty());
      }
      if (ready.mode == ReadyMode::kChannel) {
        std::set<ChannelId> channels;
        for (const auto& [id, credit] : credits) {
          ASSERT_EQ(credit->after_count, 0u);
          ASSERT_TRUE(channels.insert(credit->channel).second) << "a second credit on a channel";
        }
      }
      if (ready.mode == ReadyMode::kWindow) {
        ASSERT_EQ(credits.size(), recvs.size());
        for (size_t i = 0; i < credits.size(); ++i) {
          const auto after = plan.after(*credits[i].second);
          ASSERT_EQ(credits[i].second->grants, 1u);
          if (i < ready.window) {
            ASSERT_TRUE(after.empty());
          } else {
            ASSERT_EQ(after.size(), 1u);
            ASSERT_EQ(after[0], recvs[i - ready.window]) << test::Label(spec) << "\n" << Dump(plan);
          }
        }
      }
    }
    if (ready.mode == ReadyMode::kChannel || ready.mode == ReadyMode::kWindow) {
      ASSERT_EQ(grants, receives);
    }
  });
}

TEST(ReadyPassTest, AutoIsWindowOneWhereANodeHearsFromSeveral) {
  const auto chosen = [](const char* algorithm, uint32_t nodes) {
    const VerifiedPlan plan = *Compile(SpecOf(algorithm, nodes, 3, "auto"));
    return ToString(plan.header().ready) + "/" +
           (plan.header().send_window ? fmt::to_string(*plan.header().send_window) : "none");
  };
  EXPECT_EQ(chosen("chain", 5), "barrier/none");
  EXPECT_EQ(chosen("sequential", 5), "barrier/1");
  EXPECT_EQ(chosen("binomial_tree", 5), "barrier/1");
  EXPECT_EQ(chosen("binomial_pipeline", 5), "window=1/1");
  EXPECT_EQ(chosen("binomial_pipeline", 2), "barrier/none");
}

// 50 MB/s and 60 ms there and back are 3 MB, 46 blocks of 64 KiB: catches a window of auto at which
// the path stands idle for most of the time, and one that grows inside a datacenter.
TEST(ReadyPassTest, WindowsOfAutoHoldALongPath) {
  Spec spec = SpecOf("binomial_pipeline", 6, 40, "auto");
  spec.block_bytes = 64 << 10;
  spec.message_bytes = 40 * spec.block_bytes;
  spec.topology = Network::OfSites({0, 0, 0, 1, 1, 1});
  for (Network::Node& host : spec.topology->nodes) host.out_rate = host.in_rate = 125e6;
  for (Network::Rack& rack : spec.topology->racks) rack.up_rate = rack.down_rate = 50e6;
  spec.topology->core_latency = 0.03;
  const VerifiedPlan plan = *Compile(spec);
  EXPECT_EQ(ToString(plan.header().ready), "window=47");
  EXPECT_EQ(plan.header().send_window, 47u);
  const Result<RolledPlan> rolled = Roll(spec);
  ASSERT_TRUE(rolled.ok()) << rolled.status().ToString();
  EXPECT_EQ(rolled->header.ready, plan.header().ready);
  EXPECT_EQ(rolled->header.send_window, plan.header().send_window);
  spec.topology->core_latency = 1e-3;
  EXPECT_EQ(ToString(Compile(spec)->header().ready), "window=1");
}

TEST(SendWindowPassTest, EachSendWaitsForTheOneWBefore) {
  ForSmallSpecs([](const Spec& spec) {
    const VerifiedPlan plan = *Compile(spec, {.skip_passes = {"thin"}});
    const auto window = plan.header().send_window;
    for (const Program& program : plan.programs()) {
      std::vector<OpId> sends;
      for (uint32_t i = 0; i < program.op_count; ++i) {
        const Op& op = plan.ops(program)[i];
        if (!op.is_send() || op.is_credit()) continue;
        for (size_t j = 0; j < sends.size(); ++j) {
          const bool waits = std::ranges::count(plan.after(op), sends[j]) != 0;
          const bool should = window && sends.size() - j == *window;
          ASSERT_EQ(waits, should) << test::Label(spec) << "\n" << Dump(plan);
        }
        sends.push_back(OpId(i));
      }
    }
  });
}

// thin keeps the order exactly and leaves nothing that could go.
TEST(ThinPassTest, KeepsTheOrderAndNothingRedundant) {
  ForSmallSpecs([](const Spec& spec) {
    if (spec.nodes > 6) return;
    const VerifiedPlan full = *Compile(spec, {.skip_passes = {"thin"}});
    const VerifiedPlan thinned = *Compile(spec);
    ASSERT_EQ(full.ops().size(), thinned.ops().size());
    for (size_t p = 0; p < full.programs().size(); ++p) {
      const auto order = test::LocalClosure(full, full.programs()[p]);
      ASSERT_EQ(order, test::LocalClosure(thinned, thinned.programs()[p])) << test::Label(spec);
      // Without any one entry the order is another one.
      const Program& program = thinned.programs()[p];
      for (uint32_t i = 0; i < program.op_count; ++i) {
        for (size_t gone = 0; gone < thinned.ops(program)[i].after_count; ++gone) {
          PlanBuilder builder(thinned.header());
          builder.BeginProgram(program.node);
          for (uint32_t o = 0; o < program.op_count; ++o) {
            const auto given = thinned.after(thinned.ops(program)[o]);
            std::vector<OpId> after(given.begin(), given.end());
            if (o == i) after.erase(after.begin() + static_cast<std::ptrdiff_t>(gone));
            builder.AddOp(thinned.ops(program)[o], after);
          }
          const Plan without = std::move(builder).Build();
          ASSERT_NE(order, test::LocalClosure(without, without.programs()[0]))
              << test::Label(spec) << " op " << i;
        }
      }
    }
  });
}

TEST(PassManagerTest, PrintsTimesAndSkips) {
  std::ostringstream log;
  const Spec spec = SpecOf("chain", 3, 2, "window=1");
  const Result<VerifiedPlan> plan = Compile(spec, {.skip_passes = {"send_window"},
                                                   .print_before = {"thin"},
                                                   .print_after = {"ready"},
                                                   .time_passes = true,
                                                   .log = &log});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->header().send_window, std::nullopt);
  EXPECT_THAT(log.str(), HasSubstr("; after ready\nplan multicast chain"));
  EXPECT_THAT(log.str(), HasSubstr("; before thin\n"));
  EXPECT_THAT(log.str(), HasSubstr(" ms  verify after schedule\n"));
  EXPECT_THAT(log.str(), HasSubstr(" ms  thin\n"));
  EXPECT_THAT(log.str(), ::testing::Not(HasSubstr("send_window\n")));
}

TEST(PassManagerTest, UnknownPassIsAnError) {
  const Result<VerifiedPlan> plan =
      Compile(SpecOf("chain", 3, 2, "auto"), {.skip_passes = {"thni"}});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), StatusCode::kUsage);
  EXPECT_THAT(plan.status().message(), HasSubstr("no pass is called 'thni', did you mean 'thin'?"));
}

}  // namespace
}  // namespace prepost::compile_test
