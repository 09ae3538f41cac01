// SPDX-License-Identifier: Apache-2.0
//
// prepost export, import and diff from outside: forms by suffix, what is said where, exit codes,
// and nothing left behind by what is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::exchange_test {
namespace {

using test::Command;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ExchangeTest : public ::testing::Test {
 protected:
  void Compile(const std::string& path, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"compile", "-o", path});
    Command compile(flags);
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  void Compile() {
    Compile(plan_, {"--nodes", "5", "--message-bytes", "25", "--block-bytes", "10", "--algorithm",
                    "binomial_pipeline"});
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  /// Runs what must be refused in one line, and leave no file but those that are there.
  void ExpectRefused(const std::vector<std::string>& arguments, int code, const std::string& text) {
    test::ExpectRefused(arguments, code, text, folder_);
  }

  test::TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
};

TEST_F(ExchangeTest, ExportsBySuffixOrFormat) {
  Compile();
  for (const auto& [file, format, start] :
       {std::tuple("a.goal", "goal", "num_ranks 5\n"), std::tuple("a.graphml", "graphml", "<?xml"),
        std::tuple("a.xml", "msccl", "<algo ")}) {
    Command by_suffix({"export", plan_, "-o", folder_ / file});
    EXPECT_EQ(by_suffix.Wait(), 0) << by_suffix.err();
    EXPECT_EQ(by_suffix.out(), "");
    EXPECT_LE(by_suffix.err_lines(), 1u);
    Command to_stdout({"export", plan_, "--format", format});
    EXPECT_EQ(to_stdout.Wait(), 0);
    EXPECT_THAT(to_stdout.out(), StartsWith(start));
    EXPECT_EQ(to_stdout.out(), test::ReadText(folder_ / file));
  }
}

TEST_F(ExchangeTest, ExportRefuses) {
  Compile();
  ExpectRefused({"export", plan_}, 2, "--format is needed");
  ExpectRefused({"export", plan_, "-o", folder_ / "a.gaol"}, 2, "did you mean 'goal'?");
  ExpectRefused({"export", plan_, "-o", folder_ / "a"}, 2, "no suffix");
  ExpectRefused({"export", plan_, "--format", "mscll"}, 2, "did you mean 'msccl'?");
  Compile(plan_, {"--nodes", "2", "--message-bytes", "257", "--block-bytes", "1"});
  ExpectRefused({"export", plan_, "-o", folder_ / "a.xml"}, 1, "257 blocks");
}

TEST_F(ExchangeTest, ImportReadsWhatExportWrites) {
  Compile();
  const std::string goal = folder_ / "a.goal";
  const std::string again = folder_ / "again.json";
  ASSERT_EQ(Command({"export", plan_, "-o", goal}).Wait(), 0);
  Command import({"import", goal, "-o", again, "--ready", "window=1", "--send-window", "1"});
  EXPECT_EQ(import.Wait(), 0) << import.err();
  EXPECT_THAT(import.err(), HasSubstr("note: " + goal + ": 12 messages without data left out"));
  Command verify({"verify", again});
  EXPECT_EQ(verify.Wait(), 0);
  Command diff({"diff", plan_, again});
  EXPECT_EQ(diff.Wait(), 1);
  EXPECT_EQ(diff.out(),
            "same messages and order, different header\nheader: 1\n  algorithm: "
            "binomial_pipeline, goal\n");
}

TEST_F(ExchangeTest, ImportRefusesAtALine) {
  const std::string deadlock = Write(
      "a.goal",
      "num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\na: recv 1b from 0\na requires b\n}\n");
  ExpectRefused({"import", deadlock}, 1, "a.goal:7: no op of rank 1 above has the label 'b'");
  const std::string twice = Write(
      "b.goal",
      "num_ranks 3\nrank 0 {\nsend 1b to 1 tag 1\nsend 1b to 2 tag 1\nsend 1b to 1 tag 2\n}\n"
      "rank 1 {\nrecv 1b from 0 tag 1\nrecv 1b from 0 tag 2\n}\nrank 2 {\nrecv 1b from 0 tag 1\n}");
  ExpectRefused({"import", twice, "-o", folder_ / "b.json"}, 1, "b.goal:11: value: ");
  // More receives than there are scratch buffers, unless credits hold them back: only the plan with
  // credits is verified.
  std::string many = "num_ranks 2\nrank 0 {\n", takes;
  for (int i = 0; i < 66'000; ++i) {
    many += "send 8b to 1\n";
    takes += fmt::format("r{0}: recv 8b from 0\nc{0}: calc 1\nc{0} requires r{0}\n", i);
  }
  many += "}\nrank 1 {\n" + takes + "}\n";
  ExpectRefused({"import", Write("c.goal", many), "--collective", "reduce", "--root", "1",
                 "--combine", "sum:float32", "--ready", "window=1"},
                1, "c.goal:66008: value: block 0, made of {0-1}");
  ExpectRefused({"import", folder_ / "none.goal"}, 1, "cannot read");
  ExpectRefused({"import", twice, "--block-bytes", "0"}, 2, "--block-bytes");
  ExpectRefused({"import", twice, "--ready", "windows=1"}, 2, "--ready");
  ExpectRefused({"import", twice, "--send-window", "0"}, 2, "--send-window");
}

TEST_F(ExchangeTest, DiffExitsLikeDiff) {
  Compile();
  const std::string chain = folder_ / "chain.json";
  Compile(chain,
          {"--nodes", "5", "--message-bytes", "25", "--block-bytes", "10", "--algorithm", "chain"});
  Command same({"diff", plan_, plan_});
  EXPECT_EQ(same.Wait(), 0);
  EXPECT_EQ(same.out(), "same\n");
  Command different({"diff", plan_, chain});
  EXPECT_EQ(different.Wait(), 1);
  EXPECT_THAT(different.out(), StartsWith("different routes: 10 of 12 messages\n"));
  EXPECT_EQ(different.err_lines(), 1u);
  Command json({"diff", plan_, chain, "--json"});
  EXPECT_EQ(json.Wait(), 1);
  const nlohmann::json result = nlohmann::json::parse(json.out());
  EXPECT_EQ(result["same"], false);
  EXPECT_EQ(result["sections"][1]["name"], "only in a");
  EXPECT_EQ(result["sections"][1]["count"], 10);
  ExpectRefused({"diff", "-", "-"}, 2, "stdin");
  ExpectRefused({"diff", plan_, Write("bad.json", "{}")}, 1, "bad.json");
}

// A combine is a recv and a calc that whoever waits for the combine requires: catches sends that
// leave before the sum is there.
TEST_F(ExchangeTest, CombinesBecomeCalcs) {
  const std::string plan = folder_ / "reduce.json";
  Command compile({"compile", "--collective", "reduce", "--combine", "sum:float64", "--algorithm",
                   "chain", "--nodes", "3", "--message-bytes", "16", "--block-bytes", "8",
                   "--ready", "barrier", "-o", plan});
  ASSERT_EQ(compile.Wait(), 0) << compile.err();
  Command goal({"export", plan, "--format", "goal"});
  ASSERT_EQ(goal.Wait(), 0) << goal.err();
  EXPECT_THAT(goal.err(), HasSubstr("a combine is a recv and a calc of 1 ns for 4 bytes"));
  EXPECT_THAT(goal.out(), HasSubstr("rank 1 {\n"
                                    "l1: recv 8b from 2 tag 0\n"
                                    "l5: calc 2\n"
                                    "l5 requires l1\n"
                                    "l2: send 8b to 0 tag 0\n"
                                    "l2 requires l5\n"
                                    "l3: recv 8b from 2 tag 1\n"
                                    "l7: calc 2\n"
                                    "l7 requires l3\n"
                                    "l7 requires l5\n"
                                    "l4: send 8b to 0 tag 1\n"
                                    "l4 requires l7\n"));
  Command msccl({"export", plan, "--format", "msccl"});
  ASSERT_EQ(msccl.Wait(), 0) << msccl.err();
  EXPECT_THAT(msccl.out(), HasSubstr("coll=\"reduce\""));
  EXPECT_THAT(msccl.out(),
              HasSubstr("type=\"rrc\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"s\" dstoff=\"0\""));
}

// There and back with the flags that export's note says. Catches a note that is not what import
// takes.
TEST_F(ExchangeTest, CollectivesComeBack) {
  const std::string goal = folder_ / "a.goal", again = folder_ / "again.json";
  struct Case {
    const char *collective, *algorithm, *combine;
  };
  for (const auto& [collective, algorithm, combine] :
       {Case{"allreduce", "halving", "sum:float32"}, Case{"reduce", "chain", "max:int32"},
        Case{"alltoall", "bruck", ""}, Case{"gather", "binomial", ""},
        Case{"barrier", "auto", ""}}) {
    std::vector<std::string> flags = {"--nodes",       "5",       "--collective", collective,
                                      "--algorithm",   algorithm, "--ready",      "barrier",
                                      "--send-window", "none"};
    if (*combine != 0) flags.insert(flags.end(), {"--combine", combine});
    if (std::string_view(collective) != "barrier")
      flags.insert(flags.end(), {"--message-bytes", "404", "--block-bytes", "40"});
    Compile(plan_, flags);
    Command exported({"export", plan_, "-o", goal});
    ASSERT_EQ(exported.Wait(), 0) << exported.err();
    std::string hint = exported.err().substr(exported.err().find("(import takes ") + 14);
    hint = hint.substr(0, hint.find(')'));
    std::vector<std::string> import = {"import", goal, "-o", again};
    std::istringstream words(hint);
    for (std::string word; words >> word;) import.push_back(word);
    Command imported(import);
    ASSERT_EQ(imported.Wait(), 0) << hint << ": " << imported.err();
    Command diff({"diff", plan_, again});
    diff.Wait();
    EXPECT_THAT(diff.out(), ::testing::AnyOf(StartsWith("same messages and order"),
                                             StartsWith("same messages, different rounds")))
        << collective << "\n"
        << diff.out();
  }
  ExpectRefused({"import", goal, "--collective", "allredcue"}, 2, "did you mean 'allreduce'?");
  ExpectRefused({"import", goal, "--collective", "reduce"}, 1,
                "--combine: what reduce does to values is missing");
  ExpectRefused({"import", goal, "--combine", "sum:int8"}, 1,
                "--combine: multicast combines nothing");
  ExpectRefused({"import", goal, "--message-bytes", "7"}, 2, "it is for other collectives");
}

}  // namespace
}  // namespace prepost::exchange_test
