// SPDX-License-Identifier: Apache-2.0
#include "compiler/topology/topology_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "compiler/spec_json.h"
#include "ir/json/rate_text.h"
#include "tests/support/random.h"

namespace prepost::topology_json_test {
namespace {

using ::testing::HasSubstr;

Result<Network> Read(const std::string& rest, std::vector<std::string>* warnings = nullptr) {
  std::istringstream in(R"({"format": "prepost.topology", "version": "1.0", )" + rest + "}");
  return ReadTopology(in, "t.json", warnings);
}

std::string ErrorOf(const std::string& rest) {
  const Result<Network> topology = Read(rest);
  return topology.ok() ? "no error" : topology.status().ToString();
}

/// Two racks; `more` stands at the top, `first` in the first rack.
std::string TwoRacks(const std::string& more, const std::string& first = "") {
  return more + R"("racks": [{"name": "a", "hosts": "n[1-2]")" + first +
         R"(}, {"name": "b", "hosts": ["n3", "m[1-2]"]}])";
}

constexpr const char* kRates = R"("host_rate": "100Gbit/s", "up_rate": 5e9, )";

// A default in the wrong place, a direction swapped, an override lost.
TEST(TopologyJsonTest, ReadsEveryKey) {
  const Result<Network> read = Read(TwoRacks(
      R"("name": "t", "host_rate": 100, "up_rate": 30, "down_rate": 40, "core_rate": "1kB/s",
         "rack_latency": "1us", "core_latency": 0.5, "x-note": [1],
         "overrides": [{"hosts": ["n2", "n3"], "rate": 7}, {"hosts": "n3", "recv_rate": 8}], )",
      R"(, "host_rate": 50, "up_rate": 10, "down_rate": 20)"));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const Network expected{.name = "t",
                         .nodes = {{.name = "n1", .rack = 0, .out_rate = 50, .in_rate = 50},
                                   {.name = "n2", .rack = 0, .out_rate = 7, .in_rate = 7},
                                   {.name = "n3", .rack = 1, .out_rate = 7, .in_rate = 8},
                                   {.name = "m1", .rack = 1, .out_rate = 100, .in_rate = 100},
                                   {.name = "m2", .rack = 1, .out_rate = 100, .in_rate = 100}},
                         .racks = {{.name = "a", .up_rate = 10, .down_rate = 20},
                                   {.name = "b", .up_rate = 30, .down_rate = 40}},
                         .core_rate = 1000,
                         .rack_latency = 1e-6,
                         .core_latency = 0.5};
  EXPECT_EQ(*read, expected);
}

constexpr const char* kTwoSites = R"("host_rate": 100, "sites": [
  {"name": "a", "hosts": "a[1-2]"}, {"name": "b", "hosts": "b1"}], )";

// A unit taken for another, a way back that differs, a key that goes nowhere.
TEST(TopologyJsonTest, ReadsPaths) {
  const Result<Network> read = Read(std::string(kTwoSites) + R"("switches": "s[1-2]", "paths": [
      {"between": ["a", "s1"], "rate": "400bit/s", "rtt": "60ms", "jitter": "1ms", "loss": 0.25,
       "police": {"rate": 30, "burst": 10000}, "pace": 20, "queue": 500, "streams": 4, "mtu": 9000},
      {"between": ["s1", "b"], "rate": 40, "latency": 2},
      {"between": ["a", "s2"], "rate": 40, "latency": 2},
      {"between": ["s2", "b"], "rate": 40, "latency": 2}],
    "routes": [{"between": ["b", "a"], "over": ["s2"]}])");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_TRUE(read->are_sites);
  EXPECT_EQ(read->racks[0].up_rate, 200);  // as fast as its hosts
  ASSERT_EQ(read->links.size(), 8u);
  Network::Link link = {.from = 0,
                        .to = 2,
                        .rate = 50,
                        .latency = 0.03,
                        .jitter = 1e-3,
                        .loss = 0.25,
                        .policer = Network::Policer{.rate = 30, .burst = 10000},
                        .pace = 20,
                        .queue = 500,
                        .streams = 4,
                        .mtu = 9000};
  EXPECT_EQ(read->links[0], link);
  EXPECT_EQ(link.capacity(), 20);
  std::swap(link.from, link.to);
  EXPECT_EQ(read->links[1], link);
  ASSERT_EQ(read->LinksBetween(0, 1).size(), 2u);
  EXPECT_EQ(read->links[read->LinksBetween(0, 1)[0]].to, 3u);  // s2, as it is said
  EXPECT_EQ(read->LatencyBetween(1, 0), 4);
  std::stringstream text;
  WriteTopology(*read, text);
  EXPECT_EQ(*ReadTopology(text, "again"), *read);
}

