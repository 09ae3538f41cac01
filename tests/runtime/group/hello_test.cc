// SPDX-License-Identifier: Apache-2.0
//
// The conversation between honest sides, and what becomes of it when anything in it is damaged, cut
// short, sent back, repeated or said by the wrong one. No sockets.
#include "runtime/group/hello.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "runtime/transport/tcp/tcp_path.h"
#include "tests/support/random.h"
#include "tests/support/random_bytes.h"

namespace prepost::hello_test {
namespace {

using Bytes = std::vector<std::byte>;

const GroupKey& Key() {
  static const GroupKey key = GroupKey::FromSecret("a secret of 20 bytes", "").value();
  return key;
}

NonceBytes Nonce(uint64_t seed) {
  NonceBytes nonce;
  std::ranges::copy(test::RandomBytes(nonce.size(), seed), nonce.begin());
  return nonce;
}

GroupTerms Terms(uint64_t plan = 0, Carrier carrier = Carrier::kDevice,
                 uint64_t bytes = 3'000'000) {
  return {.plan = Nonce(1000 + plan), .carrier = carrier, .message_bytes = bytes};
}
GroupTerms SealedTerms() {
  GroupTerms terms = Terms();
  terms.is_sealed = true;
  return terms;
}

constexpr LinkName kLink = {
    .from = NodeId(3), .to = NodeId(1), .purpose = LinkPurpose::kData, .lane = Lane::kBlocks};

/// What node 1 of plan 0 over a device answers to peers that have proved the secret.
Refusal Judge(const LinkName& link, const GroupTerms& terms) {
  if (terms.is_sealed) return Refusal::kOtherSeal;
  if (link.to != NodeId(1)) return Refusal::kWrongNode;
  if (terms.plan != Terms().plan) return Refusal::kOtherPlan;
  if (terms.carrier != Terms().carrier) return Refusal::kOtherCarrier;
  if (terms != Terms()) return Refusal::kOtherSize;
  return link == kLink ? Refusal::kNone : Refusal::kUnexpected;
}

/// One message of the conversation, in either direction.
struct Said {
  bool by_connector;
  Bytes bytes;
};

/// Lets the two talk to the end. `change` may change each message, as somebody between them might;
/// a message that is too short ends the conversation.
class Conversation {
 public:
  explicit Conversation(const LinkName& link = kLink, const GroupTerms& terms = Terms(),
                        const GroupKey& connector_key = Key(), uint64_t seed = 1)
      : connector(connector_key, Nonce(2 * seed), link, terms),
        listener(Key(), Nonce(2 * seed + 1), Terms(), Judge) {}
  /// Of a group that seals its connections, of ends that have these ciphers.
  Conversation(SealCiphers of_connector, SealCiphers of_listener, const LinkName& link = kLink,
               uint64_t seed = 1)
      : connector(Key(), Nonce(2 * seed), link, SealedTerms()),
        listener(Key(), Nonce(2 * seed + 1), SealedTerms(),
                 [](const LinkName&, const GroupTerms& terms) {
                   return terms == SealedTerms() ? Refusal::kNone : Refusal::kOtherSeal;
                 }) {
    connector.set_ciphers(of_connector);
    listener.set_ciphers(of_listener);
  }

  template <typename Change>
  void Run(Change change) {
    Deliver(connector.Begin(), /*by_connector=*/true, change);
  }
  void Run() {
    Run([](size_t, Bytes*) {});
  }

  HelloConnector connector;
  HelloListener listener;
  std::vector<Said> said;

