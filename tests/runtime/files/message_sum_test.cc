// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/message_sum.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/base/file_descriptor.h"
#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"

namespace prepost::message_sum_test {
namespace {

std::vector<std::byte> BytesOf(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// The sums of nothing and of "abc", as `b2sum -l 256` prints them: catches another function, length
// or key.
TEST(MessageSumTest, IsWhatB2sumPrints) {
  EXPECT_EQ(SumMemory({})->ToString(),
            "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(SumMemory(std::as_bytes(std::span(std::string_view("abc"))))->ToString(),
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
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
  const test::TempFolder folder;
  test::WriteBytes(folder / "file", test::RandomBytes(10));
  const FileDescriptor file(open((folder / "file").c_str(), O_RDONLY));
  EXPECT_EQ(SumFile(file.get(), 10, "file", stop).status().message(), "stop");
}

// By another implementation (hashlib of Python, person=b"prepost sparse"): the documented form.
TEST(MessageSumTest, OfAFileWithHolesIsAsDocumented) {
  const std::vector<FileExtent> extents = {{1, 2}, {5, 3}};
  RunningSum sum(10, extents);
  sum.Add(BytesOf({1, 2, 5}));
  sum.Add(BytesOf({6, 7}));
  EXPECT_EQ(sum.Get().ToString(),
            "c18fed0839b3d90481130943c08b87ede962995d6c3318c6d7d5e1e4931b5ec7");
}

// A table that covers all of a file has no hole, in one piece or more.
TEST(MessageSumTest, WithoutHolesTheTableDoesNotCount) {
  const std::vector<std::byte> bytes = test::RandomBytes(8);
  for (const std::vector<FileExtent>& extents :
       std::vector<std::vector<FileExtent>>{{{0, 8}}, {{0, 3}, {3, 5}}}) {
    RunningSum sum(8, extents);
    sum.Add(bytes);
    EXPECT_EQ(sum.Get(), *SumMemory(bytes));
  }
  EXPECT_EQ(RunningSum(0, {}).Get(), *SumMemory({}));
}

// The same data elsewhere, in another file, or with the table in front of it in a file without
// holes is another sum. Catches a table that is left out, or that can be told as data.
TEST(MessageSumTest, TheTableCounts) {
  const std::vector<std::byte> data = test::RandomBytes(8);
  std::set<std::string> sums;
  size_t count = 0;
  const auto add = [&](uint64_t bytes, const std::vector<FileExtent>& extents) {
    RunningSum sum(bytes, extents);
    sum.Add(data);
    sums.insert(sum.Get().ToString());
    ++count;
  };
  add(8, {{0, 8}});
  add(9, {{0, 8}});
  add(9, {{1, 8}});
  add(10, {{1, 8}});
  add(10, {{0, 4}, {5, 4}});
  add(10, {{0, 4}, {6, 4}});
  add(10, {{0, 5}, {6, 3}});
  std::vector<std::byte> table(32);
  table[0] = std::byte{9};
  table[8] = std::byte{1};
  table[24] = std::byte{8};
  table.insert(table.end(), data.begin(), data.end());
  sums.insert(SumMemory(table)->ToString());
  EXPECT_EQ(sums.size(), count + 1);
}

// 1 TiB of which hardly anything is data. Catches holes that are read or hashed, which takes
// minutes.
TEST(MessageSumTest, HolesCostNothing) {
  constexpr uint64_t kBytes = uint64_t{1} << 40;
  const test::TempFolder folder;
  const std::vector<std::byte> data = test::RandomBytes(4096);
  test::WriteBytes(folder / "file", data);
  const FileDescriptor file(open((folder / "file").c_str(), O_RDWR));
  ASSERT_EQ(ftruncate(file.get(), kBytes), 0);
  ASSERT_TRUE(WriteExactly(file.get(), kBytes - data.size(), data, "file").ok());
  const std::vector<FileExtent> extents = {{0, data.size()}, {kBytes - data.size(), data.size()}};
  size_t checks = 0;
  const auto count = [&] {
    ++checks;
    return Status();
  };
  const Result<MessageSum> sum = SumFile(file.get(), kBytes, extents, "file", count);
  ASSERT_TRUE(sum.ok()) << sum.status().ToString();
  RunningSum expected(kBytes, extents);
  expected.Add(data);
  expected.Add(data);
  EXPECT_EQ(*sum, expected.Get());
  EXPECT_EQ(checks, 2u);
}

}  // namespace
}  // namespace prepost::message_sum_test
