// SPDX-License-Identifier: Apache-2.0
//
// --device-profile, --mode and --masters, wherever a plan is lowered, and `verify`'s rule bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::device_profile_test {
namespace {

using nlohmann::json;
using test::Command;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kTiny = PREPOST_SOURCE_DIR "/examples/devices/tiny.json";
const std::string kReal = PREPOST_SOURCE_DIR "/examples/devices/connectx5.json";

class DeviceProfileCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(input_) << std::string(3990, 'x');
    Compile("binomial_pipeline", "window=1", plan_);
  }
  void Compile(const std::string& algorithm, const std::string& ready, const std::string& path) {
    Command compile({"compile", "--nodes", "5", "--algorithm", algorithm, "--ready", ready,
                     "--message-bytes", "3990", "--block-bytes", "100", "-o", path});
    ASSERT_EQ(compile.Wait(), 0) << compile.err();
  }
  static std::string Run(const std::vector<std::string>& arguments, int code = 0) {
    Command command(arguments);
    EXPECT_EQ(command.Wait(), code) << command.err();
    return command.out();
  }
  void ExpectRefused(const std::vector<std::string>& arguments, int code,
                     const std::string& message) {
    test::ExpectRefused(arguments, code, message, folder_);
  }

  test::TempFolder folder_;
  const std::string input_ = folder_ / "input";
  const std::string plan_ = folder_ / "plan.json";
  const std::string barrier_ = folder_ / "barrier.json";
};

// A flag that a subcommand takes and passes over, or refuses without words.
TEST_F(DeviceProfileCommandTest, WrongFlagsAreRefusedEverywhere) {
  const std::vector<std::vector<std::string>> commands = {
      {"lower", plan_},
      {"run", plan_, "--input", input_, "--executor", "offload"},
      {"compare", plan_, "--repeat", "1"},
      {"draw", plan_, "--view", "queues", "--node", "1"}};
  const auto with = [](std::vector<std::string> command, const std::vector<std::string>& flags) {
    command.insert(command.end(), flags.begin(), flags.end());
    return command;
  };
  for (const std::vector<std::string>& command : commands) {
    ExpectRefused(with(command, {"--mode", "mangaed"}), 2,
                  "--mode: unknown name 'mangaed', did you mean 'managed'?");
    ExpectRefused(with(command, {"--masters", "lane"}), 2, "--masters is for --mode managed");
    ExpectRefused(with(command, {"--mode", "managed", "--masters", "nod"}), 2,
                  "--masters: unknown name 'nod', did you mean 'node'?");
    ExpectRefused(with(command, {"--device-profile", folder_ / "none"}), 1, "cannot read");
    ExpectRefused(with(command, {"--device-profile", plan_}), 1,
                  "/format: expected \"prepost.device\"");
  }
  ExpectRefused({"verify", plan_, "--device-profile", "tyni"}, 2,
                "'tyni' is neither a file nor a shipped profile of a device, did you mean 'tiny'?; "
                "shipped are connectx5, tiny");
  EXPECT_EQ(Run({"lower", plan_, "--device-profile", "tiny"}),
            Run({"lower", plan_, "--device-profile", kTiny}));
  ExpectRefused({"verify", plan_, "--device-profile", plan_}, 1,
                "/format: expected \"prepost.device\"");
  const std::vector<std::string> cpu = {"run", plan_, "--input", input_, "--executor", "cpu"};
  ExpectRefused(with(cpu, {"--mode", "inline"}), 2, "--mode is for offload");
  ExpectRefused(with(cpu, {"--device-profile", kTiny}), 2, "--device-profile is for offload");
  ExpectRefused({"draw", plan_, "--mode", "managed"}, 2, "--mode is for the queues view");
}

