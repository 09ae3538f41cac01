// SPDX-License-Identifier: Apache-2.0
//
// Imports: what is read of the formats of others, and what of them is refused, with its line.
#include "compiler/topology/topology_import.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ir/json/rate_text.h"
#include "tests/support/random.h"
#include "tests/support/temp_folder.h"

namespace prepost::topology_import_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Example(const std::string& name) {
  return test::ReadText(PREPOST_SOURCE_DIR "/examples/topologies/" + name);
}

/// "NAME up=RATE: HOST@RATE .." per rack.
std::vector<std::string> RacksOf(const Network& topology) {
  std::vector<std::string> lines;
  for (const Network::Rack& rack : topology.racks)
    lines.push_back(fmt::format("{} {}:", rack.name, WriteRate(rack.up_rate)));
  for (const Network::Node& host : topology.nodes)
    lines[host.rack] += fmt::format(" {}@{}", host.name, WriteRate(host.out_rate));
  return lines;
}

std::string SlurmError(const std::string& text) {
  const Result<TopologyImport> read = ReadSlurmTopology(text, "t.conf");
  return read.ok() ? "no error" : read.status().ToString();
}
std::string FabricError(const std::string& text) {
  const Result<TopologyImport> read = ReadIbnetdiscover(text, "ib.txt");
  return read.ok() ? "no error" : read.status().ToString();
}

TEST(TopologyImportTest, ReadsSlurm) {
  const Result<TopologyImport> read = ReadSlurmTopology(
      "# a comment\n\nSWITCHNAME=s0 Nodes=a[1-2],b  # another\r\nSwitchName=s1 nodes=c "
      "linkspeed=50\n"
      "SwitchName=top \\\n  Switches=s[0-1]\n",
      "t.conf", {.host_rate = 1.25e9});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(
      RacksOf(read->topology),
      ElementsAre("s0 30Gbit/s: a1@10Gbit/s a2@10Gbit/s b@10Gbit/s", "s1 50Gbit/s: c@10Gbit/s"));
  EXPECT_EQ(read->notes.size(), 2u);
  const Result<TopologyImport> given =
      ReadSlurmTopology("SwitchName=s Nodes=a[1-3]\n", "t.conf", {.up_rate = 1e9});
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->topology.racks[0].up_rate, 1e9);
}

TEST(TopologyImportTest, ReadsTheSlurmExample) {
  const Result<TopologyImport> read = ReadSlurmTopology(Example("slurm-topology.conf"), "t.conf");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->topology.racks.size(), 4u);
  EXPECT_EQ(read->topology.nodes.size(), 18u + 18 + 16 + 5);
  EXPECT_EQ(WriteRate(read->topology.racks[2].up_rate), "400Gbit/s");
}

TEST(TopologyImportTest, SaysWhatIsWrongInSlurm) {
  EXPECT_EQ(SlurmError(""), "t.conf:1: no switch is there");
  // A host of this name, in one rack alone, would be what nobody means.
  EXPECT_EQ(SlurmError("SwitchName=s0 Nodes=ALL\n"),
            "t.conf:1: Nodes=ALL: which nodes these are stands in slurm.conf; list them");
}

// What `scontrol show topology` prints: levels, and at upper switches the nodes of all below.
// Catches nodes that are refused, or moved to the top, because they stand there again, and uplinks
// of 1 Gbit/s where no speed is set.
TEST(TopologyImportTest, ReadsWhatScontrolShows) {
  const Result<TopologyImport> read = ReadSlurmTopology(
      "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=tux[0-3] Switches=s[0-1]\n"
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=tux[0-1]\n"
      "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=tux[2-3]\n"
      "SwitchName=s3 Level=2 LinkSpeed=1 Nodes=tux[0-4] Switches=s2\n",
      "t.conf", {.host_rate = 1e9});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(RacksOf(read->topology),
              ElementsAre("s0 16Gbit/s: tux0@8Gbit/s tux1@8Gbit/s",
                          "s1 16Gbit/s: tux2@8Gbit/s tux3@8Gbit/s", "s3 8Gbit/s: tux4@8Gbit/s"));
  EXPECT_THAT(read->notes, Contains(HasSubstr("LinkSpeed=1, which scontrol shows")));
  EXPECT_THAT(read->notes, Contains(HasSubstr("at the lowest of them")));
}

