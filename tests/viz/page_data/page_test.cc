// SPDX-License-Identifier: Apache-2.0
//
// The data of a page, read back by other code than wrote it; what a browser makes of it is
// page_test.py's.
#include "viz/page_data/page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sodium.h>
#include <zlib.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backends/nic/program/lower.h"
#include "backends/triggered/deferred_program.h"
#include "tests/support/plans.h"
#include "viz/page_data/page_columns.h"
#include "viz/page_data/page_queues.h"
#include "viz/page_data/page_run.h"
#include "viz/queues/queue_contents.h"

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
      if (column.contains("plain")) last = 0;
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
  PageColumns more;
  more.Begin("plain", PageColumns::Coding::kPlain);
  for (const int64_t number : numbers) more.Add(number);
  columns.Append(more);
  nlohmann::ordered_json head;
  head["columns"] = columns.Describe();
  Data data = Unpack(PackPage(head.dump(), columns));
  EXPECT_EQ(data.columns["all"], numbers);
  EXPECT_EQ(data.columns["plain"], numbers);
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
  EXPECT_EQ(data.columns["0.queues.node"].size(), 3 * 5u);
  EXPECT_EQ(data.columns["0.queues.node"][0], 3);
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
  EXPECT_EQ(data.columns.at("0.queues.node").size(), 3 * 3u);
  EXPECT_EQ(data.columns.at("1.queues.node").size(), 3 * 6u);
  EXPECT_EQ(page.find("<title>@PREPOST_DATA@ @PREPOST_TITLE@ &lt;/script"), page.find("<title>"));
}

// Catches members that are taken for helpers, parts of an alltoall by the wrong end, sizes of
// blocks by the largest part, and queues that collectives have not.
TEST(PageTest, HoldsWhoHasWhatOfEveryCollective) {
  test::Random random(test::TestSeed());
  std::set<std::pair<CollectiveKind, std::string>> seen;
  std::set<CollectiveKind> kinds;
  std::vector<Spec> specs = test::SpecsOfCollectives({.nodes_max = 4, .blocks_max = 2});
  std::erase_if(specs,
                [](const Spec& it) { return it.nodes != 4 || it.message_bytes <= it.block_bytes; });
  for (const Spec& spec : test::WithUnevenParts(std::move(specs), random)) {
    kinds.insert(spec.collective);
    if (!seen.insert({spec.collective, spec.algorithm}).second) continue;
    const VerifiedPlan plan = test::CompileOrDie(spec);
    const PlanHeader& header = plan.header();
    SCOPED_TRACE(Headline(header));
    Data data = Unpack(DataOf(Page({{.plan = &plan}}, {})));
    const auto& side = data.head["sides"][0];
    EXPECT_EQ(side["collective"]["kind"], Name(header.collective.kind));
    EXPECT_EQ(side["collective"]["root"].is_null(), !HasRoot(header.collective.kind));
    EXPECT_EQ(side["collective"]["combine"].is_null(), header.combine.is_none());
    EXPECT_TRUE(data.columns["0.queues.node"].empty());
    EXPECT_NE(side["queues_note"].get<std::string>().find("takes plans of multicasts"),
              std::string::npos);
    const auto has = [&](const char* rows, uint32_t node, uint32_t part) {
      const std::string name = fmt::format("0.node.{}", rows);
      const auto at = [&](const char* field) { return data.columns[name + field].at(node); };
      for (int64_t i = 0; i < at(".count"); ++i)
        if (at(".first") + i * at(".step") == part) return true;
      return false;
    };
    const Roles roles = header.roles();
    for (uint32_t block = 0; block < header.payload.blocks; ++block) {
      EXPECT_EQ(data.columns["0.block.bytes"].at(block), header.payload.BlockSize(block));
      for (uint32_t node = 0; node < header.nodes; ++node) {
        const uint32_t part = roles.PartOf(block);
        EXPECT_EQ(has("has", node, part), roles.Contributes(NodeId(node), block));
        EXPECT_EQ(has("wants", node, part), roles.Wants(NodeId(node), block));
      }
    }
    ASSERT_EQ(data.columns["0.op.combine"].size(),
              header.combine.is_none() ? 0 : plan.ops().size());
    for (size_t op = 0; op < data.columns["0.op.combine"].size(); ++op)
      EXPECT_EQ(data.columns["0.op.combine"][op], plan.ops()[op].is_combine());
  }
  EXPECT_EQ(kinds.size(), 7u);  // a barrier has no bytes
  const VerifiedPlan multicast = test::PlanOf(4, 2, "chain");
  const Data data = Unpack(DataOf(Page({{.plan = &multicast}}, {})));
  EXPECT_TRUE(data.head["sides"][0]["collective"].is_null());
  EXPECT_FALSE(data.columns.contains("0.node.has.first"));
}

