// SPDX-License-Identifier: Apache-2.0
//
// GroupKey: what the machines of a group prove to each other that they have (hello.h). It is
// derived from a secret that stands in a file or in the environment, never on a command line.
// Whoever hears a hello can try secrets on it, so deriving takes Argon2id a tenth of a second and
// 64 MiB; that slows guessing, but only a random secret ends it. All nodes have one key: it
// distinguishes members from strangers, not one member from another.
#ifndef PREPOST_RUNTIME_GROUP_GROUP_KEY_H_
#define PREPOST_RUNTIME_GROUP_GROUP_KEY_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/base/status.h"

namespace prepost {

inline constexpr size_t kSecretBytesMin = 16;
inline constexpr size_t kSecretBytesMax = 4096;

using MacBytes = std::array<std::byte, 32>;
using NonceBytes = std::array<std::byte, 32>;

/// Its bytes are in no core dump, and wiped with the last copy of it. Deriving one from a secret
/// takes 60 ms and 64 MiB, as it should; what has the same secret while a copy is there shares it.
class GroupKey {
 public:
  /// The key of the bytes of `secret`, without a line's end behind them. Errors: kRejected, with
  /// `where`: shorter than kSecretBytesMin or longer than kSecretBytesMax. kEnvironment: no
  /// randomness, or no memory.
  static Result<GroupKey> FromSecret(std::string_view secret, const std::string& where);
  /// Errors, besides: the file cannot be read, or others than its owner can, or that is neither
  /// this user nor root (as with ssh's keys).
  static Result<GroupKey> FromFile(const std::string& path);
  /// A fresh one, for processes that inherit it. Errors: kEnvironment.
  static Result<GroupKey> Random();

  /// A key for what `message` names alone: who has it learns nothing of this one.
  GroupKey Derive(std::span<const std::byte> message) const;

  /// HMAC-SHA-512-256.
  MacBytes Mac(std::span<const std::byte> message) const;
  /// In constant time.
  bool Verify(const MacBytes& mac, std::span<const std::byte> message) const;

 private:
  /// Errors (kEnvironment): no memory that can be kept out of core dumps.
  static Result<GroupKey> Make();
  /// As Random(), in a child of fork(), too: it takes no lock of libsodium's.
  static Result<GroupKey> Fresh();
  /// By Argon2id.
  static Result<GroupKey> Derived(std::string_view secret);
  GroupKey() = default;

  friend class KeysInUse;
  std::shared_ptr<unsigned char> key_;  ///< as many bytes as libsodium's crypto_auth takes
};

/// Overwrites a secret that was read, which is to be in no core dump.
void Wipe(std::span<char> secret);

/// Fresh and unpredictable. Needs a GroupKey to have been made before.
NonceBytes RandomNonce();

}  // namespace prepost

#endif  // PREPOST_RUNTIME_GROUP_GROUP_KEY_H_
