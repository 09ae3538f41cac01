// SPDX-License-Identifier: Apache-2.0
#include "ir/base/status.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace prepost::status_test {
namespace {

TEST(StatusTest, SaysWhatAndWhereAndSoDoItsCopies) {
  const Status ok;
  EXPECT_TRUE(ok.ok());
  EXPECT_EQ(ok.code(), StatusCode::kOk);
  EXPECT_EQ(ok.ToString(), "");

  Status copy;
  {
    const Status error(StatusCode::kEnvironment, "no room", "/block_bytes");
    copy = error;
  }
  EXPECT_FALSE(copy.ok());
  EXPECT_EQ(copy.code(), StatusCode::kEnvironment);
  EXPECT_EQ(copy.message(), "no room");
  EXPECT_EQ(copy.where(), "/block_bytes");
  EXPECT_EQ(copy.ToString(), "/block_bytes: no room");
  EXPECT_EQ(Rejected("too many").ToString(), "too many");
  copy = Status();
  EXPECT_TRUE(copy.ok());
}

// Ok has no words: whoever means it must not give any, and a Result must not be made of it.
TEST(StatusDeathTest, AnErrorIsNotOk) {
  EXPECT_DEATH(static_cast<void>(Status(StatusCode::kOk, "well")), "kOk");
  EXPECT_DEATH(static_cast<void>(Result<int>(Status())), "ok");
}

}  // namespace
}  // namespace prepost::status_test
