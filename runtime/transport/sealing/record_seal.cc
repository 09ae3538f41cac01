// SPDX-License-Identifier: Apache-2.0
//
// Why it holds: the connection's key is over both ends' fresh nonces, its name (from, to, purpose,
// lane and stream) and the terms, and each way's first chain key is a MAC of that key over which
// way it is and which cipher: so no two ways of any connections have a key in common, and a nonce
// that counts the records of one way is never used twice with a key. From a chain key follow, by
// keyed BLAKE2b, a key for records_per_key records and the next chain key.
//
//     link key -> chain 0 -> key of records 0 to 2^24 - 1
//                    '----> chain 1 -> key of the next 2^24 records
//                              '----> ...
#include "runtime/transport/sealing/record_seal.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <string_view>

#include "ir/base/status.h"
#include "runtime/base/little_endian.h"

namespace prepost {
namespace {

constexpr std::string_view kSealLabel = "prepost seal, connection, ";
constexpr std::string_view kKeyLabel = "prepost seal, next key";
constexpr size_t kSealKeyBytes = 32;

static_assert(crypto_aead_aes256gcm_KEYBYTES == kSealKeyBytes &&
              crypto_aead_chacha20poly1305_ietf_KEYBYTES == kSealKeyBytes &&
              sizeof(MacBytes) == kSealKeyBytes);
static_assert(crypto_aead_aes256gcm_ABYTES == kSealTagBytes &&
              crypto_aead_chacha20poly1305_ietf_ABYTES == kSealTagBytes);
static_assert(crypto_aead_aes256gcm_NPUBBYTES == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);

using SealNonce = std::array<std::byte, crypto_aead_aes256gcm_NPUBBYTES>;

const unsigned char* Data(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* Room(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

/// Zeros and the record's number.
SealNonce NonceOf(uint64_t number) {
  SealNonce nonce = {};
  ByteWriter(std::span(nonce).last(sizeof(number))).Put(number);
  return nonce;
}

}  // namespace

struct alignas(16) RecordCounter::Secret {
  crypto_aead_aes256gcm_state aes;  ///< the expanded key
  std::array<unsigned char, kSealKeyBytes> key;
  std::array<unsigned char, kSealKeyBytes> chain;

  void NextKey(SealCipher cipher) {
    std::array<unsigned char, 2 * kSealKeyBytes> derived;
    const auto label = std::as_bytes(std::span(kKeyLabel));
    crypto_generichash(derived.data(), derived.size(), Data(label), label.size(), chain.data(),
                       chain.size());
    std::copy_n(derived.begin(), kSealKeyBytes, key.begin());
    std::copy_n(derived.begin() + kSealKeyBytes, kSealKeyBytes, chain.begin());
    sodium_memzero(derived.data(), derived.size());
    if (cipher == SealCipher::kAes256Gcm) crypto_aead_aes256gcm_beforenm(&aes, key.data());
  }
};

SealCiphers SealCiphersHere() {
  const bool has_aes = crypto_aead_aes256gcm_is_available() == 1;
  return BitOf(SealCipher::kChaCha20Poly1305) | (has_aes ? BitOf(SealCipher::kAes256Gcm) : 0);
}

SealCipher BestCipher(SealCiphers a, SealCiphers b) {
  for (const SealCipher cipher : {SealCipher::kAes256Gcm, SealCipher::kChaCha20Poly1305}) {
    if ((a & b & BitOf(cipher)) != 0) return cipher;
  }
  return SealCipher::kNone;
}

/// Of the next record; none: it is not to be sealed or opened.
std::optional<uint64_t> RecordCounter::Next() {
  if (is_broken_ || records_ >= kSealedRecordsMax) return std::nullopt;
  if (records_ % records_per_key_ == 0) secret_->NextKey(cipher_);
  return records_++;
}

bool RecordCounter::Seal(std::span<const std::byte> plain, std::span<const std::byte> open,
                         std::span<std::byte> record) {
  PREPOST_CHECK(record.size() == plain.size() + kSealTagBytes);
  const std::optional<uint64_t> number = Next();
  if (!number) return false;
  const SealNonce nonce = NonceOf(*number);
  if (cipher_ == SealCipher::kAes256Gcm) {
    crypto_aead_aes256gcm_encrypt_afternm(Room(record), nullptr, Data(plain), plain.size(),
                                          Data(open), open.size(), nullptr, Data(nonce),
                                          &secret_->aes);
  } else {
    crypto_aead_chacha20poly1305_ietf_encrypt(Room(record), nullptr, Data(plain), plain.size(),
                                              Data(open), open.size(), nullptr, Data(nonce),
                                              secret_->key.data());
  }
  return true;
}

bool RecordCounter::Open(std::span<const std::byte> record, std::span<const std::byte> open,
                         std::span<std::byte> plain) {
  PREPOST_CHECK(record.size() == plain.size() + kSealTagBytes);
  const std::optional<uint64_t> number = Next();
  if (!number) return false;
  const SealNonce nonce = NonceOf(*number);
  const int failed = cipher_ == SealCipher::kAes256Gcm
                         ? crypto_aead_aes256gcm_decrypt_afternm(
                               Room(plain), nullptr, nullptr, Data(record), record.size(),
                               Data(open), open.size(), Data(nonce), &secret_->aes)
                         : crypto_aead_chacha20poly1305_ietf_decrypt(
                               Room(plain), nullptr, nullptr, Data(record), record.size(),
                               Data(open), open.size(), Data(nonce), secret_->key.data());
  if (failed == 0) return true;
  is_broken_ = true;
  std::ranges::fill(plain, std::byte{0});
  return false;
}

namespace {

/// Of the way that the connector says something, and of the other.
RecordCounter::Secret* MakeSecrets(const GroupKey& key, SealCipher cipher) {
  auto* const secrets =
      static_cast<RecordCounter::Secret*>(sodium_allocarray(2, sizeof(RecordCounter::Secret)));
  if (secrets == nullptr) throw std::bad_alloc();
  for (const bool is_of_connector : {true, false}) {
    std::string way(kSealLabel);
    way += is_of_connector ? "connector to listener, " : "listener to connector, ";
    way += std::to_string(static_cast<uint32_t>(cipher));
    MacBytes chain = key.Mac(std::as_bytes(std::span(way)));
    std::copy_n(Data(chain), chain.size(), secrets[is_of_connector ? 0 : 1].chain.begin());
    sodium_memzero(chain.data(), chain.size());
  }
  return secrets;
}

}  // namespace

LinkSeal::LinkSeal(const GroupKey& key, SealCipher cipher, bool is_connector,
                   uint64_t records_per_key)
    : secrets_(MakeSecrets(key, cipher)),
      cipher_(cipher),
      out_(&secrets_[is_connector ? 0 : 1], cipher, records_per_key),
      in_(&secrets_[is_connector ? 1 : 0], cipher, records_per_key) {
  PREPOST_CHECK(cipher != SealCipher::kNone && records_per_key > 0);
}

LinkSeal::~LinkSeal() { sodium_free(secrets_); }

}  // namespace prepost
