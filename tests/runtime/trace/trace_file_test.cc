// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/trace_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "compiler/compile.h"
#include "tests/support/plans.h"
#include "tests/support/random.h"
#include "tests/support/xml.h"

namespace prepost::trace_file_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

VerifiedPlan MakePlan(uint32_t nodes, uint32_t blocks, const std::string& algorithm = "chain") {
  return test::CompileOrDie(
      {.nodes = nodes, .message_bytes = blocks * 10, .block_bytes = 10, .algorithm = algorithm});
}

std::string Write(const Plan& plan, const RunTrace& trace, const TraceInfo& info = {"cpu", "tcp"}) {
  std::ostringstream out;
  WriteTrace(plan, trace, info, out);
  return out.str();
}

Status Read(const std::string& text, const Plan& plan, RunTrace* trace) {
  std::istringstream in(text);
  return ReadTrace(in, "t.json", plan, trace);
}

RunTrace MakeTrace(const Plan& plan) { return std::move(*RunTrace::Make(plan)); }

/// Times as a run could give them, after `start_ns` but for posting; some ops did not come so far.
RunTrace RandomTrace(const Plan& plan, test::Random& random, uint64_t start_ns) {
  RunTrace trace = MakeTrace(plan);
  trace.start_ns = start_ns;
  for (const Program& program : plan.programs()) {
    for (OpTimes& op : trace.times(program.node)) {
      const uint64_t reached = random.Below(5);
      if (reached > 0) op.posted_ns = start_ns - 5000 + random.Below(10000);
      if (reached > 1) op.started_ns = std::max(op.posted_ns, start_ns) + random.Below(100000);
      if (reached > 2) op.completed_ns = op.started_ns + random.Below(100000);
    }
  }
  return trace;
}

int64_t SinceStart(const RunTrace& trace, uint64_t time) {
  return time == 0 ? INT64_MIN : static_cast<int64_t>(time) - static_cast<int64_t>(trace.start_ns);
}

void ExpectSameTimes(const Plan& plan, NodeId node, const RunTrace& a, const RunTrace& b) {
  for (size_t op = 0; op < a.times(node).size(); ++op) {
    SCOPED_TRACE(fmt::format("node {} op {} of {}", node.value, op, plan.header().algorithm));
    const OpTimes& x = a.times(node)[op];
    const OpTimes& y = b.times(node)[op];
    EXPECT_EQ(SinceStart(a, x.posted_ns), SinceStart(b, y.posted_ns));
    EXPECT_EQ(SinceStart(a, x.started_ns), SinceStart(b, y.started_ns));
    EXPECT_EQ(SinceStart(a, x.completed_ns), SinceStart(b, y.completed_ns));
  }
}

/// Whether something is known of the plan's root.
bool IsKnown(const Plan& plan, const RunTrace& trace) {
  return std::ranges::any_of(trace.times(plan.header().collective.root),
                             [](const OpTimes& op) { return op.posted_ns != 0; });
}

// A time that is rounded, left out or attached to another op.
TEST(TraceFileTest, EveryTimeComesBack) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (int i = 0; i < 50; ++i) {
    const VerifiedPlan plan = test::CompileOrDie(test::RandomSpec(random, {}));
    const RunTrace written = RandomTrace(plan, random, 1'000'000 + random.Below(uint64_t{1} << 40));
    RunTrace read = MakeTrace(plan);
    const Status status = Read(Write(plan, written), plan, &read);
    ASSERT_TRUE(status.ok()) << status.ToString() << " seed " << seed;
    EXPECT_EQ(read.start_ns, kTraceOriginNs);
    for (const Program& program : plan.programs()) {
      ExpectSameTimes(plan, program.node, written, read);
    }
  }
}