// Catches leaves alone that are refused, and a core that is assumed in silence.
TEST(TopologyImportTest, SwitchesNeedNoneAboveAll) {
  const Result<TopologyImport> read =
      ReadSlurmTopology("SwitchName=a Nodes=x\nSwitchName=b Nodes=y\n", "t.conf");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->topology.racks.size(), 2u);
  EXPECT_THAT(read->notes, Contains(HasSubstr("no switch is above all others: the 2 that")));
}

constexpr char kYaml[] =
    "# of a cluster\n---\n"
    "- topology: racks\n  block:\n    block_sizes:\n      - 4\n    blocks:\n"
    "      - block: b1\n        nodes: x[1-4]\n"
    "- topology: other\n  tree:\n    switches:\n      - switch: o\n        nodes: x1\n"
    "- topology: main\n  cluster_default: true\n  tree:\n    switches:\n"
    "      - switch: top\n        children: s[0-1]\n"
    "      - switch: s0\n        nodes: a[1-2],b\n"
    "      - switch: s1\n        nodes: \"c\"  # quoted\n";

TEST(TopologyImportTest, ReadsSlurmsYaml) {
  EXPECT_EQ(GuessTopologySource(kYaml), TopologySource::kSlurm);
  const Result<TopologyImport> read = ReadSlurmTopology(kYaml, "t.yaml", {.host_rate = 1.25e9});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(
      RacksOf(read->topology),
      ElementsAre("s0 30Gbit/s: a1@10Gbit/s a2@10Gbit/s b@10Gbit/s", "s1 10Gbit/s: c@10Gbit/s"));
  EXPECT_THAT(read->notes, Contains("of 3 topologies 'main' is taken"));
  EXPECT_THAT(read->notes, Contains(HasSubstr("topology.yaml has no rates of hosts")));
}

