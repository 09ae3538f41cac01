// SPDX-License-Identifier: Apache-2.0
//
// prepost simulate --sweep from outside: rows that are what the single commands print, CSV, JSON and
// plots that agree, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using test::Command;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class SimulateSweepTest : public ::testing::Test {
 protected:
  static std::string Simulate(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", "--profile", test::ProfilePath("fractus")});
    return test::OutputOf(flags);
  }
  static Json SimulateJson(std::vector<std::string> flags) {
    flags.push_back("--json");
    return Json::parse(Simulate(flags));
  }
  void ExpectRefused(std::vector<std::string> flags, int code, const std::string& message) {
    flags.insert(flags.begin(), {"simulate", "--profile", test::ProfilePath("fractus")});
    test::ExpectRefused(flags, code, message, folder_);
  }
  /// The lines of a CSV without comments, each by the names in the first.
  static std::vector<std::map<std::string, std::string>> ReadCsv(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> names;
    std::vector<std::map<std::string, std::string>> rows;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("#")) continue;
      std::istringstream fields(line + ",");
      std::vector<std::string> values;
      for (std::string field; std::getline(fields, field, ',');) values.push_back(field);
      if (names.empty()) {
        names = values;
        EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << line;
        continue;
      }
      EXPECT_EQ(values.size(), names.size()) << line;
      auto& row = rows.emplace_back();
      for (size_t i = 0; i < std::min(names.size(), values.size()); ++i) row[names[i]] = values[i];
    }
    return rows;
  }

  test::TempFolder folder_;
};

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
    const Json alone =
        SimulateJson({"--message-bytes", "1MiB", "--block-bytes", "64KiB", "--per-node", "--nodes",
                      values["nodes"].dump(), "--wait", values["wait"], "--mode", values["mode"],
                      "--set", "host.completion=" + values["host.completion_seconds"].dump()});
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

// Catches a column that stands there twice, of which a reader takes either: each executor's figures,
// and which executor it is, are swept here.
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
  const auto both = lines({"executor=cpu,both", "--causes"});
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
    Command compile({"compile", "--nodes", "4", "--message-bytes", bytes, "-o", file});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  const Json sizes = SimulateJson({rolled, "--sweep", "message-bytes=1MiB,2MiB"});
  const Json seeds = SimulateJson({plan, "--sweep", "seed=1:8:+1"});
  ASSERT_EQ(seeds["rows"].size(), 8u);
  EXPECT_EQ(sizes["rows"][1]["simulation"]["cpu"], seeds["rows"][7]["simulation"]["cpu"]);
  ExpectRefused({plan, "--sweep", "nodes=2,3"}, 2, "are for a SPEC");
  ExpectRefused({plan, "--message-bytes", "3"}, 2, "is for a SPEC or a rolled plan");
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

// Catches a bandwidth of groups that is one message's.
TEST_F(SimulateSweepTest, BandwidthOfGroupsIsOfAllMessages) {
  const auto plot = [&](const std::string& groups) {
    const std::string file = folder_ / "groups.svg";
    Simulate({"--nodes", "4", "--message-bytes", "1MiB", "--sweep", "groups=" + groups,
              "--executor", "offload", "--plot", file, "--plot-y", "bandwidth"});
    return test::ReadText(file);
  };
  const std::string svg = plot("1,8");
  EXPECT_THAT(svg, HasSubstr("all messages"));
  EXPECT_THAT(svg, HasSubstr(">100 Gbit/s<")) << "one message has at most 50";
}

// Catches a skew of groups that is none, and heads that do not say what is other than in the profile.
TEST_F(SimulateSweepTest, PlotsSaySkewOfGroupsAndWhatDeviates) {
  const std::string file = folder_ / "skew.svg";
  const std::string text = Simulate(
      {"--nodes", "4", "--message-bytes", "1MiB", "--groups", "2", "--set", "host.poll=1us",
       "--sweep", "host.completion=1us,2us,3us", "--plot", file, "--plot-y", "skew"});
  EXPECT_THAT(text, HasSubstr(", but --set host.poll=1us, --groups 2\n"));
  EXPECT_THAT(text, HasSubstr("\nall groups are complete at\n"));
  const std::string svg = test::ReadText(file);
  EXPECT_THAT(svg, HasSubstr(", but --set host.poll=1us, --groups 2"));
  EXPECT_THAT(svg, HasSubstr("preposted"));
}

// Catches heads, and rows, that tell what does not hold in them: a seed that is another in each row.
TEST_F(SimulateSweepTest, HeadsSayWhatAllRowsHave) {
  const std::vector<std::string> base = {"--nodes", "4",     "--message-bytes",
                                         "1MiB",    "--set", "host.poll=1us"};
  const auto sweep = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), base.begin(), base.end());
    const Json json = SimulateJson(flags);
    const std::string text = Simulate(flags);
    std::string head;
    for (const Json& it : json["deviations"])
      head += (head.empty() ? ", but " : ", ") + it.get<std::string>();
    EXPECT_THAT(text, HasSubstr(".json)" + head + "\n"));
    return std::pair(json["deviations"], json["rows"][1]["simulation"]["deviations"]);
  };
  using Words = std::vector<std::string>;
  const auto [seeds, with_seed] =
      sweep({"--preempt", "rate=1,for=1us", "--seed", "3", "--sweep", "seed=1,2"});
  EXPECT_EQ(seeds, Json(Words{"--set host.poll=1us", "--preempt rate=1,for=1us"}));
  EXPECT_EQ(with_seed, Json(Words{"--set host.poll=1us", "--preempt rate=1,for=1us", "seed 2"}));
  const auto [preempts, with_preempt] =
      sweep({"--sweep", "preempt=rate=1,for=1us;rate=2,for=1us", "--seed", "3"});
  EXPECT_EQ(preempts, Json(Words{"--set host.poll=1us", "seed 3"}));
  EXPECT_EQ(with_preempt, Json(Words{"--set host.poll=1us", "--preempt rate=2,for=1us", "seed 3"}));
}