// Catches combines and ranges of blocks that are written or read as others, and traces that are
// taken for those of another collective or operation.
TEST(TraceFileTest, TimesOfCollectivesComeBack) {
  test::Random random(test::TestSeed());
  std::vector<Spec> specs = test::SpecsOfCollectives({.nodes_max = 5, .blocks_max = 2});
  std::erase_if(specs, [&](const Spec& it) { return it.nodes < 4 || random.Below(4) != 0; });
  for (const Spec& spec : specs) {
    const VerifiedPlan plan = test::CompileOrDie(spec);
    SCOPED_TRACE(fmt::format("{} {}", Name(spec.collective), spec.algorithm));
    const RunTrace written = RandomTrace(plan, random, 1'000'000);
    const std::string text = Write(plan, written);
    RunTrace read = MakeTrace(plan);
    const Status status = Read(text, plan, &read);
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (const Program& program : plan.programs())
      ExpectSameTimes(plan, program.node, written, read);
    EXPECT_THAT(text, HasSubstr(fmt::format("\"collective\":\"{}\"", Name(spec.collective))));
    EXPECT_EQ(text.find("(root)") != std::string::npos && IsKnown(plan, written),
              HasRoot(spec.collective) && IsKnown(plan, written));
    PlanHeader header = plan.header();
    if (header.combine.op != CombineOp::kSum) continue;
    header.combine.op = CombineOp::kProd;
    const Plan other = plan.WithHeader(header);
    RunTrace of_other = MakeTrace(other);
    EXPECT_THAT(Read(text, other, &of_other).ToString(),
                HasSubstr("the trace is of another plan: found string \"sum:float32\", the plan "
                          "has \"prod:float32\""));
  }
}

// Nodes whose clocks differ are shifted by their own start, not by one common start.
TEST(TraceFileTest, FilesOfSeveralNodesAreAlignedByTheirStarts) {
  const Plan plan = MakePlan(4, 3);
  test::Random random(test::TestSeed());
  RunTrace together = MakeTrace(plan);
  std::vector<RunTrace> parts;
  for (uint32_t node = 0; node < 4; ++node) {
    const RunTrace whole = RandomTrace(plan, random, 1'000'000 * (node + 1));
    RunTrace part = MakeTrace(plan);
    part.start_ns = whole.start_ns;
    std::ranges::copy(whole.times(NodeId(node)), part.times(NodeId(node)).begin());
    const std::string text = Write(plan, part);
    EXPECT_EQ(test::Occurrences(text, "process_name"), 1u) << "names of nodes that it is not of";
    const Status status = Read(text, plan, &together);
    ASSERT_TRUE(status.ok()) << status.ToString();
    parts.push_back(std::move(part));
  }
  for (uint32_t node = 0; node < 4; ++node) {
    ExpectSameTimes(plan, NodeId(node), parts[node], together);
  }
}

TEST(TraceFileTest, TwoFilesThatSayDifferentThingsOfAnOpAreRefused) {
  const Plan plan = MakePlan(2, 1);
  RunTrace trace = MakeTrace(plan);
  trace.start_ns = 100;
  trace.times(NodeId(1))[0] = {110, 120, 130};
  RunTrace read = MakeTrace(plan);
  ASSERT_TRUE(Read(Write(plan, trace), plan, &read).ok());
  EXPECT_TRUE(Read(Write(plan, trace), plan, &read).ok()) << "the same again says nothing new";
  trace.times(NodeId(1))[0].completed_ns = 131;
  const Status status = Read(Write(plan, trace), plan, &read);
  EXPECT_THAT(status.ToString(), HasSubstr("node 1 op 0 has other times already"));
}

// Slices that overlap would be dropped by Perfetto; exact times that move would be wrong.
TEST(TraceFileTest, SendsThatOverlapAreDrawnOneAfterAnother) {
  const Plan plan = MakePlan(2, 2);
  RunTrace trace = MakeTrace(plan);
  trace.start_ns = 1000;
  trace.times(NodeId(0))[0] = {500, 1000, 5000};
  trace.times(NodeId(0))[1] = {500, 1100, 8000};
  const std::string text = Write(plan, trace);
  EXPECT_THAT(text, HasSubstr(R"("ts":0.501,"dur":4.000,"cat":"send","name":"send block 0")"));
  EXPECT_THAT(text, HasSubstr(R"("ts":4.501,"dur":3.000,"cat":"send","name":"send block 1")"));
  EXPECT_THAT(text, HasSubstr(R"("started_ns":601,"completed_ns":7501)"));
}

