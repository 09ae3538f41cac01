// SPDX-License-Identifier: Apache-2.0
//
// `prepost topology`, and --topology and --order of what compiles, as a user sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temp_folder.h"

namespace prepost::topology_test {
namespace {

using test::Command;
using test::TempFolder;
using ::testing::HasSubstr;

constexpr const char* kExamples = PREPOST_SOURCE_DIR "/examples/topologies/";

std::string Example(const char* name) { return std::string(kExamples) + name; }

/// What `prepost words...` prints, or with another `code` its one line of error.
std::string Prepost(const std::vector<std::string>& words, int code = 0) {
  Command command(words);
  EXPECT_EQ(command.Wait(), code) << command.err();
  if (code == 0) return command.out();
  EXPECT_EQ(command.out(), "");
  return command.err();
}

TEST(TopologyCommandTest, PrintsALinePerRack) {
  EXPECT_EQ(Prepost({"topology", Example("slow-node.json")}),
            "2 racks, 8 hosts\n"
            "rack   hosts                   each            up          down    over  names\n"
            "left       4              100Gbit/s     200Gbit/s     200Gbit/s       2  node[1-4]\n"
            "right      4     25Gbit/s-100Gbit/s     200Gbit/s     200Gbit/s    1.62  node[5-8]\n");
  EXPECT_THAT(Prepost({"topology", Example("ibnetdiscover.txt"), "--json"}),
              HasSubstr("\"up_rate\": 50000000000.0"));
}

// What is imported is what compiles: a host lost or a rack split on the way changes the plan.
TEST(TopologyCommandTest, WhatItWritesCompiles) {
  TempFolder folder;
  const std::string path = folder / "t.json";
  Prepost({"topology", Example("slurm-topology.conf"), "--host-rate", "25Gbit/s", "-o", path});
  EXPECT_EQ(Prepost({"topology", path, "-o", "-"}), test::ReadText(path));
  EXPECT_THAT(Prepost({"compile", "--topology", path, "--algorithm", "rack_chain", "--dump",
                       "--message-bytes", "10", "--block-bytes", "5"}),
              HasSubstr("rack_chain"));
}

TEST(TopologyCommandTest, RefusesInOneLine) {
  TempFolder folder;
  const std::string wrong = folder / "wrong.json";
  std::ofstream(wrong) << R"({"format": "prepost.topology", "version": "1.0", "host_rate": 1,
      "racks": [{"name": "a", "hosts": "x"}, {"name": "b", "hosts": "y"}]})";
  EXPECT_EQ(Prepost({"topology", wrong}, 1),
            "prepost: " + wrong +
                ": /racks/0: rack 'a' has no uplink: up_rate is missing, here and at the top\n");
  EXPECT_THAT(Prepost({"compile", "--topology", wrong, "--message-bytes", "1"}, 1),
              HasSubstr("/racks/0: rack 'a' has no uplink"));
  EXPECT_THAT(Prepost({"topology", Example("4x8.json"), "--from", "slurn"}, 2),
              HasSubstr("--from: unknown name 'slurn', did you mean 'slurm'?"));
  EXPECT_THAT(Prepost({"topology", Example("4x8.json"), "--host-rate", "1GB/s"}, 2),
              HasSubstr("for topology.conf only"));
  EXPECT_THAT(Prepost({"topology", Example("slurm-topology.conf"), "--host-rate", "fast"}, 2),
              HasSubstr("--host-rate: 'fast' is no rate"));
  EXPECT_THAT(Prepost({"topology", PREPOST_SOURCE_DIR "/LICENSE"}, 1),
              HasSubstr("it looks like neither"));
  EXPECT_THAT(Prepost({"topology", folder / "none"}, 1), HasSubstr("cannot read"));
}

