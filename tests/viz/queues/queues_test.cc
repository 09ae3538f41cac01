// SPDX-License-Identifier: Apache-2.0
#include "viz/queues/queues.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <span>

#include "backends/nic/program/lower.h"
#include "backends/triggered/deferred_program.h"
#include "runtime/executor/program.h"
#include "tests/support/plans.h"
#include "tests/support/xml.h"

namespace prepost::viz::queues_test {
namespace {

using test::Occurrences;
using test::PlanOf;
using test::XmlError;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

Selection Only(uint32_t node) { return {.nodes = {NodeId(node)}, .blocks = {}, .rounds = {}}; }

std::string NameOf(const VerifiedPlan& plan, NodeId node, OpId id) {
  const Op& op = plan.ops(ProgramOf(plan, node))[id.index()];
  const Channel& channel = plan.channels()[op.channel.index()];
  return std::string(Name(op.kind)) +
         (op.is_credit() ? " credit" : " b" + std::to_string(op.block)) +
         (op.is_send() ? " to " + std::to_string(channel.to.value)
                       : " from " + std::to_string(channel.from.value));
}

// A WAIT that is drawn with the completion of another op: of each send the WAITs before it, as
// drawn, must name ops of its `after`, and no others.
TEST(QueuesTest, WaitsNameWhatTheirSendComesAfter) {
  const VerifiedPlan plan = PlanOf(8, 6);
  for (uint32_t node = 0; node < 8; ++node) {
    const Result<std::string> svg = DrawQueues(plan, Only(node));
    ASSERT_TRUE(svg.ok()) << svg.status().ToString();
    EXPECT_EQ(XmlError(*svg), "");
    const std::regex entry(
        R"re(<title>QP \d+&lt;&gt;\d+ \w+ \d+: (WAIT CQ \d+ until CQE \d+, for ([^<]*)|)re"
        R"re(send [^<]*\(op (\d+)\)[^<]*)</title>)re");
    const std::string text = *svg;
    std::vector<std::string> waits;
    size_t sends = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), entry), end; it != end; ++it) {
      if ((*it)[2].matched) {
        waits.push_back((*it)[2]);
        continue;
      }
      ++sends;
      const OpId id(static_cast<uint32_t>(std::stoul((*it)[3])));
      const Op& op = plan.ops(ProgramOf(plan, NodeId(node)))[id.index()];
      std::vector<std::string> after;
      for (const OpId before : plan.after(op)) {
        after.push_back(NameOf(plan, NodeId(node), before));
      }
      EXPECT_THAT(after, testing::IsSupersetOf(waits)) << "node " << node << " op " << id.value;
      waits.clear();
    }
    EXPECT_GT(sends, 0u);
  }
}

TEST(QueuesTest, EveryEntryIsABoxInItsQueue) {
  const VerifiedPlan plan = PlanOf(8, 4);
  const nic::NodeProgram program = nic::Lower(plan, {.node = NodeId(3)})->nodes[0];
  const std::string svg = *DrawQueues(plan, Only(3));
  EXPECT_EQ(Occurrences(svg, "<g class=\"entry\">"), program.wqes());
  EXPECT_EQ(Occurrences(svg, ": WAIT CQ "), program.waits());
  EXPECT_EQ(Occurrences(svg, ": NOP, gives CQE 0 of CQ 13"), 1u);
  // An arrow per WAIT but those of the loopback queue, and one in the legend.
  EXPECT_EQ(Occurrences(svg, "class=\"head\""), program.waits() - 12 + 1);
  // One source for two WAITs, and one whose WAIT is in an earlier queue.
  EXPECT_THAT(svg, HasSubstr("from QP 3&lt;&gt;1 blocks 1, recv b3 from 1 (op 10), to 2 WAITs<"));
  EXPECT_THAT(svg, HasSubstr("from QP 3&lt;&gt;7 blocks 2, send b0 to 7 (op 3), to 1 WAIT<"));
  EXPECT_EQ(svg, *DrawQueues(plan, Only(3)));
}

