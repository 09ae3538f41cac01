// SPDX-License-Identifier: Apache-2.0
//
// JsonWriter: JSON that is written as it comes, for files of millions of values, with line breaks
// where the caller puts them. For files of plans and of traces; what fits in memory is built as
// nlohmann's values instead. Internal to ir/ and runtime/.
//
//   JsonWriter json(out, JsonWriter::Style::kSpaced);   { "nodes": 2,
//   json.BeginObject();                                   "hosts": [
//   json.Field("nodes", 2u);                                { "name": "a" },
//   json.Line(2).Key("hosts").BeginArray();                 { "name": "b" }] }
//   for (const std::string& name : {"a", "b"})
//     json.Line(4).BeginObject().Field("name", name).EndObject();
//   json.EndArray().EndObject();
#ifndef PREPOST_IR_JSON_JSON_WRITER_H_
#define PREPOST_IR_JSON_JSON_WRITER_H_

#include <fmt/format.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "ir/base/status.h"
#include "ir/base/text_writer.h"
#include "ir/json/json_text.h"

namespace prepost {

/// Commas come by themselves, and a line's end behind the outermost brace. Which calls may follow
/// each other is not checked beyond the depth: readers of the files do that in every test.
class JsonWriter {
 public:
  /// Where no line begins: { "a": [1, 2] } or {"a":[1,2]}.
  enum class Style : uint8_t { kSpaced, kCompact };

  /// `out` outlives the writer, and has everything when the writer is gone.
  JsonWriter(std::ostream& out, Style style)
      : out_(out), blank_(style == Style::kSpaced ? " " : "") {}

  JsonWriter& BeginObject() { return Begin('{'); }
  JsonWriter& EndObject() { return End(is_empty_ ? "" : blank_, '}'); }
  JsonWriter& BeginArray() { return Begin('['); }
  JsonWriter& EndArray() { return End("", ']'); }

  /// The next key, element or end of an array begins a line, behind `indent` blanks.
  JsonWriter& Line(size_t indent) {
    indent_ = indent;
    return *this;
  }
  /// Without anything to escape, as keys of our files are.
  JsonWriter& Key(std::string_view key) {
    Separate(blank_);
    out_.Append('"');
    out_.Append(key);
    out_.Append("\":");
    out_.Append(blank_);
    is_behind_key_ = true;
    return *this;
  }

  template <std::integral Number>
  requires(!std::same_as<Number, bool>) JsonWriter& Value(Number number) {
    Separate("");
    out_.AppendNumber(number);
    return *this;
  }
  /// Escaped as QuoteJson() does it.
  JsonWriter& Value(std::string_view text) {
    if (!IsPlain(text)) return Literal(QuoteJson(std::string(text)));
    Separate("");
    out_.Append('"');
    out_.Append(text);
    out_.Append('"');
    return *this;
  }
  /// `json`: a value as it stands in the file.
  JsonWriter& Literal(std::string_view json) {
    Separate("");
    out_.Append(json);
    return *this;
  }
  template <typename It>
  JsonWriter& Field(std::string_view key, const It& value) {
    return Key(key).Value(value);
  }

  /// The keys that say what a file is.
  JsonWriter& Format(std::string_view format, uint32_t major, uint32_t minor) {
    return Field("format", format).Field("version", fmt::format("{}.{}", major, minor));
  }

  /// The array of the numbers that `number_of` gives of the elements, with null for a std::nullopt;
  /// without blanks in either style. Many times as fast as Value() for each.
  template <typename Range, typename NumberOf>
  JsonWriter& Numbers(const Range& range, NumberOf number_of) {
    Separate("");
    char before = '[';
    for (const auto& element : range) AppendNumber(std::exchange(before, ','), number_of(element));
    out_.Append(before == '[' ? "[]" : "]");
    return *this;
  }

 private:
  /// Printable ASCII without escapes. Without a way out of the loop, which takes many bytes at once
  /// so: a node's ops are one string.
  static bool IsPlain(std::string_view text) {
    bool is_other = false;
    for (const char c : text)
      is_other |= (static_cast<signed char>(c) < ' ') | (c == '"') | (c == '\\');
    return !is_other;
  }
  JsonWriter& Begin(char bracket) {
    Separate("");
    out_.Append(bracket);
    is_empty_ = true;
    ++depth_;
    return *this;
  }
  JsonWriter& End(std::string_view blank, char bracket) {
    PREPOST_CHECK(depth_ > 0);
    indent_ ? BeginLine() : out_.Append(blank);
    out_.Append(bracket);
    is_empty_ = false;
    if (--depth_ == 0) out_.Append('\n');
    return *this;
  }
  /// What stands before a key or element: `blank` before the first one where no line begins.
  void Separate(std::string_view blank) {
    if (std::exchange(is_behind_key_, false)) return;
    if (!is_empty_) out_.Append(',');
    indent_ ? BeginLine() : out_.Append(is_empty_ ? blank : blank_);
    is_empty_ = false;
  }
  void BeginLine() {
    out_.Append('\n');
    for (size_t i = 0; i < *indent_; ++i) out_.Append(' ');
    indent_.reset();
  }
  void AppendNumber(char before, std::integral auto number) { out_.AppendNumber(before, number); }
  void AppendNumber(char before, std::optional<uint32_t> number) {
    if (number) return out_.AppendNumber(before, *number);
    out_.Append(before);
    out_.Append("null");
  }

  TextWriter out_;
  const std::string_view blank_;  ///< behind colons and commas, and inside braces
  std::optional<size_t> indent_;  ///< of the line that begins next, if one does
  bool is_empty_ = true;          ///< the innermost object or array, so far
  bool is_behind_key_ = false;    ///< its value comes next
  size_t depth_ = 0;
};

}  // namespace prepost

#endif  // PREPOST_IR_JSON_JSON_WRITER_H_
