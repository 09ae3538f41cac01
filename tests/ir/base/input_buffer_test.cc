// SPDX-License-Identifier: Apache-2.0
#include "ir/base/input_buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <istream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/support/temp_folder.h"

namespace prepost {
namespace {

std::string AllOf(InputBuffer& buffer) {
  std::istream in(&buffer);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What a program that shares the terminal or the pipe may have set. Catches a pause that is taken
// for the end.
TEST(InputBufferTest, WaitsWhereTheFileDoesNot) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  std::thread writer([&] {
    for (const char* const part : {"a", "bc", "d"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_GT(write(ends[1], part, std::char_traits<char>::length(part)), 0);
    }
    close(ends[1]);
  });
  InputBuffer buffer(ends[0]);
  EXPECT_EQ(AllOf(buffer), "abcd");
  EXPECT_EQ(buffer.error(), 0);
  writer.join();
  close(ends[0]);
}

// Catches an error that is taken for the end.
TEST(InputBufferTest, KnowsAnErrorFromTheEnd) {
  InputBuffer memory("/proc/self/mem");  // nothing is at address 0
  EXPECT_EQ(AllOf(memory), "");
  EXPECT_EQ(memory.error(), EIO);
  EXPECT_EQ(memory.status("m").ToString(), "m: cannot read: Input/output error");
  InputBuffer folder("/");
  EXPECT_EQ(AllOf(folder), "");
  EXPECT_EQ(folder.error(), EISDIR);
  InputBuffer missing("/no such file");
  EXPECT_EQ(missing.error(), ENOENT);
  InputBuffer end("/dev/null");
  EXPECT_EQ(AllOf(end), "");
  EXPECT_TRUE(end.status("n").ok());
}

// Catches a mark that becomes part of the first name, also where it comes in pieces, and a text
// that is too short to have one.
TEST(InputBufferTest, LeavesOutAByteOrderMark) {
  const test::TempFolder folder;
  for (const std::string text : {"", "a", "ab", "abc", "\xEF\xBB", "\xEF\xBB\xBF-"}) {
    for (const bool is_marked : {false, true}) {
      if (!is_marked && text.size() > 3) continue;
      std::ofstream(folder / "x") << (is_marked ? "\xEF\xBB\xBF" : "") << text;
      InputBuffer buffer(folder / "x");
      EXPECT_EQ(AllOf(buffer), text) << is_marked;
      std::istream in(&buffer);
      in.clear();
      in.seekg(0);
      EXPECT_TRUE(in.good());
      EXPECT_EQ(AllOf(buffer), text) << is_marked;
    }
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    for (const char byte : std::string("\xEF\xBB\xBFx")) {
      EXPECT_EQ(write(ends[1], &byte, 1), 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    close(ends[1]);
  });
  InputBuffer buffer(ends[0]);
  EXPECT_EQ(AllOf(buffer), "x");
  writer.join();
  close(ends[0]);
}

}  // namespace
}  // namespace prepost
