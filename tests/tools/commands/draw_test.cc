// SPDX-License-Identifier: Apache-2.0
//
// prepost draw from outside: formats by suffix, the same bytes from run to run, what is refused,
// and the pictures of the documentation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "compiler/schedules/schedule.h"
#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/temp_folder.h"

namespace prepost::draw_test {
namespace {

using test::Command;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DrawTest : public ::testing::Test {
 protected:
  void Compile(const std::string& nodes, const std::string& blocks) {
    ASSERT_EQ(Command({"compile", "--nodes", nodes, "--message-bytes", blocks, "--block-bytes", "1",
                       "--algorithm", "binomial_pipeline", "-o", plan_})
                  .Wait(),
              0);
  }
  /// Draws to `name` and gives what was written.
  std::string Draw(const std::string& name, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"draw", plan_, "-o", folder_ / name});
    Command draw(flags);
    EXPECT_EQ(draw.Wait(), 0) << draw.err();
    EXPECT_EQ(draw.out(), "");
    return test::ReadText(folder_ / name);
  }
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"draw", plan_});
    test::ExpectRefused(flags, code, message, folder_);
  }

  test::TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
};

TEST_F(DrawTest, FormatsFollowTheSuffix) {
  Compile("5", "3");
  EXPECT_THAT(Draw("a.svg"), HasSubstr("<svg"));
  EXPECT_THAT(Draw("a.html"), HasSubstr("<script id=\"prepost-data\" type=\"text/plain\">"));
  EXPECT_EQ(Draw("a.html"), Draw("a.html"));
  EXPECT_THAT(Draw("g.dot", {"--view", "graph"}), StartsWith("digraph"));
  EXPECT_THAT(Draw("g.svg", {"--view", "graph"}), HasSubstr("<svg"));
  Command to_stdout({"draw", plan_});
  EXPECT_EQ(to_stdout.Wait(), 0);
  EXPECT_EQ(to_stdout.out(), Draw("a.svg"));
}

// Addresses, hash orders or dates that get into a picture show only between processes.
TEST_F(DrawTest, TheSameBytesFromRunToRun) {
  Compile("13", "10");
  for (const char* view : {"spacetime", "graph", "tree", "queues"}) {
    const std::vector<std::string> flags = {"--view", view, "--node", "3"};
    const std::string once = Draw("once.svg", flags);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(Draw("again.svg", flags) == once) << view;
  }
}

TEST_F(DrawTest, RefusesWithTheFlagsThatNarrow) {
  Compile("16", "32");
  ExpectRefused({"--view", "graph", "-o", folder_ / "g.svg"}, 1, "--rounds");
  ExpectRefused({"--view", "grpah"}, 2, "did you mean 'graph'?");
  ExpectRefused({"-o", folder_ / "a.sgv"}, 2, "did you mean 'svg'?");
  ExpectRefused({"-o", folder_ / "a.dot"}, 2, "--view graph");
  ExpectRefused({"--rounds", "5:2"}, 2, "rounds");
  ExpectRefused({"--node", "16"}, 1, "no node 16: the plan has nodes 0 to 15");
}

// Catches a topology that is read and not shown, of too few hosts, or without effect on a view.
TEST_F(DrawTest, ATopologyShowsRacks) {
  const std::string racks = PREPOST_SOURCE_DIR "/examples/topologies/2x4.json";
  Compile("8", "4");
  for (const char* view : {"spacetime", "tree", "graph"}) {
    EXPECT_THAT(Draw("a.svg", {"--view", view, "--topology", racks}), HasSubstr("rack r2")) << view;
    EXPECT_EQ(Draw("a.svg", {"--view", view}).find("rack"), std::string::npos) << view;
  }
  EXPECT_THAT(Draw("g.dot", {"--view", "graph", "--topology", racks}), HasSubstr("cluster_rack4"));
  ExpectRefused({"--view", "queues", "--node", "1", "--topology", racks}, 2, "--topology is for");
  ExpectRefused({"--topology", folder_ / "none"}, 1, "cannot read");
  ExpectRefused({"--topology", "-", "--trace", "-"}, 2, "only one of");
  Compile("9", "4");
  ExpectRefused({"--topology", racks}, 1, "the topology has 8 hosts, the plan 9 nodes");
}

class DrawTraceTest : public DrawTest {
 protected:
  DrawTraceTest() {
    Compile("5", "30");
    test::WriteBytes(other_ / "image", std::vector<std::byte>(30));
    Command run(
        {"run", plan_, "--input", other_ / "image", "--executor", "offload", "--trace", trace_});
    EXPECT_EQ(run.Wait(), 0) << run.err();
  }
  void WriteTrace(const std::string& text) { std::ofstream(trace_) << text; }

  test::TempFolder other_;
  const std::string trace_ = other_ / "trace.json";
};

TEST_F(DrawTraceTest, TimesAreDrawn) {
  EXPECT_THAT(Draw("a.svg", {"--trace", trace_}), HasSubstr("30 blocks, 32 rounds, measured"));
  EXPECT_THAT(Draw("a.svg", {"--view", "tree", "--trace", trace_}),
              ContainsRegex(">node 4, [0-9.]+ [um]?s<"));
  EXPECT_EQ(Draw("a.svg", {"--trace", trace_}),
            Draw("b.svg", {"--trace", trace_, "--trace", trace_}));
}

