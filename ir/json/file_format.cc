// SPDX-License-Identifier: Apache-2.0
#include "ir/json/file_format.h"

#include <istream>
#include <nlohmann/json.hpp>

namespace prepost {
namespace {

/// Reads up to the value of the outermost object's "format".
class FormatFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& format() const { return format_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& value) override {
    if (!is_format_ || (depth_ != 1 && value != "prepost.trace")) return true;
    format_ = value;
    return false;
  }
  bool key(string_t& key) override {
    is_format_ = key == "format";
    return true;
  }
  bool start_object(size_t) override { return ++depth_ != 0; }
  bool start_array(size_t) override { return ++depth_ != 0; }
  bool end_object() override { return --depth_ != 0; }
  bool end_array() override { return --depth_ != 0; }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  size_t depth_ = 0;
  bool is_format_ = false;  // of the last key
  std::string format_;
};

}  // namespace

std::string FormatOf(std::istream& in) {
  FormatFinder finder;
  try {
    nlohmann::json::sax_parse(in, &finder);
  } catch (const std::ios_base::failure&) {
    // Its reader meets the same error, and says so.
  }
  return finder.format();
}

}  // namespace prepost
