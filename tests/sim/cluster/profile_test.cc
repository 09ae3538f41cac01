// SPDX-License-Identifier: Apache-2.0
#include "sim/cluster/profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/random.h"

namespace prepost::sim::profile_test {
namespace {

Result<Profile> Read(const std::string& text, std::vector<std::string>* warnings = nullptr) {
  std::istringstream in(text);
  return ReadProfile(in, "p", warnings);
}

using Section = std::map<std::string, std::string>;

const Section kNetwork = {{"host_rate", "\"80Gbit/s\""}, {"rack_latency", "\"1us\""}};
const char* const kDuplex = ", \"duplex\": {\"value\": \"120Gbit/s\", \"assumed\": \"a\"}";
const Section kRacks = {{"hosts", "4"}, {"core_latency", "\"2us\""}, {"up_rate", "\"160Gbit/s\""}};
const Section kNic = {{"wqe", "1"},
                      {"wait", "2"},
                      {"cqe", "3"},
                      {"doorbell", "4"},
                      {"doorbell_interval", "4.5"},
                      {"message_overhead_bytes", "5"},
                      {"port_sharing", "\"per_qp\""}};
const Section kHost = {{"cores", "6"},          {"post_send", "7"},       {"post_receive", "8"},
                       {"poll", "9"},           {"completion", "10"},     {"credit", "11"},
                       {"interrupt", "12"},     {"hybrid_polling", "13"}, {"message_start", "14"},
                       {"message_setup", "15"}, {"copy_rate", "16"}};
const Section kPreemption = {{"rate", "17.5"}, {"length", "18"}, {"lengths", "\"exponential\""}};
const Section kControl = {{"system_call", "21"}, {"latency", "22"}};
const Section kTcp = {
    {"system_call", "19"}, {"copy_rate", "20"}, {"segment_bytes", "25"}, {"segment_calls", "26"}};

/// A section as it stands in a file, and `more` at its end.
std::string Text(const Section& section, const std::string& more = "") {
  std::string text;
  for (const auto& [key, value] : section) {
    text += fmt::format("{}\"{}\": {{\"value\": {}, \"assumed\": \"a\"}}", text.empty() ? "" : ", ",
                        key, value);
  }
  return "{" + text + more + "}";
}

struct Parts {
  std::string network = Text(kNetwork);
  std::string nic = Text(kNic);
  std::string host = Text(kHost);
  std::string more;
};
std::string File(const Parts& parts) {
  return R"({"format": "prepost.profile", "version": "1.0", "name": "n", "cluster": "c", )" +
         fmt::format("\"network\": {}, \"nic\": {}, \"host\": {}{}}}", parts.network, parts.nic,
                     parts.host, parts.more);
}

Section With(Section section, const std::string& key, const std::string& value) {
  section[key] = value;
  return section;
}
Section Without(Section section, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) section.erase(key);
  return section;
}
std::string Racks(const Section& racks) { return Text(kNetwork, ", \"racks\": " + Text(racks)); }

// A value that is read into another one's place.
TEST(ProfileTest, ReadsEveryMember) {
  const auto profile = Read(File(
      {.network = Text(kNetwork,
                       kDuplex + (", \"racks\": " +
                                  Text(With(With(kRacks, "down_rate", "40"), "core_rate", "50")))),
       .host = Text(With(With(kHost, "combine", "27"), "combine_rate", "28"),
                    ", \"preemption\": " + Text(kPreemption) +
                        ", \"neighbours\": " + Text({{"count", "23"}, {"slice", "24"}})),
       .more = ", \"tcp\": " + Text(kTcp) + ", \"control\": " + Text(kControl)}));
  ASSERT_TRUE(profile.ok()) << profile.status().ToString();
  const Profile expected = {
      .name = "n",
      .cluster = "c",
      .network = {.nodes = {{.out_rate = 1e10, .in_rate = 1e10, .duplex_rate = 1.5e10}},
                  .racks = {{"all", 2e10, 40}},
                  .core_rate = 50,
                  .rack_latency = 1e-6,
                  .core_latency = 2e-6},
      .rack_hosts = 4,
      .nic = {.wqe = 1 * kPicosecondsPerSecond,
              .wait = 2 * kPicosecondsPerSecond,
              .cqe = 3 * kPicosecondsPerSecond,
              .doorbell = 4 * kPicosecondsPerSecond,
              .doorbell_interval = 4'500'000'000'000,
              .message_overhead_bytes = 5,
              .port_sharing = PortSharing::kPerQp},
      .host = {.cores = 6,
               .post_send = 7 * kPicosecondsPerSecond,
               .post_receive = 8 * kPicosecondsPerSecond,
               .poll = 9 * kPicosecondsPerSecond,
               .completion = 10 * kPicosecondsPerSecond,
               .credit = 11 * kPicosecondsPerSecond,
               .interrupt = 12 * kPicosecondsPerSecond,
               .hybrid_polling = 13 * kPicosecondsPerSecond,
               .message_start = 14 * kPicosecondsPerSecond,
               .message_setup = 15 * kPicosecondsPerSecond,
               .copy_rate = 16,
               .combine = 27 * kPicosecondsPerSecond,
               .combine_rate = 28,
               .system_call = 19 * kPicosecondsPerSecond,
               .system_copy_rate = 20,
               .segment_bytes = 25,
               .segment_calls = 26 * kPicosecondsPerSecond,
               .preemptions_per_second = 17.5,
               .preemption_length = 18 * kPicosecondsPerSecond,
               .preemption_lengths_vary = true,
               .neighbours = 23,
               .slice = 24 * kPicosecondsPerSecond},
      .is_tcp = true,
      .control = ControlProfile{21, 22}};
  EXPECT_EQ(*profile, expected);
}

TEST(ProfileTest, UplinksAreGivenAsARateOrByOversubscription) {
  Section racks = kRacks;
  racks.erase("up_rate");
  racks["oversubscription"] = "2.5";
  const auto profile = Read(File({.network = Racks(racks)}));
  ASSERT_TRUE(profile.ok()) << profile.status().ToString();
  EXPECT_EQ(profile->network.racks[0].up_rate, 4 * 1e10 / 2.5);
  EXPECT_EQ(profile->network.racks[0].down_rate, profile->network.racks[0].up_rate);
  EXPECT_FALSE(profile->network.core_rate.has_value());
  EXPECT_FALSE(profile->is_tcp);
  EXPECT_FALSE(profile->control.has_value());
  EXPECT_EQ(profile->host.preemptions_per_second, 0);
  EXPECT_EQ(profile->host.neighbours, 0u);
}

/// The text of the error without "p:line:col: "; of a file without one: "".
std::string ErrorOf(const std::string& text) {
  const Status status = Read(text).status();
  if (status.ok()) return "";
  const std::string error = status.ToString();
  EXPECT_TRUE(error.starts_with("p:1:")) << error;
  return error.substr(error.find(": ") + 2);
}

TEST(ProfileTest, SaysWhereAndWhatIsWrong) {
  const auto nic = [](const std::string& wqe) {
    std::string text = Text(kNic);
    const std::string old = R"("wqe": {"value": 1, "assumed": "a"})";
    text.replace(text.find(old), old.size(), "\"wqe\": " + wqe);
    return File({.nic = text});
  };
  const std::string sources =
      "/nic/wqe: expected one of the keys paper, data_sheet, measured, assumed, which say where "
      "the value comes from, found ";
  const std::pair<std::string, std::string> cases[] = {
      {nic("1"), "/nic/wqe: expected an object, found 1"},
      {nic(R"({"value": 1})"), sources + "0"},
      {nic(R"({"value": 1, "paper": "a", "assumed": "b"})"), sources + "2"},
      {nic(R"({"value": 1, "paper": ""})"),
       "/nic/wqe/paper: expected where the value comes from, found nothing"},
      {nic(R"({"value": 1, "paper": 3})"), "/nic/wqe/paper: expected a string, found 3"},
      {nic(R"({"value": 1, "papers": "a"})"),
       "/nic/wqe/papers: unknown key, did you mean 'paper'?"},
      {nic(R"({"assumed": "a"})"), "/nic/wqe: key 'value' is missing"},
      {nic(R"({"value": "1 us ", "assumed": "a"})"),
       "/nic/wqe/value: '1 us ' is no time, expected 0 or more and a unit: ns, us, ms or s"},
      {nic(R"({"value": -1, "assumed": "a"})"), "/nic/wqe/value: a latency is 0 or more, found -1"},
      {nic(R"({"value": 3601, "assumed": "a"})"),
       "/nic/wqe/value: 3601s is too large, the limit is 3600s"},
      {nic(R"({"value": null, "assumed": "a"})"),
       "/nic/wqe/value: expected a number of seconds or text with a unit, found null"},
      {File({.nic = Text(With(kNic, "wqes", "1"))}), "/nic/wqes: unknown key, did you mean 'wqe'?"},
      {File({.nic = Text(With(kNic, "port_sharing", "\"per_pq\""))}),
       "/nic/port_sharing/value: unknown word 'per_pq', expected per_qp or fifo, did you mean "
       "'per_qp'?"},
      {File({.network = Text(With(kNetwork, "host_rate", "0"))}),
       "/network/host_rate/value: a rate is more than 0, found 0"},
      {File({.network = Text(With(kNetwork, "host_rate", "\"1bit/s\""))}),
       "/network/host_rate/value: 1bit/s is too small, the least is 8bit/s"},
      {File({.network = Text(With(kNetwork, "host_rate", "1.1e12"))}),
       "/network/host_rate/value: 8.8Tbit/s is too large, the limit is 8Tbit/s"},
      {File({.network = Racks(With(kRacks, "up_rate", "1e16"))}),
       "/network/racks/up_rate/value: 80000Tbit/s is too large, the limit is 8000Tbit/s"},
      {nic(R"({"value": 1, "paper": " \t"})"),
       "/nic/wqe/paper: expected where the value comes from, found nothing"},
      {File({.network = Racks(With(kRacks, "oversubscription", "2"))}),
       "/network/racks: keys 'up_rate' and 'oversubscription' exclude each other"},
      {File({.network = Racks({{"hosts", "4"}, {"core_latency", "1"}})}),
       "/network/racks: key 'up_rate' or 'oversubscription' is missing"},
      {File({.network = Racks(With(kRacks, "hosts", "0"))}),
       "/network/racks/hosts/value: expected 1 or more, found 0"},
      {File({.network =
                 Racks({{"hosts", "4"}, {"core_latency", "1"}, {"oversubscription", "0.5"}})}),
       "/network/racks/oversubscription/value: 0.5 is too small, the least is 1"},
      {File({.network =
                 Racks({{"hosts", "4"}, {"core_latency", "1"}, {"oversubscription", "\"2\""}})}),
       "/network/racks/oversubscription/value: expected a number, found string \"2\""},
      {File({.network = Text(kNetwork, R"(, "up_rate": {"value": 1, "assumed": "a"})")}),
       "/network/up_rate: unknown key"},
      {File({.host = Text(With(kHost, "cores", "65537"))}),
       "/host/cores/value: 65537 is too large, the limit is 65536"},
      {File({.host = Text(With(kHost, "cores", "1.5"))}),
       "/host/cores/value: expected an integer from 1 to 65536, found 1.5"},
      {File({.host = Text(kHost, ", \"preemption\": " + Text({{"rate", "1"}, {"length", "1"}}))}),
       "/host/preemption: key 'lengths' is missing"},
      {File({.host = Text(kHost, ", \"preemption\": " + Text(With(kPreemption, "rate", "0")))}),
       "/host/preemption/rate/value: 0 is too small, the least is 1e-09"},
      {File({.more = R"(, "tcp": {})"}), "keys are missing: /tcp/system_call, /tcp/copy_rate"},
      {File({.more = ", \"tcp\": " +
                     Text({{"system_call", "1"}, {"copy_rate", "1"}, {"segment_calls", "1"}})}),
       "/tcp: key 'segment_bytes' is missing: without it blocks are copied as a whole, and "
       "'segment_calls' has no meaning"},
      {File({.more = R"(, "control": {"latency": {"value": 1, "assumed": "a"}})"}),
       "/control: key 'system_call' is missing"},
      {File({.more = R"(, "tcpp": {})"}), "/tcpp: unknown key, did you mean 'tcp'?"},
      {File({.nic = "[]"}), "/nic: expected an object, found an array"},
      {R"({"format": "prepost.device"})",
       "/format: expected \"prepost.profile\", found string \"prepost.device\""},
      {R"({"format": "prepost.profile", "version": "2.0"})",
       "/version: version 2.0 is not supported, this program reads 1.x"},
      {R"({"format": "prepost.profile", "version": "1.0", "name": "n"})",
       "keys are missing: /cluster, /network, /nic, /host"},
      {File({.nic = Text(Without(kNic, {"wqe", "cqe"})), .host = Text(Without(kHost, {"poll"}))}),
       "keys are missing: /nic/wqe, /nic/cqe, /host/poll"}};
  for (const auto& [text, error] : cases) EXPECT_EQ(ErrorOf(text), error) << text;
}

TEST(ProfileTest, NothingMayBeMissing) {
  for (const auto& [name, section] : {std::pair("nic", kNic), std::pair("host", kHost)}) {
    for (const auto& [key, value] : section) {
      Section rest = section;
      rest.erase(key);
      Parts parts;
      (name == std::string("nic") ? parts.nic : parts.host) = Text(rest);
      const bool may_be = key == "doorbell_interval";
      EXPECT_EQ(ErrorOf(File(parts)),
                may_be ? "" : fmt::format("/{}: key '{}' is missing", name, key));
    }
  }
}

TEST(ProfileTest, LeavesExtensionsAlone) {
  const std::string more = R"(, "x-note": [{"value": 1}])";
  EXPECT_EQ(ErrorOf(File({.network = Text(kNetwork, more), .more = more})), "");
  std::vector<std::string> warnings;
  std::string text = File({});
  text.replace(text.find("1.0"), 3, "1.1");
  EXPECT_TRUE(Read(text, &warnings).ok());
  EXPECT_EQ(warnings,
            std::vector<std::string>{"version 1.1 is newer than 1.0, which this program knows"});
}

std::map<std::string, std::string> Shipped() {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(PREPOST_SOURCE_DIR) / "examples" / "profiles")) {
    std::ifstream in(entry.path());
    files[entry.path().stem()] = std::string(std::istreambuf_iterator<char>(in), {});
  }
  return files;
}