/// What a page says of an entry of a queue, as text.
std::string TextOf(const DrawnEntry& entry) {
  const auto place = [](const std::optional<QueuePlace>& it) {
    return it ? fmt::format("{}.{}", it->queue, it->index) : "-";
  };
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", entry.css_class, entry.what, entry.detail,
                     entry.fields, entry.op ? int64_t{entry.op->value} : -1, place(entry.waits_for),
                     place(entry.enables), entry.rearm);
}
std::vector<std::string> TextsOf(const std::vector<DrawnQueue>& queues) {
  std::vector<std::string> texts;
  for (const DrawnQueue& queue : queues) {
    texts.push_back(TextOf({.css_class = "queue", .what = queue.title, .detail = queue.detail}));
    for (const DrawnEntry& entry : queue.entries) texts.push_back(TextOf(entry));
  }
  return texts;
}

/// The entries of the `part`-th node and engine, as the page holds them.
std::vector<std::string> EntriesOf(Data* data, size_t part) {
  const auto forms = data->head["sides"][0]["forms"].get<std::vector<std::string>>();
  const auto& steps = data->columns["0.queues.steps"];
  const auto form_at = [&](size_t at) -> const std::string& {
    return forms[static_cast<size_t>(steps[at])];
  };
  const auto numbers_of = [&](const std::string& form) {
    size_t count = 0;
    const size_t marks = form.rfind('\n');
    for (size_t i = 0; i < form.size(); ++i) {
      if (i < marks) count += form[i] == kFormNumber || form[i] == kFormHex ? 1u : 0u;
      if (i > marks) count += form[i] == 'w' || form[i] == 'e' ? 2u : 1u;
    }
    return count;
  };
  std::vector<size_t> begin;
  for (size_t at = 0; at < steps.size(); at += 1 + numbers_of(form_at(at))) begin.push_back(at);
  size_t first = 0;
  for (size_t i = 0; i < part; ++i)
    first += static_cast<size_t>(data->columns["0.queues.count"][i]);
  std::map<int64_t, std::vector<int64_t>> last;
  std::vector<std::string> texts;
  const auto count = static_cast<size_t>(data->columns["0.queues.count"][part]);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = begin[static_cast<size_t>(data->columns["0.queues.entries"][first + i])];
    const std::string& form = form_at(at);
    std::vector<int64_t>& numbers = last[steps[at]];
    numbers.resize(numbers_of(form));
    for (size_t k = 0; k < numbers.size(); ++k) numbers[k] += steps[at + 1 + k];
    size_t next = 0;
    std::string text;
    const size_t marks = form.rfind('\n');
    for (const char c : form.substr(0, marks)) {
      text += c == kFormNumber ? std::to_string(numbers[next++])
              : c == kFormHex  ? fmt::format("{:08x}", numbers[next++])
              : c == '\n'      ? "|"
                               : std::string(1, c);
    }
    std::string op = "-1", waits = "-", enables = "-", rearm = "0";
    for (const char mark : form.substr(marks + 1)) {
      std::string& it = mark == 'o' ? op : mark == 'w' ? waits : mark == 'e' ? enables : rearm;
      it = std::to_string(numbers[next++]);
      if (mark == 'w' || mark == 'e') it += "." + std::to_string(numbers[next++]);
    }
    texts.push_back(fmt::format("{}|{}|{}|{}|{}", text, op, waits, enables, rearm));
  }
  return texts;
}

