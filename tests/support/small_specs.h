// SPDX-License-Identifier: Apache-2.0
//
// SmallSpecs: the specs on which executors are compared: every schedule and ready mode, few nodes
// and blocks, any root, short last blocks and the empty message.
#ifndef PREPOST_TESTS_SUPPORT_SMALL_SPECS_H_
#define PREPOST_TESTS_SUPPORT_SMALL_SPECS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prepost/compiler/compile.h"
#include "prepost/compiler/schedule.h"

namespace prepost::test {

inline constexpr uint64_t kSmallBlockBytes = 10;

/// For 1..nodes_max nodes and 0..blocks_max blocks, the last one short; 0 blocks stands for the
/// empty message.
inline std::vector<Spec> SmallSpecs(uint32_t nodes_max, uint32_t blocks_max) {
  std::vector<Spec> specs;
  for (const std::string& algorithm : ScheduleNames()) {
    for (const char* ready : {"auto", "barrier", "channel", "window=1", "window=2", "retry"}) {
      for (uint32_t nodes = 1; nodes <= nodes_max; ++nodes) {
        for (uint32_t blocks = 0; blocks <= blocks_max; ++blocks) {
          Spec spec;
          spec.nodes = nodes;
          spec.root = NodeId((blocks + nodes / 2) % nodes);
          spec.block_bytes = kSmallBlockBytes;
          spec.message_bytes = blocks == 0 ? 0 : blocks * kSmallBlockBytes - 3;
          spec.algorithm = algorithm;
          spec.ready = ParseReady(ready).value();
          specs.push_back(spec);
        }
      }
    }
  }
  return specs;
}

/// "binomial_pipeline n=5 bytes=27 root=2 ready=window=1", for SCOPED_TRACE.
inline std::string Label(const Spec& spec) {
  return spec.algorithm + " n=" + std::to_string(spec.nodes) +
         " bytes=" + std::to_string(spec.message_bytes) +
         " root=" + std::to_string(spec.root.value) + " ready=" + ToString(spec.ready);
}

inline Plan CompileOrDie(const Spec& spec) {
  Result<Plan> plan = Compile(spec);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return std::move(plan).value();
}

}  // namespace prepost::test

#endif  // PREPOST_TESTS_SUPPORT_SMALL_SPECS_H_