// Figures that others rely on, and that a slip of a unit would change.
TEST(ProfileTest, ShippedProfilesRead) {
  std::map<std::string, Profile> profiles;
  for (const auto& [name, text] : Shipped()) {
    const auto profile = Read(text);
    ASSERT_TRUE(profile.ok()) << name << ": " << profile.status().ToString();
    EXPECT_TRUE(CheckNetwork(profile->NetworkOf(100), 100).ok()) << name;
    profiles[name] = *profile;
  }
  ASSERT_EQ(profiles.size(), 6u);
  EXPECT_EQ(profiles["fractus"].host_rate(), 12.5e9);
  EXPECT_EQ(profiles["sierra"].host_rate(), 2.5e9);
  EXPECT_EQ(profiles["stampede"].host_rate(), 5e9);
  EXPECT_EQ(profiles["stampede"].network.nodes[0].duplex_rate, 70.5e9 / 8);
  EXPECT_EQ(profiles["fractus"].network.nodes[0].duplex_rate, 165e9 / 8);
  EXPECT_FALSE(profiles["sierra"].network.nodes[0].duplex_rate.has_value());
  EXPECT_EQ(profiles["ndr400"].host_rate(), 50e9);
  EXPECT_NEAR(profiles["apt"].network.racks[0].up_rate / 28 * 8, 16e9, 0.5e9);
  EXPECT_TRUE(profiles["tcp-10g"].is_tcp);
  // Of the 1.37 us that a block waits in Table 1 of the RDMC paper, the hosts' part.
  const HostCosts& host = profiles["stampede"].host;
  EXPECT_EQ(2 * host.poll + host.completion + host.credit + host.post_receive + 2 * host.post_send,
            870'000);
  EXPECT_NEAR(0x1p20 / host.copy_rate, 215e-6, 1e-6);
}

// Whatever happens to a file, it reads, or there is one error with a place.
TEST(ProfileTest, DamagedFilesAreRefusedWithAPlace) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::minstd_rand random(static_cast<uint32_t>(seed));
  size_t refused = 0;
  for (const auto& [name, text] : Shipped()) {
    for (int i = 0; i < 2000; ++i) {
      std::string damaged = text;
      for (size_t j = 0; j <= random() % 3; ++j) {
        const size_t at = random() % damaged.size();
        switch (random() % 3) {
          case 0:
            damaged[at] = static_cast<char>(random() % 256);
            break;
          case 1:
            damaged.erase(at, random() % 40);
            break;
          case 2:
            damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 40));
            break;
        }
      }
      const auto profile = Read(damaged);
      if (profile.ok()) {
        EXPECT_TRUE(CheckNetwork(profile->NetworkOf(9), 9).ok()) << damaged;
      } else {
        ++refused;
        EXPECT_TRUE(profile.status().ToString().starts_with("p:")) << profile.status().ToString();
        EXPECT_EQ(profile.status().ToString().find('\n'), std::string::npos)
            << profile.status().ToString();
      }
    }
  }
  EXPECT_GT(refused, 6000u);
}

