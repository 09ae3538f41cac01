// SPDX-License-Identifier: Apache-2.0
//
// kIsSanitized: whether what is tested, here or in the command, runs with a sanitizer, which
// multiplies its time. The build says so (PREPOST_SANITIZE): the test's own code may be without.
#ifndef PREPOST_TESTS_SUPPORT_SANITIZERS_H_
#define PREPOST_TESTS_SUPPORT_SANITIZERS_H_

namespace prepost::test {

#ifdef PREPOST_ADDRESS_SANITIZER
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif
#ifdef PREPOST_THREAD_SANITIZER
inline constexpr bool kHasThreadSanitizer = true;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif
inline constexpr bool kIsSanitized = kHasAddressSanitizer || kHasThreadSanitizer;

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_SANITIZERS_H_
