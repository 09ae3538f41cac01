// SPDX-License-Identifier: Apache-2.0
//
// Groups of four nodes, a thread each, over the loopback interface: they find each other, whoever
// else turns up. Root is node 1, so that it connects for data as well.
#include "runtime/group/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <future>
#include <map>

#include "compiler/compile.h"
#include "runtime/transport/tcp/tcp_address.h"
#include "tests/support/loopback.h"
#include "tests/support/random_bytes.h"

namespace prepost::bootstrap_test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr uint32_t kNodes = 4;
constexpr uint32_t kRoot = 1;
constexpr uint32_t kTwin = 99;  ///< another node 2

std::string PrefixOf(uint32_t version) {
  return std::string("prepost\0", 8) + std::string({static_cast<char>(version), 0, 0, 0});
}

Membership MembershipOf(Playable plan, Carrier carrier) {
  const PlanHeader& header = plan.header();
  const GroupTerms terms = {
      .plan = plan.Hash(), .carrier = carrier, .message_bytes = header.payload.bytes};
  return {.nodes = header.nodes,
          .leader = header.collective.root,
          .connections = TcpConnections(plan),
          .terms = terms,
          .data_terms = terms,
          .is_rolled = plan.is_rolled()};
}

/// What a node has when it is connected, or why it is not.
struct Outcome {
  Status status;
  std::vector<TcpSocket> sockets;
  std::map<uint32_t, FileDescriptor> controls;  ///< at the root by node, elsewhere the one
};

/// With where it listens.
struct NodeOptions : BootstrapOptions {
  std::string bind = {};
  std::optional<PortRange> ports = {};
};

Result<std::unique_ptr<Lobby>> OpenLobby(const NodeOptions& options, const GroupTerms& terms,
                                         Lobby::Owner& owner) {
  return Lobby::Open({.who = "node " + std::to_string(options.node.value),
                      .own = options.peers[options.node.index()],
                      .bind = options.bind,
                      .ports = options.ports,
                      .key = options.key,
                      .terms = terms,
                      .parked_max = std::chrono::seconds(3)},
                     owner);
}

/// As a keeper does it that does nothing else.
Outcome Connect(const VerifiedPlan& plan, const NodeOptions& options) {
  Outcome outcome;
  const NodeId node = options.node;
  const Membership group = MembershipOf(plan, options.carrier);
  Bootstrap bootstrap(group, options);
  bootstrap.set_arrival([&](NodeId from, ControlSocket control) {
    outcome.controls[from.value] = control.TakeFile();
  });
  Result<std::unique_ptr<Lobby>> lobby = OpenLobby(options, group.terms, bootstrap);
  outcome.status = lobby.status();
  if (!lobby.ok()) return outcome;
  bool seeks_leader = node != group.leader;
  for (;;) {
    outcome.status = bootstrap.Step();
    if (!outcome.status.ok()) return outcome;
    if (bootstrap.connected()) {
      if (!std::exchange(seeks_leader, false)) break;
      outcome.controls[node.value] = bootstrap.TakeControl().TakeFile();
      (*lobby)->Reconsider();
      continue;
    }
    std::vector<pollfd> polls;
    (*lobby)->AddPolls(&polls);
    bootstrap.AddPolls(&polls);
    poll(polls.data(), polls.size(), /*timeout=*/100);
    outcome.status = (*lobby)->Serve();
    if (!outcome.status.ok()) return outcome;
  }
  Result<std::vector<TcpSocket>> sockets = bootstrap.TakeSockets();
  outcome.status = sockets.status();
  if (sockets.ok()) outcome.sockets = std::move(*sockets);
  return outcome;
}

class BootstrapTest : public ::testing::Test {
 protected:
  static VerifiedPlan PlanOf(uint64_t bytes) {
    return Compile({.nodes = kNodes,
                    .root = NodeId(kRoot),
                    .message_bytes = bytes,
                    .block_bytes = 100,
                    .algorithm = "binomial_pipeline"})
        .value();
  }
  /// Deriving takes long, so each is derived once.
  static GroupKey Key(const std::string& secret = "the secret of this test") {
    static std::map<std::string, GroupKey> keys;
    const auto key = keys.find(secret);
    if (key != keys.end()) return key->second;
    return keys.emplace(secret, GroupKey::FromSecret(secret, "").value()).first->second;
  }
  NodeOptions Options(uint32_t node) const {
    NodeOptions options{{.node = NodeId(node), .key = Key()}};
    for (uint32_t i = 0; i < kNodes; ++i) options.peers.push_back(PeerOf(i));
    options.connect_max = std::chrono::seconds(60);
    return options;
  }
  static PeerAddress PeerOf(uint32_t node) { return {.host = test::LoopbackAddress(node)}; }