TEST(TopologyImportTest, SaysWhereInSlurmsYaml) {
  const std::string switches = "- topology: a\n  tree:\n    switches:\n";
  EXPECT_EQ(SlurmError(switches + "      - switch: s\n        node: x\n"),
            "t.conf:5: unknown key 'node', did you mean 'nodes'?");
  EXPECT_EQ(SlurmError(switches + "      - switch: s\n        nodes:\n"),
            "t.conf:5: nodes has no value");
  EXPECT_EQ(SlurmError(switches + "      - nodes: x\n"), "t.conf:4: switch is missing");
  EXPECT_EQ(SlurmError(switches + "      - switch: s\n        nodes: x[1-\n"),
            "t.conf:5: 'x[1-' is no host list: brackets do not match");
  EXPECT_EQ(SlurmError(switches + "      - switch: s\n        children: t\n"),
            "t.conf:4: no line is about switch 't'");
  EXPECT_EQ(SlurmError("- topology: a\n  tree: 3\n"), "t.conf:2: tree has no keys");
  EXPECT_EQ(SlurmError("- topology: a\n\ttree: 3\n"),
            "t.conf:2: Found invalid tab character in indentation");
  EXPECT_EQ(SlurmError("- topology: a\n  flat: true\n"),
            "t.conf:1: no tree is there: block and flat topologies are not read");
  // What is read otherwise than it is meant is not read.
  const std::string tree = switches + "      - switch: s\n        nodes: ";
  EXPECT_EQ(SlurmError(tree + "&n x\n      - switch: r\n        nodes: *n\n"),
            "t.conf:7: aliases (*name) are not read");
  EXPECT_EQ(SlurmError(tree + "!env x\n"), "t.conf:5: tags (!env) are not read");
  EXPECT_EQ(SlurmError(tree + "x\n---\n- topology: b\n"),
            "t.conf:7: a second document (---): one is read");
  EXPECT_EQ(SlurmError(tree + "x\n" + std::string(1, '\0') + "\n"), "t.conf:6: a zero byte");
  // What nests without end would take all of the stack.
  for (const char* const nest : {"- ", "[", "{a: ", "? "}) {
    std::string deep = "- topology: ";
    for (int i = 0; i < 100'000; ++i) deep += nest;
    EXPECT_EQ(SlurmError(deep), "t.conf:1: it is nested more than 100 deep") << nest;
  }
  // The same where what closes a level is text, or what opens one looks like text or a comment.
  for (const char* const nest :
       {R"(["]",)", R"(['"]',)", "[\"\\\"]\",", "[\"a\n]\",", R"(["#",)", "[#]\n", "&a[", "!t {",
        "[a \"b, [b\", ", "[a\n \"b, [b, [b\", ", "[a #\"\n, ", "a \"b: [[\": "}) {
    std::string deep = "- topology: a\n- b: ";
    for (int i = 0; i < 1'000'000 / 4; ++i) deep += nest;
    const std::string error = SlurmError(deep);
    EXPECT_THAT(error, testing::HasSubstr("t.conf:")) << nest;  // it comes back
    EXPECT_THAT(error, testing::Not(testing::HasSubstr("internal"))) << nest;
  }
  // What only looks so is read.
  const std::string dashes = "# " + std::string(150, '-') + "\n";
  std::string many =
      "# bob's [rack\n" + dashes + "- topology: \"bob's [x\"\n  tree:\n    switches:\n";
  std::string json = "---\n[{\"topology\": \"bob's \\u0041[\", \"tree\": {\"switches\": [";
  for (int i = 0; i < 300; ++i) {
    many += fmt::format("      - {{switch: 's{0}', nodes: \"n{0}[0-1][0-3]\"}}  # [rack {0}\n", i);
    json += fmt::format("{}{{\"switch\": \"s{}\", \"nodes\":\"n{}[0-1][0-3]\"}}",
                        i > 0 ? ",\n" : "", i, i);
  }
  EXPECT_EQ(SlurmError(many), "no error");
  EXPECT_EQ(SlurmError(json + "]}}]\n"), "no error");
  json.erase(0, 4);  // without the dashes
  EXPECT_EQ(SlurmError(json + "]}}]\n"), "no error");
  EXPECT_EQ(GuessTopologySource(json), TopologySource::kSlurm);
}

TEST(TopologyImportTest, SaysWhereInSlurm) {
  EXPECT_THAT(SlurmError("\nSwitchName=a Node=x\n"),
              HasSubstr("t.conf:2: unknown key 'Node', did you mean 'Nodes'?"));
  EXPECT_THAT(SlurmError("Nodes=x\n"), HasSubstr("t.conf:1: SwitchName is missing"));
  EXPECT_THAT(SlurmError("SwitchName=a x\n"), HasSubstr("expected KEY=VALUE, found 'x'"));
  EXPECT_THAT(SlurmError("SwitchName=a Nodes=\n"), HasSubstr("Nodes has no value"));
  EXPECT_THAT(SlurmError("SwitchName=a Nodes=x[1-\n"),
              HasSubstr("t.conf:1: 'x[1-' is no host list"));
  EXPECT_THAT(SlurmError("SwitchName=a Nodes=x[1-99999999]\n"),
              HasSubstr("more than 1048576 names"));
  EXPECT_THAT(SlurmError("SwitchName=a Nodes=x LinkSpeed=fast\n"), HasSubstr("'fast' is no rate"));
  EXPECT_THAT(SlurmError("SwitchName=a Nodes=x LinkSpeed=0\n"), HasSubstr("is no rate"));
  EXPECT_THAT(SlurmError("BlockName=a Nodes=x\n"), HasSubstr("block topologies are not read"));
  EXPECT_THAT(SlurmError("SwitchName=a Nodes=x\nSwitchName=a Nodes=y\n"),
              HasSubstr("t.conf:2: a switch 'a' is there already"));
  EXPECT_THAT(SlurmError("SwitchName=a Nodes=x\nSwitchName=b Nodes=x\n"),
              HasSubstr("t.conf:2: node 'x' is there twice, first in line 1"));
  EXPECT_THAT(SlurmError("SwitchName=a Switches=b\n"), HasSubstr("no line is about switch 'b'"));
  EXPECT_THAT(
      SlurmError("SwitchName=a Switches=c\nSwitchName=b Switches=c\nSwitchName=c Nodes=x\n"),
      HasSubstr("t.conf:2: switch 'c' is below two others"));
  EXPECT_THAT(
      SlurmError("SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=x\n"),
      HasSubstr("in a ring"));
  EXPECT_THAT(SlurmError("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"),
              HasSubstr("in a ring"));
  EXPECT_THAT(SlurmError("SwitchName=a Switches=b\nSwitchName=b\n"), HasSubstr("at least 1 rack"));
}

