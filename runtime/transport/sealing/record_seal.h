// SPDX-License-Identifier: Apache-2.0
//
// LinkSeal: encrypts and authenticates the records of one connection, in libsodium's AEADs. Each
// way of a connection has a key of its own, which only the two ends of its hello can derive
// (hello.h), and counts its records: so one that was changed, left out, said twice, moved, sent
// back or taken from another connection is not opened. It knows no sockets: sealed_stream.h and
// control_socket.h do.
#ifndef PREPOST_RUNTIME_TRANSPORT_SEALING_RECORD_SEAL_H_
#define PREPOST_RUNTIME_TRANSPORT_SEALING_RECORD_SEAL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "runtime/group/group_key.h"

namespace prepost {

/// Values are part of the protocol.
enum class SealCipher : uint32_t {
  kNone = 0,
  kChaCha20Poly1305 = 1,  ///< the IETF's, which every CPU computes
  kAes256Gcm = 2          ///< where both CPUs have instructions for it
};

/// Ciphers that an end has, a bit for each: 1 << (value - 1).
using SealCiphers = uint32_t;
constexpr SealCiphers BitOf(SealCipher cipher) {
  return cipher == SealCipher::kNone ? 0 : SealCiphers{1} << (static_cast<uint32_t>(cipher) - 1);
}
inline constexpr SealCiphers kAllSealCiphers =
    BitOf(SealCipher::kChaCha20Poly1305) | BitOf(SealCipher::kAes256Gcm);
/// This machine's. Needs a GroupKey to have been made before.
SealCiphers SealCiphersHere();
/// The one that two ends use which have these; kNone: they have none in common.
SealCipher BestCipher(SealCiphers a, SealCiphers b);

/// What a record is longer than its contents.
inline constexpr size_t kSealTagBytes = 16;
/// Records under one key, 1 TiB of full ones: then both ends derive the next key from the last, and
/// forget that one. Far below what AES-256-GCM bears.
inline constexpr uint64_t kRecordsPerKey = uint64_t{1} << 24;
/// Records of one way of a connection: a nonce is never used again.
inline constexpr uint64_t kSealedRecordsMax = uint64_t{1} << 48;

/// One way of a connection, at one end; part of a LinkSeal.
class RecordCounter {
 public:
  struct Secret;  ///< in memory that is in no core dump

  RecordCounter(Secret* secret, SealCipher cipher, uint64_t records_per_key)
      : secret_(secret), cipher_(cipher), records_per_key_(records_per_key) {}

  /// The next record: `plain`, sealed into `record`, which is kSealTagBytes longer and apart from
  /// it. `open` is authenticated and not in it. False: there are no more (kSealedRecordsMax).
  [[nodiscard]] bool Seal(std::span<const std::byte> plain, std::span<const std::byte> open,
                          std::span<std::byte> record);
  /// The next record, opened into `plain`, which is kSealTagBytes shorter and apart from it. False:
  /// it is not what the other end has sealed next; then nothing of it is in `plain`, and nothing
  /// that follows is opened.
  [[nodiscard]] bool Open(std::span<const std::byte> record, std::span<const std::byte> open,
                          std::span<std::byte> plain);

 private:
  std::optional<uint64_t> Next();

  Secret* secret_;
  SealCipher cipher_;
  uint64_t records_per_key_;
  uint64_t records_ = 0;
  bool is_broken_ = false;
};

/// Both ways of a connection, at one end. Its keys are wiped with it. Used by one thread.
class LinkSeal {
 public:
  /// `key`: HelloSide::LinkKey(). `cipher` is not kNone. `records_per_key`: the same at both ends.
  LinkSeal(const GroupKey& key, SealCipher cipher, bool is_connector,
           uint64_t records_per_key = kRecordsPerKey);
  ~LinkSeal();
  LinkSeal(const LinkSeal&) = delete;
  LinkSeal& operator=(const LinkSeal&) = delete;

  SealCipher cipher() const { return cipher_; }
  RecordCounter& out() { return out_; }
  RecordCounter& in() { return in_; }

 private:
  RecordCounter::Secret* const secrets_;  ///< two, of what the connector says first
  SealCipher cipher_;
  RecordCounter out_;
  RecordCounter in_;
};

}  // namespace prepost

#endif  // PREPOST_RUNTIME_TRANSPORT_SEALING_RECORD_SEAL_H_