 private:
  template <typename Change>
  void Deliver(Bytes bytes, bool by_connector, Change change) {
    change(said.size(), &bytes);
    said.push_back({by_connector, bytes});
    std::span<const std::byte> left = bytes;
    Bytes reply;
    HelloSide& side = by_connector ? static_cast<HelloSide&>(listener) : connector;
    while (side.state() == HelloState::kTalking && left.size() >= side.wanted() && !left.empty()) {
      const auto taken = left.first(side.wanted());
      left = left.subspan(taken.size());
      const Bytes more = by_connector ? listener.Take(taken) : connector.Take(taken);
      reply.insert(reply.end(), more.begin(), more.end());
    }
    if (!reply.empty()) Deliver(std::move(reply), !by_connector, change);
  }
};

TEST(HelloTest, HonestSidesWelcomeEachOther) {
  Conversation talk;
  talk.Run();
  EXPECT_EQ(talk.listener.state(), HelloState::kWelcome);
  EXPECT_EQ(talk.connector.state(), HelloState::kWelcome);
  EXPECT_EQ(talk.listener.link(), kLink);
  ASSERT_EQ(talk.said.size(), 4u);
  const size_t sizes[] = {kHelloBytes, kChallengeBytes, kProofBytes, kVerdictBytes};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(talk.said[i].bytes.size(), sizes[i]) << i;
}

TEST(HelloTest, TheRefusedSideLearnsWhy) {
  struct Case {
    LinkName link;
    GroupTerms terms;
    Refusal refusal;
  };
  LinkName to_other = kLink;
  to_other.to = NodeId(2);
  LinkName other_lane = kLink;
  other_lane.lane = Lane::kCredits;
  for (const Case& c :
       {Case{to_other, Terms(), Refusal::kWrongNode}, Case{kLink, Terms(1), Refusal::kOtherPlan},
        Case{kLink, Terms(0, Carrier::kTcp), Refusal::kOtherCarrier},
        Case{kLink, Terms(0, Carrier::kDevice, 7), Refusal::kOtherSize},
        Case{other_lane, Terms(), Refusal::kUnexpected}}) {
    Conversation talk(c.link, c.terms);
    talk.Run();
    EXPECT_EQ(talk.listener.refusal(), c.refusal);
    EXPECT_EQ(talk.connector.state(), HelloState::kRefused);
    EXPECT_EQ(talk.connector.refusal(), c.refusal);
    EXPECT_TRUE(talk.connector.is_proved());
  }
}

// Catches sides that mix up whose carrier is whose, or that do not say it to each other.
TEST(HelloTest, BothSidesNameWhatEachGoesOver) {
  Conversation talk(kLink, Terms(0, Carrier::kTcp));
  talk.Run();
  const std::string why =
      "node 3 goes over tcp, node 1 over a device; give --device at all nodes, or at none";
  EXPECT_EQ(talk.connector.Why(), why);
  EXPECT_EQ(talk.listener.Why(), why);
}

// Catches a size that is said to be another plan, and sides that mix up whose is whose.
TEST(HelloTest, BothSidesNameBothSizes) {
  Conversation talk(kLink, Terms(0, Carrier::kDevice, 1));
  talk.Run();
  const std::string why =
      "the message has 1 byte at node 3, 3000000 bytes at node 1 (--message-bytes, --input)";
  EXPECT_EQ(talk.connector.Why(), why);
  EXPECT_EQ(talk.listener.Why(), why);
}

/// Whether what one end of the connection seals is opened at the other, both ways.
bool IsSealed(const HelloSide& one, const HelloSide& other) {
  const LinkKeys keys[] = {one.Keys(), other.Keys()};
  for (const size_t from : {size_t{0}, size_t{1}}) {
    if (keys[from].seal == nullptr || keys[1 - from].seal == nullptr) return false;
    const Bytes plain = test::RandomBytes(30, from);
    Bytes record(plain.size() + kSealTagBytes), opened(plain.size());
    if (!keys[from].seal->out().Seal(plain, {}, record)) return false;
    if (!keys[1 - from].seal->in().Open(record, {}, opened) || opened != plain) return false;
  }
  return true;
}

// Catches ends that do not agree on a cipher, and keys that are those of another connection.
TEST(HelloTest, SealedConnectionsHaveTheBestCipherAndKeysOfTheirOwn) {
  constexpr SealCiphers kChaCha = BitOf(SealCipher::kChaCha20Poly1305);
  const bool has_aes = (SealCiphersHere() & BitOf(SealCipher::kAes256Gcm)) != 0;
  for (const LinkPurpose purpose : {LinkPurpose::kControl, LinkPurpose::kData}) {
    LinkName link = kLink;
    link.purpose = purpose;
    for (const SealCiphers of_connector : {kAllSealCiphers, kChaCha}) {
      for (const SealCiphers of_listener : {kAllSealCiphers, kChaCha}) {
        Conversation talk(of_connector, of_listener, link);
        talk.Run();
        ASSERT_EQ(talk.connector.state(), HelloState::kWelcome);
        ASSERT_EQ(talk.listener.state(), HelloState::kWelcome);
        const bool is_aes = of_connector == kAllSealCiphers && of_listener == kAllSealCiphers;
        EXPECT_EQ(talk.connector.cipher(),
                  is_aes ? SealCipher::kAes256Gcm : SealCipher::kChaCha20Poly1305);
        EXPECT_EQ(talk.listener.cipher(), talk.connector.cipher());
        if (is_aes && !has_aes) continue;
        EXPECT_TRUE(IsSealed(talk.connector, talk.listener));
        EXPECT_FALSE(IsSealed(talk.connector, talk.connector)) << "sent back";
        Conversation next(of_connector, of_listener, link, /*seed=*/2);
        next.Run();
        EXPECT_FALSE(IsSealed(talk.connector, next.listener)) << "of an earlier connection";
      }
    }
  }
}

// Somebody between the two would have them use less: every bit of what is offered and chosen
// counts.
TEST(HelloTest, NoDamagedSealedConversationIsWelcome) {
  const size_t sizes[] = {kHelloBytes, kChallengeBytes, kProofBytes, kVerdictBytes};
  for (size_t message = 0; message < std::size(sizes); ++message) {
    for (size_t bit = 0; bit < 8 * sizes[message]; ++bit) {
      Conversation talk(kAllSealCiphers, kAllSealCiphers);
      talk.Run([&](size_t index, Bytes* bytes) {
        if (index == message) (*bytes)[bit / 8] ^= std::byte(1 << (bit % 8));
      });
      EXPECT_NE(talk.connector.state(), HelloState::kWelcome) << message << " bit " << bit;
      if (message < 3) {
        EXPECT_NE(talk.listener.state(), HelloState::kWelcome) << message << " bit " << bit;
      }
    }
  }
}

// Catches sides that mix up which of them seals, and one that goes on without.
TEST(HelloTest, OneThatSealsAndOneThatDoesNotAreNoGroup) {
  Conversation talk(kLink, SealedTerms());
  talk.Run();
  const std::string why =
      "node 3 seals its connections, node 1 does not; give --seal at all nodes, or at none";
  EXPECT_EQ(talk.connector.refusal(), Refusal::kOtherSeal);
  EXPECT_EQ(talk.connector.Why(), why);
  EXPECT_EQ(talk.listener.Why(), why);
}

// Catches a carrier that is taken for one although this version has none of that number.
TEST(HelloTest, AnUnknownCarrierBreaksTheConversation) {
  constexpr size_t kInHello = kPrefixBytes + 20 + sizeof(PlanHash);
  constexpr size_t kInVerdict = 4;
  Conversation to_listener;
  to_listener.Run([](size_t index, Bytes* bytes) {
    if (index == 0) (*bytes)[kInHello] = std::byte{3};
  });
  EXPECT_EQ(to_listener.listener.state(), HelloState::kBroken);
  Conversation to_connector;
  to_connector.Run([](size_t index, Bytes* bytes) {
    if (index == 3) (*bytes)[kInVerdict] = std::byte{0};
  });
  EXPECT_EQ(to_connector.connector.state(), HelloState::kBroken);
}

// Catches a number that becomes a lane although there is none of it.
TEST(HelloTest, AnUnknownLaneBreaksTheConversation) {
  constexpr size_t kInHello = kPrefixBytes + 12;
  Conversation talk;
  talk.Run([](size_t index, Bytes* bytes) {
    if (index == 0) (*bytes)[kInHello] = std::byte{2};
  });
  EXPECT_EQ(talk.listener.state(), HelloState::kBroken);
}

// Catches a connection that is one of none, or of more than there can be, and streams of one that
// carries no blocks.
TEST(HelloTest, StreamsAreBounded) {
  const auto state_of = [](LinkName link) {
    Conversation talk(link);
    talk.Run();
    return talk.listener.state();
  };
  LinkName link = kLink;
  link.streams = kStreamsMax;
  link.stream = kStreamsMax - 1;
  EXPECT_NE(state_of(link), HelloState::kBroken);
  ++link.stream;
  EXPECT_EQ(state_of(link), HelloState::kBroken);
  link.stream = 0;
  ++link.streams;
  EXPECT_EQ(state_of(link), HelloState::kBroken);
  link.streams = 0;
  EXPECT_EQ(state_of(link), HelloState::kBroken);
  link.streams = 2;
  link.lane = Lane::kCredits;
  EXPECT_EQ(state_of(link), HelloState::kBroken);
}

// Catches a listener that says anything about its plan to one without the secret, a connector that
// gives it a MAC, and one that leaves it in the dark about why it goes.
TEST(HelloTest, AnotherSecretIsRefusedWithoutAMac) {
  const GroupKey other = GroupKey::FromSecret("another one, of 27 bytes..", "").value();
  Conversation talk(kLink, Terms(5), other);
  talk.Run();
  ASSERT_EQ(talk.said.size(), 4u);
  EXPECT_FALSE(talk.connector.has_proved());
  EXPECT_EQ(talk.said[2].bytes, Bytes(kProofBytes));
  EXPECT_EQ(talk.listener.refusal(), Refusal::kWrongSecret);
  EXPECT_EQ(talk.connector.refusal(), Refusal::kWrongSecret);
  EXPECT_FALSE(talk.connector.is_proved());
  const Bytes& verdict = talk.said.back().bytes;
  EXPECT_EQ(Bytes(verdict.begin() + 4, verdict.end()), Bytes(kVerdictBytes - 4));
}

// Every bit of every message counts: catches a field that no MAC covers.
TEST(HelloTest, NoDamagedConversationIsWelcome) {
  const size_t sizes[] = {kHelloBytes, kChallengeBytes, kProofBytes, kVerdictBytes};
  for (size_t message = 0; message < std::size(sizes); ++message) {
    for (size_t bit = 0; bit < 8 * sizes[message]; ++bit) {
      Conversation talk;
      talk.Run([&](size_t index, Bytes* bytes) {
        if (index == message) (*bytes)[bit / 8] ^= std::byte(1 << (bit % 8));
      });
      EXPECT_NE(talk.connector.state(), HelloState::kWelcome) << message << " bit " << bit;
      if (message < 3) {
        EXPECT_NE(talk.listener.state(), HelloState::kWelcome) << message << " bit " << bit;
      }
    }
  }
}

TEST(HelloTest, NoTruncatedConversationIsWelcome) {
  for (size_t message = 0; message < 4; ++message) {
    Conversation whole;
    whole.Run();
    for (size_t length = 0; length < whole.said[message].bytes.size(); ++length) {
      Conversation talk;
      talk.Run([&](size_t index, Bytes* bytes) {
        if (index == message) bytes->resize(length);
      });
      EXPECT_NE(talk.connector.state(), HelloState::kWelcome) << message << " length " << length;
    }
  }
}

// Catches a connector that proves itself to, and so waits long for, a listener that has proved
// nothing.
TEST(HelloTest, AConnectorGivesNoProofForARandomChallenge) {
  HelloConnector connector(Key(), Nonce(1), kLink, Terms());
  const Bytes prefix = connector.Begin();
  connector.Take(std::span(prefix).first(kPrefixBytes));
  EXPECT_EQ(connector.Take(test::RandomBytes(connector.wanted())), Bytes(kProofBytes));
  EXPECT_FALSE(connector.has_proved());
  EXPECT_EQ(connector.refusal(), Refusal::kWrongSecret);
}

// Words of a conversation are put to its sides again, as other words of it: catches MACs that do
// not depend on which message they are in.
TEST(HelloTest, NothingIsTakenWhenReflected) {
  Conversation honest;
  honest.Run();
  const std::span<const std::byte> challenge = honest.said[1].bytes;
  const Bytes macs[] = {Bytes(challenge.end() - 32, challenge.end()), honest.said[2].bytes,
                        Bytes(honest.said[3].bytes.end() - 32, honest.said[3].bytes.end())};
  for (size_t in_challenge = 0; in_challenge < 3; ++in_challenge) {
    for (size_t in_verdict = 0; in_verdict < 3; ++in_verdict) {
      HelloConnector connector(Key(), Nonce(2), kLink, Terms());  // as in `honest`
      connector.Take(challenge.first(kPrefixBytes));
      Bytes rest(challenge.begin() + kPrefixBytes, challenge.end() - 32);
      rest.insert(rest.end(), macs[in_challenge].begin(), macs[in_challenge].end());
      connector.Take(rest);
      EXPECT_EQ(connector.has_proved(), in_challenge == 0);
      if (!connector.has_proved()) continue;
      Bytes verdict(honest.said[3].bytes.begin(),
                    honest.said[3].bytes.end() - 32);  // "welcome"
      verdict.insert(verdict.end(), macs[in_verdict].begin(), macs[in_verdict].end());
      connector.Take(verdict);
      EXPECT_EQ(connector.state() == HelloState::kWelcome, in_verdict == 2) << in_verdict;
      EXPECT_EQ(connector.is_proved(), in_verdict == 2) << in_verdict;
    }
  }
  for (size_t in_proof = 0; in_proof < 3; ++in_proof) {
    HelloListener listener(Key(), Nonce(3), Terms(), Judge);  // as in `honest`
    const std::span<const std::byte> hello = honest.said[0].bytes;
    listener.Take(hello.first(kPrefixBytes));
    listener.Take(hello.subspan(kPrefixBytes));
    listener.Take(macs[in_proof]);
    EXPECT_EQ(listener.state() == HelloState::kWelcome, in_proof == 1) << in_proof;
  }
}

// Catches a nonce that does not count.
TEST(HelloTest, NothingIsTakenWhenReplayed) {
  Conversation first;
  first.Run();
  for (size_t message = 0; message < 4; ++message) {
    Conversation second(kLink, Terms(), Key(), /*seed=*/2);
    second.Run([&](size_t index, Bytes* bytes) {
      if (index >= message) *bytes = first.said[index].bytes;
    });
    EXPECT_NE(second.connector.state(), HelloState::kWelcome) << message;
    if (message < 3) {
      EXPECT_NE(second.listener.state(), HelloState::kWelcome) << message;
    }
  }
}

TEST(HelloTest, AnotherVersionIsNamedByBothSides) {
  Conversation to_listener;
  to_listener.Run([](size_t index, Bytes* bytes) {
    if (index == 0) (*bytes)[8] = std::byte{kProtocolVersion + 1};
  });
  EXPECT_EQ(to_listener.listener.refusal(), Refusal::kOtherVersion);
  EXPECT_EQ(to_listener.listener.peer_version(), kProtocolVersion + 1);
  ASSERT_GE(to_listener.said.size(), 2u);  // so that the connector can name ours
  EXPECT_EQ(to_listener.said[1].bytes[8], std::byte{kProtocolVersion});

  Conversation to_connector;
  to_connector.Run([](size_t index, Bytes* bytes) {
    if (index == 1) (*bytes)[8] = std::byte{kProtocolVersion + 1};
  });
  EXPECT_EQ(to_connector.connector.refusal(), Refusal::kOtherVersion);
  EXPECT_EQ(to_connector.connector.Why(),
            fmt::format("it speaks version {} of the protocol, this is version {}",
                        kProtocolVersion + 1, kProtocolVersion));
}

// Catches a crash or an endless wait for rubbish: either side ends within its four messages.
TEST(HelloTest, RubbishEndsBothSides) {
  test::Random random(test::TestSeed());
  for (int i = 0; i < 2000; ++i) {
    HelloConnector connector(Key(), Nonce(1), kLink, Terms());
    HelloListener listener(Key(), Nonce(2), Terms(), Judge);
    const Bytes good = connector.Begin();
    for (HelloSide* side :
         {static_cast<HelloSide*>(&connector), static_cast<HelloSide*>(&listener)}) {
      bool is_first = true;
      for (int message = 0; side->state() == HelloState::kTalking; ++message) {
        ASSERT_LT(message, 4);
        Bytes rubbish = test::RandomBytes(side->wanted(), random.Below(1u << 30));
        if (is_first && random.Below(4) > 0)
          std::ranges::copy_n(good.begin(), kPrefixBytes, rubbish.begin());
        is_first = false;
        side == &connector ? connector.Take(rubbish) : listener.Take(rubbish);
      }
      EXPECT_NE(side->state(), HelloState::kWelcome);
    }
  }
}

}  // namespace
}  // namespace prepost::hello_test
