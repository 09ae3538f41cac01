// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/sealing/record_seal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/group/group_key.h"
#include "tests/support/random_bytes.h"

namespace prepost::record_seal_test {
namespace {

using Bytes = std::vector<std::byte>;

const GroupKey& Key() {
  static const GroupKey key = GroupKey::FromSecret("a secret of 20 bytes", "").value();
  return key;
}

class RecordSealTest : public testing::TestWithParam<SealCipher> {
 protected:
  void SetUp() override {
    Key();
    if ((SealCiphersHere() & BitOf(GetParam())) == 0)
      GTEST_SKIP() << "this CPU has no instructions for AES";
    connector_.emplace(Key(), GetParam(), /*is_connector=*/true);
    listener_.emplace(Key(), GetParam(), /*is_connector=*/false);
  }

  static Bytes Sealed(LinkSeal& seal, const Bytes& plain, const Bytes& open = {}) {
    Bytes record(plain.size() + kSealTagBytes);
    EXPECT_TRUE(seal.out().Seal(plain, open, record));
    return record;
  }
  /// What is in it; none: it is not opened, and nothing of it is there.
  static std::optional<Bytes> Opened(LinkSeal& seal, const Bytes& record, const Bytes& open = {}) {
    Bytes plain(record.size() - kSealTagBytes, std::byte{0x55});
    if (seal.in().Open(record, open, plain)) return plain;
    const bool is_empty = std::ranges::all_of(
        plain, [](std::byte byte) { return byte == std::byte{0} || byte == std::byte{0x55}; });
    EXPECT_TRUE(is_empty);
    return std::nullopt;
  }

  std::optional<LinkSeal> connector_, listener_;
};
INSTANTIATE_TEST_SUITE_P(Ciphers, RecordSealTest,
                         testing::Values(SealCipher::kChaCha20Poly1305, SealCipher::kAes256Gcm),
                         [](const auto& it) {
                           return it.param == SealCipher::kAes256Gcm ? "aes" : "chacha";
                         });

// Catches ways that are mixed up, numbers that differ between the ends, and a size that is not
// sealed.
TEST_P(RecordSealTest, BothWaysOpenWhatTheOtherEndHasSealed) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{4096}, size_t{65536}}) {
    const Bytes plain = test::RandomBytes(size, size);
    const Bytes said = test::RandomBytes(4, size);
    EXPECT_EQ(Opened(*listener_, Sealed(*connector_, plain, said), said), plain);
    EXPECT_EQ(Opened(*connector_, Sealed(*listener_, plain, said), said), plain);
  }
}

// Catches a nonce or a key that is used twice: then the same contents would look the same.
TEST_P(RecordSealTest, TheSameContentsNeverLookTheSame) {
  const Bytes plain(48, std::byte{7});
  LinkSeal often(Key(), GetParam(), /*is_connector=*/true, /*records_per_key=*/3);
  std::set<Bytes> seen;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(seen.insert(Sealed(*connector_, plain)).second);
    EXPECT_TRUE(seen.insert(Sealed(*listener_, plain)).second);
    // As its first key is that of the other connector, only the first three are those of that one.
    EXPECT_EQ(seen.insert(Sealed(often, plain)).second, i >= 3);
  }
}

TEST_P(RecordSealTest, EveryBitOfARecordCounts) {
  const Bytes plain = test::RandomBytes(40, 1);
  const Bytes said = test::RandomBytes(4, 2);
  const Bytes record = Sealed(*connector_, plain, said);
  for (size_t bit = 0; bit < 8 * (said.size() + record.size()); ++bit) {
    LinkSeal listener(Key(), GetParam(), /*is_connector=*/false);
    Bytes damaged = record, open = said;
    Bytes& half = bit / 8 < said.size() ? open : damaged;
    half[bit / 8 - (&half == &open ? 0 : said.size())] ^= std::byte(1 << (bit % 8));
    EXPECT_FALSE(Opened(listener, damaged, open)) << bit;
    EXPECT_FALSE(Opened(listener, record, said)) << "after damage";
  }
  EXPECT_EQ(Opened(*listener_, record, said), plain);
}

