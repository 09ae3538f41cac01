// SPDX-License-Identifier: Apache-2.0
//
// A handler for nlohmann's SAX parser that follows a JsonForm with an explicit stack. The parser is
// iterative and the stack no deeper than the form, but for values under "x-" keys, whose depth is
// limited by a counter. Columns of numbers do not go through the parser: TakeNumbers().
#include "ir/json/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <charconv>
#include <istream>
#include <nlohmann/json.hpp>

#include "ir/base/near_name.h"
#include "ir/base/utf8.h"
#include "ir/json/json_source.h"

namespace prepost {
namespace {

constexpr uint32_t kSkippedDepthMax = 64;
constexpr size_t kQuotedBytesMax = 80;
/// Elements of a column: fewer than 2^32, so that 32 bits count them.
constexpr size_t kColumnMax = UINT32_MAX - 1;

/// Cut to a length that fits a line.
std::string Shorten(std::string text) {
  if (text.size() > kQuotedBytesMax) {
    text.resize(kQuotedBytesMax);
    text += "...";
  }
  return text;
}

/// A key as a JSON pointer token, on one line.
std::string PointerToken(const std::string& key) {
  std::string token;
  for (char c : Shorten(key)) {
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  }
  return Printable(token);
}

}  // namespace

std::string JsonScalar::Describe() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "a boolean";
    case Kind::kUnsigned:
      return fmt::to_string(number);
    case Kind::kOtherNumber:
      return Shorten(text);
    case Kind::kString:
      return fmt::format("string \"{}\"", Printable(Shorten(text)));
  }
  PREPOST_CHECK(false);
  return "";
}

JsonForm& JsonForm::Add(Field field) {
  PREPOST_CHECK(fields_.size() < 64);  // a bit each in JsonFormHandler
  fields_.push_back(std::move(field));
  return *this;
}
JsonForm& JsonForm::Scalar(std::string key, ReadScalar read, Need need) {
  return Add({.key = std::move(key), .type = Type::kScalar, .need = need, .read = std::move(read)});
}
JsonForm& JsonForm::Letters(std::string key, ReadScalar read, Need need) {
  Scalar(std::move(key), std::move(read), need).fields_.back().is_letters = true;
  return *this;
}
JsonForm& JsonForm::Object(std::string key, JsonForm* form, Need need) {
  return Add(
      {.key = std::move(key), .type = Type::kObject, .need = need, .read = {}, .form = form});
}
JsonForm& JsonForm::ScalarOrObject(std::string key, ReadScalar read, JsonForm* form, Need need) {
  return Add({.key = std::move(key),
              .type = Type::kScalarOrObject,
              .need = need,
              .read = std::move(read),
              .form = form});
}
JsonForm& JsonForm::Scalars(std::string key, ReadScalar read_element, Need need, uint64_t least) {
  return Add({.key = std::move(key),
              .type = Type::kScalars,
              .need = need,
              .read = std::move(read_element),
              .least = least});
}
JsonForm& JsonForm::ScalarLists(std::string key, std::function<void()> begin_list,
                                ReadScalar read_element, Need need) {
  return Add({.key = std::move(key),
              .type = Type::kScalarLists,
              .need = need,
              .read = std::move(read_element),
              .begin_list = std::move(begin_list)});
}
JsonForm& JsonForm::ScalarsOrLists(std::string key, std::function<void()> begin_list,
                                   ReadScalar read_element, Need need, uint64_t least) {
  ScalarLists(std::move(key), std::move(begin_list), std::move(read_element), need);
  fields_.back().type = Type::kScalarsOrLists;
  fields_.back().least = least;
  return *this;
}
JsonForm& JsonForm::ScalarOrScalars(std::string key, ReadScalar read_element, Need need) {
  return Add({.key = std::move(key),
              .type = Type::kScalarOrScalars,
              .need = need,
              .read = std::move(read_element)});
}
JsonForm& JsonForm::Objects(std::string key, JsonForm* element_form, Need need) {
  return Add({.key = std::move(key),
              .type = Type::kObjects,
              .need = need,
              .read = {},
              .element_form = element_form});
}
JsonForm& JsonForm::Uint32s(std::string key, Uint32Column column, Need need) {
  const auto read_element = [column](const JsonScalar& scalar) -> Status {
    uint32_t value = column.null_value.value_or(0);
    if (!(scalar.is_null() && column.null_value)) {
      PREPOST_RETURN_IF_ERROR(ReadUint32(&value, column.value_max)(scalar));
    }
    if (column.out->size() == kColumnMax)
      return Rejected(fmt::format("more than {} elements", kColumnMax));
    column.out->push_back(value);
    return {};
  };
  return Add({.key = std::move(key),
              .type = Type::kScalars,
              .need = need,
              .read = read_element,
              .column = column});
}
JsonForm& JsonForm::ObjectOrObjects(std::string key, JsonForm* form, JsonForm* element_form,
                                    Need need) {
  return Add({.key = std::move(key),
              .type = Type::kObjectOrObjects,
              .need = need,
              .read = {},
              .form = form,
              .element_form = element_form});
}
JsonForm& JsonForm::OneOf(const std::string& key, const std::string& other) {
  const auto index_of = [&](const std::string& wanted) {
    const auto field = std::ranges::find(fields_, wanted, &Field::key);
    PREPOST_CHECK(field != fields_.end());
    return static_cast<size_t>(field - fields_.begin());
  };
  alternatives_.emplace_back(index_of(key), index_of(other));
  return *this;
}
JsonForm& JsonForm::NamesAllMissing() {
  names_all_missing_ = true;
  return *this;
}
JsonForm& JsonForm::OnBegin(std::function<void()> begin) {
  begin_ = std::move(begin);
  return *this;
}
JsonForm& JsonForm::OnEnd(std::function<Status()> end) {
  end_ = std::move(end);
  return *this;
}

