// SPDX-License-Identifier: Apache-2.0
//
// `prepost choose`, and auto for --algorithm and --block-bytes, as a user sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

using test::Command;
using test::TempFolder;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Printed {
  std::string out;
  std::string err;
};

Printed Prepost(const std::vector<std::string>& words, int code = 0) {
  Command command(words);
  EXPECT_EQ(command.Wait(), code) << command.err();
  return {command.out(), command.err()};
}

std::string ErrorOf(const std::vector<std::string>& words, int code = 1) {
  const Printed printed = Prepost(words, code);
  EXPECT_EQ(printed.out, "");
  return printed.err;
}

// The winner elsewhere than on top, a table that lost its columns, a rack schedule without racks.
TEST(ChooseTest, PrintsTheWinnerFirst) {
  const std::string table = Prepost({"choose", "--nodes", "16", "--message-bytes", "256MiB"}).out;
  EXPECT_THAT(table, StartsWith("--algorithm binomial_pipeline --block-bytes 1851392\n"
                                "why: least predicted time, 22.329ms, "));
  EXPECT_THAT(table, HasSubstr("\nbinomial_pipeline        145        1851392        148       "
                               "22.329ms    1.000  nodes' ports\n"));
  EXPECT_EQ(table.find("rack_"), std::string::npos);
  EXPECT_THAT(Prepost({"choose", "--nodes", "16", "--message-bytes", "256MiB", "--json"}).out,
              HasSubstr("\"algorithm\": \"binomial_pipeline\",\n  \"block_bytes\": 1851392,"));
}

// A plan that says auto, a block size that is not that of the choice, no word on stderr.
TEST(ChooseTest, CompileTakesWhatItShows) {
  TempFolder folder;
  const std::string plan = folder / "p.json";
  const Printed printed =
      Prepost({"compile", "--nodes", "5", "--message-bytes", "100kB", "--algorithm", "auto",
               "--block-bytes", "auto", "--rate", "1Gbit/s", "-o", plan});
  EXPECT_THAT(printed.err, StartsWith("prepost: note: auto is --algorithm binomial_pipeline "
                                      "--block-bytes "));
  EXPECT_THAT(test::ReadText(plan), HasSubstr("\"algorithm\": \"binomial_pipeline\""));
  // From a file, with only one of the two open.
  const std::string spec = folder / "s.json";
  std::ofstream(spec) << R"({"format": "prepost.spec", "version": "1.0", "collective": "multicast",
      "nodes": 3, "message_bytes": 5000, "algorithm": "auto", "block_bytes": 1000})";
  EXPECT_THAT(Prepost({"compile", spec, "-o", plan}).err,
              HasSubstr("--block-bytes 1000, 5 blocks"));
  EXPECT_THAT(Prepost({"compare", spec, "--repeat", "1"}).err, HasSubstr("--block-bytes 1000"));
}

TEST(ChooseTest, RefusesInOneLine) {
  TempFolder folder;
  EXPECT_EQ(ErrorOf({"choose", "--nodes", "4"}, 2),
            "prepost: --message-bytes: the size of the message is missing (see --help)\n");
  EXPECT_EQ(ErrorOf({"choose", "--message-bytes", "4"}, 2),
            "prepost: --nodes: the number of nodes is missing, and no topology says it (see "
            "--help)\n");
  EXPECT_EQ(ErrorOf({"choose", "--nodes", "4", "--message-bytes", "9223372036854775807"}),
            "prepost: --message-bytes: message of 9223372036854775807 bytes is above the limit of "
            "4611686018427387904\n");
  EXPECT_EQ(ErrorOf({"choose", "--nodes", "4", "--message-bytes", "1", "--algorithm", "chian"}),
            "prepost: --algorithm: unknown algorithm 'chian', did you mean 'chain'?\n");
  EXPECT_EQ(
      ErrorOf({"choose", "--nodes", "4", "--message-bytes", "1", "--rate", "0"}, 2),
      "prepost: --rate: '0' is no rate, expected more than 0 and a unit, such as 100Gbit/s or "
      "12.5GB/s\n");
  EXPECT_EQ(ErrorOf({"compile", "--nodes", "4", "--message-bytes", "1", "--latency", "1us"}, 2),
            "prepost: --latency: is for --algorithm auto or --block-bytes auto\n");
  EXPECT_THAT(ErrorOf({"compile", "--nodes", "4", "--message-bytes", "any", "--algorithm", "auto"}),
              StartsWith("prepost: --algorithm: auto depends on the size of the message"));
  EXPECT_THAT(
      ErrorOf({"compile", "--nodes", "4", "--message-bytes", "any", "--block-bytes", "auto"}),
      StartsWith("prepost: --block-bytes: auto depends"));
  const std::string rules = folder / "r.json";
  std::ofstream(rules) << R"({"format": "prepost.choice_rules", "version": "1.0", "rules": [
      {"nodes": [5, 4], "algorithm": "chain"}]})";
  EXPECT_THAT(ErrorOf({"choose", "--nodes", "4", "--message-bytes", "1", "--rules", rules}),
              HasSubstr("/rules/0: nodes: the range [5, 4] is empty"));
}

// Catches help with figures that are not those of the model.
TEST(ChooseTest, HelpSaysTheDefaults) {
  const std::string help = Prepost({"choose", "--help"}).out;
  for (const char* fallback : {"[100Gbit/s]", "[1us]", "[1.76us]"})
    EXPECT_THAT(help, HasSubstr(fallback));
}

// Catches a note that names what the rule says but the flags overrule.
TEST(ChooseTest, NamesWhatOfTheRuleIsUsed) {
  TempFolder folder;
  const std::string rules = folder / "r.json";
  std::ofstream(rules) << R"({"format": "prepost.choice_rules", "version": "1.0", "rules": [
      {"algorithm": "chain", "block_bytes": 8192}]})";
  const auto reason = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"compile", "--nodes", "4", "--message-bytes", "1MiB", "--rules",
                                 rules, "-o", folder / "plan.json"});
    return Prepost(flags).err;
  };
  EXPECT_THAT(reason({"--algorithm", "auto", "--block-bytes", "auto"}),
              HasSubstr("/rules/0 says algorithm chain, block_bytes 8192; "));
  EXPECT_THAT(reason({"--algorithm", "circulant", "--block-bytes", "auto"}),
              HasSubstr("/rules/0 says block_bytes 8192; "));
  EXPECT_THAT(reason({"--algorithm", "auto", "--block-bytes", "64KiB"}),
              HasSubstr("/rules/0 says algorithm chain; "));
}

TEST(ChooseTest, OneNodeAndOneByte) {
  EXPECT_THAT(Prepost({"choose", "--nodes", "1", "--message-bytes", "1"}).out,
              HasSubstr("why: one node: nothing is sent\n"));
  EXPECT_THAT(Prepost({"choose", "--nodes", "2", "--message-bytes", "0"}).out,
              HasSubstr("latency and overhead"));
}

}  // namespace
}  // namespace prepost
