// SPDX-License-Identifier: Apache-2.0
//
// What libfabric does to the program that loads it. Plans over its providers are in
// multicast_test.cc and collective_test.cc.
#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "backends/registry.h"

namespace prepost::fabric_test {
namespace {

// Libraries behind libfabric take signals when they are loaded. Catches Ctrl-C that a program no
// longer hears of.
TEST(FabricSignalsTest, BelongToTheProgram) {
  const auto handlers = [] {
    std::vector<void (*)(int)> all;
    for (int number = 1; number < 32; ++number) {
      struct sigaction action = {};
      if (sigaction(number, nullptr, &action) == 0) all.push_back(action.sa_handler);
    }
    return all;
  };
  const auto before = handlers();
  static_cast<void>(FindListed("fabric:tcp"));
  EXPECT_EQ(handlers(), before);
}

}  // namespace
}  // namespace prepost::fabric_test