/// The SAX events of one file, followed along its form. Returning false from an event stops the
/// parser.
class JsonFormHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonFormHandler(const std::string& name, JsonSource& source, JsonForm* form)
      : name_(name), source_(source), root_(form) {}

  Status status() const { return status_; }

  bool null() override { return OnScalar({.kind = JsonScalar::Kind::kNull}); }
  bool boolean(bool value) override {
    return OnScalar({.kind = JsonScalar::Kind::kBoolean, .number = value ? 1u : 0u});
  }
  bool number_unsigned(number_unsigned_t value) override {
    return OnScalar({.kind = JsonScalar::Kind::kUnsigned, .number = value});
  }
  bool number_integer(number_integer_t value) override {
    return OnScalar({.kind = JsonScalar::Kind::kOtherNumber, .text = fmt::to_string(value)});
  }
  bool number_float(number_float_t, const string_t& text) override {
    return OnScalar({.kind = JsonScalar::Kind::kOtherNumber, .text = text});
  }
  bool string(string_t& value) override {
    return OnScalar({.kind = JsonScalar::Kind::kString, .text = std::move(value)});
  }
  bool binary(binary_t&) override { return Fail("unexpected binary value"); }

  bool start_object(size_t) override {
    source_.EndToken();
    if (skipping_) return Nest();
    if (stack_.empty()) return Enter(root_);
    Frame& top = stack_.back();
    if (top.array != nullptr) {
      if (top.array->element_form == nullptr) return Fail("expected a scalar, found an object");
      return Enter(top.array->element_form);
    }
    if (top.field->form == nullptr) return Fail(Expected(*top.field) + ", found an object");
    return Enter(top.field->form);
  }

  bool key(string_t& key) override {
    source_.EndToken();
    if (skipping_) return true;
    Frame& top = stack_.back();
    top.key = key;
    if (key.starts_with("x-")) {
      skipping_ = 1;
      return true;
    }
    for (size_t i = 0; i < top.form->fields_.size(); ++i) {
      if (top.form->fields_[i].key != key) continue;
      if (top.Has(i)) return Fail("the key stands here twice");
      top.seen |= uint64_t{1} << i;
      top.field = &top.form->fields_[i];
      if (top.field->is_letters) source_.EndToken(kColumnMax);
      return true;
    }
    std::vector<std::string> names;
    for (const JsonForm::Field& field : top.form->fields_) names.push_back(field.key);
    return Fail("unknown key" + DidYouMean(key, names));
  }

  bool end_object() override {
    source_.EndToken();
    if (skipping_) return Unnest();
    const Frame top = stack_.back();
    stack_.back().key.clear();
    const size_t missing = missing_.size();
    for (size_t i = 0; i < top.form->fields_.size(); ++i) {
      const JsonForm::Field& field = top.form->fields_[i];
      if (field.need != JsonForm::Need::kRequired || top.Has(i)) continue;
      missing_.push_back(Pointer() + "/" + PointerToken(field.key));
      if (status_.ok()) Fail(fmt::format("key '{}' is missing", field.key));
      if (!root_->names_all_missing_) return false;
    }
    if (missing_.size() == missing && !EndComplete(top)) return false;
    if (stack_.size() == 1 && !missing_.empty()) {
      if (missing_.size() > 1) Fail(fmt::format("keys are missing: {}", fmt::join(missing_, ", ")));
      return false;
    }
    stack_.pop_back();
    NextElement();
    return true;
  }

  bool start_array(size_t) override {
    source_.EndToken();
    if (skipping_) return Nest();
    if (stack_.empty()) return Fail("expected an object, found an array");
    Frame& top = stack_.back();
    if (top.array != nullptr) return EnterList(&top);
    const JsonForm::Type type = top.field->type;
    if (type != JsonForm::Type::kScalars && type != JsonForm::Type::kScalarLists &&
        type != JsonForm::Type::kScalarsOrLists && type != JsonForm::Type::kScalarOrScalars &&
        type != JsonForm::Type::kObjects && type != JsonForm::Type::kObjectOrObjects) {
      return Fail(Expected(*top.field) + ", found an array");
    }
    top.array = top.field;
    top.index = 0;
    return top.field->column.out == nullptr || TakeNumbers(&top);
  }

  bool end_array() override {
    source_.EndToken();
    if (skipping_) return Unnest();
    Frame& top = stack_.back();
    if (std::exchange(top.is_in_list, false)) {
      NextElement();
      return true;
    }
    const uint64_t least = std::exchange(top.array, nullptr)->least;
    if (top.index >= least) return true;
    return Fail(fmt::format("expected at least {} elements, found {}", least, top.index));
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    if (source_.is_cut()) {
      return Fail(
          fmt::format("more than {} bytes of one value, or of white space", source_.token_max()));
    }
    if (dynamic_cast<const nlohmann::json::out_of_range*>(&error) != nullptr) {
      return Fail("the number is too large");
    }
    const std::string_view what =
        error.what();  // "[...] parse error at line 1, column 2: what went wrong"
    const size_t colon = what.find(": ");
    const std::string cause(colon == std::string_view::npos ? what : what.substr(colon + 2));
    if (source_.is_empty()) return Fail("the file is empty");
    const auto says = [&](const char* words) { return cause.find(words) != std::string::npos; };
    if (source_.is_behind_zero() && says("unexpected end of input"))
      return Fail("not JSON: a zero byte");
    if (source_.Ahead(1).empty() &&
        (says("unexpected end of input") || says("missing closing quote")))
      return Fail("the file ends in the middle, as if it were cut");
    return Fail("not JSON: " + Shorten(cause));
  }

 private:
  struct Frame {
    const JsonForm* form = nullptr;
    uint64_t seen = 0;                       // a bit per field
    const JsonForm::Field* field = nullptr;  // that of the last key
    const JsonForm::Field* array = nullptr;  // not null inside its array
    uint64_t index = 0;                      // in that array
    bool is_in_list = false;                 // of ScalarLists, whose elements are arrays
    uint64_t list_index = 0;                 // in that list
    std::string key;                         // the last key, for the pointer

    bool Has(size_t i) const { return (seen >> i & 1) != 0; }
  };

  static std::string Expected(const JsonForm::Field& field) {
    switch (field.type) {
      case JsonForm::Type::kScalar:
        return "expected a scalar";
      case JsonForm::Type::kObject:
        return "expected an object";
      case JsonForm::Type::kScalarOrObject:
        return "expected a scalar or an object";
      case JsonForm::Type::kScalarOrScalars:
        return "expected a scalar or an array";
      case JsonForm::Type::kObjectOrObjects:
        return "expected an object or an array";
      case JsonForm::Type::kScalars:
      case JsonForm::Type::kScalarLists:
      case JsonForm::Type::kScalarsOrLists:
      case JsonForm::Type::kObjects:
        return "expected an array";
    }
    PREPOST_CHECK(false);
    return "";
  }

  /// Of an object that lacks no key.
  bool EndComplete(const Frame& top) {
    for (const auto& [a, b] : top.form->alternatives_) {
      const std::string& key = top.form->fields_[a].key;
      const std::string& other = top.form->fields_[b].key;
      if (top.Has(a) && top.Has(b))
        return Fail(fmt::format("keys '{}' and '{}' exclude each other", key, other));
      if (!top.Has(a) && !top.Has(b))
        return Fail(fmt::format("key '{}' or '{}' is missing", key, other));
    }
    if (top.form->end_) {
      if (Status status = top.form->end_(); !status.ok()) return Fail(status.message());
    }
    return true;
  }

  bool Enter(const JsonForm* form) {
    stack_.push_back({.form = form});
    if (form->begin_) form->begin_();
    return true;
  }

  /// An array inside the array of `top`.
  bool EnterList(Frame* top) {
    const JsonForm::Type type = top->array->type;
    const bool has_lists =
        type == JsonForm::Type::kScalarLists || type == JsonForm::Type::kScalarsOrLists;
    if (!has_lists || top->is_in_list)
      return Fail("expected an element that is no array, found an array");
    top->is_in_list = true;
    top->list_index = 0;
    if (top->array->begin_list) top->array->begin_list();
    return true;
  }

  /// Most of a large file are numbers in columns, for which an event each costs too much. When a
  /// column begins, the parser has taken its '[' and nothing behind it. So the numbers can be taken
  /// from under the parser, which goes on at the closing bracket, as after an empty array, or at
  /// the first element that is no number of this column, which it reads and judges as any.
  bool TakeNumbers(Frame* top) {
    const JsonForm::Uint32Column& column = top->array->column;
    for (char next = source_.TakeSpace(); next != ']';) {
      const ShortNumber number = ParseShortNumber(source_.Ahead(kNumberAhead));
      const std::optional<uint32_t> value = number.value ? number.value : column.null_value;
      const bool is_taken = number.length != 0 && value && column.out->size() < kColumnMax &&
                            (!number.value || *value <= column.value_max);
      if (!is_taken) return true;
      source_.Take(number.length);
      source_.EndToken();
      column.out->push_back(*value);
      next = source_.TakeSpace();
      if (next == ']') break;
      if (next != ',') return Fail("not JSON: expected ',' or ']' behind a number");
      ++top->index;
      source_.Take(1);
      next = source_.TakeSpace();
      if (next == ']') return Fail("not JSON: ',' before ']'");
    }
    return true;
  }

  bool OnScalar(JsonScalar scalar) {
    source_.EndToken();
    if (skipping_) {
      if (skipping_ == 1) skipping_ = 0;
      return true;
    }
    if (stack_.empty()) return Fail("expected an object, found " + scalar.Describe());
    Frame& top = stack_.back();
    const JsonForm::Field& field = top.array != nullptr ? *top.array : *top.field;
    using Type = JsonForm::Type;
    const bool is_wanted = top.array != nullptr ? field.element_form == nullptr
                                                : field.type == Type::kScalar ||
                                                      field.type == Type::kScalarOrObject ||
                                                      field.type == Type::kScalarOrScalars;
    if (top.array != nullptr && field.type == Type::kScalarLists && !top.is_in_list)
      return Fail("expected an array, found " + scalar.Describe());
    if (!is_wanted) {
      const std::string expected = top.array != nullptr ? "expected an object" : Expected(field);
      return Fail(expected + ", found " + scalar.Describe());
    }
    scalar.place = {.line = source_.line(), .column = source_.column()};
    if (Status status = field.read(scalar); !status.ok()) return Fail(status.message());
    NextElement();
    return true;
  }

  void NextElement() {
    if (stack_.empty() || stack_.back().array == nullptr) return;
    ++(stack_.back().is_in_list ? stack_.back().list_index : stack_.back().index);
  }

  // Inside the value of an "x-" key: skipping_ is 1 + the depth of arrays and objects entered.
  bool Nest() {
    if (++skipping_ > kSkippedDepthMax)
      return Fail(fmt::format("nested deeper than {}", kSkippedDepthMax));
    return true;
  }
  bool Unnest() {
    if (--skipping_ == 1) skipping_ = 0;
    return true;
  }

  std::string Pointer() const {
    std::string pointer;
    for (const Frame& frame : stack_) {
      if (frame.key.empty() && frame.array == nullptr) continue;
      pointer += "/" + PointerToken(frame.key);
      if (frame.array != nullptr) pointer += fmt::format("/{}", frame.index);
      if (frame.is_in_list) pointer += fmt::format("/{}", frame.list_index);
    }
    return pointer;
  }

  bool Fail(std::string message) {
    const std::string pointer = Pointer();
    std::string where = fmt::format("{}:{}:{}", name_, source_.line(), source_.column());
    if (!pointer.empty()) where += ": " + pointer;
    status_ = Rejected(std::move(message), std::move(where));
    return false;
  }

  const std::string& name_;
  JsonSource& source_;
  JsonForm* root_;
  llvm::SmallVector<Frame, 8> stack_;
  uint32_t skipping_ = 0;
  std::vector<std::string> missing_;  ///< keys, as pointers
  Status status_;
};

