// SPDX-License-Identifier: Apache-2.0
#include "runtime/group/group_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <span>
#include <string>

#include "tests/support/temp_folder.h"

namespace prepost::group_key_test {
namespace {

using ::testing::HasSubstr;

MacBytes MacOf(const Result<GroupKey>& key) {
  const std::array<std::byte, 3> message = {std::byte{1}, std::byte{2}, std::byte{3}};
  return key.value().Mac(message);
}

class GroupKeyTest : public ::testing::Test {
 protected:
  std::string File(const std::string& text, mode_t mode) {
    const std::string path = folder_ / "secret";
    test::WriteBytes(path, std::as_bytes(std::span(text)));
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  test::TempFolder folder_;
};

/// Mappings of this process that no core dump has.
size_t NotDumped() {
  std::ifstream maps("/proc/self/smaps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.starts_with("VmFlags:") && line.find(" dd") != std::string::npos) ++count;
  return count;
}

TEST_F(GroupKeyTest, IsInNoCoreDump) {
  const size_t before = NotDumped();
  const Result<GroupKey> key = GroupKey::FromSecret("0123456789abcdef", "");
  ASSERT_TRUE(key.ok());
  EXPECT_GT(NotDumped(), before);
  const size_t with_key = NotDumped();
  const GroupKey derived = key->Derive({});
  EXPECT_GT(NotDumped(), with_key);
}

// Catches a key that is derived for each of a process's sessions, and one that stays when all have
// let go of it.
TEST_F(GroupKeyTest, OneSecretIsOneKeyWhileItIsThere) {
  ASSERT_TRUE(GroupKey::FromSecret("the first of the process", "").ok());
  const size_t before = NotDumped();
  {
    const Result<GroupKey> key = GroupKey::FromSecret("0123456789abcdef", "");
    const size_t with_key = NotDumped();
    const Result<GroupKey> same = GroupKey::FromSecret("0123456789abcdef\n", "");
    EXPECT_EQ(NotDumped(), with_key);
    EXPECT_EQ(MacOf(same), MacOf(key));
    const Result<GroupKey> other = GroupKey::FromSecret("0123456789abcdeF", "");
    EXPECT_GT(NotDumped(), with_key);
  }
  EXPECT_EQ(NotDumped(), before);
}

TEST_F(GroupKeyTest, DerivedKeysDiffer) {
  const Result<GroupKey> key = GroupKey::FromSecret("0123456789abcdef", "");
  const std::array<std::byte, 1> one = {std::byte{1}}, two = {std::byte{2}};
  EXPECT_EQ(key->Derive(one).Mac(two), key->Derive(one).Mac(two));
  EXPECT_NE(key->Derive(one).Mac(two), key->Derive(two).Mac(two));
  EXPECT_NE(key->Derive(one).Mac(two), key->Mac(two));
}

// Catches a file's line end that makes another key than the environment's same secret.
TEST_F(GroupKeyTest, IsTheSameFromAFileAndFromTheEnvironment) {
  const MacBytes expected = MacOf(GroupKey::FromSecret("0123456789abcdef", ""));
  EXPECT_EQ(MacOf(GroupKey::FromFile(File("0123456789abcdef\n", 0600))), expected);
  EXPECT_EQ(MacOf(GroupKey::FromFile(File("0123456789abcdef\r\n", 0400))), expected);
  EXPECT_NE(MacOf(GroupKey::FromSecret("0123456789abcdeg", "")), expected);
}

TEST_F(GroupKeyTest, VerifiesOnlyItsOwn) {
  const GroupKey key = GroupKey::FromSecret("0123456789abcdef", "").value();
  const std::array<std::byte, 1> message = {std::byte{7}};
  MacBytes mac = key.Mac(message);
  EXPECT_TRUE(key.Verify(mac, message));
  mac[31] ^= std::byte{1};
  EXPECT_FALSE(key.Verify(mac, message));
}

TEST_F(GroupKeyTest, RefusesShortAndLongSecrets) {
  EXPECT_EQ(GroupKey::FromSecret("0123456789abcde\n", "X").status().ToString(),
            "X: the secret has 15 bytes, expected 16 to 4096");
  EXPECT_EQ(GroupKey::FromFile(File(std::string(5000, 'x'), 0600)).status().message(),
            "the secret has more than 4096 bytes, expected 16 to 4096");
  EXPECT_TRUE(GroupKey::FromFile(File(std::string(4096, 'x') + "\r\n", 0600)).ok());
}

TEST_F(GroupKeyTest, RefusesFilesThatOthersCanUse) {
  for (const mode_t mode : {0640u, 0604u, 0620u, 0610u}) {
    EXPECT_THAT(GroupKey::FromFile(File("0123456789abcdef", mode)).status().message(),
                HasSubstr("can be used by others"))
        << mode;
  }
  EXPECT_THAT(GroupKey::FromFile(folder_ / "none").status().message(),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(GroupKey::FromFile(folder_.path()).status().message(),
              HasSubstr("not a regular file"));
}

// One that another user can write, whatever its mode says.
TEST_F(GroupKeyTest, RefusesFilesOfOthers) {
  const std::string path = File("0123456789abcdef", 0600);
  if (chown(path.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root gives files away";
  EXPECT_EQ(GroupKey::FromFile(path).status().message(),
            "secret file " + path + " belongs to user 65534, expected 0 or root");
}

}  // namespace
}  // namespace prepost::group_key_test
