// SPDX-License-Identifier: Apache-2.0
#include "ir/json/json_writer.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace prepost::json_writer_test {
namespace {

using Style = JsonWriter::Style;

std::string Written(Style style, const std::function<void(JsonWriter&)>& write) {
  std::ostringstream out;
  {
    JsonWriter json(out, style);
    write(json);
  }
  return out.str();
}

void WriteSome(JsonWriter& json) {
  json.BeginObject().Format("prepost.x", 1, 2);
  json.Line(2).Key("list").BeginArray().Value(1u).Value(-2).Literal("0.5").EndArray();
  json.Key("none").BeginArray().EndArray().Key("empty").BeginObject().EndObject();
  json.Key("rows").BeginArray();
  for (const char* name : {"a", "b"}) json.Line(4).BeginObject().Field("name", name).EndObject();
  json.Line(0).EndArray();
  json.Key("objects").BeginArray();
  for (const uint32_t n : {1u, 2u}) json.BeginObject().Line(2).Field("n", n).EndObject();
  json.EndArray().EndObject();
}

TEST(JsonWriterTest, LinesBreakWhereTheyAreAskedForAndBlanksAreTheStyles) {
  EXPECT_EQ(Written(Style::kSpaced, WriteSome),
            "{ \"format\": \"prepost.x\", \"version\": \"1.2\",\n"
            "  \"list\": [1, -2, 0.5], \"none\": [], \"empty\": {}, \"rows\": [\n"
            "    { \"name\": \"a\" },\n"
            "    { \"name\": \"b\" }\n"
            "], \"objects\": [{\n"
            "  \"n\": 1 }, {\n"
            "  \"n\": 2 }] }\n");
  EXPECT_EQ(Written(Style::kCompact, WriteSome),
            "{\"format\":\"prepost.x\",\"version\":\"1.2\",\n"
            "  \"list\":[1,-2,0.5],\"none\":[],\"empty\":{},\"rows\":[\n"
            "    {\"name\":\"a\"},\n"
            "    {\"name\":\"b\"}\n"
            "],\"objects\":[{\n"
            "  \"n\":1},{\n"
            "  \"n\":2}]}\n");
}

TEST(JsonWriterTest, ColumnsHaveNoBlanksAndMayHaveNulls) {
  const std::vector<uint32_t> numbers = {0, 4294967295, 7};
  const auto write = [&](JsonWriter& json) {
    json.BeginArray().Numbers(numbers, std::identity());
    json.Numbers(numbers, [](uint32_t it) { return it == 0 ? std::nullopt : std::optional(it); });
    json.Numbers(std::vector<uint64_t>{}, std::identity()).EndArray();
  };
  EXPECT_EQ(Written(Style::kSpaced, write), "[[0,4294967295,7], [null,4294967295,7], []]\n");
}

TEST(JsonWriterTest, StringsAreReadAsTheyWere) {
  for (const std::string text :
       {"", "plain, with ~ and 'quotes'", "\"", "\\", "a\nb\t\x01", "\x7f", "\xc3\xa9"}) {
    const std::string file = Written(
        Style::kSpaced, [&](JsonWriter& json) { json.BeginArray().Value(text).EndArray(); });
    EXPECT_EQ(nlohmann::json::parse(file)[0], text) << file;
  }
  EXPECT_EQ(Written(Style::kCompact,
                    [](JsonWriter& json) { json.BeginArray().Value("\xff").EndArray(); }),
            "[\"\xef\xbf\xbd\"]\n")
      << "no UTF-8";
}

TEST(JsonWriterTest, FilesLargerThanTheBufferAreWhole) {
  const std::vector<uint32_t> numbers(100'000, 123);
  const std::string file = Written(Style::kCompact, [&](JsonWriter& json) {
    json.BeginArray().Numbers(numbers, std::identity());
    json.Value(std::string(200'000, 'x'));
    for (uint32_t i = 0; i < 50'000; ++i) json.BeginObject().Field("i", i).EndObject();
    json.EndArray();
  });
  const nlohmann::json read = nlohmann::json::parse(file);
  EXPECT_EQ(read[0], numbers);
  EXPECT_EQ(read[1].get<std::string>().size(), 200'000u);
  ASSERT_EQ(read.size(), 50'002u);
  EXPECT_EQ(read[50'001]["i"], 49'999);
}

}  // namespace
}  // namespace prepost::json_writer_test
