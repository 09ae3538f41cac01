// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/message_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"

namespace prepost::message_file_test {
namespace {

using test::TempFolder;
using ::testing::HasSubstr;

TEST(MappedInputTest, MapsAndSums) {
  const TempFolder folder;
  const std::vector<std::byte> bytes = test::RandomBytes(5000);
  test::WriteBytes(folder / "in", bytes);
  const Result<MappedInput> input = MappedInput::Open(folder / "in");
  ASSERT_TRUE(input.ok()) << input.status().ToString();
  EXPECT_TRUE(std::ranges::equal(input->bytes(), bytes));
  EXPECT_EQ(*input->Sum(), *SumMemory(bytes));
  EXPECT_TRUE(std::ranges::equal(input->Read()->bytes(), bytes));
  EXPECT_TRUE(input->CheckStillWhole().ok());
}

TEST(MappedInputTest, AcceptsAnEmptyFile) {
  const TempFolder folder;
  test::WriteBytes(folder / "in", {});
  const Result<MappedInput> input = MappedInput::Open(folder / "in");
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->size_bytes(), 0u);
}

// A FIFO without a writer: catches an open() that waits for ever.
TEST(MappedInputTest, RefusesWhatIsNoRegularFile) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(MappedInput::Open(folder / "fifo").status().message(),
              HasSubstr("fifo is a pipe, expected a regular file"));
  EXPECT_THAT(MappedInput::Open(folder.path()).status().message(),
              HasSubstr("is a folder, expected a regular file"));
  EXPECT_THAT(MappedInput::Open("/dev/null").status().message(), HasSubstr("is a device"));
  EXPECT_THAT(MappedInput::Open("/proc/self/status").status().message(),
              HasSubstr("is made by the kernel as it is read and has no size"));
  EXPECT_THAT(MappedInput::Open(folder / "none").status().message(),
              HasSubstr("none: No such file or directory"));
}

// Reading the mapping would be a SIGBUS here.
TEST(MappedInputTest, NoticesTruncation) {
  const TempFolder folder;
  test::WriteBytes(folder / "in", test::RandomBytes(20000));
  const Result<MappedInput> input = MappedInput::Open(folder / "in");
  ASSERT_TRUE(input.ok());
  ASSERT_EQ(truncate((folder / "in").c_str(), 100), 0);
  EXPECT_THAT(input->CheckStillWhole().message(), HasSubstr("has 100 bytes, expected 20000"));
  EXPECT_THAT(input->Read().status().message(), HasSubstr("ends at byte 100"));
  EXPECT_THAT(input->Sum().status().message(), HasSubstr("ends at byte 100"));
}

/// A copy of `bytes` at `path`, with its space reserved.
Result<PartialOutput> Reserved(const std::string& path, uint64_t bytes) {
  Result<PartialOutput> output = PartialOutput::Create(path, path);
  if (!output.ok()) return output;
  PREPOST_RETURN_IF_ERROR(output->Reserve(bytes));
  return output;
}

TEST(PartialOutputTest, HasItsSizeFromTheStartAndKeepsWhatIsWritten) {
  const TempFolder folder;
  Result<PartialOutput> output = Reserved(folder / "out", 5000);
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  const std::vector<std::byte> bytes = test::RandomBytes(5000);
  std::ranges::copy(bytes, output->bytes().begin());
  EXPECT_EQ(*output->Sum(), *SumMemory(bytes));
  EXPECT_EQ(test::ReadText(folder / "out").size(), 5000u);
}

// Writing through the mapping would be a SIGBUS here.
TEST(PartialOutputTest, WritesACopyAlsoWhenTheFileHasShrunk) {
  const TempFolder folder;
  Result<PartialOutput> output = Reserved(folder / "out", 20000);
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  ASSERT_EQ(truncate((folder / "out").c_str(), 100), 0);
  EXPECT_THAT(output->Sum().status().message(), HasSubstr("ends at byte 100"));
  const std::vector<std::byte> bytes = test::RandomBytes(20000);
  ASSERT_TRUE(output->Write(bytes).ok());
  EXPECT_EQ(*output->Sum(), *SumMemory(bytes));
}

TEST(PartialOutputTest, AWriteIsInterruptible) {
  const TempFolder folder;
  Result<PartialOutput> output = Reserved(folder / "out", 10);
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  const Status status = output->Write(test::RandomBytes(10), [] { return Rejected("stop"); });
  EXPECT_EQ(status.message(), "stop");
}

TEST(PartialOutputTest, DoesNotOverwrite) {
  const TempFolder folder;
  test::WriteBytes(folder / "out", test::RandomBytes(3));
  EXPECT_THAT(Reserved(folder / "out", 10).status().message(), HasSubstr("File exists"));
}

// More than any file system has: space must be refused before anything is received.
TEST(PartialOutputTest, ReservesSpace) {
  const TempFolder folder;
  const Result<PartialOutput> output = Reserved(folder / "out", uint64_t{1} << 62);
  EXPECT_THAT(output.status().message(), HasSubstr("cannot reserve 4611686018427387904 bytes"));
}

// Where the file system knows no files without names. Catches another's file that is renamed.
TEST(PartialOutputTest, NoticesAnotherFileUnderItsName) {
  const TempFolder folder;
  Result<PartialOutput> output = Reserved(folder / "out", 10);
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  EXPECT_TRUE(output->GiveName().ok());
  std::filesystem::rename(folder / "out", folder / "own");
  test::WriteBytes(folder / "out", test::RandomBytes(10));
  EXPECT_THAT(output->GiveName().message(), HasSubstr("was removed or replaced"));
  std::filesystem::remove(folder / "out");
  std::filesystem::create_symlink("own", folder / "out");
  EXPECT_THAT(output->GiveName().message(), HasSubstr("was removed or replaced"));
  std::filesystem::remove(folder / "out");
  EXPECT_THAT(output->GiveName().message(), HasSubstr("was removed or replaced"));
}

// Catches a file that would stay if its process were killed while it is received.
TEST(PartialOutputTest, AnUnnamedFileGetsItsNameInTheEnd) {
  const test::TempFolder folder;
  {
    Result<PartialOutput> output = PartialOutput::CreateUnnamed(folder / "copy", folder / "copy");
    ASSERT_TRUE(output.ok()) << output.status().ToString();
    ASSERT_TRUE(output->Reserve(10).ok());
    if (test::CountFiles(folder.path()) > 0) GTEST_SKIP() << "this file system has no O_TMPFILE";
    std::ranges::fill(output->bytes(), std::byte{'x'});
  }
  EXPECT_EQ(test::CountFiles(folder.path()), 0u);
  Result<PartialOutput> output = PartialOutput::CreateUnnamed(folder / "copy", folder / "copy");
  ASSERT_TRUE(output.ok() && output->Reserve(3).ok());
  std::ranges::fill(output->bytes(), std::byte{'x'});
  ASSERT_TRUE(output->GiveName().ok());
  EXPECT_EQ(test::ReadText(folder / "copy"), "xxx");
}

}  // namespace
}  // namespace prepost::message_file_test
