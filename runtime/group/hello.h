// SPDX-License-Identifier: Apache-2.0
//
// Hello: how two machines of a group prove to each other, before anything else, that they have the
// group's secret, play the same plan over the same kind of transport, and are who they are taken
// for. Pure functions of bytes: sockets and deadlines are the business of bootstrap.h.
#ifndef PREPOST_RUNTIME_GROUP_HELLO_H_
#define PREPOST_RUNTIME_GROUP_HELLO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/ids.h"
#include "ir/plan.h"
#include "runtime/files/plan_hash.h"
#include "runtime/group/group_key.h"
#include "runtime/transport/sealing/record_seal.h"

namespace prepost {

/// The version of hello, control messages (control_message.h) and records (tcp_wire.h) together.
inline constexpr uint32_t kProtocolVersion = 20;

enum class LinkPurpose : uint32_t {
  kControl = 1,  ///< of a member with the leader
  kData = 2,
  kGates = 3,  ///< of a member with its parent in the GateTree, unless that is the leader
  kEager = 4   ///< of a member with its parent in the EagerTree
};

/// One connection of a group, by the plan, or one of the streams that it is made of (tcp_path.h).
/// `from` connects, `to` listens.
struct LinkName {
  NodeId from;
  NodeId to;
  LinkPurpose purpose = LinkPurpose::kData;
  Lane lane = Lane::kBlocks;  ///< kBlocks unless for data
  uint16_t stream = 0;        ///< below `streams`
  uint16_t streams = 1;       ///< the connector's word; 1 but for blocks

  friend bool operator==(const LinkName&, const LinkName&) = default;
};
/// Whether both are the same stream of one connection, of however many.
bool SameStream(const LinkName& a, const LinkName& b);

/// What carries the blocks and credits of a whole group. Values are part of the protocol.
enum class Carrier : uint32_t {
  kTcp = 1,    ///< the connections that the hellos open
  kDevice = 2  ///< queues of devices, whose addresses go over these connections
};
/// "tcp", "a device".
std::string_view Name(Carrier carrier);

/// What all nodes of a group must have in common.
struct GroupTerms {
  PlanHash plan = {};
  Carrier carrier = Carrier::kTcp;
  uint64_t message_bytes = 0;  ///< which a rolled plan leaves open
  bool is_sealed = false;      ///< what follows the hello is sealed (record_seal.h)

  friend bool operator==(const GroupTerms&, const GroupTerms&) = default;
};

/// Why a listener does not want a connection. Values are part of the protocol.
enum class Refusal : uint32_t {
  kNone = 0,          ///< welcome
  kWrongSecret = 1,   ///< the other side has not proved that it has the secret
  kWrongNode = 2,     ///< the listener is another node than the one wanted
  kOtherPlan = 3,     ///< it plays another plan
  kDuplicate = 4,     ///< this connection is there already
  kUnexpected = 5,    ///< the plan has no such connection
  kOtherCarrier = 6,  ///< it goes over something else
  kOtherSize = 7,     ///< it is for a message of another size, with the same rolled plan
  kOtherSeal = 8,     ///< it seals its connections, or does not
  kOtherOrder = 9,    ///< of a session's group: it has the members in another order
  kOtherRoot = 10,    ///< the same with another root
  kOtherVersion = 11  ///< never sent: the prefix says it
};
/// Whether the two ends mean one group, and have other terms of it.
bool IsOfTerms(Refusal refusal);

/// The conversation, all sizes fixed, integers little-endian. C connects, L listens:
///
///     C > L  hello      prefix | purpose 4 | from 4 | to 4 | lane 4 | stream 2 | streams 2 |
///                       plan hash 32 | carrier 4 | message bytes 8 | ciphers 4 | nonce 32
///     L > C  challenge  prefix | nonce 32 | MAC 32
///     C > L  proof      MAC 32
///     L > C  verdict    refusal 4 | carrier 4 | message bytes 8 | cipher 4 | MAC 32
///
/// The prefix, "prepost" and a zero byte, then the version in 4 bytes, is the same in all versions.
/// MACs are over which message it is, version, both nonces, all that the hello wants, and of the
/// verdict what it says, so that none can be used for anything else; the verdict of kWrongSecret is
/// zeros behind the refusal. The verdict's carrier and message bytes are the listener's. Ciphers
/// (SealCiphers) are those that the connector has, none: it seals nothing; the verdict's is the one
/// that both use (SealCipher), so that nobody between them chooses it. A connector that the
/// challenge does not convince sends a proof of zeros, so that the listener learns that the secrets
/// differ, too. A challenge to another version is zeros behind the prefix.
inline constexpr size_t kPrefixBytes = 12;
inline constexpr size_t kHelloBytes = kPrefixBytes + 100;
inline constexpr size_t kChallengeBytes = kPrefixBytes + 64;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kVerdictBytes = 52;

/// What the two ends of a welcome connection have in common, and nobody else.
struct LinkKeys {
  std::optional<GroupKey> key = {};          ///< of one for data or short messages, not sealed
  std::unique_ptr<LinkSeal> seal = nullptr;  ///< of one that is
};

enum class HelloState : uint8_t {
  kTalking,
  kParked,   ///< the peer has proved the secret; the listener has yet to Decide()
  kWelcome,  ///< both have proved the secret, and the listener takes the connection
  kRefused,  ///< refusal() says why
  kBroken    ///< the other side does not speak this protocol: to be dropped without a word
};

/// What both sides of the conversation share. Feed it exactly wanted() bytes at a time until it no
/// longer talks; send what it replies, even then.
class HelloSide {
 public:
  size_t wanted() const { return wanted_; }
  HelloState state() const { return state_; }
  /// kRefused: why.
  Refusal refusal() const { return refusal_; }
  /// kRefused: the same in words, about the connector: "the secrets differ", ...
  std::string Why() const;
  /// All that the other side has said proves that it has the secret.
  bool is_proved() const { return is_proved_; }
  uint32_t peer_version() const { return peer_version_; }
  /// kWelcome: what only the two ends of this connection can derive, from the group's key and all
  /// that both have said, their nonces among it.
  GroupKey LinkKey() const;
  /// The same as it is used.
  LinkKeys Keys() const;
  /// Before anything is said: what this end has, instead of SealCiphersHere().
  void set_ciphers(SealCiphers ciphers) { ciphers_ = ciphers; }
  /// kWelcome: what the connection is sealed with.
  SealCipher cipher() const { return cipher_; }