// Managed: a SEND_EN that is drawn to another queue or WQE than it enables.
TEST(QueuesTest, SendEnablesPointAtTheLastWqeThatTheyEnable) {
  const VerifiedPlan plan = PlanOf(8, 4);
  for (const nic::Masters masters :
       {nic::Masters::kNode, nic::Masters::kLane, nic::Masters::kQueue}) {
    const nic::LowerOptions lower{.mode = nic::LoweringMode::kManaged, .masters = masters};
    nic::LowerOptions one = lower;
    one.node = NodeId(3);
    const nic::NodeProgram program = nic::Lower(plan, one)->nodes[0];
    const std::string svg = *DrawQueues(plan, Only(3), {.nic = lower});
    EXPECT_EQ(XmlError(svg), "");
    EXPECT_EQ(Occurrences(svg, "<g class=\"entry\">"), program.wqes());
    EXPECT_EQ(Occurrences(svg, ", to its last WQE enabled<"), program.enables());
    EXPECT_THAT(svg, HasSubstr(">managed send queue, CQ "));
    EXPECT_THAT(svg, HasSubstr(">master queue, CQ "));
    for (const nic::QueuePair& qp : program.qps) {
      for (const nic::SendEntry& entry : qp.sends) {
        if (entry.opcode != nic::Opcode::kSendEnable) continue;
        const OpId last = program.qps[entry.qp.index()].sends[entry.count - 1].op;
        std::string queue = nic::Describe(program, entry.qp);
        queue.replace(queue.find("<>"), 2, "&lt;&gt;");
        EXPECT_THAT(
            svg, HasSubstr("SEND_EN " + queue + ", up to WQE " + std::to_string(entry.count - 1) +
                           ": " + NameOf(plan, NodeId(3), last)));
      }
    }
  }
}

TEST(QueuesTest, QueuesInPartsNameTheirRing) {
  const VerifiedPlan plan = PlanOf(4, 20);
  const nic::LowerOptions lower{.profile = {.sq_wqebbs = 16, .rq_wqes = 8}};
  const std::string svg = *DrawQueues(plan, Only(1), {.nic = lower});
  EXPECT_THAT(svg, HasSubstr(", a ring of 16<"));
  EXPECT_THAT(svg, HasSubstr(", a ring of 8<"));
  EXPECT_THAT(svg, HasSubstr(" re-arms meanwhile"));
  // Catches notes at the wrong entry, and too many or too few of them.
  nic::LowerOptions one = lower;
  one.node = NodeId(1);
  EXPECT_EQ(Occurrences(svg, ">re-arm "), nic::Lower(plan, one)->nodes[0].rearms());
  EXPECT_THAT(svg, ContainsRegex(">re-arm 1: once WQE 7 has completed</text><g class=\"entry\">"
                                 "<title>QP 1&lt;&gt;[0-9]+ [a-z]+ 16: "));
  EXPECT_THAT(svg, ContainsRegex(">re-arm 2: once WQE 15 has completed</text><g class=\"entry\">"
                                 "<title>QP 1&lt;&gt;[0-9]+ [a-z]+ 24: "));
  EXPECT_THAT(svg, HasSubstr(">the last completion<"));
  EXPECT_THAT(*DrawQueues(plan, Only(1)), HasSubstr("only completion<"));
  EXPECT_EQ(Occurrences(*DrawQueues(plan, Only(1)), "a ring of"), 0u);
}

TEST(QueuesTest, SelectionsLeaveOutAndCount) {
  const VerifiedPlan plan = PlanOf(8, 4);
  Selection selection = Only(3);
  selection.rounds = Rounds{0, 2};
  const std::string svg = *DrawQueues(plan, selection);
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_THAT(svg, HasSubstr("only rounds 0 to 2: "));
  EXPECT_THAT(svg, HasSubstr(" with nothing to show left out"));
  EXPECT_EQ(Occurrences(svg, "loopback</text>"), 0u);
  EXPECT_LT(Occurrences(svg, "<g class=\"entry\">"), 42u);
}

/// The index of the first WAIT in `svg` for CQE `cqe` or later of CQ `cq`, in `queue`; none:
/// SIZE_MAX.
size_t FirstWait(const std::string& svg, const std::string& queue, uint32_t cq, uint32_t cqe) {
  const std::regex wait("<title>" + queue + " (\\d+): WAIT CQ " + std::to_string(cq) +
                        " until CQE (\\d+), ");
  for (std::sregex_iterator it(svg.begin(), svg.end(), wait), end; it != end; ++it) {
    if (std::stoul((*it)[2]) >= cqe) return std::stoul((*it)[1]);
  }
  return SIZE_MAX;
}