  void Start(uint32_t node) { Start(node, Options(node)); }
  void Start(uint32_t node, NodeOptions options) {
    nodes_[node] = std::async(std::launch::async, [this, options = std::move(options)]() mutable {
      return Connect(plan_, std::move(options));
    });
  }
  /// Starts whoever of the group does not run yet, and expects that all connect.
  void ExpectGroupConnects() {
    for (uint32_t node = 0; node < kNodes; ++node) {
      if (!nodes_.contains(node)) Start(node);
    }
    std::vector<Outcome> outcomes;
    for (auto& [node, outcome] : nodes_) outcomes.push_back(outcome.get());
    for (const Outcome& outcome : outcomes) {
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    }
    ExpectRightEnds(outcomes);
    nodes_.clear();
  }
  /// Each node says on every connection who it is; the one that the plan names must hear it.
  void ExpectRightEnds(const std::vector<Outcome>& outcomes) {
    size_t ends = 0;
    for (uint32_t node = 0; node < kNodes; ++node) {
      ends += outcomes[node].sockets.size();
      for (const TcpSocket& socket : outcomes[node].sockets) {
        Say(socket.fd, {static_cast<char>(node), static_cast<char>(socket.lane)});
      }
      if (node != kRoot) Say(outcomes[node].controls.at(node), {static_cast<char>(node), 77});
    }
    EXPECT_EQ(ends, 2 * TcpConnections(plan_).size());
    for (uint32_t node = 0; node < kNodes; ++node) {
      for (const TcpSocket& socket : outcomes[node].sockets) {
        EXPECT_EQ(Hear(socket.fd), std::string({static_cast<char>(socket.peer.value),
                                                static_cast<char>(socket.lane)}));
      }
      if (node != kRoot) {
        EXPECT_EQ(Hear(outcomes[kRoot].controls.at(node)),
                  std::string({static_cast<char>(node), 77}));
      }
    }
  }
  static void Say(const FileDescriptor& fd, const std::string& text) {
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// Two characters; fewer if the connection ends, or nothing comes.
  static std::string Hear(const FileDescriptor& fd, size_t bytes = 2) {
    std::string text;
    while (text.size() < bytes) {
      pollfd wait = {.fd = fd.get(), .events = POLLIN, .revents = 0};
      if (poll(&wait, 1, 30'000) <= 0) break;
      char c;
      if (recv(fd.get(), &c, 1, 0) != 1) break;
      text.push_back(c);
    }
    return text;
  }
  /// A connection to where `node` listens, as soon as it does, from the address of `from` if given.
  static FileDescriptor Dial(uint32_t node, std::optional<uint32_t> from = std::nullopt) {
    const TcpAddress address =
        NumericAddress(PeerOf(node).host)->WithPort(PeerOf(node).ports.first);
    for (;;) {
      FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (from) {
        const TcpAddress own = *NumericAddress(PeerOf(*from).host);
        EXPECT_EQ(bind(fd.get(), own.generic(), own.bytes), 0);
      }
      if (connect(fd.get(), address.generic(), address.bytes) == 0) return fd;
      EXPECT_EQ(errno, ECONNREFUSED);
      if (errno != ECONNREFUSED) return fd;
      poll(nullptr, 0, 1);
    }
  }
  /// The outcome of a node that is refused although, or before, the group is whole.
  Status Refused(const VerifiedPlan& plan, NodeOptions options) {
    options.bind = test::LoopbackAddress(kNodes);  // its own place may be taken
    return Connect(plan, std::move(options)).status;
  }

  /// One end of a connection, whose other end stays in others_.
  FileDescriptor Connection() {
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    others_.emplace_back(ends[1]);
    return FileDescriptor(ends[0]);
  }

  const VerifiedPlan plan_ = PlanOf(1000);
  std::vector<FileDescriptor> others_;
  std::map<uint32_t, std::future<Outcome>> nodes_;
};

TEST_F(BootstrapTest, AGroupConnects) { ExpectGroupConnects(); }

// Catches a node far away that connects to the leader's site itself, which takes the group another
// round trip, and two ends of which none connects.
TEST_F(BootstrapTest, WhoIsAtTheLeadersSiteConnectsToWhoIsNot) {
  for (uint32_t node = 0; node < kNodes; ++node) {
    NodeOptions options = Options(node);
    options.sites = {7, 7, 5, 5};
    Start(node, options);
  }
  for (auto& [node, starting] : nodes_) {
    const Outcome outcome = starting.get();
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    for (const TcpSocket& socket : outcome.sockets) {
      const bool is_near = node < 2;
      const bool is_across = is_near != (socket.peer < NodeId(2));
      EXPECT_EQ(socket.is_connector, is_across ? is_near : NodeId(node) > socket.peer)
          << node << " and " << socket.peer.value;
    }
  }
}

TEST_F(BootstrapTest, AGroupOfOneConnectsWithNobody) {
  const VerifiedPlan plan = Compile({.nodes = 1, .message_bytes = 10}).value();
  NodeOptions options = Options(0);
  options.peers.resize(1);
  EXPECT_TRUE(Connect(plan, options).status.ok());
}

TEST_F(BootstrapTest, WhoeverIsWrongIsToldAndTheGroupGoesOn) {
  for (const uint32_t node : {0u, kRoot, 2u}) Start(node);

  NodeOptions other_secret = Options(3);
  other_secret.key = Key("not the secret of this test");
  EXPECT_THAT(Refused(plan_, other_secret).message(),
              AllOf(HasSubstr("node 1 at 127."), HasSubstr(" refuses node 3: the secrets differ")));

  EXPECT_THAT(Refused(PlanOf(2000), Options(3)).message(),
              HasSubstr("refuses node 3: it has another plan"));

  NodeOptions wrong_place = Options(3);
  std::swap(wrong_place.peers[0], wrong_place.peers[kRoot]);
  EXPECT_THAT(Refused(plan_, wrong_place).message(),
              HasSubstr("refuses node 3: it is another node"));
  ExpectGroupConnects();
}

// As when one node has found no NIC: catches a group that begins to move blocks in two ways, and
// sides of which only one says what is the matter.
TEST_F(BootstrapTest, ANodeThatGoesOverSomethingElseIsRefused) {
  NodeOptions root = Options(kRoot);
  root.carrier = Carrier::kDevice;
  root.connect_max = milliseconds(1500);
  Start(kRoot, root);
  const std::string why =
      "node 3 goes over tcp, node 1 over a device; give --device at all nodes, or at none";
  EXPECT_THAT(Refused(plan_, Options(3)).message(), HasSubstr("refuses node 3: " + why));
  const Status status = nodes_[kRoot].get().status;
  EXPECT_EQ(status.code(), StatusCode::kRejected);
  EXPECT_THAT(status.message(), HasSubstr("who says to be node 3 was refused: " + why));
}

TEST_F(BootstrapTest, ANodeIsThereOnce) {
  Start(kRoot);
  Start(2);
  // One of the two is first, and waits for the others; the other one is refused.
  NodeOptions again = Options(2);
  again.bind = test::LoopbackAddress(kNodes);
  Start(kTwin, again);
  const auto ended = [this](uint32_t node) {
    return nodes_[node].wait_for(milliseconds(1)) == std::future_status::ready;
  };
  while (!ended(2) && !ended(kTwin)) {
  }
  const bool twin_lost = ended(kTwin);
  EXPECT_THAT(nodes_[twin_lost ? kTwin : 2].get().status.message(),
              HasSubstr("refuses node 2: this node is there already"));
  if (!twin_lost) nodes_[2] = std::move(nodes_[kTwin]);
  nodes_.erase(kTwin);
  for (const uint32_t node : {0u, 3u}) {
    NodeOptions options = Options(node);
    if (!twin_lost) options.peers[2].host = again.bind;
    Start(node, options);
  }
  ExpectGroupConnects();
}

// More of them than are served at a time, all before anybody else: catches a group that waits for
// strangers, and one that lets the number of connections grow.
TEST_F(BootstrapTest, StrangersDelayNobodyForLong) {
  Start(kRoot);
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(Dial(kRoot));
    const std::vector<std::byte> rubbish = test::RandomBytes(500, static_cast<uint64_t>(i));
    if (i % 2 == 0) {
      send(strangers.back().get(), rubbish.data(), rubbish.size(), MSG_NOSIGNAL);
    }
  }
  EXPECT_EQ(Hear(strangers.front()), "");  // dropped without a word
  EXPECT_EQ(Hear(strangers[1]), "");       // as is one who says nothing
  ExpectGroupConnects();
}

// A good hello, a byte now and then: catches a deadline that every byte puts off.
TEST_F(BootstrapTest, AStrangerWhoIsSlowIsDropped) {
  Start(kRoot);
  const FileDescriptor stranger = Dial(kRoot);
  std::string hello = PrefixOf(kProtocolVersion) + std::string("\x02\0\0\0", 4);
  hello.resize(kHelloBytes);
  size_t sent = 0;
  for (; sent < hello.size(); ++sent) {
    if (send(stranger.get(), &hello[sent], 1, MSG_NOSIGNAL) != 1) break;
    poll(nullptr, 0, 100);
  }
  EXPECT_LT(sent, hello.size()) << "not dropped";
  ExpectGroupConnects();
}

/// Of node 2 for control, well-formed, from `version`.
std::string HelloOf(uint32_t version) {
  std::string hello = PrefixOf(version);
  hello += {1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0};
  hello.resize(kHelloBytes);
  hello[kPrefixBytes + 18] = 1;                     // stream
  hello[kPrefixBytes + 20 + sizeof(PlanHash)] = 1;  // over TCP
  return hello;
}

// It is refused, and says more and more: catches a node that listens to it and to nothing else, and
// a flood that is heard to its end.
TEST_F(BootstrapTest, AFloodThatDoesNotEndIsDropped) {
  Start(kRoot);
  const FileDescriptor stranger = Dial(kRoot);
  Say(stranger, HelloOf(kProtocolVersion + 1).substr(0, kPrefixBytes));
  const std::string flood(size_t{1} << 20, 'x');
  const auto due = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool is_dropped = false;
  while (!is_dropped && std::chrono::steady_clock::now() < due) {
    is_dropped = send(stranger.get(), flood.data(), flood.size(), MSG_NOSIGNAL) < 0;
  }
  EXPECT_TRUE(is_dropped);
  ExpectGroupConnects();
}

// A stranger keeps connecting while a peer's hello is on its way: catches a peer that is pushed out
// by who comes later, from the same address or another one.
TEST_F(BootstrapTest, ManyFromOneAddressPushOutEachOther) {
  Start(kRoot);
  const FileDescriptor far_peer = Dial(kRoot, /*from=*/2);   // has said nothing yet
  const FileDescriptor neighbour = Dial(kRoot, /*from=*/0);  // at the stranger's address
  Say(neighbour, HelloOf(kProtocolVersion));
  EXPECT_EQ(Hear(neighbour, kChallengeBytes).size(), kChallengeBytes);
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(Dial(kRoot, /*from=*/0));
  EXPECT_EQ(Hear(strangers.front()), "");  // so all after it have been accepted up to here
  Say(far_peer, HelloOf(kProtocolVersion));
  EXPECT_EQ(Hear(far_peer, kChallengeBytes).size(), kChallengeBytes);
  Say(neighbour, std::string(kProofBytes, 'x'));
  EXPECT_EQ(Hear(neighbour, kVerdictBytes).size(), kVerdictBytes);
  ExpectGroupConnects();
}

// At the first of the root's ports: catches a node that waits to its deadline for a listener that
// has proved nothing.
TEST_F(BootstrapTest, AStrangerWhoOnlyChallengesIsLeft) {
  constexpr PortRange kPorts = {.first = 7000, .last = 7002};
  int error = 0;
  const FileDescriptor stranger =
      Listen(NumericAddress(PeerOf(kRoot).host)->WithPort(kPorts.first), &error);
  ASSERT_TRUE(stranger.valid());
  std::vector<FileDescriptor> guests;
  for (uint32_t node = 0; node < kNodes; ++node) {
    NodeOptions options = Options(node);
    options.peers[kRoot].ports = kPorts;
    Start(node, options);
  }
  const auto all_ended = [this] {
    return std::ranges::all_of(nodes_, [](auto& node) {
      return node.second.wait_for(milliseconds(0)) == std::future_status::ready;
    });
  };
  while (!all_ended()) {
    pollfd wait = {.fd = stranger.get(), .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 10) <= 0) continue;
    guests.emplace_back(accept(stranger.get(), nullptr, nullptr));
    // Every second one stops before the MAC.
    const size_t bytes =
        guests.size() % 2 == 0 ? kChallengeBytes : kChallengeBytes - sizeof(MacBytes);
    std::string challenge = PrefixOf(kProtocolVersion);
    challenge.resize(bytes, 'x');
    send(guests.back().get(), challenge.data(), challenge.size(), MSG_NOSIGNAL);
  }
  EXPECT_FALSE(guests.empty());
  ExpectGroupConnects();
}

// Catches a refusal that is forgotten for the next port, where nobody is.
TEST_F(BootstrapTest, AWrongSecretIsNamedAlthoughThereAreOtherPorts) {
  NodeOptions root = Options(kRoot);
  root.connect_max = milliseconds(2000);
  Start(kRoot, root);
  Dial(kRoot);
  NodeOptions other = Options(3);
  other.key = Key("not the secret of this test");
  other.connect_max = milliseconds(500);
  other.peers[kRoot].ports = {.first = kDefaultPort, .last = kDefaultPort + 2};
  EXPECT_THAT(Refused(plan_, other).message(),
              AllOf(HasSubstr("after 0.5 s: node 1 (127."), HasSubstr("the secrets differ")));
  EXPECT_THAT(nodes_[kRoot].get().status.message(),
              MatchesRegex(".*\\(somebody at 127\\.0\\.0\\.1:[0-9]+ who says to be node 3 was "
                           "refused: the secrets differ\\).*"));
}

TEST_F(BootstrapTest, OtherVersionsAreNamed) {
  Start(kRoot);
  const FileDescriptor newer = Dial(kRoot);
  Say(newer, PrefixOf(kProtocolVersion + 1));
  const std::string answer = Hear(newer, kChallengeBytes + 1);
  EXPECT_EQ(answer.size(), kChallengeBytes);
  EXPECT_EQ(answer.substr(0, kPrefixBytes), PrefixOf(kProtocolVersion));
  ExpectGroupConnects();
}

TEST_F(BootstrapTest, ARootOfAnotherVersionIsNamed) {
  int error = 0;
  const FileDescriptor root =
      Listen(NumericAddress(PeerOf(kRoot).host)->WithPort(kDefaultPort), &error);
  ASSERT_TRUE(root.valid());
  Start(2);
  pollfd wait = {.fd = root.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&wait, 1, 30'000), 1);
  const FileDescriptor guest(accept(root.get(), nullptr, nullptr));
  Say(guest, PrefixOf(kProtocolVersion + 1) + std::string(100, 'x'));
  EXPECT_THAT(nodes_[2].get().status.message(),
              HasSubstr(fmt::format("refuses node 2: it speaks version {} of the protocol, this is "
                                    "version {}",
                                    kProtocolVersion + 1, kProtocolVersion)));
}

TEST_F(BootstrapTest, PeersThatNeverComeAreNamed) {
  NodeOptions root = Options(kRoot);
  root.connect_max = milliseconds(500);
  NodeOptions other = Options(0);
  other.connect_max = milliseconds(500);
  Start(kRoot, root);
  Start(0, other);
  EXPECT_THAT(nodes_[kRoot].get().status.message(),
              AllOf(HasSubstr("not connected with all nodes after 0.5 s: "),
                    HasSubstr("node 2 (never seen)"), HasSubstr("node 3 (never seen)")));
  nodes_[0].get();
  NodeOptions alone = Options(2);
  alone.connect_max = milliseconds(300);
  EXPECT_THAT(Connect(plan_, alone).status.message(),
              AllOf(HasSubstr("node 1 (127."), HasSubstr(":7811: Connection refused)")));
  NodeOptions unknown = Options(2);
  unknown.connect_max = milliseconds(300);
  unknown.peers[kRoot].host = "prepost-test.invalid";
  EXPECT_THAT(Connect(plan_, unknown).status.message(), HasSubstr("node 1 ("));
}

TEST_F(BootstrapTest, APortThatIsTakenIsAnErrorOrTheNextIsTaken) {
  Bootstrap owner(MembershipOf(plan_, Carrier::kTcp), Options(0));
  const auto open = [&](const NodeOptions& options) { return OpenLobby(options, {}, owner); };
  const Result<std::unique_ptr<Lobby>> first = open(Options(0));
  ASSERT_TRUE(first.ok());
  const Status second = open(Options(0)).status();
  EXPECT_EQ(second.code(), StatusCode::kEnvironment);
  EXPECT_THAT(second.message(), AllOf(HasSubstr("node 0 cannot listen on 127."),
                                      HasSubstr("Address already in use")));
  NodeOptions range = Options(0);
  range.ports = PortRange{.first = kDefaultPort, .last = kDefaultPort + 2};
  EXPECT_EQ(open(range).value()->port(), kDefaultPort + 1);
  NodeOptions elsewhere = Options(0);
  elsewhere.bind = "192.0.2.1";
  EXPECT_THAT(open(elsewhere).status().message(),
              HasSubstr("(--bind takes an address of this machine)"));
  elsewhere.bind = "a-name";
  EXPECT_EQ(open(elsewhere).status().code(), StatusCode::kUsage);
}

// It has the secret. Catches a number that is taken for a node's, whatever else differs, and
// connections that nobody wants.
TEST_F(BootstrapTest, WhoIsNoNodeOfTheGroupIsNotJudgedFurther) {
  const Membership group = MembershipOf(plan_, Carrier::kTcp);
  Bootstrap root(group, Options(kRoot));
  GroupTerms other = group.terms;
  other.is_sealed = true;
  const LinkName stranger = {
      .from = NodeId(0xfffffff0), .to = NodeId(kRoot), .purpose = LinkPurpose::kControl};
  EXPECT_EQ(root.Judge(stranger, other, {}), Refusal::kUnexpected);
  const LinkName gate = {.from = NodeId(2), .to = NodeId(kRoot), .purpose = LinkPurpose::kGates};
  EXPECT_EQ(root.Judge(gate, group.terms, {}), Refusal::kUnexpected);
}

// All nodes at one address: each finds the others by trying the ports.
TEST_F(BootstrapTest, AGroupFindsItselfInOneRangeOfPorts) {
  for (uint32_t node = 0; node < kNodes; ++node) {
    NodeOptions options = Options(node);
    for (PeerAddress& peer : options.peers) {
      peer = {.host = test::LoopbackAddress(0), .ports = {.first = 7000, .last = 7005}};
    }
    Start(node, options);
  }
  ExpectGroupConnects();
}

// What a node lets in of a group whose connections are opened when they are wanted. Catches a peer
// that connects where it is to listen, that names what no node is, or that opens one thing twice.
TEST_F(BootstrapTest, ConnectionsThatAreOpenedLater) {
  const PlanHash terms = {std::byte{1}}, data_terms = {std::byte{2}};
  const std::vector<PeerAddress> peers(
      kNodes, {.host = test::LoopbackAddress(0), .ports = {.first = 9, .last = 9}});
  Bootstrap bootstrap({.nodes = kNodes,
                       .leader = NodeId(kRoot),
                       .connections = {},
                       .terms = {.plan = terms},
                       .data_terms = GroupTerms{.plan = data_terms},
                       .opens_later = true},
                      {.node = NodeId(kRoot), .peers = peers, .key = Key()});
  const auto judge = [&](uint32_t from, Lane lane = Lane::kBlocks, uint16_t stream = 0,
                         uint16_t streams = 1) {
    return bootstrap.Judge({.from = NodeId(from),
                            .to = NodeId(kRoot),
                            .lane = lane,
                            .stream = stream,
                            .streams = streams},
                           {.plan = data_terms}, {});
  };
  bootstrap.set_arrival([](NodeId, const ControlSocket&) {});
  for (const uint32_t from : {0u, 2u, 3u}) {
    bootstrap.Admit({.from = NodeId(from), .to = NodeId(kRoot), .purpose = LinkPurpose::kControl},
                    {.plan = terms}, FileDescriptor(), {});
  }
  EXPECT_TRUE(bootstrap.settled());
  EXPECT_EQ(judge(2), Refusal::kNone);
  EXPECT_EQ(judge(3, Lane::kCredits), Refusal::kNone);
  for (const uint32_t from : {0u, kRoot, kNodes, UINT32_MAX})
    EXPECT_EQ(judge(from), Refusal::kUnexpected) << from;
  EXPECT_EQ(judge(2, static_cast<Lane>(2)), Refusal::kUnexpected);
  EXPECT_EQ(judge(2, Lane::kBlocks, 1, 2), Refusal::kUnexpected);
  EXPECT_EQ(judge(2, Lane::kCredits, 0, 2), Refusal::kUnexpected);
  EXPECT_EQ(bootstrap.Judge({.from = NodeId(2), .to = NodeId(kRoot)}, {.plan = terms}, {}),
            Refusal::kOtherPlan);
  std::vector<TcpSocket> taken;
  const auto admit = [&](Lane lane) {
    bootstrap.Admit({.from = NodeId(2), .to = NodeId(kRoot), .lane = lane}, {.plan = data_terms},
                    Connection(), {});
    EXPECT_EQ(judge(2, lane), Refusal::kDuplicate);
    Result<std::vector<TcpSocket>> sockets = bootstrap.TakeSockets();
    EXPECT_TRUE(sockets.ok());
    if (sockets.ok()) taken = std::move(*sockets);
    return taken.size();
  };
  // Both or none, and one whose other end has closed it is opened again: that end has not heard
  // that it was let in.
  EXPECT_EQ(admit(Lane::kBlocks), 0u);
  others_.clear();
  EXPECT_EQ(judge(2), Refusal::kNone);
  EXPECT_EQ(admit(Lane::kBlocks), 0u);
  EXPECT_FALSE(bootstrap.settled());
  EXPECT_EQ(admit(Lane::kCredits), 2u);
  EXPECT_EQ(judge(2), Refusal::kDuplicate);
  // One that has ended before anybody used it.
  const Lane lane = taken.front().lane;
  bootstrap.GiveBack(taken.front());
  EXPECT_EQ(judge(2, lane), Refusal::kNone);
  EXPECT_EQ(admit(lane), 1u);
  EXPECT_EQ(judge(2, lane), Refusal::kDuplicate);
  // One of several streams comes again: with the same, of which there is one of each, and with
  // fewer. All are awaited for as long as the first is.
  const auto admit_streams = [&](uint16_t stream, uint16_t streams) {
    bootstrap.Admit({.from = NodeId(3),
                     .to = NodeId(kRoot),
                     .lane = Lane::kBlocks,
                     .stream = stream,
                     .streams = streams},
                    {.plan = data_terms}, Connection(), {});
  };
  for (const uint16_t streams : {uint16_t{4}, uint16_t{4}, uint16_t{3}}) {
    ASSERT_EQ(judge(3, Lane::kBlocks, 0, streams), Refusal::kNone);
    admit_streams(0, streams);
    EXPECT_TRUE(bootstrap.connected()) << "what is opened later does not hold up the group";
    others_.clear();
  }
  EXPECT_EQ(judge(3, Lane::kBlocks, 3, 4), Refusal::kUnexpected);
  admit_streams(0, 3);
  for (const uint16_t stream : {uint16_t{1}, uint16_t{2}}) admit_streams(stream, 3);
  bootstrap.Admit({.from = NodeId(3), .to = NodeId(kRoot), .lane = Lane::kCredits},
                  {.plan = data_terms}, Connection(), {});
  EXPECT_TRUE(bootstrap.settled());
  bootstrap.Want(NodeId(2), milliseconds(0));  // it is there
  bootstrap.Want(NodeId(3), milliseconds(0));  // so is that
  EXPECT_FALSE(bootstrap.Overdue());
  bootstrap.Want(NodeId(0), milliseconds(0));
  ASSERT_TRUE(bootstrap.Overdue());
  EXPECT_EQ(bootstrap.Overdue()->peer, NodeId(0));
}

}  // namespace
}  // namespace prepost::bootstrap_test