// Catches numbers that are written as another form's, and texts that do not come back as they were.
TEST(PageTest, QueuesComeBack) {
  for (const char* const algorithm : {"binomial_pipeline", "two_tree", "scatter_allgather"}) {
    const VerifiedPlan plan = test::PlanOf(9, 20, algorithm);
    Data data = Unpack(DataOf(Page({{.plan = &plan}}, {})));
    nic::LowerOptions lower;
    for (uint32_t node = 0; node < 9; ++node) {
      const Selection whole = {.nodes = {NodeId(node)}};
      lower.node = NodeId(node);
      const auto nic = nic::Lower(plan, lower);
      ASSERT_TRUE(nic.ok()) << nic.status().message();
      const auto deferred = triggered::LowerDeferred(plan, NodeId(node));
      ASSERT_TRUE(deferred.ok()) << deferred.status().message();
      EXPECT_EQ(EntriesOf(&data, 3 * node),
                TextsOf(QueuesOfNic(plan, whole, nic->nodes.front(), /*has_fields=*/true)));
      EXPECT_EQ(EntriesOf(&data, 3 * node + 1),
                TextsOf(QueuesOfDeferredWork(plan, whole, *deferred)));
      EXPECT_EQ(EntriesOf(&data, 3 * node + 2), TextsOf(QueuesOfCpu(plan, whole, NodeId(node))));
    }
  }
}

TEST(EntryCoderTest, TakesNumbersOutOfTextsThatComeBack) {
  EntryCoder coder;
  coder.Begin();
  const uint32_t step = coder.Step({.css_class = "x",
                                    .what = "b7 007 12a 1234567890123456 [0, 5) a1b",
                                    .fields = "imm 0000001f imm 12"});
  EXPECT_EQ(coder.forms()[0], "x\nb\1 007 12a 1234567890123456 [\1, \1) a1b\n\nimm \2 imm \1\n");
  EXPECT_EQ(coder.steps()[step], (std::vector<int64_t>{0, 7, 0, 5, 31, 12}));
}

// A root whose queues are too large leaves room for the others.
TEST(PageTest, SaysHowManyNodesItHasNoRoomFor) {
  const VerifiedPlan plan = test::PlanOf(20, 600, "sequential");
  Data data = Unpack(DataOf(Page({{.plan = &plan}}, {.entries_max = 30000})));
  const std::string note = data.head["sides"][0]["queues_note"];
  const auto& nodes = data.columns["0.queues.node"];
  EXPECT_NE(note.find(fmt::format("{} of the 20 nodes", 20 - nodes.size() / 3)), std::string::npos)
      << note;
  EXPECT_GT(nodes.size(), 3 * 10u);
  EXPECT_EQ(nodes[0], 1);
}

// Times are rounded until they have room, and not before.
TEST(PageRunTest, RoundsTimesThatHaveNoRoom) {
  const VerifiedPlan plan = test::PlanOf(9, 40, "binomial_pipeline");
  Result<RunTrace> trace = RunTrace::Make(plan);
  ASSERT_TRUE(trace.ok());
  trace->start_ns = 1'000'000'000;
  std::mt19937_64 random(1);
  for (const Program& program : plan.programs()) {
    for (OpTimes& op : trace->times(program.node)) {
      for (uint64_t OpTimes::*time :
           {&OpTimes::posted_ns, &OpTimes::started_ns, &OpTimes::completed_ns})
        op.*time = trace->start_ns + random() % 1'000'000;
    }
  }
  const PlanTables tables(plan);
  const PageRun run = {.label = "x", .trace = &*trace, .info = {.executor = "cpu", .detail = ""}};
  PageColumns exact, rounded;
  EXPECT_EQ(AddPageRun(tables, run, "", 1u << 20, &exact), 1u);
  const size_t half = PackedBytes(exact) / 2;
  EXPECT_GT(AddPageRun(tables, run, "", half, &rounded), 1u);
  EXPECT_LE(PackedBytes(rounded), half);
}

}  // namespace
}  // namespace prepost::viz::page_test