// Catches uplinks that are open for slower hosts than there are.
TEST(TopologyJsonTest, SitesTakeWhatTheirHostsDo) {
  const Result<Network> read = Read(std::string(kTwoSites) + R"("paths": [
      {"between": ["a", "b"], "rate": 1000, "rtt": 1}],
    "overrides": [{"hosts": "b1", "rate": 1000}])");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->racks[0].up_rate, 200);
  EXPECT_EQ(read->racks[1].up_rate, 1000);
  EXPECT_EQ(read->racks[1].down_rate, 1000);
}

TEST(TopologyJsonTest, SaysWhatIsWrongWithPaths) {
  const auto error = [](const std::string& path, const std::string& more = "") {
    return ErrorOf(kTwoSites + (R"("paths": [{"between": ["a", "b"], )" + path + "}]" + more));
  };
  EXPECT_EQ(error(R"("rate": 1, "rtt": 1)"), "no error");
  EXPECT_THAT(error(R"("rtt": 1)"),
              HasSubstr("/paths/0: the path between a and b has no rate: say what it carries"));
  EXPECT_THAT(error(R"("rate": 1)"), HasSubstr("/paths/0: a path has no rtt: say it"));
  EXPECT_THAT(error(R"("rate": 1, "rtt": 1, "latency": 1)"), HasSubstr("found both"));
  for (const char* loss : {"1", "1.5", "-0.1"}) {
    EXPECT_THAT(
        error(fmt::format(R"("rate": 1, "rtt": 1, "loss": {})", loss)),
        HasSubstr(fmt::format("/paths/0/loss: a loss is the share of packets that are lost, "
                              "from 0 to below 1, found {}",
                              loss)));
  }
  EXPECT_THAT(error(R"("rate": "100Mbit/s", "rtt": 1, "pace": "200Mbit/s")"),
              HasSubstr("/paths/0/pace: a pace of 200Mbit/s is above the path's rate, 100Mbit/s"));
  EXPECT_THAT(error(R"("rate": 100, "rtt": 1, "pace": 60, "police": {"rate": 50, "burst": 9000})"),
              HasSubstr("above what the policer lets through, 400bit/s"));
  EXPECT_THAT(error(R"("rate": 100, "rtt": 1, "police": {"rate": 50, "burst": 1000})"),
              HasSubstr("/paths/0/police/burst: a burst of 1000 bytes lets no packet of 1500"));
  EXPECT_THAT(error(R"("rate": 1, "rtt": 1}, {"between": ["b", "a"], "rate": 1, "rtt": 1)"),
              HasSubstr("/paths/1/between: there is a path between b and a already"));
  EXPECT_THAT(error(R"("rate": 1, "rtt": 1, "police": {"rate": 1})"), HasSubstr("'burst'"));
  EXPECT_THAT(error(R"("rate": 1, "rtt": 1, "streams": 0)"), HasSubstr("/paths/0/streams"));
  EXPECT_THAT(error(R"("rate": 1, "rtt": 1)", R"(, "core_latency": 1)"),
              HasSubstr("/core_latency: a core is what racks meet at where no paths"));
  EXPECT_THAT(
      error(R"("rate": 1, "rtt": 1)", R"(, "routes": [{"between": ["a", "b"], "over": ["c"]}])"),
      HasSubstr("/routes/0/over: no site or switch is called 'c'"));
  EXPECT_THAT(ErrorOf(std::string(kTwoSites) + R"("switches": "s")"),
              HasSubstr("/sites/0: site 'a' has no uplink"));
  EXPECT_THAT(
      ErrorOf(std::string(kTwoSites) + R"("paths": [{"between": ["a"], "rate": 1, "rtt": 1}])"),
      HasSubstr("/paths/0/between"));
  EXPECT_THAT(ErrorOf(std::string(kTwoSites) +
                      R"("paths": [{"between": ["a", "tokio"], "rate": 1, "rtt": 1}])"),
              HasSubstr("/paths/0/between: no site or switch is called 'tokio'"));
  EXPECT_THAT(
      ErrorOf(std::string(kTwoSites) +
              R"("switches": "s", "paths": [{"between": ["a", "s"], "rate": 1, "rtt": 1}])"),
      HasSubstr("/paths: no path leads from site"));
}

