// SPDX-License-Identifier: Apache-2.0
//
// Why it holds: each side's MAC covers the other side's fresh nonce, so an old conversation proves
// nothing; it covers which message it is, so a side's own words sent back to it prove nothing; and
// it covers the connection's name and the terms, so it proves nothing about any other connection.
// The listener proves itself first, so that a connector need not wait long for one that cannot; its
// word on the connection it gives only to a peer that has proved the secret. Whoever connects gets
// a MAC, and can try secrets on it at leisure: that is why keys are slow to derive (group_key.h).
// What follows on the connection is protected in groups that seal it (record_seal.h), and only
// there (docs/running.md).
#include "runtime/group/hello.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "ir/base/count.h"
#include "ir/plan.h"
#include "runtime/base/little_endian.h"
#include "runtime/transport/tcp/tcp_path.h"

namespace prepost {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "prepost\0"sv;
/// The bytes of a connection's name and the terms.
constexpr size_t kWantedBytes = 4 * 4 + 2 * 2 + sizeof(PlanHash) + 4 + 8 + 4;
static_assert(kHelloBytes == kPrefixBytes + kWantedBytes + sizeof(NonceBytes));
/// By Message, of one size.
constexpr std::string_view kLabels[] = {"prepost hello challenge"sv, "prepost hello proof    "sv,
                                        "prepost hello verdict  "sv, "prepost hello link key "sv};
static_assert(kLabels[0].size() == kLabels[1].size() && kLabels[0].size() == kLabels[2].size() &&
              kLabels[0].size() == kLabels[3].size());
constexpr uint32_t kRefusalsKnown = 11;  ///< what a verdict may say
constexpr size_t kVerdictSaidBytes = kVerdictBytes - sizeof(MacBytes);

void PutPrefix(ByteWriter& writer) {
  writer.PutBytes(std::as_bytes(std::span(kMagic)));
  writer.Put(kProtocolVersion);
}

void PutWanted(const LinkName& link, const GroupTerms& terms, SealCiphers offer,
               ByteWriter& writer) {
  writer.Put(static_cast<uint32_t>(link.purpose));
  writer.Put(link.from.value);
  writer.Put(link.to.value);
  writer.Put(NumberOf(link.lane));
  writer.Put(link.stream);
  writer.Put(link.streams);
  writer.PutBytes(terms.plan);
  writer.Put(static_cast<uint32_t>(terms.carrier));
  writer.Put(terms.message_bytes);
  writer.Put(offer);
}

bool HasStreams(const LinkName& link) {
  const bool is_for_blocks = link.purpose == LinkPurpose::kData && link.lane == Lane::kBlocks;
  return link.stream < link.streams && link.streams <= (is_for_blocks ? kStreamsMax : 1);
}

std::optional<Carrier> CarrierOf(uint32_t value) {
  const auto carrier = static_cast<Carrier>(value);
  if (carrier == Carrier::kTcp || carrier == Carrier::kDevice) return carrier;
  return std::nullopt;
}

bool IsOneOf(uint32_t cipher, SealCiphers offer) {
  return cipher >= 1 && cipher <= 2 && (offer & BitOf(static_cast<SealCipher>(cipher))) != 0;
}

template <size_t kCount>
std::array<std::byte, kCount> GetArray(ByteReader& reader) {
  std::array<std::byte, kCount> bytes;
  std::ranges::copy(reader.Take(kCount), bytes.begin());
  return bytes;
}

}  // namespace

bool SameStream(const LinkName& a, const LinkName& b) {
  LinkName same = b;
  same.streams = a.streams;
  return a == same;
}

bool IsOfTerms(Refusal refusal) {
  return refusal == Refusal::kOtherPlan || refusal == Refusal::kOtherSeal ||
         refusal == Refusal::kOtherOrder || refusal == Refusal::kOtherRoot;
}

std::string_view Name(Carrier carrier) {
  switch (carrier) {
    case Carrier::kTcp:
      return "tcp";
    case Carrier::kDevice:
      return "a device";
  }
  PREPOST_CHECK(false);
  return "";
}

std::string HelloSide::Why() const {
  switch (refusal_) {
    case Refusal::kNone:
      return "it is welcome";
    case Refusal::kWrongSecret:
      return "the secrets differ";
    case Refusal::kWrongNode:
      return "it is another node";
    case Refusal::kOtherPlan:
      return "it has another plan or other options";
    case Refusal::kOtherOrder:
      return "it has the members in another order";
    case Refusal::kOtherRoot:
      return "it has another root";
    case Refusal::kDuplicate:
      return "this node is there already";
    case Refusal::kUnexpected:
      return "its plan has no such connection; are all files of a rolled plan made with the same "
             "order of nodes (--order, --topology of prepost compile)?";
    case Refusal::kOtherCarrier:
      return fmt::format(
          "node {} goes over {}, node {} over {}; give --device at all nodes, or at none",
          link_.from.value, Name(terms_.carrier), link_.to.value, Name(listener_terms_.carrier));
    case Refusal::kOtherSize:
      return fmt::format("the message has {} at node {}, {} at node {} (--message-bytes, --input)",
                         Count(terms_.message_bytes, "byte"), link_.from.value,
                         Count(listener_terms_.message_bytes, "byte"), link_.to.value);
    case Refusal::kOtherSeal:
      return fmt::format(
          "node {} seals its connections, node {} does not; give --seal at all nodes, or at none",
          (terms_.is_sealed ? link_.from : link_.to).value,
          (terms_.is_sealed ? link_.to : link_.from).value);
    case Refusal::kOtherVersion:
      return fmt::format("it speaks version {} of the protocol, this is version {}", peer_version_,
                         kProtocolVersion);
  }
  PREPOST_CHECK(false);
  return "";
}