// What a failed run leaves: an op that started only, one that was posted only, one of nothing.
TEST(TraceFileTest, WhatDidNotHappenIsLeftOut) {
  const Plan plan = MakePlan(2, 3);
  RunTrace trace = MakeTrace(plan);
  trace.start_ns = 1000;
  trace.times(NodeId(0))[0] = {500, 1000, 0};
  trace.times(NodeId(0))[1] = {500, 0, 0};
  const std::string text = Write(plan, trace, {"cpu", "tcp", "node 1: \"gone\"\n\xff"});
  EXPECT_EQ(test::Occurrences(text, R"("ph":"B")"), 1u);
  EXPECT_EQ(test::Occurrences(text, R"("ph":"X")"), 0u);
  EXPECT_EQ(test::Occurrences(text, R"("ph":"i")"), 2u);
  EXPECT_THAT(text, HasSubstr(R"("outcome":"node 1: \"gone\"\n)"));
  RunTrace read = MakeTrace(plan);
  ASSERT_TRUE(Read(text, plan, &read).ok());
  ExpectSameTimes(plan, NodeId(0), trace, read);
}

TEST(TraceFileTest, ARunThatNeverStartedIsAFile) {
  const Plan plan = MakePlan(3, 2);
  const RunTrace trace = MakeTrace(plan);
  RunTrace read = MakeTrace(plan);
  EXPECT_TRUE(Read(Write(plan, trace), plan, &read).ok());
  EXPECT_EQ(read.times(NodeId(1))[0].completed_ns, 0u);
}

class DamagedTraceTest : public testing::Test {
 protected:
  DamagedTraceTest() : plan_(MakePlan(3, 2)), trace_(MakeTrace(plan_)) {
    trace_.start_ns = 1000;
    for (const Program& program : plan_.programs()) {
      for (OpTimes& op : trace_.times(program.node)) op = {900, 2000, 3000};
    }
    text_ = Write(plan_, trace_);
  }

  /// Reading with the first `found` replaced by `changed` fails with `message`, and says where.
  void ExpectRefused(const std::string& found, const std::string& changed,
                     const std::string& message) {
    SCOPED_TRACE(found + " -> " + changed);
    std::string text = text_;
    const size_t at = text.find(found);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, found.size(), changed);
    RunTrace read = MakeTrace(plan_);
    const Status status = Read(text, plan_, &read);
    EXPECT_EQ(status.code(), StatusCode::kRejected);
    EXPECT_THAT(status.ToString(), HasSubstr(message));
    EXPECT_THAT(status.ToString(), StartsWith("t.json:"));
  }

  const Plan plan_;
  RunTrace trace_;
  std::string text_;
};

TEST_F(DamagedTraceTest, IsRefusedWithPlaceAndReason) {
  ExpectRefused("prepost.trace", "prepost.plan", "expected \"prepost.trace\"");
  ExpectRefused("\"1.2\"", "\"2.0\"", "version 2.0 is not supported");
  ExpectRefused("\"start_ns\":101", "\"start_ns\":0", "start_ns is 0");
  ExpectRefused("\"start_ns\":101", "\"start_ns\":9007199254740992", "is too large");
  ExpectRefused("\"start_ns\":101", "\"start_ns\":1e300", "expected an integer");
  ExpectRefused("\"start_ns\":101", "\"start_ns\":1e999", "start_ns: the number is too large");
  ExpectRefused("\"ph\":\"X\"", "\"ph\":\"Z\"", "events of phase 'Z' are not known");
  ExpectRefused("\"ph\":\"X\",\"pid\":0", "\"ph\":\"X\",\"pid\":3", "no node 3");
  ExpectRefused("\"ph\":\"X\",\"pid\":0,\"tid\":0", "\"ph\":\"X\",\"pid\":0,\"tid\":1",
                "of another plan");
  ExpectRefused("\"cat\":\"send\",\"name\":\"send block 0\",\"args\":{\"op\":0",
                "\"cat\":\"send\",\"name\":\"send block 0\",\"args\":{\"op\":99",
                "no op 99: node 0 has 2 ops");
  ExpectRefused("\"args\":{\"op\":0,\"block\":0", "\"args\":{\"block\":0", "args name no op");
  ExpectRefused("\"block\":0", "\"block\":1", "of another plan");
  ExpectRefused("\"round\":0", "\"round\":1", "of another plan");
  ExpectRefused("\"completed_ns\":2101", "\"completed_ns\":1100", "it completed before");
  ExpectRefused("\"completed_ns\":2101", "\"completed_ns\":-1", "expected an integer");
  ExpectRefused("\"completed_ns\":2101", "\"completed_ms\":2101", "unknown key");
  ExpectRefused("\"dur\":1.000", "\"dur\":-1", "expected microseconds");
  ExpectRefused("\"ts\":0.001", "\"ts\":null", "expected microseconds");
  ExpectRefused("\n]}\n", "", "the file ends in the middle");
  ExpectRefused(text_, "", "the file is empty");
  ExpectRefused(text_, "[]", "expected an object");
}