// Uplinks of several links, a second adapter of a host, an aggregation node, a slower link.
TEST(TopologyImportTest, ReadsTheIbnetdiscoverExample) {
  const Result<TopologyImport> read = ReadIbnetdiscover(Example("ibnetdiscover.txt"), "ib.txt");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(
      RacksOf(read->topology),
      ElementsAre("leaf-a 400Gbit/s: ib01@100Gbit/s ib02@100Gbit/s ib03@100Gbit/s ib04@100Gbit/s",
                  "leaf-b 400Gbit/s: ib05@100Gbit/s ib06@100Gbit/s ib07@100Gbit/s "
                  "ib08@54.5455Gbit/s"));
  EXPECT_THAT(read->notes, ElementsAre("1 further ports of hosts are left out"));
}

TEST(TopologyImportTest, ReadsOldAndGroupedIbnetdiscover) {
  const Result<TopologyImport> read = ReadIbnetdiscover(
      "Chassis 1 (guid 0x8f10400411f5a)\nvendid=0x8f1\n"
      "Switch\t24 \"S-01\"\t\t# \"ISR9024 Voltaire\" base port 0 lid 6 lmc 0\n"
      "[22]\t\"H-0a\"[1](8f1)\t\t# \"MT23108 InfiniHost Mellanox Technologies\" lid 4 4xSDR\n"
      "[10][ext 3]\t\"H-0b\"[1](8f2)\t\t# \"MT23108 InfiniHost Mellanox Technologies\" lid 5 1xQDR "
      "s=4\n"
      "Ca\t2 \"H-0a\"\t\t# \"MT23108 InfiniHost Mellanox Technologies\"\n"
      "[1](8f1) \t\"S-01\"[22]\t\t# lid 4 lmc 0 \"ISR9024 Voltaire\" lid 6 4xSDR\n",
      "ib.txt");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(RacksOf(read->topology),
              ElementsAre("ISR9024 Voltaire 16Gbit/s: H-0a@8Gbit/s H-0b@8Gbit/s"));
  EXPECT_THAT(read->notes,
              ElementsAre("2 adapters carry no host's name, or one that others carry too, and "
                          "count as a host each, called by its GUID, the first H-0a",
                          "of 2 adapters that switches name 1, the first H-0b, no section Ca is "
                          "there: is the file cut short?"));
}

// Hosts that were not named, or two by mistake. Catches all of them counted as one.
TEST(TopologyImportTest, AdaptersOfOneDescriptionAreOfSeveralHosts) {
  const auto link = [](int port, const char* description) {
    return fmt::format("[{}]\t\"H-{}\"[1](8f1)\t\t# \"{}\" lid 4 4xEDR\n", port, 10 + port,
                       description);
  };
  const Result<TopologyImport> read = ReadIbnetdiscover(
      "Switch\t24 \"S-01\" # \"leaf-a\"\n[20] \"S-02\"[1] # \"leaf-b\" lid 2 4xEDR\n" +
          link(1, "localhost mlx5_0") + link(2, "localhost mlx5_0") + link(3, "ib03 HCA-1") +
          "Switch\t24 \"S-02\" # \"leaf-b\"\n[1] \"S-01\"[20] # \"leaf-a\" lid 1 4xEDR\n" +
          link(4, "localhost mlx5_1") + link(5, "ib03 HCA-2"),
      "ib.txt");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(RacksOf(read->topology),
              ElementsAre("leaf-a 100Gbit/s: H-11@100Gbit/s H-12@100Gbit/s ib03@100Gbit/s",
                          "leaf-b 100Gbit/s: H-14@100Gbit/s"));
  EXPECT_THAT(read->notes,
              ElementsAre("1 further ports of hosts are left out",
                          "3 adapters carry no host's name, or one that others carry too, and "
                          "count as a host each, called by its GUID, the first H-11"));
}