TEST_F(DrawTraceTest, TracesThatAreWrongAreRefused) {
  const std::string text = test::ReadText(trace_);
  ExpectRefused({"--trace", other_ / "none"}, 1, "cannot read");
  ExpectRefused({"--trace", trace_, "--view", "graph"}, 2, "--trace is for spacetime and tree");
  WriteTrace(text.substr(0, text.size() / 2));
  ExpectRefused({"--trace", trace_}, 1, "trace.json:");
  WriteTrace(std::regex_replace(text, std::regex("\"start_ns\":[0-9]+"), "\"start_ns\":1e300"));
  ExpectRefused({"--trace", trace_}, 1, "/otherData/start_ns: expected an integer");
  WriteTrace(text);
  Compile("5", "31");
  ExpectRefused({"--trace", trace_}, 1, "the trace is of another plan: found 30, the plan has 31");
}

// Catches a tree that is not upside down, combines that look like receives, and ranges of which one
// block is shown.
TEST_F(DrawTest, Collectives) {
  const auto compile = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"compile", "--nodes", "6", "--message-bytes", "6KiB",
                                 "--block-bytes", "1KiB", "-o", plan_});
    Command command(flags);
    ASSERT_EQ(command.Wait(), 0) << command.err();
  };
  compile({"--collective", "allreduce", "--combine", "sum:float32", "--algorithm", "halving"});
  EXPECT_THAT(Draw("a.svg"),
              AllOf(HasSubstr("allreduce sum:float32, halving: 6 nodes"), HasSubstr("+b0-2 from 3"),
                    HasSubstr("b3-5 to 3"), HasSubstr("combines blocks 0 to 2 from node 3"),
                    Not(HasSubstr("(root)"))));
  EXPECT_THAT(Draw("a.svg", {"--view", "tree", "--node", "4", "--block", "1"}),
              AllOf(HasSubstr("what the value of block 1 at node 1 is made of: 6 nodes, depth 2; "
                              "node 4 is sent it whole"),
                    HasSubstr("its value leaves in round")));
  EXPECT_THAT(Draw("a.svg", {"--view", "graph"}), HasSubstr("combine b0&#45;2 from 3"));
  EXPECT_THAT(Draw("a.svg", {"--node", "3"}), HasSubstr("only node 3"));
  EXPECT_THAT(Draw("p.html"), HasSubstr("<title>allreduce sum:float32, halving: 6 nodes"));
  ExpectRefused({"--view", "queues", "--node", "0", "-o", folder_ / "q.html"}, 1,
                "a plan of allreduce, and this takes plans of multicasts");
  compile({"--collective", "gather", "--algorithm", "binomial", "--root", "2"});
  EXPECT_THAT(Draw("a.svg"), AllOf(HasSubstr("node 2 (root)"), HasSubstr("receives nothing")));
  EXPECT_THAT(Draw("a.svg", {"--view", "tree", "--block", "30"}), HasSubstr("the way of block 30"));
  compile({"--collective", "reduce_scatter", "--combine", "max:int32"});
  ExpectRefused({"--view", "tree", "--node", "0", "--block", "30"}, 1,
                "node 0 does not want block 30");
}

TEST_F(DrawTest, ViewsSayWhatTheyNeed) {
  Compile("4", "300");
  ExpectRefused({"--view", "treee"}, 2, "did you mean 'tree'?");
  ExpectRefused({"--view", "tree", "--block", "0", "--block", "1"}, 2, "one --block");
  ExpectRefused({"--view", "tree", "--rounds", "0:1"}, 2, "--rounds");
  ExpectRefused({"--view", "tree", "--block", "300"}, 1, "no block 300");
  ExpectRefused({"--view", "queues"}, 2, "--node");
  ExpectRefused({"--view", "queues", "--node", "1"}, 1, "--rounds first:last");
  ExpectRefused({"--view", "queues", "--node", "1", "-o", folder_ / "q.dot"}, 2, "no dot form");
  EXPECT_THAT(Draw("q.svg", {"--view", "queues", "--node", "1", "--rounds", "3:9"}),
              HasSubstr("WAIT CQ "));
  EXPECT_THAT(Draw("t.svg", {"--view", "tree", "--block", "299"}),
              HasSubstr("the way of block 299"));
}

// docs/compiler.md shows every schedule as it is drawn now; README.md one of them, with its page.
TEST_F(DrawTest, PicturesOfTheSchedules) {
  for (const Schedule* schedule : Schedules()) {
    const std::string name(schedule->name());
    const std::string algorithm = name.starts_with("kary") ? name + "=2" : name;
    std::vector<std::string> topology;
    if (name.starts_with("rack")) {
      topology = {"--topology", PREPOST_SOURCE_DIR "/examples/topologies/2x4.json"};
    }
    std::vector<std::string> flags = {
        "compile", "--nodes",       "8",    "--algorithm", algorithm, "--message-bytes",
        "4MiB",    "--block-bytes", "1MiB", "-o",          plan_};
    flags.insert(flags.end(), topology.begin(), topology.end());
    ASSERT_EQ(Command(flags).Wait(), 0) << name;
    test::ExpectGolden("../../docs/images/schedules/" + name + ".svg", Draw("a.svg", topology));
    if (name == "binomial_pipeline")
      test::ExpectGolden("../../docs/pages/" + name + ".html", Draw("a.html"));
    EXPECT_THAT(test::ReadText(PREPOST_SOURCE_DIR "/docs/compiler.md"),
                HasSubstr("images/schedules/" + name + ".svg"));
  }
}

}  // namespace
}  // namespace prepost::draw_test
