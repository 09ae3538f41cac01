// SPDX-License-Identifier: Apache-2.0
//
// What push is made of, without a network: lists of hosts, manifests, lines of JSON, agents.
// push_files_test.cc has its files, tests/tools/commands/push_test.py pushes to hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "tools/push/agent_process.h"
#include "tools/push/line_channel.h"
#include "tools/push/manifest.h"
#include "tools/push/push_hosts.h"
#include "tools/push/push_options.h"
#include "tools/push/push_receivers.h"
#include "tools/push/slow_host.h"

namespace prepost::tools {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Catches colons of IPv6 addresses taken for the target's, and flags smuggled in as hosts.
TEST(PushHostsTest, ReadsHosts) {
  std::vector<PushHost> hosts;
  ASSERT_TRUE(ParsePushHosts("a,u@b:/srv/x,u@[fd00::1]:y", &hosts).ok());
  ASSERT_TRUE(ParsePushHostsFile("# all\nc 10.0.0.1\n\n  d:/tmp # one\n", "f", &hosts).ok());
  ASSERT_EQ(hosts.size(), 5u);
  EXPECT_EQ(hosts[1].name, "u@b");
  EXPECT_EQ(hosts[1].target, "/srv/x");
  EXPECT_EQ(hosts[2].name, "u@fd00::1");
  EXPECT_EQ(hosts[2].target, "y");
  EXPECT_EQ(hosts[3].address, "10.0.0.1");
  EXPECT_EQ(hosts[4].target, "/tmp");
  for (const std::string wrong : {"", "a,,b", "-oProxyCommand=x", ":x", "u@", "[fd00::1:y", "u@-x",
                                  "-u@x", "a b", "a\033[2J:x", "a\tb", "$(x)", "a;x", "u@v@x",
                                  "[a]", "a[fd00::1]", "\xc3\xa4", "u v@x", "[fd00::1]x:y"}) {
    EXPECT_EQ(ParsePushHosts(wrong, &hosts).code(), StatusCode::kUsage) << wrong;
    if (wrong.empty()) continue;
    EXPECT_EQ(ParsePushHostsFile('"' + wrong + "\"\n", "f", &hosts).code(), StatusCode::kRejected)
        << wrong;
  }
  for (const char* const wrong : {"a -x", "a \"10.0.0.1 x\"", "a \"\"", "a x\033y", "a [fd00::1]"})
    EXPECT_THAT(ParsePushHostsFile(wrong, "f", &hosts).ToString(),
                HasSubstr("no address of a host"))
        << wrong;
  EXPECT_TRUE(ParsePushHostsFile("a fd00::1", "f", &hosts).ok());
  EXPECT_THAT(ParsePushHostsFile("a\nb c d\n", "f", &hosts).ToString(), HasSubstr("f:2: 'd'"));
  EXPECT_THAT(ParsePushHostsFile("a site=x\n\nb c\n", "f", &hosts).ToString(),
              HasSubstr("f:3: a host has no site, and others do (f:1)"));
  EXPECT_THAT(ParsePushHostsFile("a site=x/y", "f", &hosts).ToString(), HasSubstr("f:1: 'x/y'"));
  EXPECT_THAT(ParsePushHostsFile("a site=x c", "f", &hosts).ToString(), HasSubstr("f:1: 'c'"));
  hosts.clear();
  ASSERT_TRUE(ParsePushHostsFile("a c site=x\nb:/tmp site=y-1 # z", "f", &hosts).ok());
  EXPECT_EQ(hosts[0].address, "c");
  EXPECT_EQ(hosts[0].site, "x");
  EXPECT_EQ(hosts[1].site, "y-1");
  EXPECT_THAT(ParsePushHostsFile("a:\"/x", "f", &hosts).ToString(), HasSubstr("f:1: a double"));
  hosts.clear();
  ASSERT_TRUE(ParsePushHostsFile("\"a:/srv/my #1 files\"  10.0.0.1 # x\n", "f", &hosts).ok());
  EXPECT_EQ(hosts[0].target, "/srv/my #1 files");
  EXPECT_EQ(hosts[0].address, "10.0.0.1");
}

// Catches brackets that become part of a name, commas in them that end it, and a network of this
// machine that is told to others.
TEST(PushHostsTest, ListsAreExpandedAndZonesRefused) {
  std::vector<PushHost> hosts;
  ASSERT_TRUE(ParsePushHosts("u@node[08-10,12]:/x,login", &hosts).ok());
  std::vector<std::string> names;
  for (const PushHost& host : hosts) names.push_back(host.name + host.target);
  EXPECT_THAT(names, ElementsAre("u@node08/x", "u@node09/x", "u@node10/x", "u@node12/x", "login"));
  hosts.clear();
  ASSERT_TRUE(ParsePushHostsFile("rack[1-2]n[1-2] site=x\n", "f", &hosts).ok());
  ASSERT_EQ(hosts.size(), 4u);
  EXPECT_EQ(hosts[3].name, "rack2n2");
  EXPECT_EQ(hosts[3].site, "x");
  EXPECT_THAT(ParsePushHostsFile("n[1-2] 10.0.0.1", "f", &hosts).ToString(),
              HasSubstr("f:1: 2 hosts have one address"));
  for (const char* const wrong : {"n[1-", "n[2-1]", "n[]", "n[1-999999999]", "n]1["})
    EXPECT_EQ(ParsePushHosts(wrong, &hosts).code(), StatusCode::kUsage) << wrong;
  EXPECT_THAT(ParsePushHosts("[fe80::1%eth0]:/x", &hosts).ToString(),
              HasSubstr("this machine only"));
  EXPECT_THAT(ParsePushHostsFile("b fe80::1%eth0", "f", &hosts).ToString(),
              HasSubstr("f:1: 'fe80::1%eth0' is an address on a network of this machine only"));
}

// Catches a limit of each list, of which a small file has many.
TEST(PushHostsTest, AreNotMoreThanOnePushMayHave) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "n[1-99999]\n";
  std::vector<PushHost> hosts;
  EXPECT_EQ(ParsePushHostsFile(text, "f", &hosts).ToString(),
            "f:2: more than 100000 hosts are named");
  EXPECT_LE(hosts.size(), 100'000u);
  hosts.clear();
  EXPECT_THAT(ParsePushHosts("n[1-99999],m[1-2]", &hosts).ToString(),
              HasSubstr("more than 100000 hosts are named"));
}

// Catches a name that is taken for a member's number, again and again.
TEST(PushReceiversTest, NamesAreNamedOnce) {
  PushOptions options;
  options.hosts = {{.name = "h", .target = "/member 1", .label = "h:/member 1"},
                   {.name = "i", .label = "i"}};
  const PushReceivers receivers(options);
  EXPECT_EQ(receivers.NameHosts("member 1 waits for member 2 and member 0 (10.0.0.1:7)"),
            "h:/member 1 waits for i and this machine");
}

// Eight hosts that relay in a chain or among neighbours, one of which is slow in what it gets, in
// what it sends, or in both. Catches the one behind it taken for it, and a slow one where all are
// equally fast.
TEST(SlowHostTest, IsTheOneWhoseConnectionsAreAllBusy) {
  constexpr uint32_t kMembers = 9;
  const auto links = [](uint32_t slow, uint32_t step) {
    std::vector<LinkSpeed> all;
    for (uint32_t from = 0; from < kMembers; ++from) {
      for (uint32_t way = 1; way <= step; ++way) {
        const uint32_t to = (from + way) % kMembers;
        if (to == 0) continue;
        const bool is_slow = from == slow || to == slow;
        // A connection is never quite as fast as another.
        all.push_back({.from = from,
                       .to = to,
                       .bytes = 10'000'000,
                       .busy_seconds = (is_slow ? 2.0 : 0.1) + 0.001 * to});
      }
    }
    return all;
  };
  for (const uint32_t step : {1u, 3u}) {
    for (uint32_t slow = 1; slow < kMembers; ++slow)
      EXPECT_EQ(SlowMember(links(slow, step), kMembers), slow) << step;
    EXPECT_EQ(SlowMember(links(kMembers, step), kMembers), std::nullopt) << step;
  }
  EXPECT_EQ(SlowMember({}, kMembers), std::nullopt);
  EXPECT_EQ(SlowMember({{.from = 7, .to = 99, .bytes = 1 << 30, .busy_seconds = -1}}, kMembers),
            std::nullopt);
  EXPECT_NEAR(MemberSpeeds(links(4, 1), kMembers)[4], 5e6, 2e4);
  EXPECT_NEAR(MemberSpeeds(links(4, 1), kMembers)[5], 1e8, 1e7);
}

TEST(PushHostsTest, LabelsTellHostsApart) {
  std::vector<PushHost> hosts = {
      {.name = "a", .target = "x"}, {.name = "a", .target = "y"}, {.name = "b"}};
  ASSERT_TRUE(LabelPushHosts(&hosts).ok());
  EXPECT_EQ(hosts[0].label, "a:x");
  EXPECT_EQ(hosts[2].label, "b");
  for (const char* const target : {"x", "x/"}) {
    hosts[1].target = target;
    EXPECT_THAT(LabelPushHosts(&hosts).ToString(), HasSubstr("a is named twice"));
  }
}

// A receiver trusts no manifest: names that leave the folder, extents beside the file.
TEST(ManifestTest, RefusesWhatIsWrong) {
  const Manifest good = {{.name = "x", .bytes = 100, .extents = {{10, 20}, {50, 50}}}};
  const Result<Manifest> same = ManifestFromJson(ToJson(good));
  ASSERT_TRUE(same.ok()) << same.status().ToString();
  EXPECT_EQ(*same, good);
  const auto refuses = [&](const char* what, auto change) {
    json changed = ToJson(good);
    change(changed);
    EXPECT_FALSE(ManifestFromJson(changed).ok()) << what;
  };
  for (const char* const name : {"", ".", "..", "a/b", "/etc/passwd"})
    refuses(name, [&](json& it) { it[0]["name"] = name; });
  refuses("beyond the end", [](json& it) { it[0]["bytes"] = 99; });
  refuses("overlap", [](json& it) { it[0]["extents"][1][0] = 29; });
  refuses("wraps", [](json& it) { it[0]["extents"][1] = {20, UINT64_MAX}; });
  refuses("negative", [](json& it) { it[0]["bytes"] = -1; });
  refuses("mode", [](json& it) { it[0]["mode"] = 04755; });
  refuses("twice", [](json& it) { it.push_back(it[0]); });
  refuses("no list", [](json& it) { it = "x"; });
  refuses("stream with size", [](json& it) { it[0]["stream"] = true; });
}

TEST(LineChannelTest, TakesLinesApartAndRefusesOthers) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  FileDescriptor other(ends[1]);
  LineChannel channel{FileDescriptor(ends[0]), FileDescriptor()};
  const auto say = [&](std::string_view text) {
    ASSERT_EQ(write(other.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    EXPECT_TRUE(channel.Fill());
  };
  say("{\"a\":1}\n{\"b\"");
  EXPECT_EQ(**channel.Next(), json({{"a", 1}}));
  EXPECT_FALSE(channel.Next()->has_value());
  say(":2}\n[1]\n");
  EXPECT_EQ(**channel.Next(), json({{"b", 2}}));
  EXPECT_THAT(channel.Next().status().ToString(), HasSubstr("found '[1]'"));
  other.Close();
  EXPECT_FALSE(channel.Fill());
}

// Catches a host that makes this machine keep what it sends without end.
TEST(LineChannelTest, RefusesLinesBeyondItsLimit) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe(ends.data()), 0);
  const FileDescriptor other(ends[1]);
  LineChannel channel{FileDescriptor(ends[0]), FileDescriptor()};
  channel.LimitLines(1000);
  const std::string line = R"({"x":")" + std::string(980, 'a') + "\"}\n";
  ASSERT_EQ(write(other.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  EXPECT_TRUE(channel.Fill());
  EXPECT_TRUE(channel.Next().ok());
  const std::string endless(1001, ' ');
  ASSERT_EQ(write(other.get(), endless.data(), endless.size()), 1001);
  EXPECT_TRUE(channel.Fill());
  EXPECT_EQ(channel.Next().status().message(), "a line without end");
}

// Values are dumped and copied by functions that call themselves. Catches a stack that overflows,
// and time and memory for one string.
TEST(LineChannelTest, RefusesDeepValuesAndLongStrings) {
  const auto next = [](const std::string& line) {
    std::array<int, 2> ends = {};
    EXPECT_EQ(pipe(ends.data()), 0);
    FileDescriptor other(ends[1]);
    LineChannel channel{FileDescriptor(ends[0]), FileDescriptor()};
    const std::string text = line + "\n";
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t put =
          write(other.get(), text.data() + sent, std::min<size_t>(text.size() - sent, 65536));
      if (put <= 0) break;
      sent += static_cast<size_t>(put);
      EXPECT_TRUE(channel.Fill());
    }
    return channel.Next().status().ToString();
  };
  const auto nested = [](size_t depth) {
    return R"({"x":")" + std::string(1, '[') + R"(\"[{","y":)" + std::string(depth, '[') +
           std::string(depth, ']') + "}";
  };
  EXPECT_EQ(next(nested(LineChannel::kDepthMax - 1)), "");
  EXPECT_THAT(next(nested(LineChannel::kDepthMax)), HasSubstr("deeper than 16"));
  EXPECT_THAT(next(nested(100'000)), HasSubstr("deeper than 16"));
  const auto string = [](size_t bytes) { return R"({"x":")" + std::string(bytes, 'a') + "\"}"; };
  EXPECT_EQ(next(string(LineChannel::kStringBytesMax)), "");
  EXPECT_THAT(next(string(LineChannel::kStringBytesMax + 1)), HasSubstr("more than 65536 bytes"));
  EXPECT_THAT(next(R"({"x":"a\")"), HasSubstr("a string without end"));
  EXPECT_THAT(next(R"({"x":"a)"), HasSubstr("a string without end"));
  EXPECT_THAT(next("]]]]"), HasSubstr("expected a JSON object"));
}

// Catches agents that are waited for one after the other, each until it is killed.
TEST(AgentProcessTest, ManyEndAtTheSameTime) {
  constexpr int kMaxMs = 300;
  std::vector<AgentProcess> agents;
  std::vector<AgentProcess*> all;
  for (int i = 0; i < 8; ++i) {
    Result<AgentProcess> agent = AgentProcess::Start({"sleep", "1000"});
    ASSERT_TRUE(agent.ok()) << agent.status().ToString();
    agents.push_back(*std::move(agent));
  }
  for (AgentProcess& agent : agents) all.push_back(&agent);
  const auto began = std::chrono::steady_clock::now();
  AgentProcess::EndAll(all, kMaxMs);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(4 * kMaxMs));
  EXPECT_EQ(agents.back().LastWords(0), "its remote shell was killed by signal 9 (Killed)");
}

TEST(AgentProcessTest, LastWordsAreTheLastLines) {
  const auto words_of = [](const std::string& script) {
    Result<AgentProcess> agent = AgentProcess::Start({"sh", "-c", script});
    EXPECT_TRUE(agent.ok());
    return agent->LastWords(10'000);
  };
  EXPECT_EQ(words_of("echo one >&2; echo; echo two >&2; exit 3"), "one; two");
  EXPECT_EQ(words_of("for i in 1 2 3 4 5 6; do echo $i >&2; done; echo >&2"), "3; 4; 5; 6");
  EXPECT_EQ(words_of("exit 3"), "its remote shell ended with exit code 3");
}

// Catches files that go in the open between machines because nobody asked for anything else.
TEST(PushOptionsTest, FilesAreSealedBetweenMachinesUnlessToldOtherwise) {
  const PushHost here = {.name = "localhost"}, there = {.name = "node1"};
  EXPECT_TRUE(IsSealed({.hosts = {there, there}}));
  EXPECT_TRUE(IsSealed({.hosts = {here}, .agent = {"ip", "netns", "exec"}}));
  EXPECT_FALSE(IsSealed({.hosts = {here, here}}));
  EXPECT_FALSE(IsSealed({.hosts = {there}, .is_plain = true}));
  EXPECT_FALSE(IsSealed({.hosts = {there}, .device = "verbs:mlx5_0"}));
}

}  // namespace
}  // namespace prepost::tools