namespace {

Status ReadUnsigned(const JsonScalar& scalar, uint64_t min, uint64_t max, uint64_t* out) {
  if (scalar.kind != JsonScalar::Kind::kUnsigned) {
    return Rejected(
        fmt::format("expected an integer from {} to {}, found {}", min, max, scalar.Describe()));
  }
  if (scalar.number < min) {
    return Rejected(fmt::format("expected {} or more, found {}", min, scalar.number));
  }
  if (scalar.number > max) {
    return Rejected(fmt::format("{} is too large, the limit is {}", scalar.number, max));
  }
  *out = scalar.number;
  return {};
}

/// Reads all of `text` as an unsigned decimal number.
std::optional<uint32_t> ParseUint32(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

JsonForm::ReadScalar ReadBool(bool* out) {
  return [out](const JsonScalar& scalar) -> Status {
    if (scalar.kind != JsonScalar::Kind::kBoolean) {
      return Rejected("expected true or false, found " + scalar.Describe());
    }
    *out = scalar.number != 0;
    return {};
  };
}

JsonForm::ReadScalar ReadUint32(uint32_t* out, uint32_t max, uint32_t min) {
  return [out, max, min](const JsonScalar& scalar) -> Status {
    uint64_t value = 0;
    PREPOST_RETURN_IF_ERROR(ReadUnsigned(scalar, min, max, &value));
    *out = static_cast<uint32_t>(value);
    return {};
  };
}

JsonForm::ReadScalar ReadUint64(uint64_t* out, uint64_t max, uint64_t min) {
  return [out, max, min](const JsonScalar& scalar) { return ReadUnsigned(scalar, min, max, out); };
}

JsonForm::ReadScalar ReadInt64(int64_t* out, int64_t min, int64_t max) {
  return [out, min, max](const JsonScalar& scalar) -> Status {
    int64_t number = 0;
    bool is_number = scalar.kind == JsonScalar::Kind::kUnsigned && scalar.number <= INT64_MAX;
    if (is_number) number = static_cast<int64_t>(scalar.number);
    if (scalar.kind == JsonScalar::Kind::kOtherNumber) {
      const char* const text_end = scalar.text.data() + scalar.text.size();
      const auto [end, error] = std::from_chars(scalar.text.data(), text_end, number);
      is_number = error == std::errc() && end == text_end;
    }
    if (!is_number || number < min || number > max) {
      return Rejected(fmt::format("expected a whole number from {} to {}, found {}", min, max,
                                  scalar.Describe()));
    }
    *out = number;
    return {};
  };
}

JsonForm::ReadScalar ReadOptionalUint32(std::optional<uint32_t>* out) {
  return [out](const JsonScalar& scalar) -> Status {
    out->reset();
    if (scalar.is_null()) return {};
    uint64_t value = 0;
    PREPOST_RETURN_IF_ERROR(ReadUnsigned(scalar, 0, UINT32_MAX, &value));
    *out = static_cast<uint32_t>(value);
    return {};
  };
}

JsonForm::ReadScalar ReadString(std::string* out, size_t bytes_max) {
  return [out, bytes_max](const JsonScalar& scalar) -> Status {
    if (scalar.kind != JsonScalar::Kind::kString) {
      return Rejected("expected a string, found " + scalar.Describe());
    }
    if (scalar.text.size() > bytes_max) {
      return Rejected(
          fmt::format("the string has {} bytes, the limit is {}", scalar.text.size(), bytes_max));
    }
    *out = scalar.text;
    return {};
  };
}

JsonForm::ReadScalar ExpectString(std::string expected) {
  return [expected = std::move(expected)](const JsonScalar& scalar) -> Status {
    if (scalar.kind == JsonScalar::Kind::kString && scalar.text == expected) return {};
    return Rejected(fmt::format("expected \"{}\", found {}", expected, scalar.Describe()));
  };
}

JsonForm::ReadScalar ExpectVersion(uint32_t major, uint32_t minor,
                                   std::vector<std::string>* warnings) {
  return [=](const JsonScalar& scalar) -> Status {
    const std::string_view text = scalar.text;
    const size_t dot = text.find('.');
    std::optional<uint32_t> file_major, file_minor;
    if (scalar.kind == JsonScalar::Kind::kString && dot != std::string_view::npos) {
      file_major = ParseUint32(text.substr(0, dot));
      file_minor = ParseUint32(text.substr(dot + 1));
    }
    if (!file_major || !file_minor) {
      return Rejected(fmt::format("expected a version such as \"{}.{}\", found {}", major, minor,
                                  scalar.Describe()));
    }
    if (*file_major != major) {
      return Rejected(fmt::format("version {} is not supported, this program reads {}.x",
                                  Shorten(scalar.text), major));
    }
    if (*file_minor > minor && warnings != nullptr) {
      warnings->push_back(fmt::format("version {}.{} is newer than {}.{}, which this program knows",
                                      *file_major, *file_minor, major, minor));
    }
    return {};
  };
}

Status ReadJson(std::istream& in, const std::string& name, JsonForm* form, JsonPlace begin) {
  JsonSource source(in, begin);
  JsonFormHandler handler(name, source, form);
  try {
    const bool complete =
        nlohmann::json::sax_parse(JsonSourceIterator(&source), JsonSourceIterator(), &handler);
    return complete ? Status() : handler.status();
  } catch (const std::ios_base::failure& failure) {  // the stream buffer could not read
    return Rejected(fmt::format("cannot read: {}", failure.code().message()), name);
  }
}

}  // namespace prepost
