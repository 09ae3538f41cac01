// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate --sweep from outside: rows that are what the single commands print, CSV and JSON
// that agree, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/read_csv.h"
#include "tests/support/simulate_fixture.h"

namespace prepost::simulate_sweep_test {
namespace {

using test::Command;
using test::ReadCsv;
using test::SimulateSweepTest;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Catches values that reach the wrong flag, rows that share a plan which they should not, and
// threads that get into each other's way.
TEST_F(SimulateSweepTest, EachRowIsWhatItsCommandPrints) {
  const std::vector<std::string> axes = {"--message-bytes", "1MiB",
                                         "--block-bytes",   "64KiB",
                                         "--sweep",         "nodes=2:8:+3",
                                         "--sweep",         "wait=polling,interrupt",
                                         "--sweep",         "host.completion=0us:2us:+1us",
                                         "--sweep",         "mode=inline,managed",
                                         "--per-node"};
  const Json sweep = SimulateJson(axes);
  ASSERT_EQ(sweep["rows"].size(), 3u * 2 * 3 * 2);
  EXPECT_EQ(sweep["modelled"], true);
  for (size_t i = 0; i < sweep["rows"].size(); i += 7) {
    const Json& row = sweep["rows"][i];
    const Json& values = row["values"];
    const Json alone = SimulateJson(
        {"--message-bytes", "1MiB", "--block-bytes", "64KiB", "--per-node", "--nodes",
         values["nodes"].dump(), "--wait", values["wait"], "--mode", values["mode"], "--set",
         "host.completion=" + values["host.completion_seconds"].dump() + "s"});
    EXPECT_EQ(row["simulation"]["offload"], alone["offload"]) << values;
    EXPECT_EQ(row["simulation"]["cpu"], alone["cpu"]) << values;
    EXPECT_EQ(row["simulation"]["nodes"], values["nodes"]);
  }
  std::vector<std::string> in_turn = axes;
  in_turn.insert(in_turn.end(), {"--jobs", "1"});
  EXPECT_EQ(SimulateJson(in_turn)["rows"], sweep["rows"]);
}

TEST_F(SimulateSweepTest, CsvHasTheSameFiguresWithTheirUnits) {
  const std::vector<std::string> axes = {"--nodes",         "4",
                                         "--message-bytes", "4MiB",
                                         "--sweep",         "block-bytes=64KiB:4MiB:x4",
                                         "--sweep",         "nic.wqe=0ns,100ns"};
  std::vector<std::string> csv = axes;
  csv.insert(csv.end(), {"--csv", "-"});
  const std::string text = Simulate(csv);
  EXPECT_THAT(text, HasSubstr("# modelled, with the profile Fractus ("));
  EXPECT_THAT(text, HasSubstr("# prepost simulate --profile"));
  const auto lines = ReadCsv(text);
  const Json json = SimulateJson(axes);
  ASSERT_EQ(lines.size(), 2 * json["rows"].size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const Json& row = json["rows"][i / 2];
    const char* executor = i % 2 == 0 ? "offload" : "cpu";
    EXPECT_EQ(lines[i].at("executor"), executor);
    EXPECT_EQ(lines[i].at("block_bytes"), row["values"]["block_bytes"].dump());
    EXPECT_EQ(std::stod(lines[i].at("nic.wqe_seconds")),
              row["values"]["nic.wqe_seconds"].get<double>());
    EXPECT_EQ(std::stod(lines[i].at("completion_seconds")),
              row["simulation"][executor]["completion_seconds"].get<double>());
    EXPECT_EQ(lines[i].at("error"), "");
  }
}

// Catches a column that stands there twice, of which a reader takes either: each executor's
// figures, and which executor it is, are swept here.
TEST_F(SimulateSweepTest, CsvNamesAColumnOnce) {
  const auto lines = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"--nodes", "4", "--message-bytes", "1MiB", "--csv", "-", "--sweep"});
    return ReadCsv(Simulate(flags));
  };
  const auto waits = lines({"wait=polling,interrupt", "--sweep", "mode=inline,managed"});
  ASSERT_EQ(waits.size(), 8u);
  for (size_t i = 0; i < waits.size(); ++i) {
    const std::string wait = i < 4 ? "polling" : "interrupt",
                      mode = i / 2 % 2 == 0 ? "inline" : "managed";
    EXPECT_EQ(waits[i].at("wait"), wait);
    EXPECT_EQ(waits[i].at("mode"), mode);
    EXPECT_EQ(waits[i].at("variant"), i % 2 == 0 ? mode : wait);
  }
  const auto one_each = lines({"executor=offload,cpu"});
  ASSERT_EQ(one_each.size(), 2u);
  EXPECT_EQ(one_each[0].at("executor"), "offload");
  EXPECT_EQ(one_each[1].at("executor"), "cpu");
  EXPECT_FALSE(one_each[0].contains("chosen_executor"));
  const auto both =
      lines({"executor=cpu,both", "--causes", "--algorithm", "chain", "--block-bytes", "64KiB"});
  ASSERT_EQ(both.size(), 3u);
  for (size_t i = 0; i < both.size(); ++i) {
    EXPECT_EQ(both[i].at("executor"), i == 0 ? "cpu" : "both");
    EXPECT_EQ(both[i].at("chosen_executor"), i == 1 ? "offload" : "cpu");
  }
  EXPECT_EQ(both[0].at("known_seconds"), both[2].at("known_seconds"));
}

