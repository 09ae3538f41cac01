// SPDX-License-Identifier: Apache-2.0
//
// A copy that is received into memory apart from its file: what is in which, and when.
#include "runtime/files/node_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/support/random_bytes.h"
#include "tests/support/temp_folder.h"

namespace prepost::node_buffer_test {
namespace {

constexpr size_t kBytes = 100'000;
constexpr NodeId kNode(1);

class NodeBufferTest : public ::testing::Test {
 protected:
  NodeBuffer Make(bool is_apart) {
    NodeBuffer buffer = NodeBuffer::Open(kNode, kBytes, &outputs_).value();
    if (is_apart) {
      EXPECT_TRUE(buffer.KeepApart().ok());
    }
    EXPECT_TRUE(buffer.Reserve().ok());
    std::ranges::copy(message_, buffer.bytes().begin());
    return buffer;
  }

  test::TempFolder folder_;
  const std::string path_ = folder_ / "copy";
  OutputSet outputs_ = OutputSet::CreateOne(kNode, path_).value();
  const std::vector<std::byte> message_ = test::RandomBytes(kBytes);
};

// Catches a copy that stays in memory, and one whose sum is not the file's.
TEST_F(NodeBufferTest, WhatIsKeptApartIsInTheFileWhenStored) {
  const MessageSum sum = SumMemory(message_).value();
  for (const bool is_apart : {false, true}) {
    NodeBuffer buffer = Make(is_apart);
    EXPECT_EQ(*buffer.Sum() == sum, !is_apart);
    EXPECT_TRUE(buffer.Store().ok());
    EXPECT_EQ(*buffer.Sum(), sum);
  }
}

// Catches memory that the file backs: touching it would end the process.
TEST_F(NodeBufferTest, AFileThatShrinksDoesNotHarmWhatIsKeptApart) {
  NodeBuffer buffer = Make(/*is_apart=*/true);
  ASSERT_EQ(ftruncate(buffer.fd(), 0), 0);
  std::ranges::reverse(buffer.bytes());
  EXPECT_EQ(buffer.bytes().front(), message_.back());
}

TEST_F(NodeBufferTest, ACopyWithoutAFileIsInMemoryAnyway) {
  NodeBuffer buffer = NodeBuffer::Open(kNode, kBytes, nullptr).value();
  EXPECT_TRUE(buffer.KeepApart().ok());
  EXPECT_TRUE(buffer.Reserve().ok());
  std::ranges::copy(message_, buffer.bytes().begin());
  EXPECT_TRUE(buffer.Store().ok());
  EXPECT_EQ(*buffer.Sum(), *SumMemory(message_));
  EXPECT_TRUE(buffer.is_sealed());
}

}  // namespace
}  // namespace prepost::node_buffer_test