// Catches what the plan is that a head leaves out, or tells although rows differ in it.
TEST_F(SimulateSweepTest, HeadsSayWhichPlanAllRowsHave) {
  const std::string file = folder_ / "plot.svg";
  const auto head = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"--nodes", "4", "--message-bytes", "1MiB", "--plot", file, "--sweep"});
    const std::string text = Simulate(flags);
    const std::string plan = text.substr(text.find('\n') + 1);
    const std::string line = plan.substr(0, plan.find('\n'));
    EXPECT_THAT(test::ReadText(file), HasSubstr(">" + line + "<"));
    return text.substr(text.find(".json)") + 6, text.find('\n') - text.find(".json)") - 6) + "; " +
           line;
  };
  EXPECT_EQ(head({"block-bytes=1MiB", "--root", "3", "--order", "3,0,2,1", "--mode", "managed",
                  "--masters", "lane", "--send-window", "none"}),
            ", but --mode managed, --masters lane, --order 3,0,2,1; binomial_pipeline, 4 nodes, "
            "root 3, 1048576 bytes, blocks of 1048576, ready barrier, send window none");
  EXPECT_EQ(head({"root=1,2", "--ready", "window=2", "--sweep", "send-window=1,2"}),
            "; binomial_pipeline, 4 nodes, 1048576 bytes, blocks of 1048576, ready window=2");
}

// Catches lines that go back and forth, and an axis that goes by which value stands first.
TEST_F(SimulateSweepTest, CurvesAreOfSortedPointsAndRowsAreNot) {
  const auto plot = [&](const std::string& values) {
    const std::string file = folder_ / "plot.svg";
    Simulate({"--nodes", "4", "--message-bytes", "1MiB", "--sweep", "block-bytes=" + values,
              "--plot", file});
    return test::ReadText(file);
  };
  EXPECT_EQ(plot("64KiB,1MiB,256KiB,16KiB"), plot("16KiB,64KiB,256KiB,1MiB"));
  const std::string file = folder_ / "rates.svg";
  Simulate({"--nodes", "4", "--message-bytes", "1MiB", "--sweep",
            "network.host_rate=10Gbit/s,20Gbit/s,40Gbit/s,80Gbit/s", "--plot", file});
  EXPECT_THAT(test::ReadText(file), HasSubstr(">20 Gbit/s<")) << "as rates are told everywhere";
  const Json json = SimulateJson(
      {"--nodes", "4", "--message-bytes", "1MiB", "--sweep", "block-bytes=1MiB,16KiB"});
  EXPECT_EQ(json["rows"][0]["values"]["block_bytes"], 1 << 20);
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

// Catches a curve that is not drawn, and pictures that differ from run to run.
TEST_F(SimulateSweepTest, PlotHasACurvePerExecutorAndCombination) {
  const std::string file = folder_ / "plot.svg";
  const std::vector<std::string> flags = {"--nodes",         "4",
                                          "--message-bytes", "4MiB",
                                          "--sweep",         "block-bytes=64KiB:4MiB:x4",
                                          "--sweep",         "wait=polling,interrupt",
                                          "--plot",          file};
  Simulate(flags);
  const std::string svg = test::ReadText(file);
  for (const char* name : {"CPU-driven, wait polling", "CPU-driven, wait interrupt", ">preposted<",
                           "modelled, with the profile Fractus", "256 KiB"}) {
    EXPECT_THAT(svg, HasSubstr(name));
  }
  EXPECT_THAT(svg, Not(HasSubstr("preposted, wait"))) << "hosts do not change it";
  Simulate(flags);
  EXPECT_EQ(test::ReadText(file), svg);
}

// Catches points of several combinations on one curve, which are labelled alike: by the stems of
// files in two folders, or by times that differ in the seventh digit.
TEST_F(SimulateSweepTest, CurvesAreOfCombinationsNotOfLabels) {
  const std::string first = folder_ / "first/p.json", second = folder_ / "second/p.json",
                    file = folder_ / "plot.svg";
  for (const auto& [name, path] : {std::pair("fractus", first), {"sierra", second}}) {
    std::filesystem::create_directory(std::filesystem::path(path).parent_path());
    std::filesystem::copy_file(test::ProfilePath(name), path);
  }
  const auto plot = [&](const std::string& others) {
    test::OutputOf({"simulate", "--profile", test::ProfilePath("fractus"), "--message-bytes",
                    "1MiB", "--executor", "cpu", "--sweep", "nodes=4,8", "--sweep", others,
                    "--plot", file});
    return test::ReadText(file);
  };
  const std::string profiles = plot("profile=" + first + "," + second);
  EXPECT_THAT(profiles, HasSubstr(">CPU-driven, " + first + "<"));
  EXPECT_THAT(profiles, HasSubstr(">CPU-driven, " + second + "<"));
  EXPECT_THAT(profiles, Not(HasSubstr(">CPU-driven, p<")));
  const std::string times = plot("host.completion=1us,1.000001us");
  EXPECT_THAT(times, HasSubstr(">CPU-driven, host.completion 1us<"));
  EXPECT_THAT(times, HasSubstr(">CPU-driven, host.completion 1.000001us<"));
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
  sweep("host.preemption.rate=1,2", "key 'length' is missing");
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
}  // namespace prepost