// Catches rows that vanish, and failures that take the others with them.
TEST_F(SimulateSweepTest, WhatCannotBeCompiledIsToldInItsRow) {
  const std::vector<std::string> axes = {
      "--message-bytes", "1MiB", "--sweep", "nodes=2,4,6",
      "--root",          "3",    "--sweep", "algorithm=chain,sequential"};
  const Json json = SimulateJson(axes);
  ASSERT_EQ(json["rows"].size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const bool is_right = i / 2 != 0;
    EXPECT_EQ(json["rows"][i]["error"].is_null(), is_right);
    EXPECT_EQ(json["rows"][i]["simulation"].is_null(), !is_right);
  }
  EXPECT_THAT(json["rows"][0]["error"].get<std::string>(), HasSubstr("--root: "));
  EXPECT_THAT(Simulate(axes), HasSubstr("--root: "));
  ExpectRefused({"--message-bytes", "1MiB", "--root", "3", "--sweep", "nodes=1,2"}, 1,
                "none of the 2 combinations can be simulated");
  // One row's slow link is too slow for the model.
  const Json slow =
      SimulateJson({"--nodes", "4", "--message-bytes", "1MiB", "--sweep", "slow=1=1e-10,1=0.5"});
  EXPECT_THAT(slow["rows"][0]["error"].get<std::string>(), HasSubstr("--slow 1=1e-10: the port"));
  EXPECT_TRUE(slow["rows"][1]["error"].is_null());
}

TEST_F(SimulateSweepTest, PlansAndRolledPlansAreReadOnce) {
  const std::string rolled = folder_ / "rolled.json", plan = folder_ / "plan.json";
  for (const auto& [bytes, file] :
       {std::pair<std::string, std::string>("any", rolled), {"2MiB", plan}}) {
    Command compile({"compile", "--nodes", "4", "--message-bytes", bytes, "--block-bytes", "1MiB",
                     "--algorithm", "binomial_pipeline", "-o", file});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  const Json sizes = SimulateJson({rolled, "--sweep", "message-bytes=1MiB,2MiB"});
  const Json seeds = SimulateJson({plan, "--sweep", "seed=1:8:+1"});
  ASSERT_EQ(seeds["rows"].size(), 8u);
  EXPECT_EQ(sizes["rows"][1]["simulation"]["cpu"], seeds["rows"][7]["simulation"]["cpu"]);
  ExpectRefused({plan, "--sweep", "nodes=2,3"}, 2,
                "--sweep nodes: it is for a SPEC, and this is a plan");
  ExpectRefused({plan, "--seed", "1", "--sweep", "wait=polling,hybrid", "--sweep", "ready=retry"},
                2, "--sweep ready: it is for a SPEC, and this is a plan");
  ExpectRefused({rolled, "--message-bytes", "3", "--sweep", "ready=retry"}, 2,
                "--sweep ready: it is for a SPEC");
  ExpectRefused({plan, "--ready", "retry", "--sweep", "seed=1,2"}, 2,
                "prepost: --ready: it is for");
  ExpectRefused({plan, "--message-bytes", "3"}, 2,
                "--message-bytes: it is for a SPEC or a rolled plan");
  ExpectRefused({plan, "--sweep", "message-bytes=3"}, 2,
                "--sweep message-bytes: it is for a SPEC or a rolled plan");
  ExpectRefused({rolled}, 2, "a rolled plan is for every size");
}

// Catches rows after the first that find nothing there any more.
TEST_F(SimulateSweepTest, StdinIsEveryRows) {
  const std::string plan = folder_ / "plan.json", spec = folder_ / "spec.json",
                    workload = folder_ / "workload.json";
  Command compile({"compile", "--nodes", "4", "--message-bytes", "1MiB", "-o", plan});
  ASSERT_EQ(compile.Wait(), 0) << compile.err();
  std::ofstream(spec) << R"({"format": "prepost.spec", "version": "1.0", "collective": "multicast",
      "nodes": 4, "block_bytes": 65536, "message_bytes": 1048576})";
  std::ofstream(workload) << R"({"format": "prepost.workload", "version": "1.0", "hosts": 4,
      "spec": {"block_bytes": 65536}, "groups": [{"spec": {"message_bytes": 1048576}}]})";
  const auto rows = [&](std::vector<std::string> input, const std::string& from,
                        const std::string& sweep) {
    input.insert(input.begin(), {"simulate", "--profile", test::ProfilePath("fractus"), "--json",
                                 "--sweep", sweep});
    std::vector<std::string> wrapper;
    if (!from.empty()) wrapper = {"/bin/sh", "-c", "f=$0; exec \"$@\" < \"$f\"", from};
    Command command(input, wrapper);
    EXPECT_EQ(command.Wait(), 0) << command.err();
    Json found = Json::array();
    const Json all = Json::parse(command.out());
    for (const Json& row : all["rows"]) {
      EXPECT_TRUE(row["error"].is_null()) << row["error"];
      found.push_back({row["simulation"]["offload"], row["simulation"]["cpu"]});
    }
    EXPECT_EQ(found.size(), 2u);
    return found;
  };
  EXPECT_EQ(rows({"-"}, plan, "mode=inline,managed"), rows({plan}, "", "mode=inline,managed"));
  EXPECT_EQ(rows({"-"}, spec, "nodes=3,4"), rows({spec}, "", "nodes=3,4"));
  EXPECT_EQ(rows({"--workload", "-"}, workload, "wait=polling,interrupt"),
            rows({"--workload", workload}, "", "wait=polling,interrupt"));
}

