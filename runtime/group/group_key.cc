// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/group_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <new>

#include "ir/base/count.h"
#include "runtime/base/file_descriptor.h"

namespace prepost {
namespace {

static_assert(crypto_auth_KEYBYTES == 32 && crypto_auth_BYTES == sizeof(MacBytes));

/// Keeps this use of a secret apart from any other that it may have. All nodes need the same salt,
/// and they have nothing in common but the secret before they talk.
constexpr std::string_view kSalt = "prepost group v1";
static_assert(kSalt.size() == crypto_pwhash_SALTBYTES);

const unsigned char* Data(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* Room(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

std::string_view WithoutLineEnd(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

Status CheckRandomness() {
  return sodium_init() < 0 ? EnvironmentError("this system gives no random numbers") : Status();
}

}  // namespace

/// What this process has derived and still has, by a hash of the secret that only it can compute,
/// with a key that is in no core dump.
class KeysInUse {
 public:
  /// Never destroyed: sessions may be opened while the process ends. A forked child has its own, as
  /// the parent's may be locked; null where that cannot be arranged.
  static KeysInUse* OfProcess() {
    static KeysInUse* of_process = new KeysInUse;
    static const bool is_for_children =
        pthread_atfork(nullptr, nullptr, [] { of_process = new KeysInUse; }) == 0;
    return is_for_children ? of_process : nullptr;
  }

  /// The key of `secret`, derived if it is not there.
  Result<GroupKey> KeyOf(std::string_view secret) {
    const std::lock_guard lock(mutex_);
    if (!hash_key_.ok()) return hash_key_;
    const MacBytes hash = hash_key_->Mac(std::as_bytes(std::span(secret)));
    std::erase_if(keys_, [](const auto& it) { return it.second.expired(); });
    std::weak_ptr<unsigned char>& known = keys_[hash];
    if (GroupKey key; (key.key_ = known.lock()) != nullptr) return key;
    Result<GroupKey> key = GroupKey::Derived(secret);
    if (key.ok()) known = key->key_;
    return key;
  }

 private:
  Result<GroupKey> hash_key_ = GroupKey::Fresh();
  std::mutex mutex_;
  std::map<MacBytes, std::weak_ptr<unsigned char>> keys_;
};

Result<GroupKey> GroupKey::FromSecret(std::string_view secret, const std::string& where) {
  PREPOST_RETURN_IF_ERROR(CheckRandomness());
  secret = WithoutLineEnd(secret);
  if (secret.size() < kSecretBytesMin || secret.size() > kSecretBytesMax) {
    return Rejected(fmt::format("the secret has {}{}, expected {} to {}",
                                secret.size() > kSecretBytesMax ? "more than " : "",
                                Count(std::min(secret.size(), kSecretBytesMax), "byte"),
                                kSecretBytesMin, kSecretBytesMax),
                    where);
  }
  KeysInUse* const keys = KeysInUse::OfProcess();
  return keys == nullptr ? Derived(secret) : keys->KeyOf(secret);
}

Result<GroupKey> GroupKey::Random() {
  PREPOST_RETURN_IF_ERROR(CheckRandomness());
  return Fresh();
}

Result<GroupKey> GroupKey::Fresh() {
  Result<GroupKey> key = Make();
  if (key.ok()) crypto_auth_keygen(key->key_.get());
  return key;
}

Result<GroupKey> GroupKey::Derived(std::string_view secret) {
  Result<GroupKey> key = Make();
  if (!key.ok()) return key;
  const auto salt = std::as_bytes(std::span(kSalt));
  if (crypto_pwhash(key->key_.get(), crypto_auth_KEYBYTES, secret.data(), secret.size(), Data(salt),
                    crypto_pwhash_OPSLIMIT_INTERACTIVE, crypto_pwhash_MEMLIMIT_INTERACTIVE,
                    crypto_pwhash_ALG_ARGON2ID13) != 0) {
    return EnvironmentError(fmt::format("no memory to derive a key from the secret, {} MiB",
                                        crypto_pwhash_MEMLIMIT_INTERACTIVE >> 20));
  }
  return key;
}

Result<GroupKey> GroupKey::FromFile(const std::string& path) {
  const auto failed = [&path](int error) {
    return SystemError(StatusCode::kRejected, fmt::format("cannot read secret file {}", path),
                       error);
  };
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about = {};
  if (!file.valid() || fstat(file.get(), &about) != 0) return failed(errno);
  if (!S_ISREG(about.st_mode)) {
    return Rejected(fmt::format("secret file {} is not a regular file", path));
  }
  if (about.st_uid != geteuid() && about.st_uid != 0) {
    return Rejected(fmt::format("secret file {} belongs to user {}, expected {} or root", path,
                                about.st_uid, geteuid()));
  }
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Rejected(fmt::format("secret file {} can be used by others (mode {:04o}): chmod 600 it",
                                path, about.st_mode & 07777));
  }
  // Room for a line's end, and for a byte more to see that the file is too long.
  std::array<char, kSecretBytesMax + 3> text;
  const ssize_t got = read(file.get(), text.data(), text.size());
  if (got < 0) return failed(errno);
  Result<GroupKey> key = FromSecret({text.data(), static_cast<size_t>(got)}, path);
  Wipe(text);
  return key;
}

/// Pages of its own, which libsodium locks where it may, leaves out of core dumps, and wipes.
Result<GroupKey> GroupKey::Make() {
  GroupKey key;
  key.key_.reset(static_cast<unsigned char*>(sodium_malloc(crypto_auth_KEYBYTES)), sodium_free);
  if (key.key_ == nullptr) return EnvironmentError("no memory for a key");
  return key;
}

GroupKey GroupKey::Derive(std::span<const std::byte> message) const {
  Result<GroupKey> derived = Make();
  if (!derived.ok()) throw std::bad_alloc();
  crypto_auth(derived->key_.get(), Data(message), message.size(), key_.get());
  return *std::move(derived);
}

MacBytes GroupKey::Mac(std::span<const std::byte> message) const {
  MacBytes mac;
  crypto_auth(Room(mac), Data(message), message.size(), key_.get());
  return mac;
}

bool GroupKey::Verify(const MacBytes& mac, std::span<const std::byte> message) const {
  return crypto_auth_verify(Data(mac), Data(message), message.size(), key_.get()) == 0;
}

void Wipe(std::span<char> secret) { sodium_memzero(secret.data(), secret.size()); }

NonceBytes RandomNonce() {
  NonceBytes nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

}  // namespace prepost