TEST(TopologyImportTest, SaysWhatIsWrongInIbnetdiscover) {
  EXPECT_THAT(FabricError("hello\n"), HasSubstr("ib.txt:1: no switch is there"));
  EXPECT_THAT(FabricError("\nSwitch 24 S-01\n"), HasSubstr("ib.txt:2: a switch has an id"));
  EXPECT_THAT(
      FabricError("Switch\t24 \"S-01\" # \"a\"\n[1] \"H-1\"[1] # \"h\" lid 4 slow\n"),
      HasSubstr("ib.txt:2: expected a link's width and speed, such as 4xEDR, found 'lid 4 slow'"));
  EXPECT_THAT(FabricError("Switch\t24 \"S-01\" # \"a\"\n[1] no quotes\n"),
              HasSubstr("ib.txt:2: expected [PORT]"));
  EXPECT_THAT(FabricError("Switch\t24 \"S-01\" # \"a\"\nSwitch\t24 \"S-01\" # \"a\"\n"),
              HasSubstr("ib.txt:2: switch S-01 is there twice"));
  EXPECT_THAT(FabricError("Switch\t24 \"S-01\" # \"a\"\n[1] \"H-1\"[1] # \"g\" lid 4 4xEDR\n"
                          "Switch\t24 \"S-02\" # \"b\"\n[1] \"H-2\"[1] # \"h\" lid 4 4xEDR\n"),
              HasSubstr("ib.txt:1: switch S-01 has no uplink"));
  EXPECT_THAT(FabricError("Switch\t24 \"S-01\" # \"a\"\n"), HasSubstr("at least 1 rack"));
  // Catches names that a file of the topology could not hold.
  EXPECT_THAT(FabricError("Switch\t24 \"S-01\" # \"a\"\n[1] \"H-1\"[1] # \"h\xff\" lid 4 4xEDR\n"),
              HasSubstr("ib.txt:1: a host's name has 1 to 256 bytes of UTF-8"));
}

TEST(TopologyImportTest, GuessesTheFormat) {
  EXPECT_EQ(GuessTopologySource(Example("slurm-topology.conf")), TopologySource::kSlurm);
  EXPECT_EQ(GuessTopologySource(Example("ibnetdiscover.txt")), TopologySource::kIbnetdiscover);
  EXPECT_EQ(GuessTopologySource(Example("4x8.json")), TopologySource::kJson);
  EXPECT_EQ(GuessTopologySource("hello\n"), std::nullopt);
  EXPECT_EQ(GuessTopologySource(""), std::nullopt);
}

// Any damage gives a topology or one line, and comes to an end.
TEST(TopologyImportTest, DamagedFilesDoNoHarm) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  for (const char* name : {"slurm-topology.conf", "slurm-topology.yaml", "ibnetdiscover.txt"}) {
    const std::string whole = Example(name);
    for (uint32_t i = 0; i < 400; ++i) {
      SCOPED_TRACE(fmt::format("{} seed {} case {}", name, seed, i));
      std::string text = whole;
      for (uint32_t damage = random.Between(1, 4); damage > 0; --damage) {
        const size_t at = random.Below(text.size());
        if (random.Coin()) {
          text[at] = static_cast<char>(random.Pick(std::string("[],-=\"# \n\\x09\t")));
        } else {
          text.erase(at, random.Between(1, 40));
        }
      }
      for (const auto& read : {ReadSlurmTopology(text, "t"), ReadIbnetdiscover(text, "t")}) {
        if (read.ok()) {
          EXPECT_TRUE(CheckTopology(read->topology).ok());
        } else {
          EXPECT_FALSE(read.status().message().empty());
        }
      }
    }
  }
}

}  // namespace
}  // namespace prepost::topology_import_test