// Catches rows with another one's profile, and heads that name one of them as that of all.
TEST_F(SimulateSweepTest, ProfilesAreSwept) {
  const std::string fractus = test::ProfilePath("fractus"), sierra = test::ProfilePath("sierra"),
                    tcp = test::ProfilePath("tcp-10g"), file = folder_ / "plot.svg";
  const std::vector<std::string> base = {"simulate", "--nodes", "4", "--message-bytes", "1MiB"};
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), base.begin(), base.end());
    return test::OutputOf(flags);
  };
  const std::string profiles = "profile=" + fractus + "," + sierra + "," + tcp;
  const Json json = Json::parse(run({"--sweep", profiles, "--json"}));
  EXPECT_TRUE(json["profile"].is_null());
  ASSERT_EQ(json["rows"].size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const std::string path = std::array{fractus, sierra, tcp}[i];
    const Json alone = Json::parse(run({"--profile", path, "--json"}));
    const Json& row = json["rows"][i]["simulation"];
    EXPECT_EQ(row["profile"], alone["profile"]);
    EXPECT_EQ(row["cpu"]["completion_seconds"], alone["cpu"]["completion_seconds"]);
    EXPECT_EQ(row.contains("offload"), path != tcp);
  }
  const std::string text = run({"--sweep", "block-bytes=64KiB,1MiB", "--sweep",
                                "profile=" + fractus + "," + sierra, "--plot", file});
  EXPECT_THAT(text,
              HasSubstr("modelled, with the profiles Fractus (" + fractus + ") and Sierra ("));
  EXPECT_THAT(test::ReadText(file), HasSubstr("modelled, with the profiles Fractus and Sierra<"));
  EXPECT_THAT(test::ReadText(file), HasSubstr("CPU-driven, sierra<"));
  EXPECT_THAT(run({"--sweep", profiles, "--csv", "-"}),
              HasSubstr("# modelled, with the profiles Fractus ("));
  test::ExpectRefused({"simulate", "--nodes", "4", "--message-bytes", "1MiB"}, 2,
                      "--profile is required", folder_);
  test::ExpectRefused(
      {"simulate", "--nodes", "4", "--message-bytes", "1MiB", "--sweep", "seed=1,2"}, 2,
      "--profile is required", folder_);
  test::ExpectRefused({"simulate", "--nodes", "4", "--message-bytes", "1MiB", "--sweep",
                       "profile=" + fractus + ",none.json"},
                      1, "none.json: cannot read", folder_);
}

// Catches what `auto` was, where nobody says it.
TEST_F(SimulateSweepTest, WhatIsChosenIsTold) {
  const std::vector<std::string> flags = {"--nodes",         "4",
                                          "--message-bytes", "8MiB",
                                          "--sweep",         "algorithm=chain,auto",
                                          "--sweep",         "block-bytes=auto,1MiB"};
  const Json rows = SimulateJson(flags)["rows"];
  const std::string text = Simulate(flags);
  std::vector<std::string> csv = flags;
  csv.insert(csv.end(), {"--csv", "-"});
  const auto lines = ReadCsv(Simulate(csv));
  ASSERT_EQ(lines.size(), 8u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Json& simulation = rows[i / 2]["simulation"];
    EXPECT_EQ(lines[i].at("chosen_algorithm"), simulation["algorithm"].get<std::string>());
    EXPECT_EQ(lines[i].at("chosen_block_bytes"), simulation["block_bytes"].dump());
    EXPECT_EQ(lines[i].at("algorithm"), i < 4 ? "chain" : "auto");
    EXPECT_FALSE(lines[i].contains("chosen_ready"));
  }
  EXPECT_THAT(text, HasSubstr("auto (" + lines[6].at("chosen_algorithm") + ")"));
  EXPECT_THAT(text, HasSubstr("auto (" + lines[0].at("chosen_block_bytes") + ")"));
}

