// SPDX-License-Identifier: Apache-2.0
//
// The device of libibverbs that tests go over: PREPOST_TEST_VERBS names it ("verbs:rxe0"). Few
// machines have one; `scripts/test-verbs` boots a guest that has, and sets it.
#ifndef PREPOST_TESTS_SUPPORT_VERBS_DEVICE_H_
#define PREPOST_TESTS_SUPPORT_VERBS_DEVICE_H_

#include <cstdlib>
#include <string>

namespace prepost::test {

/// "": there is none.
inline std::string VerbsDeviceOfTests() {
  const char* const name = std::getenv("PREPOST_TEST_VERBS");
  return name == nullptr ? "" : name;
}
inline constexpr char kNoVerbsDevice[] = "PREPOST_TEST_VERBS names no device (scripts/test-verbs)";

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_VERBS_DEVICE_H_
