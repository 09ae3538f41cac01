// SPDX-License-Identifier: Apache-2.0
//
// ReadCsv: what a command prints as CSV, for tests that read values by their columns.
#ifndef PREPOST_TESTS_SUPPORT_READ_CSV_H_
#define PREPOST_TESTS_SUPPORT_READ_CSV_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace prepost::test {

/// The lines of a CSV without comments, each by the names in the first. Expects that these are
/// different, and as many values in each line.
inline std::vector<std::map<std::string, std::string>> ReadCsv(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    std::vector<std::string> values(1);
    bool is_quoted = false;
    for (const char c : line) {
      if (c == '"') is_quoted = !is_quoted;
      if (c == ',' && !is_quoted) {
        values.emplace_back();
      } else {
        values.back() += c;
      }
    }
    if (names.empty()) {
      names = values;
      EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << line;
      continue;
    }
    EXPECT_EQ(values.size(), names.size()) << line;
    auto& row = rows.emplace_back();
    for (size_t i = 0; i < std::min(names.size(), values.size()); ++i) row[names[i]] = values[i];
  }
  return rows;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_READ_CSV_H_
