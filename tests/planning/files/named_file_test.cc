// SPDX-License-Identifier: Apache-2.0
#include "planning/files/named_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>

#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

// What another user of the folder can guess of a name, and plant there. Catches an output that is
// written through a link, over the file of another.
TEST(NamedFileTest, NothingIsWrittenThroughALinkOfATemporaryName) {
  const test::TempFolder folder;
  const std::string victim = folder / "victim", path = folder / "out";
  std::ofstream(victim) << "text";
  for (const std::string& name : {std::to_string(getpid()) + ".partial", std::string("partial")})
    std::filesystem::create_symlink(victim, path + "." + name);
  ASSERT_TRUE(CheckWritable(path).ok());
  ASSERT_TRUE(WriteFile(path, [](std::ostream& out) { out << "new"; }).ok());
  EXPECT_EQ(test::ReadText(victim), "text");
  EXPECT_EQ(test::ReadText(path), "new");
}

// Larger than what is kept back, a byte at a time and in one piece. Catches bytes that are lost or
// come twice, and files that are not there as a whole.
TEST(NamedFileTest, WritesAllOrNothing) {
  const test::TempFolder folder;
  std::string text;
  for (int i = 0; text.size() < 200'000; ++i) text += std::to_string(i) + "\n";
  const Status written = WriteFile(folder / "out", [&](std::ostream& out) {
    for (const char byte : text) out.put(byte);
    out << text;
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  });
  ASSERT_TRUE(written.ok()) << written.ToString();
  EXPECT_TRUE(test::ReadText(folder / "out") == text + text);
  const auto fail = [](std::ostream& out) { out.setstate(std::ios::badbit); };
  EXPECT_THAT(WriteFile(folder / "out", fail).ToString(), ::testing::HasSubstr("cannot write"));
  EXPECT_EQ(std::filesystem::file_size(folder / "out"), 2 * text.size());
  EXPECT_EQ(test::CountFiles(folder.path()), 1u);
}

}  // namespace
}  // namespace prepost