TEST_F(DamagedTraceTest, TracesOfOtherPlansAreRefused) {
  for (const Plan& other : {MakePlan(4, 2), MakePlan(3, 3), MakePlan(3, 2, "sequential"),
                            MakePlan(3, 2, "binomial_pipeline")}) {
    RunTrace read = MakeTrace(other);
    const Status status = Read(text_, other, &read);
    EXPECT_THAT(status.ToString(), HasSubstr("the trace is of another plan"));
  }
}

// Keys in another order, as other programs write them, make a file that says too late what it is
// of.
TEST_F(DamagedTraceTest, EventsBeforeTheirHeaderAreRefused) {
  const size_t events = text_.find("\"traceEvents\"");
  const std::string header = text_.substr(1, events - 3);
  std::string text = "{" + text_.substr(events);
  text.resize(text.rfind('}'));
  RunTrace read = MakeTrace(plan_);
  const Status status = Read(text + "," + header + "}", plan_, &read);
  EXPECT_THAT(status.ToString(), HasSubstr("events stand before otherData"));
}

/// A trace of three nodes, and of what a host did, that wakes up at these times.
class WakeupsTest : public testing::Test {
 protected:
  WakeupsTest() : plan_(MakePlan(3, 2)), trace_(MakeTrace(plan_)) { trace_.start_ns = 1000; }

  static TraceInfo InfoOf(uint64_t wakeups, std::vector<uint64_t> wakeups_ns) {
    TraceHost host = {.node = NodeId(1), .wakeups = wakeups, .wakeups_ns = std::move(wakeups_ns)};
    return {.executor = "cpu", .detail = "tcp", .hosts = {std::move(host)}};
  }
  Result<std::vector<uint64_t>> ReadWakeups(const std::string& text) {
    RunTrace other = MakeTrace(plan_);
    std::istringstream in(text);
    TraceInfo info;
    const Status status = ReadTrace(in, "t.json", plan_, &other, &info);
    if (!status.ok()) return status;
    return info.hosts.at(0).wakeups_ns;
  }
  static std::string Replaced(std::string text, const std::string& found,
                              const std::string& changed) {
    const size_t at = text.find(found);
    EXPECT_NE(at, std::string::npos) << found;
    return text.replace(at, found.size(), changed);
  }

  const VerifiedPlan plan_;
  RunTrace trace_;
};

// By the clock of the ops, also those before all that is known of ops, and whatever order other
// programs give them and the file's keys.
TEST_F(WakeupsTest, ComeBackSinceTheStart) {
  const std::string text = Write(plan_, trace_, InfoOf(9, {990, 1000, 1500}));
  EXPECT_THAT(text, HasSubstr(R"("start_ns":11,)"));
  EXPECT_THAT(text, HasSubstr(R"("wakeups_ns":[1,11,511]})"));
  const std::vector<uint64_t> times = {kTraceOriginNs - 10, kTraceOriginNs, kTraceOriginNs + 500};
  EXPECT_EQ(ReadWakeups(text).value(), times);
  EXPECT_EQ(ReadWakeups(Replaced(text, "[1,11,511]", "[511,1,11]")).value(), times);
  std::string late = Replaced(text, R"("start_ns":11,)", "");
  late = Replaced(late, "\n\"hosts\":[", "\n\"hosts\" : [");
  late = Replaced(late, "]}]},", "]}],\"start_ns\":11},");
  EXPECT_EQ(ReadWakeups(late).value(), times);
}

