// SPDX-License-Identifier: Apache-2.0
//
// `prepost lower` as a user sees it: what it prints, writes and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::lower_test {
namespace {

using test::Command;
using test::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;

class LowerCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Command compile({"compile", "--nodes", "3", "--algorithm", "chain", "--ready", "barrier",
                     "--message-bytes", "190", "--block-bytes", "100", "-o", plan_});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  std::string Lower(std::vector<std::string> more, int code = 0) {
    more.insert(more.begin(), {"lower", plan_});
    Command lower(more);
    EXPECT_EQ(lower.Wait(), code);
    return code == 0 ? lower.out() : lower.err();
  }

  TempFolder folder_;
  const std::string plan_ = folder_ / "plan.json";
};

TEST_F(LowerCommandTest, PrintsALinePerNode) {
  EXPECT_EQ(Lower({}),
            "node 0: 2 QPs, 3 CQs, 4 WQEs, 1 WAIT, 0 SEND_ENs, 2 doorbells, 0 re-arms, 576 bytes "
            "of rings\n"
            "node 1: 3 QPs, 4 CQs, 9 WQEs, 4 WAITs, 0 SEND_ENs, 2 doorbells, 0 re-arms, 1312 bytes "
            "of rings\n"
            "node 2: 2 QPs, 3 CQs, 4 WQEs, 1 WAIT, 0 SEND_ENs, 1 doorbell, 0 re-arms, 544 bytes "
            "of rings\n"
            "all: 3 nodes, 7 QPs, 10 CQs, 17 WQEs, 2432 bytes of rings; fits connectx5, tiny\n");
  EXPECT_THAT(Lower({"--json", "--node", "1"}), HasSubstr("\"waits\": 4"));
}

// A plan that both kinds of engines can be given.
TEST_F(LowerCommandTest, ListsDeferredWork) {
  Command lower({"lower", plan_, "--device", "fabric:sockets", "--node", "1", "--list"});
  if (lower.Wait() == 3) GTEST_SKIP() << lower.err();
  EXPECT_THAT(lower.out(), HasSubstr("received from 0 lane 0 >= 1: send block 0 to 2 (op 2)\n"));
  EXPECT_THAT(Lower({"--device", "fabric:sockets"}),
              HasSubstr("node 2: 1 endpoints, 5 counters, "));
  EXPECT_THAT(Lower({"--device", "mlx5_0"}, 2), HasSubstr("expected a provider of libfabric"));
}

TEST_F(LowerCommandTest, ListsEveryEntry) {
  EXPECT_THAT(
      Lower({"--list", "--node", "1"}),
      HasSubstr("WAIT receives 0>1 blocks until CQE 0              ; node 1 op 2 (send 1>2:0)"));
}

// The bytes stand in lines that --from-list skips.
TEST_F(LowerCommandTest, ListsBytes) {
  const std::string list = Lower({"--list"});
  const std::string with_bytes = Lower({"--list", "--bytes"});
  EXPECT_THAT(with_bytes,
              HasSubstr("    rq 000000  RECV [0, 100)                                   "
                        "  ; node 1 op 0 (recv 0>1:0)\n"
                        "      # 00  00000064 00000000 00000000 00000000\n"
                        "    rq 000010  RECV [100, 190)"));
  std::istringstream lines(with_bytes);
  std::string without;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("      # ")) without += line + "\n";
  }
  EXPECT_EQ(without, list);
  std::ofstream(folder_ / "queues.txt") << with_bytes;
  // Whatever they were lowered for.
  const std::string all = Lower({});
  EXPECT_EQ(test::OutputOf({"lower", plan_, "--from-list", folder_ / "queues.txt"}),
            all.substr(0, all.find("; fits")) + "\n");
  EXPECT_THAT(Lower({"--bytes"}, 2), HasSubstr("--bytes requires --list"));
}

// A finding has the names of the list, and the numbers of the objects.
TEST_F(LowerCommandTest, FindingsHaveTheNamesOfTheList) {
  std::string text = Lower({"--list"});
  const std::string wait = "WAIT receives 0>1 blocks until CQE 0";
  ASSERT_NE(text.find(wait), std::string::npos);
  text.replace(text.find(wait), wait.size(), "WAIT receives 0>1 blocks until CQE 9");
  std::ofstream(folder_ / "queues.txt") << text;
  EXPECT_THAT(Lower({"--from-list", folder_ / "queues.txt"}, 1),
              HasSubstr("node 1: QP 1<>2 blocks (0x1001): WQE 0: wait: waits for CQE 9 of CQ "
                        "receives 0>1 blocks (0x401), which gets 2"));
}

