// SPDX-License-Identifier: Apache-2.0
//
// The data of a page, read back by other code than wrote it; what a browser makes of it is
// page_test.py's.
#include "viz/page.h"

#include <gtest/gtest.h>
#include <sodium.h>
#include <zlib.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/plans.h"
#include "viz/page_columns.h"

namespace prepost::viz::page_test {
namespace {

struct Data {
  nlohmann::json head;
  std::map<std::string, std::vector<int64_t>> columns;
};

Data Unpack(const std::string& text) {
  std::vector<char> packed(text.size());
  size_t packed_bytes = 0;
  EXPECT_EQ(sodium_base642bin(reinterpret_cast<unsigned char*>(packed.data()), packed.size(),
                              text.data(), text.size(), nullptr, &packed_bytes, nullptr,
                              sodium_base64_VARIANT_ORIGINAL),
            0);
  packed.resize(packed_bytes);
  std::string raw(1 << 24, '\0');
  uLongf bytes = raw.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(raw.data()), &bytes,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  size_t at = 4;
  size_t head_bytes = 0;
  for (size_t i = 0; i < 4; ++i) head_bytes |= size_t{static_cast<uint8_t>(raw[i])} << (8 * i);
  Data data;
  data.head = nlohmann::json::parse(raw.substr(at, head_bytes));
  at += head_bytes;
  for (const auto& column : data.head["columns"]) {
    const size_t end = at + column["bytes"].get<size_t>();
    uint64_t last = 0;
    std::vector<int64_t>& values = data.columns[column["name"]];
    while (at < end) {
      uint64_t step = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<uint8_t>(raw[at++]);
        step |= uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) break;
      }
      last += (step >> 1) ^ (0 - (step & 1));
      values.push_back(static_cast<int64_t>(last));
    }
    EXPECT_EQ(at, end);
    EXPECT_EQ(values.size(), column["count"]);
  }
  EXPECT_EQ(at, bytes);
  return data;
}

TEST(PageColumnsTest, AnyNumbersComeBack) {
  const std::vector<int64_t> numbers = {
      0,   -1, 1,      std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), 63,
      -64, 64, 1 << 30};
  PageColumns columns;
  columns.Begin("empty");
  columns.Begin("all");
  for (const int64_t number : numbers) columns.Add(number);
  nlohmann::ordered_json head;
  head["columns"] = columns.Describe();
  Data data = Unpack(PackPage(head.dump(), columns));
  EXPECT_EQ(data.columns["all"], numbers);
  EXPECT_TRUE(data.columns["empty"].empty());
}

/// What stands between the quotes of the page's element.
std::string DataOf(const std::string& page) {
  const std::string begin = "<script id=\"prepost-data\" type=\"text/plain\">";
  const size_t at = page.find(begin);
  EXPECT_NE(at, std::string::npos);
  const size_t from = at + begin.size();
  return page.substr(from, page.find('<', from) - from);
}

TEST(PageTest, HoldsThePlanAndTheQueuesOfTheSelectedNode) {
  const VerifiedPlan plan = test::PlanOf(5, 6, "binomial_pipeline");
  PageOptions options;
  options.selection.nodes = {NodeId(3)};
  const std::string page = Page({{.label = "</script>.json", .plan = &plan}}, options);
  EXPECT_NE(page.find("<title>binomial_pipeline: 5 nodes"), std::string::npos);
  Data data = Unpack(DataOf(page));
  const auto& side = data.head["sides"][0];
  EXPECT_EQ(side["label"], "</script>.json");
  EXPECT_EQ(side["header"]["blocks"], 6);
  EXPECT_EQ(side["queues"].size(), 3 * 5u);
  EXPECT_EQ(side["queues"][0]["node"], 3);
  size_t op = 0, after = 0;
  for (const Program& program : plan.programs()) {
    for (size_t i = 0; i < program.op_count; ++i, ++op) {
      const Op& it = plan.ops()[op];
      EXPECT_EQ(data.columns["0.op.block"][op], it.is_credit() ? -1 : int64_t{it.block});
      EXPECT_EQ(data.columns["0.op.round"][op], it.round);
      for (const OpId before : plan.after(it))
        EXPECT_EQ(data.columns["0.after"][after++], static_cast<int64_t>(i - before.value));
    }
  }
  EXPECT_EQ(op, data.columns["0.op.block"].size());
  EXPECT_EQ(after, data.columns["0.after"].size());
}

// Catches marks in names that are taken for the page's, and nodes that only one side has.
TEST(PageTest, TakesTwoPlansOfOtherNamesAndSizes) {
  const VerifiedPlan large = test::PlanOf(6, 2, "chain");
  PlanHeader header = test::PlanOf(3, 2, "chain").header();
  header.algorithm = "@PREPOST_DATA@ @PREPOST_TITLE@ </script>";
  const VerifiedPlan small = Verified(test::PlanOf(3, 2, "chain").WithHeader(header)).value();
  PageOptions options;
  options.selection.nodes = {NodeId(5)};
  const std::string page = Page({{.plan = &small}, {.plan = &large}}, options);
  const Data data = Unpack(DataOf(page));
  EXPECT_EQ(data.head["sides"][0]["header"]["algorithm"], header.algorithm);
  EXPECT_EQ(data.head["sides"][0]["queues"].size(), 3 * 3u);
  EXPECT_EQ(data.head["sides"][1]["queues"].size(), 3 * 6u);
  EXPECT_EQ(page.find("<title>@PREPOST_DATA@ @PREPOST_TITLE@ &lt;/script"), page.find("<title>"));
}

// A root whose queues are too large leaves room for the others.
TEST(PageTest, SaysWhichQueuesItLacks) {
  const VerifiedPlan plan = test::PlanOf(20, 600, "sequential");
  const Data data = Unpack(DataOf(Page({{.plan = &plan}}, {})));
  const auto& side = data.head["sides"][0];
  EXPECT_NE(side["queues_note"].get<std::string>().find("30000 entries"), std::string::npos);
  EXPECT_GT(side["queues"].size(), 3 * 10u);
  EXPECT_EQ(side["queues"][0]["node"], 1);
}

}  // namespace
}  // namespace prepost::viz::page_test