bool HelloSide::TakePrefix(std::span<const std::byte> in) {
  ByteReader reader(in);
  const std::span<const std::byte> magic = reader.Take(kMagic.size());
  if (!std::ranges::equal(magic, std::as_bytes(std::span(kMagic)))) {
    state_ = HelloState::kBroken;
    return false;
  }
  peer_version_ = reader.Get<uint32_t>();
  if (peer_version_ != kProtocolVersion) Refuse(Refusal::kOtherVersion);
  return peer_version_ == kProtocolVersion;
}

GroupKey HelloSide::LinkKey() const {
  PREPOST_CHECK(state_ == HelloState::kWelcome);
  return key_.Derive(Transcript(Message::kLinkKey));
}

LinkKeys HelloSide::Keys() const {
  if (cipher_ != SealCipher::kNone)
    return {.seal = std::make_unique<LinkSeal>(LinkKey(), cipher_, role_ == Role::kConnector)};
  const bool is_introduced =
      link_.purpose == LinkPurpose::kEager || link_.purpose == LinkPurpose::kData;
  if (is_introduced) return {.key = LinkKey()};
  return {};
}

std::vector<std::byte> HelloSide::Transcript(Message message) const {
  return Transcript(message, std::array<std::byte, kVerdictSaidBytes>());
}

std::vector<std::byte> HelloSide::Transcript(Message message,
                                             std::span<const std::byte> verdict) const {
  const std::string_view label = kLabels[static_cast<size_t>(message)];
  std::vector<std::byte> bytes(label.size() + 4 + 2 * sizeof(NonceBytes) + kWantedBytes +
                               kVerdictSaidBytes);
  ByteWriter writer(bytes);
  writer.PutBytes(std::as_bytes(std::span(label)));
  writer.Put(kProtocolVersion);
  const bool connects = role_ == Role::kConnector;  // whose nonce comes first
  writer.PutBytes(connects ? nonce_ : peer_nonce_);
  writer.PutBytes(connects ? peer_nonce_ : nonce_);
  PutWanted(link_, terms_, offer_, writer);
  writer.PutBytes(verdict);
  PREPOST_CHECK(writer.left() == 0);
  return bytes;
}

HelloConnector::HelloConnector(const GroupKey& key, const NonceBytes& nonce, const LinkName& link,
                               const GroupTerms& terms)
    : HelloSide(key, nonce, Role::kConnector) {
  link_ = link;
  terms_ = terms;
}

std::vector<std::byte> HelloConnector::Begin() {
  offer_ = terms_.is_sealed ? ciphers_ : 0;
  std::vector<std::byte> hello(kHelloBytes);
  ByteWriter writer(hello);
  PutPrefix(writer);
  PutWanted(link_, terms_, offer_, writer);
  writer.PutBytes(nonce_);
  PREPOST_CHECK(writer.left() == 0);
  return hello;
}

std::vector<std::byte> HelloConnector::Take(std::span<const std::byte> in) {
  PREPOST_CHECK(state_ == HelloState::kTalking && in.size() == wanted_);
  if (has_proved_) {
    TakeVerdict(in);
  } else if (has_prefix_) {
    return TakeChallenge(in);
  } else if (TakePrefix(in)) {
    has_prefix_ = true;
    wanted_ = kChallengeBytes - kPrefixBytes;
  }
  return {};
}

std::vector<std::byte> HelloConnector::TakeChallenge(std::span<const std::byte> in) {
  ByteReader reader(in);
  peer_nonce_ = GetArray<sizeof(NonceBytes)>(reader);
  const MacBytes mac = GetArray<sizeof(MacBytes)>(reader);
  is_proved_ = key_.Verify(mac, Transcript(Message::kChallenge));
  if (!is_proved_) {
    Refuse(Refusal::kWrongSecret);
    return std::vector<std::byte>(kProofBytes);
  }
  has_proved_ = true;
  wanted_ = kVerdictBytes;
  const MacBytes proof = key_.Mac(Transcript(Message::kProof));
  return {proof.begin(), proof.end()};
}

