// SPDX-License-Identifier: Apache-2.0
//
// The handshake of two machines with a stranger in between. The first byte of the input says how
// the rest is used: as what a listener hears, as what a connector hears, or as damage to the
// conversation of two honest sides. Nobody without the secret is ever welcome, and no damaged
// conversation ends with both sides content about different things.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/base/status.h"
#include "runtime/group/hello.h"

namespace {

using prepost::HelloConnector;
using prepost::HelloListener;
using prepost::HelloState;
using Bytes = std::vector<std::byte>;

constexpr prepost::LinkName kLink = {.from = prepost::NodeId(3), .to = prepost::NodeId(1)};
constexpr prepost::GroupTerms kTerms = {.plan = {std::byte{7}}, .carrier = prepost::Carrier::kTcp};
constexpr prepost::NonceBytes kConnectorNonce = {std::byte{1}};
constexpr prepost::NonceBytes kListenerNonce = {std::byte{2}};

const prepost::GroupKey& Key() {
  static const prepost::GroupKey key =
      prepost::GroupKey::FromSecret("a secret of the group", "here").value();
  return key;
}

HelloConnector Connector() { return {Key(), kConnectorNonce, kLink, kTerms}; }

HelloListener Listener() {
  return {Key(), kListenerNonce, kTerms,
          [](const prepost::LinkName& link, const prepost::GroupTerms& terms) {
            if (link != kLink) return prepost::Refusal::kUnexpected;
            if (terms.plan != kTerms.plan) return prepost::Refusal::kOtherPlan;
            if (terms.carrier != kTerms.carrier) return prepost::Refusal::kOtherCarrier;
            return terms == kTerms ? prepost::Refusal::kNone : prepost::Refusal::kOtherSize;
          }};
}

/// Says `words` to `side`, as far as it listens.
template <typename Side>
void Hear(Side& side, std::span<const std::byte> words) {
  while (side.state() == HelloState::kTalking) {
    const size_t wanted = side.wanted();
    PREPOST_CHECK(wanted > 0 && wanted <= prepost::kHelloBytes);
    if (words.size() < wanted) return;
    side.Take(words.first(wanted));
    words = words.subspan(wanted);
  }
}

/// Changes bytes of what passes by: each three bytes of `edits` are an offset into the conversation
/// and what is added to the byte there.
class Wire {
 public:
  explicit Wire(std::span<const std::byte> edits) : edits_(edits) {}

  Bytes Pass(Bytes words) {
    for (size_t i = 0; i + 3 <= edits_.size(); i += 3) {
      const size_t at =
          std::to_integer<size_t>(edits_[i]) * 256 + std::to_integer<size_t>(edits_[i + 1]);
      if (at < passed_ || at >= passed_ + words.size()) continue;
      words[at - passed_] ^= edits_[i + 2];
      damaged_ = damaged_ || edits_[i + 2] != std::byte{0};
    }
    passed_ += words.size();
    return words;
  }
  /// Some byte was touched; two changes of one byte may have undone each other.
  bool damaged() const { return damaged_; }

 private:
  std::span<const std::byte> edits_;
  size_t passed_ = 0;
  bool damaged_ = false;
};

/// What `side` replies to `words`, in its own portions.
template <typename Side>
Bytes Reply(Side& side, const Bytes& words) {
  Bytes reply;
  for (size_t at = 0; side.state() == HelloState::kTalking && words.size() - at >= side.wanted();) {
    const size_t wanted = side.wanted();
    const Bytes said = side.Take(std::span(words).subspan(at, wanted));
    reply.insert(reply.end(), said.begin(), said.end());
    at += wanted;
  }
  return reply;
}

void Converse(std::span<const std::byte> edits) {
  Wire wire(edits);
  HelloConnector connector = Connector();
  HelloListener listener = Listener();
  for (Bytes words = connector.Begin(); !words.empty();) {
    words = Reply(listener, wire.Pass(words));
    if (words.empty()) break;
    words = Reply(connector, wire.Pass(words));
  }
  const bool both_welcome =
      connector.state() == HelloState::kWelcome && listener.state() == HelloState::kWelcome;
  if (!wire.damaged()) PREPOST_CHECK(both_welcome);
  if (listener.state() == HelloState::kWelcome) {
    PREPOST_CHECK(listener.is_proved() && listener.link() == kLink);
  }
  if (connector.state() == HelloState::kWelcome) PREPOST_CHECK(connector.is_proved());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 3) {
    case 0: {
      HelloListener listener = Listener();
      Hear(listener, input);
      PREPOST_CHECK(!listener.is_proved() && listener.state() != HelloState::kWelcome);
      return 0;
    }
    case 1: {
      HelloConnector connector = Connector();
      Hear(connector, input);
      PREPOST_CHECK(!connector.is_proved() && connector.state() != HelloState::kWelcome);
      return 0;
    }
    default:
      Converse(input);
      return 0;
  }
}