// Files of version 1.1 have none.
TEST_F(WakeupsTest, NeedNotBeKnown) {
  const std::string text = Write(plan_, trace_, InfoOf(9, {}));
  EXPECT_THAT(text, testing::Not(HasSubstr("wakeups_ns")));
  EXPECT_THAT(ReadWakeups(Replaced(text, "\"1.2\"", "\"1.1\"")).value(), testing::IsEmpty());
}

TEST_F(WakeupsTest, AreRefusedWithPlaceAndReason) {
  const std::string text = Write(plan_, trace_, InfoOf(3, {1000, 1500}));
  const auto expect = [&](const std::string& changed, const std::string& message) {
    const std::string status = ReadWakeups(Replaced(text, "[1,501]", changed)).status().ToString();
    EXPECT_THAT(status, HasSubstr(message));
    EXPECT_THAT(status, StartsWith("t.json:"));
    EXPECT_THAT(status, HasSubstr("/otherData/hosts/0"));
  };
  expect("[1,501,2,3]", "found the times of 4 wake-ups, expected 3 at most");
  expect("[1,0]", "/wakeups_ns/1: ");
  expect("[1,9007199254740992]", "is too large");
  expect("[1,-1]", "expected an integer");
  expect("[1.5]", "expected an integer");
  expect("7", "expected an array");
}

TEST_F(WakeupsTest, ThatWereCountedAreTaken) {
  for (const uint64_t time_ns : {1100u, 1200u, 1300u})
    trace_.Record({.node = NodeId(1), .op = {}, .kind = OpEvent::Kind::kWakeup}, time_ns);
  std::vector<TraceHost> hosts = {{.node = NodeId(0), .wakeups = 1},
                                  {.node = NodeId(1), .wakeups = 2},
                                  {.node = NodeId(1), .wakeups = 4}};
  AddWakeups(trace_, &hosts);
  EXPECT_THAT(hosts[0].wakeups_ns, testing::IsEmpty());
  EXPECT_THAT(hosts[1].wakeups_ns, testing::ElementsAre(1100, 1200));
  EXPECT_THAT(hosts[2].wakeups_ns, testing::ElementsAre(1100, 1200, 1300));
}

TEST(TraceFileTest, SaysWhatHostsDid) {
  const VerifiedPlan plan = MakePlan(3, 2);
  const TraceInfo info = {
      .executor = "offload",
      .detail = "emulated",
      .hosts = {{.node = NodeId(0), .posts = 9, .wakeups = 1, .cpu_ns = 12345},
                {.node = NodeId(2), .posts = 4, .posts_during = 3, .wakeups = 2, .cpu_ns = 6}}};
  RunTrace trace = MakeTrace(plan);
  trace.start_ns = 1000;
  const std::string text = Write(plan, trace, info);
  const auto read = [&](const std::string& of, TraceInfo* into) {
    RunTrace other = MakeTrace(plan);
    std::istringstream in(of);
    return ReadTrace(in, "t.json", plan, &other, into);
  };
  TraceInfo found;
  ASSERT_TRUE(read(text, &found).ok());
  EXPECT_EQ(found.executor, "offload");
  EXPECT_EQ(found.detail, "emulated");
  EXPECT_EQ(found.hosts, info.hosts);
  ASSERT_TRUE(read(text, &found).ok());  // as of files of several nodes, one of them twice
  EXPECT_EQ(found.hosts, info.hosts);
  found.hosts[1].posts = 5;
  EXPECT_THAT(read(text, &found).ToString(),
              testing::HasSubstr("the host of node 2 did something else already"));
  std::string stranger = text;
  stranger.replace(stranger.find("\"node\":2"), 8, "\"node\":3");
  TraceInfo unknown;
  EXPECT_THAT(read(stranger, &unknown).ToString(), testing::HasSubstr("no node 3"));
}

}  // namespace
}  // namespace prepost::trace_file_test