/// CQ and CQE of every receive that `op` comes after.
std::vector<std::pair<uint32_t, uint32_t>> ReceivesBefore(const VerifiedPlan& plan,
                                                          const nic::NodeProgram& program,
                                                          OpId op) {
  std::vector<std::pair<uint32_t, uint32_t>> found;
  const auto after = plan.after(plan.ops(ProgramOf(plan, program.node))[op.index()]);
  for (const nic::QueuePair& qp : program.qps) {
    for (size_t i = 0; i < qp.receives.size(); ++i) {
      if (std::ranges::count(after, qp.receives[i].op) == 0) continue;
      found.emplace_back(qp.recv_cq.value, static_cast<uint32_t>(i));
    }
  }
  return found;
}

// A block that is sent on, seemingly before it has come: its WAIT was made for another send.
TEST(QueuesTest, SelectionsShowTheWaitsOfTheirSends) {
  size_t checked = 0, of_others = 0;
  const auto check = [&](const VerifiedPlan& plan, uint32_t node, nic::LoweringMode mode) {
    const nic::NodeProgram program =
        nic::Lower(plan, {.mode = mode, .node = NodeId(node)})->nodes[0];
    const std::span<const Op> ops = plan.ops(ProgramOf(plan, NodeId(node)));
    for (uint32_t round = 0; round < plan.header().rounds; ++round) {
      Selection selection = Only(node);
      selection.rounds = Rounds{round, round};
      const std::string svg =
          *DrawQueues(plan, selection, {.nic = nic::LowerOptions{.mode = mode}});
      for (size_t qp = 0; qp + 1 < program.qps.size(); ++qp) {
        // A managed queue's WAITs are the master's.
        const size_t control = program.qps[qp].managed ? program.qps.size() - 1 : qp;
        std::string queue = nic::Describe(program, nic::QpId::FromIndex(control));
        if (control == qp) queue.replace(queue.find("<>"), 2, "&lt;&gt;");
        for (const nic::SendEntry& send : program.qps[qp].sends) {
          if (!nic::IsSend(send.opcode) || ops[send.op.index()].round != round) continue;
          for (const auto& [cq, cqe] : ReceivesBefore(plan, program, send.op)) {
            const size_t wait = FirstWait(svg, queue, cq, cqe);
            ASSERT_LT(wait, program.qps[control].sends.size()) << node << " round " << round;
            ++checked;
            if (program.qps[control].sends[wait].op != send.op) ++of_others;
          }
        }
      }
    }
  };
  for (const char* schedule : {"binomial_tree", "scatter_allgather", "binomial_pipeline"}) {
    const VerifiedPlan plan = PlanOf(5, 4, schedule);
    for (uint32_t node = 0; node < 5; ++node) {
      for (const auto mode : {nic::LoweringMode::kInline, nic::LoweringMode::kManaged}) {
        check(plan, node, mode);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(checked, 50u);
  EXPECT_GT(of_others, 0u) << "nothing that was hidden";
}

// Kinds and colours that are nowhere in the picture.
TEST(QueuesTest, LegendsListWhatIsThere) {
  const VerifiedPlan plan = PlanOf(3, 2, "chain");
  const std::string last = *DrawQueues(plan, Only(2));  // it sends nothing
  EXPECT_EQ(Occurrences(last, ">send</text>"), 0u);
  EXPECT_EQ(Occurrences(last, "whose CQE a WAIT waits for"), 0u);
  EXPECT_EQ(Occurrences(last, ">receive, posted before the start</text>"), 1u);
  EXPECT_EQ(Occurrences(*DrawQueues(plan, Only(1)), ">send</text>"), 1u);
  size_t shown = 1;
  Selection nothing = Only(0);
  nothing.rounds = Rounds{2, 2};
  EXPECT_EQ(Occurrences(*DrawQueues(plan, nothing, {}, &shown), "holds its queue"), 0u);
  EXPECT_EQ(shown, 0u);
}

// Arrows that nobody can follow: none instead, which the title says.
TEST(QueuesTest, TooManyArrowsAreLeftOut) {
  const VerifiedPlan plan = PlanOf(4, 20);
  const std::string all = *DrawQueues(plan, Only(1));
  EXPECT_EQ(Occurrences(all, "class=\"head\""), 0u);
  EXPECT_THAT(all, HasSubstr(" arrows would be too many to follow, --rounds or --block narrow it"));
  Selection selection = Only(1);
  selection.rounds = Rounds{0, 5};
  EXPECT_GT(Occurrences(*DrawQueues(plan, selection), "class=\"head\""), 1u);
}

TEST(QueuesTest, TooManyEntriesAreRefusedWithTheWayOut) {
  const VerifiedPlan plan = PlanOf(4, 200);
  const Status status = DrawQueues(plan, Only(1)).status();
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_THAT(status.message(), HasSubstr("--rounds first:last"));
  Selection selection = Only(1);
  selection.rounds = Rounds{10, 20};
  EXPECT_TRUE(DrawQueues(plan, selection).ok());
}

TEST(QueuesTest, OneNodeIsNeeded) {
  const VerifiedPlan plan = PlanOf(3, 1);
  EXPECT_EQ(DrawQueues(plan, {}).status().code(), StatusCode::kUsage);
  Selection two = Only(1);
  two.nodes.push_back(NodeId(2));
  EXPECT_EQ(DrawQueues(plan, two).status().code(), StatusCode::kUsage);
}

// A unit of work that is nowhere, or stands in another counter's column.
TEST(QueuesTest, DeferredWorkIsThereUnitByUnit) {
  const QueueEngines deferred = {.nic = std::nullopt, .deferred = true};
  for (const VerifiedPlan& plan :
       {PlanOf(1, 1), PlanOf(8, 6), test::PlanWithWindowsOf1("binomial_pipeline", 5, 6, 10)}) {
    for (uint32_t node = 0; node < plan.header().nodes; ++node) {
      const Result<std::string> svg = DrawQueues(plan, Only(node), deferred);
      ASSERT_TRUE(svg.ok()) << svg.status().ToString();
      EXPECT_EQ(XmlError(*svg), "");
      const auto program = *triggered::LowerDeferred(plan, NodeId(node));
      size_t receives = 0;
      for (const ChannelEnd& end : program.ends) receives += end.is_send ? 0 : end.ops.size();
      EXPECT_EQ(Occurrences(*svg, "<g class=\"entry\">"), program.works.size() + receives + 1);
      for (const triggered::DeferredWork& work : program.works) {
        if (work.kind != triggered::DeferredWork::Kind::kSend) continue;
        EXPECT_THAT(*svg, HasSubstr(fmt::format("{} (op {}), when {} &gt;= {}",
                                                NameOf(plan, NodeId(node), work.op), work.op.value,
                                                program.CounterName(work.trigger.counter),
                                                work.trigger.threshold)));
      }
    }
  }
}

// A block of a selection whose way to its send is not shown.
TEST(QueuesTest, DeferredWorkOfABlockHasWhatItsSendsNeed) {
  const VerifiedPlan plan = test::PlanWithWindowsOf1("chain", 3, 6, 10);
  Selection selection = Only(1);
  selection.blocks = {2};
  const std::string svg = *DrawQueues(plan, selection, {.nic = std::nullopt, .deferred = true});
  const size_t sends = Occurrences(svg, "<rect class=\"send\"");
  EXPECT_GT(sends, 1u);                                          // with the legend's
  EXPECT_GT(Occurrences(svg, "<rect class=\"enable\""), sends);  // two additions for each
  EXPECT_GT(Occurrences(svg, "class=\"head\""), sends);
}

TEST(QueuesTest, ACpuPostsEverySendOnce) {
  const VerifiedPlan plan = PlanOf(8, 6);
  const std::string svg = *DrawQueues(plan, Only(3), {.nic = std::nullopt, .cpu = true});
  EXPECT_EQ(XmlError(svg), "");
  const std::span<const Op> ops = plan.ops(ProgramOf(plan, NodeId(3)));
  const auto sends = static_cast<size_t>(std::ranges::count_if(ops, &Op::is_send));
  EXPECT_EQ(Occurrences(svg, "<g class=\"entry\">"), ops.size() + sends);
}

TEST(QueuesTest, EnginesStandBelowEachOther) {
  const VerifiedPlan plan = PlanOf(3, 2, "chain");
  const std::string all = *DrawQueues(plan, Only(1), {.deferred = true, .cpu = true});
  EXPECT_EQ(XmlError(all), "");
  EXPECT_EQ(Occurrences(all, "<svg"), 1u);
  for (const char* const name :
       {"as preposted to a NIC", "deferred work of a provider", "what the CPU does"}) {
    EXPECT_EQ(Occurrences(all, name), 1u) << name;
  }
}

TEST(QueuesTest, ANodeAloneHasItsFinalNop) {
  const std::string svg = *DrawQueues(PlanOf(1, 1), Only(0));
  EXPECT_EQ(XmlError(svg), "");
  EXPECT_EQ(Occurrences(svg, "<g class=\"entry\">"), 1u);
}

}  // namespace
}  // namespace prepost::viz::queues_test