TEST(TopologyCommandTest, NodesAreTheHosts) {
  const std::vector<std::string> compile = {
      "compile", "--message-bytes", "10", "--show-order", "--topology", Example("slow-node.json")};
  const auto order = [&](std::vector<std::string> more, int code = 0) {
    more.insert(more.begin(), compile.begin(), compile.end());
    return Prepost(more, code);
  };
  EXPECT_EQ(order({"--root", "6"}),
            " vertex     node  host (rack)\n"
            "      0        6  node7 (right)\n"
            "      1        5  node6 (right)\n"
            "      2        7  node8 (right)\n"
            "      3        4  node5 (right)\n"
            "      4        0  node1 (left)\n"
            "      5        1  node2 (left)\n"
            "      6        2  node3 (left)\n"
            "      7        3  node4 (left)\n");
  EXPECT_THAT(order({"--nodes", "9"}, 1),
              HasSubstr("--nodes: 9 nodes are too many, the topology has 8 hosts"));
  EXPECT_THAT(order({"--nodes", "2", "--order", "0,1"}),
              HasSubstr("      1        1  node2 (left)\n"));
  EXPECT_THAT(order({"--nodes", "2", "--order", "1,0"}, 1),
              HasSubstr("--order: the root, 0, comes first, found 1"));
  EXPECT_THAT(order({"--order", "0,1"}, 1), HasSubstr("each of the 8 nodes once, found 2"));
  EXPECT_THAT(order({"--order", "0,,1,x"}, 2),
              HasSubstr("--order: '0,,1,x' is no list of nodes such as 3,0,1, and there is no"));
}

// Catches a flag that a plan for every size does not use.
TEST(TopologyCommandTest, TheOrderIsThatOfEverySize) {
  const auto order = [](const std::string& bytes) {
    return Prepost(
        {"compile", "--nodes", "5", "--root", "2", "--message-bytes", bytes, "--show-order"});
  };
  EXPECT_THAT(order("any"), HasSubstr("      0        2\n"));
  EXPECT_EQ(order("any"), order("10"));
}

// An order written down pins the plan, from a file as from the list.
TEST(TopologyCommandTest, AnOrderIsPinned) {
  TempFolder folder;
  std::ofstream(folder / "order") << "2 0\n1\n3";
  const std::vector<std::string> compile = {
      "compile", "--nodes",     "4",     "--root",          "2",
      "--dump",  "--algorithm", "chain", "--message-bytes", "9"};
  const auto with = [&](const std::string& order) {
    std::vector<std::string> words = compile;
    words.insert(words.end(), {"--order", order});
    return Prepost(words);
  };
  EXPECT_EQ(with("2,0,1,3"), with(folder / "order"));
  EXPECT_NE(with("2,0,1,3"), Prepost(compile));  // 2,3,0,1
  EXPECT_EQ(with("2,3,0,1"), Prepost(compile));
}

// The spec's topology file is beside the spec, wherever the command runs.
TEST(TopologyCommandTest, ASpecNamesItsTopology) {
  TempFolder folder;
  std::ofstream(folder / "t.json") << test::ReadText(Example("slow-node.json"));
  std::ofstream(folder / "s.json")
      << R"({"format": "prepost.spec", "version": "1.0", "collective": "multicast",
             "message_bytes": 100, "block_bytes": 10, "topology": "t.json"})";
  EXPECT_THAT(Prepost({"compile", folder / "s.json", "--show-order"}), HasSubstr("node8 (right)"));
  std::ofstream(folder / "image") << "some bytes";
  EXPECT_THAT(Prepost({"run", folder / "s.json", "--input", folder / "image", "--algorithm",
                       "rack_circulant", "--transport", "shm", "--json"}),
              HasSubstr("\"nodes\""));
  EXPECT_THAT(
      Prepost({"compare", folder / "s.json", "--algorithm", "rack_hybrid", "--repeat", "1"}),
      HasSubstr("rack_hybrid"));
}

}  // namespace
}  // namespace prepost::topology_test
