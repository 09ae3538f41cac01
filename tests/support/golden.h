// SPDX-License-Identifier: Apache-2.0
//
// Golden files: expected texts under tests/golden/. PREPOST_UPDATE_GOLDEN=1 rewrites them; read the
// diff before committing.
#ifndef PREPOST_TESTS_SUPPORT_GOLDEN_H_
#define PREPOST_TESTS_SUPPORT_GOLDEN_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace prepost::test {

/// Compares `actual` with tests/golden/NAME.
inline void ExpectGolden(const std::string& name, const std::string& actual) {
  const std::string path = std::string(PREPOST_SOURCE_DIR) + "/tests/golden/" + name;
  if (std::getenv("PREPOST_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << actual;
    return;
  }
  std::ifstream in(path);
  ASSERT_TRUE(in.good()) << path << " is missing; PREPOST_UPDATE_GOLDEN=1 makes it";
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(actual, expected.str()) << path;
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_GOLDEN_H_