void HelloConnector::TakeVerdict(std::span<const std::byte> in) {
  ByteReader reader(in);
  const uint32_t value = reader.Get<uint32_t>();
  const std::optional<Carrier> carrier = CarrierOf(reader.Get<uint32_t>());
  const uint64_t message_bytes = reader.Get<uint64_t>();
  const uint32_t cipher = reader.Get<uint32_t>();
  const MacBytes mac = GetArray<sizeof(MacBytes)>(reader);
  const auto refusal = static_cast<Refusal>(value);
  const bool is_chosen = refusal == Refusal::kNone && terms_.is_sealed;
  const bool is_cipher = is_chosen ? IsOneOf(cipher, offer_) : cipher == 0;
  if (value >= kRefusalsKnown || (refusal != Refusal::kWrongSecret && !carrier) || !is_cipher) {
    state_ = HelloState::kBroken;
    return;
  }
  is_proved_ = refusal != Refusal::kWrongSecret &&
               key_.Verify(mac, Transcript(Message::kVerdict, in.first(kVerdictSaidBytes)));
  if (!is_proved_) return Refuse(Refusal::kWrongSecret);
  listener_terms_ = {.carrier = *carrier, .message_bytes = message_bytes};
  if (refusal != Refusal::kNone) return Refuse(refusal);
  cipher_ = static_cast<SealCipher>(cipher);
  state_ = HelloState::kWelcome;
}

std::vector<std::byte> HelloListener::Take(std::span<const std::byte> in) {
  PREPOST_CHECK(state_ == HelloState::kTalking && in.size() == wanted_);
  if (has_name_) return TakeProof(in);
  if (has_prefix_) return TakeHello(in);
  has_prefix_ = TakePrefix(in);
  wanted_ = kHelloBytes - kPrefixBytes;
  if (state_ != HelloState::kRefused) return {};
  std::vector<std::byte> challenge(kChallengeBytes);  // says our version to one of another
  ByteWriter writer(challenge);
  PutPrefix(writer);
  return challenge;
}

std::vector<std::byte> HelloListener::TakeHello(std::span<const std::byte> in) {
  ByteReader reader(in);
  const uint32_t purpose = reader.Get<uint32_t>();
  if (purpose < static_cast<uint32_t>(LinkPurpose::kControl) ||
      purpose > static_cast<uint32_t>(LinkPurpose::kEager)) {
    state_ = HelloState::kBroken;
    return {};
  }
  link_.purpose = static_cast<LinkPurpose>(purpose);
  link_.from = NodeId(reader.Get<uint32_t>());
  link_.to = NodeId(reader.Get<uint32_t>());
  const std::optional<Lane> lane = LaneOf(reader.Get<uint32_t>());
  link_.lane = lane.value_or(Lane::kBlocks);
  link_.stream = reader.Get<uint16_t>();
  link_.streams = reader.Get<uint16_t>();
  terms_.plan = GetArray<sizeof(PlanHash)>(reader);
  const std::optional<Carrier> carrier = CarrierOf(reader.Get<uint32_t>());
  terms_.message_bytes = reader.Get<uint64_t>();
  offer_ = reader.Get<uint32_t>();
  // What is offered is what there is, and always the cipher that needs nothing of the CPU.
  const bool is_offer = offer_ == 0 || ((offer_ & ~kAllSealCiphers) == 0 &&
                                        IsOneOf(uint32_t(SealCipher::kChaCha20Poly1305), offer_));
  if (!lane || !carrier || !HasStreams(link_) || !is_offer) {
    state_ = HelloState::kBroken;
    return {};
  }
  terms_.carrier = *carrier;
  terms_.is_sealed = offer_ != 0;
  peer_nonce_ = GetArray<sizeof(NonceBytes)>(reader);
  has_name_ = true;
  wanted_ = kProofBytes;
  std::vector<std::byte> challenge(kChallengeBytes);
  ByteWriter writer(challenge);
  PutPrefix(writer);
  writer.PutBytes(nonce_);
  writer.PutBytes(key_.Mac(Transcript(Message::kChallenge)));
  return challenge;
}

std::vector<std::byte> HelloListener::TakeProof(std::span<const std::byte> in) {
  ByteReader reader(in);
  const MacBytes proof = GetArray<sizeof(MacBytes)>(reader);
  is_proved_ = key_.Verify(proof, Transcript(Message::kProof));
  const std::optional<Refusal> refusal =
      is_proved_ ? judge_(link_, terms_) : std::optional(Refusal::kWrongSecret);
  if (refusal) return Decide(*refusal);
  state_ = HelloState::kParked;
  return {};
}

std::vector<std::byte> HelloListener::Decide(Refusal refusal) {
  if (refusal == Refusal::kNone) {
    cipher_ = BestCipher(offer_, ciphers_);
    state_ = HelloState::kWelcome;
  } else {
    Refuse(refusal);
  }
  std::vector<std::byte> verdict(kVerdictBytes);
  ByteWriter writer(verdict);
  writer.Put(static_cast<uint32_t>(refusal));
  if (!is_proved_) return verdict;
  writer.Put(static_cast<uint32_t>(listener_terms_.carrier));
  writer.Put(listener_terms_.message_bytes);
  writer.Put(static_cast<uint32_t>(cipher_));
  writer.PutBytes(
      key_.Mac(Transcript(Message::kVerdict, std::span(verdict).first(kVerdictSaidBytes))));
  return verdict;
}

}  // namespace prepost
