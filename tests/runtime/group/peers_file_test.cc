// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/peers_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/random.h"

namespace prepost::peers_file_test {
namespace {

TEST(PeersFileTest, ReadsEveryForm) {
  const Result<std::vector<PeerAddress>> peers = ParsePeers(
      "# a comment\n\n2 [2001:db8::2]:7000-7010 # more\r\n"
      "\t0   10.0.0.1\n1 storage-1.example.org:1\n3 [fe80::1%eth0]:65535",
      "p", 4);
  ASSERT_TRUE(peers.ok()) << peers.status().ToString();
  const std::vector<PeerAddress> expected = {{.host = "10.0.0.1"},
                                             {"storage-1.example.org", {1, 1}},
                                             {"2001:db8::2", {7000, 7010}},
                                             {"fe80::1%eth0", {65535, 65535}}};
  EXPECT_EQ(*peers, expected);
  EXPECT_EQ(ToString(expected[2]), "[2001:db8::2]:7000-7010");
  EXPECT_EQ(ToString(expected[0]), "10.0.0.1:7811");
}

TEST(PeersFileTest, SaysWhereAndWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"0 a\n", "p: node 1 is missing, expected nodes 0 to 1 as in the plan"},
      {"", "p: node 0 is missing, expected nodes 0 to 1 as in the plan"},
      {"0 a\n 0 b\n", "p:2:2: node 0 stands in line 1 already"},
      {"2 a", "p:1:1: '2' is no node of the plan, expected 0 to 1"},
      {"-1 a", "p:1:1: '-1' is no node of the plan, expected 0 to 1"},
      {"99999999999 a", "p:1:1: '99999999999' is no node of the plan, expected 0 to 1"},
      {"0\n", "p:1:2: no host, expected NODE HOST[:PORT|:FIRST-LAST] [site=NAME]"},
      {"0 # a\n", "p:1:3: no host, expected NODE HOST[:PORT|:FIRST-LAST] [site=NAME]"},
      {"0 a b", "p:1:5: 'b' is too much, expected NODE HOST[:PORT|:FIRST-LAST] [site=NAME]"},
      {"0 a:0", "p:1:3: '0' is no port, expected 1 to 65535 or a range as 7000-7010"},
      {"0 a:65536", "p:1:3: '65536' is no port, expected 1 to 65535 or a range as 7000-7010"},
      {"0 a:", "p:1:3: '' is no port, expected 1 to 65535 or a range as 7000-7010"},
      {"0 a:7-", "p:1:3: '7-' is no port, expected 1 to 65535 or a range as 7000-7010"},
      {"0 a:9-8", "p:1:3: '9-8' is no range of 1 to 1024 ports, smallest first"},
      {"0 a:1-1025", "p:1:3: '1-1025' is no range of 1 to 1024 ports, smallest first"},
      {"0 ::1", "p:1:3: '::1' is no host; an IPv6 address stands in brackets, as in [::1]:7000"},
      {"0 [a]", "p:1:3: 'a' is no host name or address"},
      {"0 [::1", "p:1:3: no ']' behind the IPv6 address"},
      {"0 [::1]7",
       "p:1:3: '7' behind the address, expected NODE HOST[:PORT|:FIRST-LAST] [site=NAME]"},
      {"0 a;b", "p:1:3: 'a;b' is no host name or address"},
      {"0 -oProxyCommand", "p:1:3: '-oProxyCommand' is no host name or address"},
      {"0 \x1b[2J", "p:1:3: '?[2J' is no host name or address"},
      {"0 a\n1 a:7811",
       "p:2:3: a:7811 is the address of node 0 already; nodes of one host need ports of their own"},
      {"0 a site=x\n1 b", "p:2:4: node 1 has no site, and the nodes before have one"},
      {"0 a\n1 b site=x", "p:2:11: node 1 has a site, and the nodes before have none"},
      {"0 a site=",
       "p:1:5: '' is no name of a site: 1 to 64 letters, digits, dots, dashes and "
       "underscores"},
      {"0 a site=x y",
       "p:1:12: 'y' is too much, expected NODE HOST[:PORT|:FIRST-LAST] [site=NAME]"},
      {"0 :7", "p:1:3: '' is no host name or address"}};
  for (const auto& [text, error] : cases) {
    EXPECT_EQ(ParsePeers(text, "p", 2).status().ToString(), error) << text;
  }
}

// Catches a reader that takes a file of any size into memory.
TEST(PeersFileTest, ReadsABoundedAmount) {
  std::istringstream in(std::string(kPeersFileBytesMax + 1, ' '));
  EXPECT_EQ(ReadPeers(in, "p", 1).status().ToString(), "p: more than 67108864 bytes");
}

// Random changes of a good file: catches crashes, and addresses that are not printed as they read.
TEST(PeersFileTest, AnyTextIsRefusedOrRoundTrips) {
  test::Random random(test::TestSeed());
  const std::string good = "0 a.b:1-9 site=x\n1 [::1]:7 site=y.z\n";
  const std::string alphabet = "01ab.:-[] \n#%=\x01\xff";
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (uint32_t changes = 1 + random.Below(3); changes > 0; --changes) {
      text[random.Below(text.size())] = random.Pick(alphabet);
    }
    const Result<std::vector<PeerAddress>> peers = ParsePeers(text, "p", 2);
    if (!peers.ok()) continue;
    std::string again;
    for (size_t node = 0; node < peers->size(); ++node) {
      const PeerAddress& peer = (*peers)[node];
      again += fmt::format("{} {}{}{}\n", node, ToString(peer),
                           peer.site.empty() ? "" : " site=", peer.site);
    }
    EXPECT_EQ(ParsePeers(again, "p", 2).value(), *peers) << text;
  }
}

}  // namespace
}  // namespace prepost::peers_file_test