TEST(TopologyJsonTest, DownIsUpWhereItIsNotSaid) {
  const Result<Network> own =
      Read(TwoRacks(R"("host_rate": 1, "up_rate": 3, "down_rate": 4, )", R"(, "up_rate": 2)"));
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->racks[0].down_rate, 2);  // its own uplinks, not the others' downlinks
  EXPECT_EQ(own->racks[1].down_rate, 4);
  // A single rack's uplinks lead nowhere.
  EXPECT_TRUE(Read(R"("host_rate": 1, "racks": [{"name": "a", "hosts": "n[1-9]"}])").ok());
}

TEST(TopologyJsonTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorOf(TwoRacks("")),
              HasSubstr("t.json: /racks/0: the rate of its hosts is missing"));
  EXPECT_EQ(ErrorOf(TwoRacks(R"("host_rate": 1, )", R"(, "up_rate": 1)")),
            "t.json: /racks/1: rack 'b' has no uplink: up_rate is missing, here and at the top");
  EXPECT_EQ(ErrorOf(TwoRacks(R"("host_rate": 0, "up_rate": 1, )")).substr(0, 11), "t.json:1:64");
  EXPECT_THAT(ErrorOf(TwoRacks(R"("host_rate": 0, "up_rate": 1, )")),
              HasSubstr("/host_rate: a rate is more than 0, found 0"));
  EXPECT_THAT(ErrorOf(TwoRacks(kRates, R"(, "up_rate": "10Gb/s")")),
              HasSubstr("/racks/0/up_rate: '10Gb/s' is no rate, expected"));
  EXPECT_THAT(ErrorOf(TwoRacks(kRates, R"(, "up_rate": 1e999)")), HasSubstr("/racks/0/up_rate"));
  EXPECT_THAT(ErrorOf(TwoRacks(kRates, R"(, "up_rate": true)")),
              HasSubstr("expected a number of bytes/s or text with a unit, found a boolean"));
  EXPECT_THAT(ErrorOf(TwoRacks(R"("core_latency": -1, )")), HasSubstr("a latency is 0 or more"));
  EXPECT_EQ(ErrorOf(R"("host_rate": 1, "up_rate": 1, "racks": [{"name": "a", "hosts": "n1"},
                       {"name": "b", "hosts": "n[1-2]"}])"),
            "t.json: /racks/1/hosts: host 'n1' is there twice");
  EXPECT_EQ(ErrorOf(R"("host_rate": 1, "up_rate": 1, "racks": [{"name": "a", "hosts": "n1"},
                       {"name": "a", "hosts": "n2"}])"),
            "t.json: /racks/1/name: a rack 'a' is there already");
  EXPECT_EQ(ErrorOf(R"("host_rate": 1, "up_rate": 1, "racks": [{"name": "a", "hosts": []}])"),
            "t.json: /racks: a topology has at least 1 host, found 0");
  EXPECT_EQ(ErrorOf(R"("host_rate": 1, "up_rate": 1, "racks": [{"name": "a", "hosts": []},
                       {"name": "b", "hosts": "n1"}])"),
            "t.json: /racks/0/hosts: rack 'a' has no host");
  EXPECT_EQ(ErrorOf(R"("racks": [])"), "t.json: /racks: a topology has at least 1 rack, found 0");
  EXPECT_THAT(ErrorOf(R"("host_rate": 1)"), HasSubstr("key 'racks' or 'sites' is missing"));
  EXPECT_THAT(ErrorOf(R"("host_rate": 1, "racks": [{"name": "a", "hosts": "n[1-"}])"),
              HasSubstr("/racks/0/hosts: 'n[1-' is no host list: brackets do not match"));
  EXPECT_THAT(
      ErrorOf(R"("host_rate": 1, "racks": [{"name": "a", "hosts": "n[0-99999999]"}])"),
      HasSubstr("/racks/0/hosts: '0-99999999' is no host list: it gives more than 1048576"));
  EXPECT_EQ(
      ErrorOf(TwoRacks(std::string(kRates) + R"("overrides": [{"hosts": "n9", "rate": 1}], )")),
      "t.json: /overrides/0/hosts: no rack has a host 'n9'");
  EXPECT_THAT(ErrorOf(TwoRacks(std::string(kRates) + R"("overrides": [{"hosts": "n1"}], )")),
              HasSubstr("/overrides/0: an override says rate, send_rate or recv_rate"));
  EXPECT_THAT(ErrorOf(TwoRacks(kRates, R"(, "uprate": 1)")),
              HasSubstr("/racks/0/uprate: unknown key, did you mean 'up_rate'?"));
  EXPECT_THAT(ErrorOf(R"("racks": 7)"), HasSubstr("/racks: expected an array, found 7"));
  EXPECT_THAT(ErrorOf(R"("racks": [{"name": "a", "hosts": {}}])"),
              HasSubstr("expected a scalar or an array, found an object"));
}

