// SPDX-License-Identifier: Apache-2.0
#include "compiler/topology/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace prepost::host_list_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Expand(const std::string& text) {
  const Result<std::vector<std::string>> names = ExpandHostList(text, 1000);
  EXPECT_TRUE(names.ok()) << names.status().ToString();
  return names.ok() ? *names : std::vector<std::string>();
}

std::string ErrorOf(const std::string& text, size_t names_max = 1000) {
  const Result<std::vector<std::string>> names = ExpandHostList(text, names_max);
  return names.ok() ? "no error" : names.status().message();
}

// Lost zeros, commas taken for the wrong level, and combinations in the wrong order.
TEST(HostListTest, Expands) {
  EXPECT_THAT(Expand("a"), ElementsAre("a"));
  EXPECT_THAT(Expand("node[008-011],login"),
              ElementsAre("node008", "node009", "node010", "node011", "login"));
  EXPECT_THAT(Expand("tux[0-1,12,18-19]"), ElementsAre("tux0", "tux1", "tux12", "tux18", "tux19"));
  EXPECT_THAT(Expand("r[1-2]n[1-2]-ib"), ElementsAre("r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"));
}

TEST(HostListTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("a name is empty"));
  EXPECT_THAT(ErrorOf("a,,b"), HasSubstr("a name is empty"));
  EXPECT_THAT(ErrorOf("a[1-2"), HasSubstr("brackets do not match"));
  EXPECT_THAT(ErrorOf("a]1"), HasSubstr("brackets do not match"));
  EXPECT_THAT(ErrorOf("a[[1]]"), HasSubstr("brackets do not match"));
  EXPECT_THAT(ErrorOf("a[]"), HasSubstr("expected a number or a range"));
  EXPECT_THAT(ErrorOf("a[x-3]"), HasSubstr("expected a number or a range"));
  EXPECT_THAT(ErrorOf("a[3-1]"), HasSubstr("the range falls"));
  EXPECT_THAT(ErrorOf("a b"), HasSubstr("no blanks"));
  EXPECT_THAT(ErrorOf(std::string(300, 'a')), HasSubstr("at most 256 bytes"));
}

// A short text that asks for more memory than there is.
TEST(HostListTest, IsBounded) {
  EXPECT_EQ(Expand("a[1-1000]").size(), 1000u);
  EXPECT_THAT(ErrorOf("a[0-1000]"), HasSubstr("more than 1000 names"));
  EXPECT_THAT(ErrorOf("a[0-999999999]"), HasSubstr("more than 1000 names"));
  EXPECT_THAT(ErrorOf("a[1-999][1-999][1-999][1-999]"), HasSubstr("more than 1000 names"));
  EXPECT_THAT(ErrorOf("a[1-600],b[1-600]"), HasSubstr("more than 1000 names"));
  EXPECT_THAT(ErrorOf("a", 0), HasSubstr("more than 0 names"));
}

TEST(HostListTest, WritesRangesThatReadBack) {
  const auto written = [](const std::vector<std::string>& names) {
    const std::string text = WriteHostList(names);
    EXPECT_EQ(Expand(text), names) << text;
    return text;
  };
  EXPECT_EQ(written({"n001", "n002", "n003", "login"}), "n[001-003],login");
  EXPECT_EQ(written({"n8", "n9", "n10", "n11"}), "n[8-11]");
  EXPECT_EQ(written({"n08", "n09", "n10"}), "n[08-10]");
  EXPECT_EQ(written({"n08", "n9"}), "n08,n9");
  EXPECT_EQ(written({"n2", "n1"}), "n2,n1");
  EXPECT_EQ(written({"7", "8", "x"}), "[7-8],x");
  EXPECT_EQ(written({"a99999999999998", "a99999999999999"}), "a999999[99999998-99999999]");
}

}  // namespace
}  // namespace prepost::host_list_test