TEST(ProfileTest, NetworksHaveWholeRacksFirst) {
  Profile profile = {.network = {.nodes = {{.out_rate = 10, .in_rate = 10}},
                                 .racks = {{"", 20, 30}},
                                 .core_rate = 40,
                                 .rack_latency = 1,
                                 .core_latency = 2},
                     .rack_hosts = 4};
  const Network network = profile.NetworkOf(9);
  ASSERT_TRUE(CheckNetwork(network, 9).ok());
  EXPECT_EQ(network.racks.size(), 3u);
  EXPECT_EQ(network.nodes[3].rack, 0u);
  EXPECT_EQ(network.nodes[4].rack, 1u);
  EXPECT_EQ(network.nodes[8].rack, 2u);
  EXPECT_EQ(network.nodes[8].out_rate, 10);
  EXPECT_EQ(network.racks[2].up_rate, 20);
  EXPECT_EQ(network.racks[0].down_rate, 30);
  EXPECT_EQ(network.core_rate, 40);
  EXPECT_EQ(network.rack_latency, 1);
  EXPECT_EQ(network.core_latency, 2);
  profile.rack_hosts = 0;
  const Network one = profile.NetworkOf(1000);
  ASSERT_TRUE(CheckNetwork(one, 1000).ok());
  EXPECT_EQ(one.racks.size(), 1u);
}

}  // namespace
}  // namespace prepost::sim::profile_test