TEST(TopologyTest, ValuesAreChecked) {
  const Network good = *Read(TwoRacks(kRates));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(CheckTopology(good).ok());
  const auto error_of = [&](auto change) {
    Network wrong = good;
    change(wrong);
    return CheckTopology(wrong).ToString();
  };
  EXPECT_THAT(error_of([](Network& t) { t.racks[1].up_rate = 0; }), HasSubstr("/racks/1/up_rate"));
  EXPECT_THAT(error_of([&](Network& t) { t.racks[0].down_rate = nan; }), HasSubstr("/down_rate"));
  EXPECT_THAT(error_of([](Network& t) { t.nodes[4].out_rate = -1; }), HasSubstr("/racks/1/hosts"));
  EXPECT_THAT(error_of([](Network& t) { t.nodes[0].in_rate = 0; }), HasSubstr("/racks/0/hosts"));
  EXPECT_THAT(error_of([](Network& t) { t.nodes[0].rack = 2; }), HasSubstr("is in rack 2"));
  EXPECT_THAT(error_of([](Network& t) { t.nodes[0].name = "a,b"; }), HasSubstr("a host's name"));
  EXPECT_THAT(error_of([](Network& t) { t.core_rate = 0; }), HasSubstr("/core_rate"));
  EXPECT_THAT(error_of([&](Network& t) { t.rack_latency = nan; }), HasSubstr("/rack_latency"));
  EXPECT_THAT(error_of([](Network& t) { t.core_latency = -1; }), HasSubstr("/core_latency"));
}

std::string Written(const Network& topology) {
  std::ostringstream out;
  WriteTopology(topology, out);
  return out.str();
}