// Hostile numbers, zero rings, unknown keys, wrong types. Catches limits that are trusted, and a
// subcommand that reads profiles by a way of its own.
TEST_F(DeviceProfileCommandTest, WrongProfilesAreRefused) {
  const std::string path = folder_ / "profile.json";
  const std::vector<std::tuple<std::string, json, std::string>> cases = {
      {"/limits/sq_wqebbs", 0, "/limits/sq_wqebbs: expected 4 or more, found 0"},
      {"/limits/rq_wqes", -1, "/limits/rq_wqes: expected an integer from 4 to 65536, found -1"},
      {"/limits/rq_wqes", 3, "/limits/rq_wqes: expected 4 or more, found 3"},
      {"/limits/sq_wqebbs", UINT64_MAX, "/limits/sq_wqebbs: 18446744073709551615 is too large"},
      {"/limits/sq_wqebbs", 1e300, "/limits/sq_wqebbs: expected an integer"},
      {"/limits/wq_ahead", 32768, "/limits/wq_ahead: 32768 is too large, the limit is 32767"},
      {"/limits/cq_entries", 0, "/limits/cq_entries: expected 1 or more, found 0"},
      {"/limits/cq_ahead", 0, "/limits/cq_ahead: expected 1 or more, found 0"},
      {"/limits/qps", 0, "/limits/qps: expected 1 or more, found 0"},
      {"/limits/cqs", "many", "/limits/cqs: expected an integer"},
      {"/limits/message_bytes", nullptr, "/limits/message_bytes: expected an integer"},
      {"/limits/sq_wqebs", 16, "/limits/sq_wqebs: unknown key, did you mean 'sq_wqebbs'?"},
      {"/limits/qps", {{"value", 5}, {"foo", 1}}, "/limits/qps/foo: unknown key"},
      {"/limits/qps", json::object(), "/limits/qps: key 'value' is missing"},
      {"/limits", json::array(), "/limits: expected an object"},
      {"/capabilities/cd", 1, "/capabilities/cd: expected true or false"},
      {"/capabilities/cdd", true, "/capabilities/cdd: unknown key, did you mean 'cd'?"},
      {"/capabilities", json::object(), "missing: /capabilities/cd, /capabilities/cq_oi"},
      {"/capabilities/cd", false, "device profile tiny: no capability cd"},
      {"/version", "2.0", "/version: version 2.0 is not supported"},
      {"/limits/qps", 1, "node 0: node needs "},
      {"/limits/cq_entries", 1, " entries, the limit is 1"},
      {"/limits/message_bytes", 1, "the limit is 1"}};
  for (const auto& [where, value, message] : cases) {
    SCOPED_TRACE(where + " = " + value.dump());
    json profile = json::parse(test::ReadText(kTiny));
    profile[json::json_pointer(where)] = value;
    std::ofstream(path) << profile;
    ExpectRefused({"run", plan_, "--input", input_, "--executor", "offload", "--device-profile",
                   path, "--output-dir", folder_ / "copies"},
                  1, message);
    ExpectRefused({"lower", plan_, "--mode", "managed", "--device-profile", path}, 1, message);
    ExpectRefused({"compare", plan_, "--repeat", "1", "--device-profile", path}, 1, message);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "copies"));
  }
}

TEST_F(DeviceProfileCommandTest, LowerKnowsModesAndMasters) {
  EXPECT_THAT(Run({"lower", plan_, "--node", "1"}), HasSubstr(" 0 SEND_ENs, "));
  const json managed = json::parse(Run({"lower", plan_, "--mode", "managed", "--json"}));
  const json lanes =
      json::parse(Run({"lower", plan_, "--mode", "managed", "--masters", "lane", "--json"}));
  EXPECT_EQ(managed["mode"], "managed");
  EXPECT_EQ(managed["nodes"][1]["doorbells"], 1);
  EXPECT_EQ(lanes["nodes"][1]["doorbells"], 3);  // of two lanes, and of the end
  const std::string svg = Run({"draw", plan_, "--view", "queues", "--node", "1", "--rounds", "0:2",
                               "--mode", "managed", "--device-profile", kTiny});
  EXPECT_THAT(svg, HasSubstr("SEND_EN QP 1&lt;&gt;"));
  EXPECT_THAT(svg, HasSubstr(", a ring of 16<"));
}