TEST_P(RecordSealTest, NothingIsOpenedThatIsCutOrLonger) {
  const Bytes record = Sealed(*connector_, test::RandomBytes(40, 1));
  for (size_t size = kSealTagBytes; size <= record.size() + 2; ++size) {
    if (size == record.size()) continue;
    LinkSeal listener(Key(), GetParam(), /*is_connector=*/false);
    Bytes cut = record;
    cut.resize(size);
    EXPECT_FALSE(Opened(listener, cut)) << size;
  }
}

TEST_P(RecordSealTest, RecordsAreOpenedInTheirOrderAndOnce) {
  std::vector<Bytes> records;
  for (uint64_t i = 0; i < 4; ++i) records.push_back(Sealed(*connector_, test::RandomBytes(20, i)));
  const auto opens = [&](std::initializer_list<size_t> order) {
    LinkSeal listener(Key(), GetParam(), /*is_connector=*/false);
    size_t opened = 0;
    for (const size_t record : order) opened += Opened(listener, records[record]) ? 1U : 0U;
    return opened;
  };
  EXPECT_EQ(opens({0, 1, 2, 3}), 4u);
  EXPECT_EQ(opens({0, 0, 1}), 1u) << "repeated";
  EXPECT_EQ(opens({0, 2, 3}), 1u) << "left out";
  EXPECT_EQ(opens({0, 2, 1, 3}), 1u) << "reordered";
  EXPECT_EQ(opens({1, 0}), 0u) << "reordered";
}

// Catches ways with one key, ends that are taken for each other, and connections with one key.
TEST_P(RecordSealTest, NothingIsOpenedThatIsOfAnotherWayOrConnection) {
  EXPECT_FALSE(Opened(*connector_, Sealed(*connector_, Bytes(20)))) << "sent back";
  const GroupKey other = Key().Derive(std::as_bytes(std::span("another")));
  LinkSeal elsewhere(other, GetParam(), /*is_connector=*/false);
  EXPECT_FALSE(Opened(elsewhere, Sealed(*listener_, Bytes(20))));
  if ((SealCiphersHere() & BitOf(SealCipher::kAes256Gcm)) == 0) return;
  const SealCipher another =
      GetParam() == SealCipher::kAes256Gcm ? SealCipher::kChaCha20Poly1305 : SealCipher::kAes256Gcm;
  LinkSeal by_another(Key(), another, /*is_connector=*/false);
  EXPECT_FALSE(Opened(by_another, Sealed(*connector_, Bytes(20))));
}

// Both ends come to the next key at the same record; catches a chain that stands still, too.
TEST_P(RecordSealTest, KeysAreChangedAndForgotten) {
  LinkSeal connector(Key(), GetParam(), /*is_connector=*/true, /*records_per_key=*/2);
  LinkSeal listener(Key(), GetParam(), /*is_connector=*/false, /*records_per_key=*/2);
  for (uint64_t i = 0; i < 9; ++i) {
    const Bytes plain = test::RandomBytes(30, i);
    const Bytes record = Sealed(connector, plain);
    const Bytes of_first_key = Sealed(*connector_, plain);
    EXPECT_EQ(record == of_first_key, i < 2);
    EXPECT_EQ(Opened(listener, record), plain);
  }
}

// Catches an end that takes what the other does not have.
TEST(RecordSealChoiceTest, TheBestCipherThatBothHave) {
  Key();
  constexpr SealCiphers kChaCha = BitOf(SealCipher::kChaCha20Poly1305);
  EXPECT_EQ(BestCipher(kAllSealCiphers, kAllSealCiphers), SealCipher::kAes256Gcm);
  EXPECT_EQ(BestCipher(kAllSealCiphers, kChaCha), SealCipher::kChaCha20Poly1305);
  EXPECT_EQ(BestCipher(kChaCha, kAllSealCiphers), SealCipher::kChaCha20Poly1305);
  EXPECT_EQ(BestCipher(kAllSealCiphers, 0), SealCipher::kNone);
  EXPECT_EQ(SealCiphersHere() & kChaCha, kChaCha);
}

}  // namespace
}  // namespace prepost::record_seal_test