// A listing is as good as the plan; with the plan it is checked.
TEST_F(LowerCommandTest, ReadsListings) {
  const std::string list = folder_ / "queues.txt";
  const std::string text = Lower({"--list"});
  std::ofstream(list) << text;
  const auto run = [&](std::vector<std::string> arguments, int code) {
    arguments.insert(arguments.begin(), "lower");
    Command lower(arguments);
    EXPECT_EQ(lower.Wait(), code) << lower.err();
    return lower.err();
  };
  for (const char* name : {"queues.bin", "queues.json"}) {
    const std::string from_plan = folder_ / name,
                      from_list = folder_ / (std::string("again_") + name);
    Lower({"-o", from_plan});
    run({"--from-list", list, "-o", from_list}, 0);
    EXPECT_EQ(test::ReadText(from_list), test::ReadText(from_plan));
  }
  EXPECT_EQ(run({plan_, "--from-list", list}, 0), "");
  // Someone takes a WAIT for another completion, and then writes nonsense.
  std::string wrong = text;
  wrong.replace(wrong.find("until CQE 1"), 11, "until CQE 0");
  std::ofstream(list) << wrong;
  const std::string findings = run({plan_, "--from-list", list}, 1);
  EXPECT_THAT(findings, HasSubstr("\n  node ")) << "a line each";
  EXPECT_THAT(findings, Not(HasSubstr("\\x0a")));
  // An op that is another one's, and blocks that are not the plan's.
  wrong = text;
  wrong.replace(wrong.find("; node 1 op 2"), 13, "; node 1 op 9");
  std::ofstream(list) << wrong;
  const std::string labelled = folder_ / "labelled.json";
  EXPECT_EQ(run({plan_, "--from-list", list, "-o", labelled}, 0), "");
  EXPECT_EQ(test::ReadText(labelled), test::ReadText(folder_ / "queues.json"));
  wrong = text;
  wrong.replace(wrong.find("blocks of 100"), 13, "blocks of 99");
  std::ofstream(list) << wrong;
  EXPECT_THAT(run({plan_, "--from-list", list}, 1), HasSubstr("in blocks of 99, the plan"));
  std::ofstream(list) << text << "nonsense";
  EXPECT_THAT(run({"--from-list", list}, 1), HasSubstr("queues.txt:"));
  EXPECT_THAT(run({}, 2), HasSubstr("PLAN or --from-list is needed"));
  EXPECT_THAT(run({"--from-list", list, "--node", "1"}, 2), HasSubstr("excludes"));
}

// A listing is not cluttered; anything else says what could not be checked, and so does a listing
// of one node that is taken for the whole plan.
TEST_F(LowerCommandTest, SaysWhichNodesWereCompared) {
  const std::string note =
      "prepost: note: 1 of 3 nodes compared with the plan (1); whether nodes wait for each other "
      "in a circle shows only when all are\n";
  const std::string list = folder_ / "queues.txt";
  const auto error_of = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"lower", plan_});
    Command lower(arguments);
    EXPECT_EQ(lower.Wait(), 0) << lower.err();
    std::ofstream(list) << lower.out();
    return lower.err();
  };
  EXPECT_EQ(error_of({"--node", "1"}), note);
  EXPECT_EQ(error_of({"--node", "1", "--list"}), "");
  EXPECT_EQ(error_of({"--from-list", list}), note);
}

TEST_F(LowerCommandTest, WritesFiles) {
  const std::string json = folder_ / "queues.json";
  EXPECT_EQ(Lower({"-o", json}), "");
  EXPECT_THAT(test::ReadText(json), HasSubstr("\"format\": \"prepost.queues\""));
  const std::string binary = folder_ / "queues.bin";
  EXPECT_EQ(Lower({"-o", binary}), "");
  EXPECT_TRUE(test::ReadText(binary).starts_with("PPQ2"));
}

// Catches a reason that only says which plans there are, and one without what does carry the plan
// out.
TEST_F(LowerCommandTest, SaysWhyNoNicCarriesACollective) {
  const std::string instead = "; run and simulate take it, driven by CPUs\n";
  for (const auto& [flags, why] :
       {std::pair(std::vector<std::string>{"allreduce", "--combine", "sum:float32"},
                  "a plan of allreduce, which combines: a NIC does not, CPUs do"),
        std::pair(std::vector<std::string>{"allgather"},
                  "a plan of allgather: queues of NICs carry multicasts")}) {
    std::vector<std::string> compile = {"compile", "--nodes", "3",   "--message-bytes",
                                        "64",      "-o",      plan_, "--collective"};
    compile.insert(compile.end(), flags.begin(), flags.end());
    test::OutputOf(compile);
    EXPECT_THAT(Lower({}, 1), HasSubstr(why + instead));
    Command compare({"compare", plan_});
    EXPECT_EQ(compare.Wait(), 1);
    EXPECT_THAT(compare.err(), HasSubstr(why + instead));
  }
}

TEST_F(LowerCommandTest, RefusesWithTheNumbers) {
  const std::string device = folder_ / "device.json";
  std::ofstream(device) << R"({"format": "prepost.device", "version": "1.0", "name": "one CQE",
      "limits": {"cq_entries": 1}, "capabilities": {"cd": true, "cq_oi": true}})";
  EXPECT_EQ(
      Lower({"--device-profile", device}, 1),
      "prepost: " + plan_ + ": node 0: CQ of sends 0>1 blocks needs 2 entries, the limit is 1\n");
  EXPECT_EQ(Lower({"--node", "3"}, 1),
            "prepost: " + plan_ + ": no node 3: the plan has nodes 0 to 2\n");
}

}  // namespace
}  // namespace prepost::lower_test
