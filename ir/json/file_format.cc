// SPDX-License-Identifier: Apache-2.0
#include "ir/json/file_format.h"

#include <istream>
#include <nlohmann/json.hpp>

#include "ir/json/json_source.h"

namespace prepost {
namespace {

/// Reads up to the value of the outermost object's "format".
class FormatFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FormatFinder(JsonSource& source) : source_(source) {}
  const std::string& format() const { return format_; }

  bool null() override { return GoOn(); }
  bool boolean(bool) override { return GoOn(); }
  bool number_integer(number_integer_t) override { return GoOn(); }
  bool number_unsigned(number_unsigned_t) override { return GoOn(); }
  bool number_float(number_float_t, const string_t&) override { return GoOn(); }
  bool binary(binary_t&) override { return GoOn(); }
  bool string(string_t& value) override {
    GoOn();
    if (!is_format_ || (depth_ != 1 && value != "prepost.trace")) return true;
    format_ = value;
    return false;
  }
  bool key(string_t& key) override {
    is_format_ = key == "format";
    return GoOn();
  }
  bool start_object(size_t) override { return ++depth_ != 0 && GoOn(); }
  bool start_array(size_t) override { return ++depth_ != 0 && GoOn(); }
  bool end_object() override { return --depth_ != 0 && GoOn(); }
  bool end_array() override { return --depth_ != 0 && GoOn(); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  bool GoOn() {
    source_.EndToken();
    return true;
  }

  JsonSource& source_;
  size_t depth_ = 0;
  bool is_format_ = false;  // of the last key
  std::string format_;
};

}  // namespace

std::string FormatOf(std::istream& in) {
  JsonSource source(in);
  FormatFinder finder(source);
  try {
    nlohmann::json::sax_parse(JsonSourceIterator(&source), JsonSourceIterator(), &finder);
  } catch (const std::ios_base::failure&) {
    // Its reader meets the same error, and says so.
  }
  return finder.format();
}

}  // namespace prepost