// Rates that no text has exactly, names that count up, slow hosts at the ends of racks.
TEST(TopologyJsonTest, RoundTripIsExact) {
  const uint64_t seed = test::TestSeed();
  test::Random random(seed);
  const double rates[] = {12.5e9, 3.125e9, 1e9 / 3, 1.0, 7e-3};
  for (uint32_t i = 0; i < 50; ++i) {
    SCOPED_TRACE(fmt::format("seed {} case {}", seed, i));
    Network topology{.name = i % 2 == 0 ? "" : "t", .rack_latency = rates[i % 5] / 1e12};
    if (i % 3 == 0) topology.core_rate = random.Pick(rates);
    const uint32_t racks = random.Between(1, 5);
    for (uint32_t rack = 0; rack < racks; ++rack) {
      topology.racks.push_back({.name = fmt::format("rack {}", rack),
                                .up_rate = random.Pick(rates),
                                .down_rate = random.Pick(rates)});
      for (uint32_t host = random.Between(1, 12); host-- > 0;) {
        const uint32_t number = static_cast<uint32_t>(topology.nodes.size()) + 7;
        const double rate = random.Pick(rates);
        topology.nodes.push_back(
            {.name = random.Coin() ? fmt::format("n{}", number) : fmt::format("m{:03}", number),
             .rack = rack,
             .out_rate = random.Coin() ? 12.5e9 : rate,
             .in_rate = 12.5e9});
      }
    }
    std::istringstream in(Written(topology));
    const Result<Network> again = ReadTopology(in, "w.json");
    ASSERT_TRUE(again.ok()) << again.status().ToString() << Written(topology);
    EXPECT_EQ(*again, topology) << Written(topology);
  }
}

// A thousand hosts take a few lines.
TEST(TopologyJsonTest, IsCompact) {
  const std::string hosts = R"("host_rate": 1, "up_rate": 1, "racks": [)";
  std::string racks;
  for (int i = 0; i < 32; ++i)
    racks += fmt::format(R"({}{{"name": "r{}", "hosts": "r{}n[01-32]"}})", i == 0 ? "" : ",", i, i);
  const Result<Network> topology = Read(hosts + racks + "]");
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology->nodes.size(), 1024u);
  EXPECT_LT(Written(*topology).size(), 4000u);
  // More hosts than one list takes.
  const Result<Network> large =
      Read(R"("host_rate": 1, "racks": [{"name": "a", "hosts": "n[1-64]-[1-64]x"}])");
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(large->nodes.size(), 4096u);
  std::istringstream again(Written(*large));
  EXPECT_EQ(*ReadTopology(again, "w.json"), *large);
}

TEST(TopologyJsonTest, ExamplesAreReadAndWrittenBack) {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(PREPOST_SOURCE_DIR "/examples/topologies")) {
    if (entry.path().extension() != ".json") continue;
    ++count;
    std::ifstream file(entry.path());
    const Result<Network> topology = ReadTopology(file, entry.path());
    ASSERT_TRUE(topology.ok()) << topology.status().ToString();
    std::istringstream again(Written(*topology));
    EXPECT_EQ(*ReadTopology(again, "w.json"), *topology) << entry.path();
  }
  EXPECT_GE(count, 4u);
}

TEST(TopologyJsonTest, StandsInASpec) {
  const std::string head =
      R"({"format": "prepost.spec", "version": "1.0", "collective": "multicast", )";
  const auto read = [&](const std::string& rest) {
    std::istringstream in(head + rest + "}");
    return ReadSpec(in, "s.json");
  };
  const Result<Spec> spec =
      read(R"("nodes": 3, "root": 1, "order": [1, 0, 2], "topology": {)" + TwoRacks(kRates) + "}");
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(*spec->topology, *Read(TwoRacks(kRates)));
  EXPECT_EQ(spec->order, (std::vector<NodeId>{NodeId(1), NodeId(0), NodeId(2)}));
  std::stringstream text;
  WriteSpec(*spec, text);
  EXPECT_EQ(*ReadSpec(text, "w.json"), *spec);

  EXPECT_EQ(read(R"("topology": "t.json")")->topology_path, "t.json");
  EXPECT_EQ(read(R"("topology": {"racks": []})").status().ToString(),
            "s.json: /topology/racks: a topology has at least 1 rack, found 0");
  EXPECT_THAT(read(R"("topology": {"racks": [{"hosts": "a"}]})").status().ToString(),
              HasSubstr("/topology/racks/0: key 'name' is missing"));
  EXPECT_THAT(read(R"("topology": 7)").status().ToString(),
              HasSubstr("/topology: expected a string"));
  EXPECT_THAT(read(R"("order": [0, -1])").status().ToString(), HasSubstr("/order/1: expected an"));
}

}  // namespace
}  // namespace prepost::topology_json_test