TEST_F(SimulateSweepTest, RefusesWhatIsNoSweep) {
  const std::vector<std::string> base = {"--nodes", "4", "--message-bytes", "1MiB"};
  const auto expect = [&](std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), base.begin(), base.end());
    ExpectRefused(flags, code, message);
  };
  const auto sweep = [&](const std::string& text, const std::string& message) {
    expect({"--sweep", text}, 2, message);
  };
  sweep("nodes", "expected KEY=VALUES");
  sweep("node=2,3", "unknown key 'node'");
  sweep("json=1", "unknown key 'json'");
  sweep("jobs=1", "unknown key 'jobs'; known are profile, executor, wait, delay, slow,");
  sweep("csv=a", "unknown key 'csv'");
  sweep("trace=a.json,b.json", "unknown key 'trace'");
  sweep("nodes=2:8", "expected FIRST:LAST:xFACTOR or FIRST:LAST:+STEP");
  sweep("nodes=2:8:*2", "expected FIRST:LAST:xFACTOR or FIRST:LAST:+STEP");
  sweep("nodes=2:8:x1", "expected a factor above 1");
  sweep("nodes=0:8:x2", "a range with a factor begins above 0");
  sweep("nodes=2:8:+0", "expected a step above 0");
  sweep("nodes=8:2:+1", "ranges rise");
  sweep("nodes=1:1000000:+1", "1000000 values, and a sweep has at most 100000 rows");
  sweep("nodes=2,,3", "value 2 is empty");
  sweep("nodes=2,2", "'2' is there twice");
  sweep("nodes=2,x", "--sweep nodes: expected a whole number");
  sweep("nodes=0:4:+1", "--sweep nodes: '0' is not from 1 to 1048576");
  sweep("nodes=2,4000000", "--sweep nodes: '4000000' is not from 1 to 1048576");
  sweep("block-bytes=0,64KiB", "--sweep block-bytes: '0' is not from 1 to");
  sweep("wait=polling,x", "--sweep wait: unknown name 'x'");
  sweep("host.interrupt=1us:1MB/s:+1us", "units of one kind");
  sweep("host.complete=1us", "did you mean 'completion'");
  sweep("host=1us", "unknown key 'host'");
  sweep("host.completion=1us,2h", "--sweep host.completion=2h: /host/completion/value: '2h'");
  expect({"--set", "host.poll=3us", "--sweep", "host.poll=1us,2us"}, 2,
         "--sweep host.poll: it is already set by --set host.poll=3us");
  expect({"--preempt", "rate=1,for=1us", "--sweep", "host.preemption.rate=1,2"}, 2,
         "host.preemption.rate is already set by --sweep host.preemption.rate=1");
  sweep("host.preemption.rate=1,2", "missing: /host/preemption/length, ");
  expect({"--sweep", "seed=1,2", "--sweep", "seed=3"}, 2, "seed is there twice");
  expect({"--plot", "a.svg"}, 2, "--plot is for --sweep");
  expect({"--sweep", "seed=1,2", "--plot", "a.png"}, 2, "ends with .svg");
  expect({"--sweep", "seed=1,2", "--csv", "-", "--json"}, 2, "would both write to stdout");
  expect({"--sweep", "seed=1,2", "--csv", folder_ / "none/a.csv"}, 1, "cannot write");
  expect({"--sweep", "seed=1,2", "--plot", "a.svg", "--plot-y", "x"}, 2, "--plot-y: unknown name");
  expect({"--sweep", "wait=polling", "--plot", folder_ / "a.svg"}, 2,
         "the axis, and needs numbers");
  sweep("send-window=1,0", "--sweep send-window: '0' is no window");
  sweep("delay=node=1,at=0s", "'node=1,at=0s': a part is missing");
  expect({"--sweep", "seed=1,2", "--causes"}, 2, "--causes is for --json or --csv where");
  expect({"--sweep", "seed=1,2", "--plot-y", "skew"}, 2, "--plot-y is for --plot");
  expect({"--sweep", "seed=1,2", "--per-node"}, 2, "--per-node is for --json");
  expect({"--set", "completion=1us"}, 2, "expected a value of the profile");
  expect({"--set", "host.preemption=1"}, 2, "--set host.preemption=1");
  expect({"--set", "host.completion=-1us"}, 2, "is no time");
}

}  // namespace
}  // namespace prepost::simulate_sweep_test