// Re-arms are counted and printed beside their bound, in both modes, and only where there are any.
TEST_F(DeviceProfileCommandTest, RunAndComparePrintRearms) {
  for (const std::string mode : {"inline", "managed"}) {
    const std::vector<std::string> run = {"run",        plan_,     "--input", input_,
                                          "--executor", "offload", "--mode",  mode};
    auto tiny = run;
    tiny.insert(tiny.end(), {"--device-profile", kTiny});
    EXPECT_THAT(Run(tiny), AllOf(HasSubstr("re-arms (bound)"), HasSubstr("most re-arms: ")));
    EXPECT_THAT(Run(run), Not(HasSubstr("re-arms")));
    tiny.push_back("--json");
    const json report = json::parse(Run(tiny));
    const json verdict = json::parse(Run({"verify", plan_, "--device-profile", kTiny, "--json"}));
    const json& fit = verdict[0]["bounds"]["modes"][mode == "inline" ? 0 : 1];
    EXPECT_EQ(fit["mode"], mode);
    uint64_t bound = 0;
    for (const json& node : report["nodes"]) {
      EXPECT_LE(node["rearms"], node["rearms_bound"]);
      bound += node["rearms_bound"].get<uint64_t>();
      uint64_t of_queues = 0;
      for (const json& queue : node["queues_in_parts"]) {
        EXPECT_LE(queue["rearms"], queue["rearms_bound"]) << queue;
        of_queues += queue["rearms"].get<uint64_t>();
      }
      EXPECT_EQ(of_queues, node["rearms"]);
    }
    EXPECT_GT(bound, 0u);
    EXPECT_EQ(fit["rearms"], bound);  // what verify reports about the plan is what a run may do

    const std::vector<std::string> compare = {"compare", plan_, "--repeat",         "1",
                                              "--mode",  mode,  "--device-profile", kTiny};
    EXPECT_THAT(Run(compare), HasSubstr("re-arms during it"));
    auto compare_json = compare;
    compare_json.push_back("--json");
    const json compared = json::parse(Run(compare_json))["comparisons"][0];
    EXPECT_EQ(compared["mode"], mode);
    EXPECT_EQ(compared["device_profile"], "tiny");
    EXPECT_EQ(compared["rearms_bound"], bound);
    const json& sample = compared["preposted"]["samples"][0];
    EXPECT_GT(sample["during"]["rearms"], 0);
    EXPECT_GT(sample["during"]["work_requests"], 0);
    EXPECT_EQ(compared["cpu-driven"]["samples"][0]["during"]["rearms"], 0);
  }
  EXPECT_THAT(Run({"compare", plan_, "--repeat", "1"}), Not(HasSubstr("re-arms")));
}

TEST_F(DeviceProfileCommandTest, AutoLooksAtTheDevice) {
  Compile("chain", "barrier", barrier_);
  Command command(
      {"run", barrier_, "--input", input_, "--device", "emulated", "--device-profile", kTiny});
  EXPECT_EQ(command.Wait(), 0) << command.err();
  EXPECT_THAT(command.err(), HasSubstr("executor cpu: not preposted to device emulated: node 1: "
                                       "receive queue of QP 1<>0 blocks needs 40 WQEs"));
  const std::string message = "node 1: receive queue of QP 1<>0 blocks needs 40 WQEs";
  ExpectRefused(
      {"run", barrier_, "--input", input_, "--executor", "offload", "--device-profile", kTiny}, 1,
      message);
  ExpectRefused({"compare", barrier_, "--repeat", "1", "--device-profile", kTiny}, 1, message);
  ExpectRefused({"lower", barrier_, "--mode", "managed", "--device-profile", kTiny}, 1, message);
  ExpectRefused({"draw", barrier_, "--view", "queues", "--node", "1", "--device-profile", kTiny}, 1,
                message);
}