 protected:
  enum class Role : uint8_t { kConnector, kListener };
  enum class Message : uint8_t { kChallenge, kProof, kVerdict, kLinkKey };

  HelloSide(const GroupKey& key, const NonceBytes& nonce, Role role)
      : key_(key), nonce_(nonce), role_(role) {}
  /// Whether the prefix is one of this version; else the state is final.
  bool TakePrefix(std::span<const std::byte> in);
  /// What the MAC of `message` is over.
  std::vector<std::byte> Transcript(Message message) const;
  /// `verdict`: what the verdict says before its MAC.
  std::vector<std::byte> Transcript(Message message, std::span<const std::byte> verdict) const;
  void Refuse(Refusal refusal) {
    state_ = HelloState::kRefused;
    refusal_ = refusal;
  }

  GroupKey key_;
  const NonceBytes nonce_;
  const Role role_;
  NonceBytes peer_nonce_ = {};
  LinkName link_;
  GroupTerms terms_;           ///< the connector's
  GroupTerms listener_terms_;  ///< the connector hears of them in the verdict, but not of the plan
  size_t wanted_ = kPrefixBytes;
  HelloState state_ = HelloState::kTalking;
  Refusal refusal_ = Refusal::kNone;
  bool is_proved_ = false;
  uint32_t peer_version_ = kProtocolVersion;
  SealCiphers ciphers_ = SealCiphersHere();
  SealCiphers offer_ = 0;  ///< the connector's; 0: nothing is sealed
  SealCipher cipher_ = SealCipher::kNone;
};

class HelloConnector final : public HelloSide {
 public:
  /// `nonce` is to be fresh (RandomNonce()).
  HelloConnector(const GroupKey& key, const NonceBytes& nonce, const LinkName& link,
                 const GroupTerms& terms);

  /// Before Begin(): of how many streams the connection is to be.
  void set_streams(uint16_t streams) { link_.streams = streams; }
  /// What it says first.
  std::vector<std::byte> Begin();
  /// Needs wanted() bytes. What is to be sent.
  std::vector<std::byte> Take(std::span<const std::byte> in);
  /// The listener has proved that it has the secret, and the proof is what Take() has returned: the
  /// listener may take the connection any time now.
  bool has_proved() const { return has_proved_; }

 private:
  std::vector<std::byte> TakeChallenge(std::span<const std::byte> in);
  void TakeVerdict(std::span<const std::byte> in);

  bool has_prefix_ = false;
  bool has_proved_ = false;
};

class HelloListener final : public HelloSide {
 public:
  /// Asked about a peer that has proved the secret: kNone takes the connection; none leaves it
  /// parked.
  using Judge =
      std::function<std::optional<Refusal>(const LinkName& link, const GroupTerms& terms)>;

  /// `terms`: the listener's own, which it names in its verdict.
  HelloListener(const GroupKey& key, const NonceBytes& nonce, const GroupTerms& terms, Judge judge)
      : HelloSide(key, nonce, Role::kListener), judge_(std::move(judge)) {
    listener_terms_ = terms;
  }

  std::vector<std::byte> Take(std::span<const std::byte> in);
  /// Of a parked connection: the verdict, to be sent.
  std::vector<std::byte> Decide(Refusal refusal);
  /// What the peer says that it wants; known, and perhaps a lie, once has_name().
  const LinkName& link() const { return link_; }
  const GroupTerms& terms() const { return terms_; }
  bool has_name() const { return has_name_; }

 private:
  std::vector<std::byte> TakeHello(std::span<const std::byte> in);
  std::vector<std::byte> TakeProof(std::span<const std::byte> in);

  Judge judge_;
  bool has_prefix_ = false;
  bool has_name_ = false;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_HELLO_H_
