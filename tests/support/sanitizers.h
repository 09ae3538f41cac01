// SPDX-License-Identifier: Apache-2.0
//
// kIsSanitized: whether this program runs with a sanitizer that multiplies its time. gcc and clang
// say so in different ways.
#ifndef PREPOST_TESTS_SUPPORT_SANITIZERS_H_
#define PREPOST_TESTS_SUPPORT_SANITIZERS_H_

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PREPOST_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define PREPOST_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PREPOST_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define PREPOST_THREAD_SANITIZER 1
#endif

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
