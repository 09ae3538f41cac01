// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/message_sum.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/file_descriptor.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"

namespace prepost::message_sum_test {
namespace {

// The sum of nothing, as xxh128sum prints it: catches another variant, seed or byte order.
TEST(MessageSumTest, IsXxh3WithSeedZero) {
  EXPECT_EQ(SumMemory({})->ToString(), "99aa06d3014798d86001c324468d497f");
}

TEST(MessageSumTest, OfFileEqualsOfMemory) {
  const test::TempFolder folder;
  const std::vector<std::byte> bytes = test::RandomBytes((3u << 20) + 17);
  test::WriteBytes(folder / "file", bytes);
  const FileDescriptor file(open((folder / "file").c_str(), O_RDONLY));
  EXPECT_EQ(*SumFile(file.get(), bytes.size(), "file"), *SumMemory(bytes));
}

TEST(MessageSumTest, SaysWhereAFileWasCutShort) {
  const test::TempFolder folder;
  test::WriteBytes(folder / "file", test::RandomBytes(100));
  const FileDescriptor file(open((folder / "file").c_str(), O_RDONLY));
  EXPECT_THAT(SumFile(file.get(), 150, "copy").status().ToString(),
              ::testing::HasSubstr("copy was cut short meanwhile: it ends at byte 100"));
}

TEST(MessageSumTest, StopsAtACheckpoint) {
  const auto stop = [] { return Rejected("stop"); };
  EXPECT_EQ(SumMemory(test::RandomBytes(10), stop).status().message(), "stop");
}

}  // namespace
}  // namespace prepost::message_sum_test
