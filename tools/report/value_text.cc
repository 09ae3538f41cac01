// SPDX-License-Identifier: Apache-2.0
#include "tools/report/value_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace prepost::tools {

std::vector<std::string> Split(std::string_view text, char between) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(between, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::map<std::string, std::string>> ParseParts(const std::string& text,
                                                      const std::vector<std::string>& keys) {
  std::map<std::string, std::string> values;
  const auto bad = [](const std::string& why) { return Status(StatusCode::kUsage, why); };
  for (const std::string& part : Split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    if (equals == std::string::npos || std::ranges::find(keys, key) == keys.end())
      return bad(fmt::format("'{}' is unknown", part));
    if (!values.emplace(key, part.substr(equals + 1)).second)
      return bad(fmt::format("'{}' is there twice", key));
  }
  return values;
}

}  // namespace prepost::tools