// Plans of flags for 40 blocks in rings of 16, with the ready mode left open: barrier does not fit.
TEST_F(DeviceProfileCommandTest, AutoReadyFitsSmallRings) {
  size_t noted = 0;
  for (const char* schedule : {"sequential", "chain", "binomial_tree", "binomial_pipeline",
                               "circulant", "two_tree", "scatter_allgather"}) {
    Command run({"run", "--nodes", "8", "--block-bytes", "100", "--algorithm", schedule, "--input",
                 input_, "--executor", "offload", "--device-profile", kTiny});
    EXPECT_EQ(run.Wait(), 0) << schedule << ": " << run.err();
    if (run.err().empty()) continue;
    EXPECT_THAT(run.err(),
                HasSubstr("note: compiled with --ready window=1: with barrier, as auto"));
    EXPECT_EQ(run.err_lines(), 1u);
    ++noted;
  }
  EXPECT_GE(noted, 3u);
  EXPECT_THAT(Run({"compare", "--nodes", "3", "--bytes", "4000", "--block-bytes", "100",
                   "--algorithm", "chain", "--repeat", "1", "--device-profile", kTiny}),
              HasSubstr("re-arms during it"));
  ExpectRefused({"run", "--nodes", "3", "--block-bytes", "100", "--algorithm", "chain", "--ready",
                 "barrier", "--input", input_, "--executor", "offload", "--device-profile", kTiny},
                1, "--ready window=1 needs fewer");
}

TEST_F(DeviceProfileCommandTest, VerifyTellsWhatFits) {
  Compile("chain", "barrier", barrier_);
  EXPECT_THAT(Run({"verify", plan_, "--device-profile", kReal}),
              HasSubstr("device ConnectX-5 class, conservative: inline: fits; managed: fits\n"));
  const std::string text = Run({"verify", plan_, "--device-profile", kTiny});
  EXPECT_THAT(text, HasSubstr("device tiny: inline: fits; managed: fits\n"));
  EXPECT_THAT(text, HasSubstr("in a ring of 16: "));
  const std::string refused = Run({"verify", barrier_, "--device-profile", kTiny}, 1);
  EXPECT_THAT(refused, HasSubstr("inline: does not fit, 4 findings; managed: does not fit"));
  EXPECT_THAT(refused, HasSubstr("    /programs/1: bounds: node 1: receive queue of QP 1<>0 blocks "
                                 "needs 40 WQEs before any send starts (--ready barrier), the "
                                 "limit is 16; --ready window=1 needs fewer\n"));
  const json verdict =
      json::parse(Run({"verify", plan_, barrier_, "--device-profile", kTiny, "--json"}, 1));
  EXPECT_EQ(verdict[0]["bounds"]["fits"], true);
  const json& bounds = verdict[1]["bounds"];
  EXPECT_EQ(verdict[1]["valid"], true);
  EXPECT_EQ(bounds["fits"], false);
  EXPECT_EQ(bounds["modes"][0]["resources"]["receive_queue_wqes"]["most"], 40);
  EXPECT_EQ(bounds["modes"][0]["resources"]["receive_queue_wqes"]["node"], 1);
  EXPECT_EQ(bounds["modes"][0]["diagnostics"][3]["where"], "/programs/4");
  // Of a device that can do nothing of it no needs are counted, so none are printed.
  json lacking = json::parse(test::ReadText(kTiny));
  lacking["capabilities"]["cd"] = false;
  const std::string old = folder_ / "old.json";
  std::ofstream(old) << lacking;
  EXPECT_THAT(Run({"verify", plan_, "--device-profile", old}, 1),
              AllOf(HasSubstr("no capability cd"), Not(HasSubstr("QPs of a node"))));
  const json unknown = json::parse(Run({"verify", plan_, "--device-profile", old, "--json"}, 1));
  EXPECT_FALSE(unknown[0]["bounds"]["modes"][0].contains("resources"));
  // Of what no NIC carries nothing fits; and the largest part counts, wherever it stands.
  for (const char* kind : {"allreduce", "alltoall", "barrier"}) {
    std::vector<std::string> flags = {"compile", "--collective",        kind, "--nodes", "4",
                                      "-o",      folder_ / "other.json"};
    if (std::string(kind) == "allreduce") flags.insert(flags.end(), {"--combine", "sum:int32"});
    if (kind[0] == 'a') flags.insert(flags.end(), {"--message-bytes", "4KiB"});
    Run(flags);
    const json no_fit = json::parse(
        Run({"verify", folder_ / "other.json", "--device-profile", kTiny, "--json"}, 1));
    EXPECT_THAT(no_fit[0]["error"].get<std::string>(), HasSubstr(std::string("a plan of ") + kind));
  }
  // Without a device nothing is said of one.
  EXPECT_THAT(Run({"verify", barrier_}), Not(HasSubstr("device")));
}

}  // namespace
}  // namespace prepost::device_profile_test
