// SPDX-License-Identifier: Apache-2.0
//
// What groups on NICs take without a search, beside what simulation finds best.
#include "compiler/choice/preposted_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "compiler/compile.h"
#include "compiler/spec.h"
#include "sim/cluster/profile.h"
#include "sim/plan_timer.h"

namespace prepost::sim::preposted_choice_test {
namespace {

// Catches a schedule or a block size that another one beats by more than 5 %.
TEST(PrepostedChoiceTest, NoOtherIsMuchFaster) {
  for (const char* name : {"fractus", "ndr400"}) {
    std::ifstream in(PREPOST_SOURCE_DIR "/examples/profiles/" + std::string(name) + ".json");
    const Result<Profile> read = ReadProfile(in, name);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    const Profile& profile = *read;
    for (const uint32_t nodes : {3u, 8u, 16u}) {
      const PlanTimer timer =
          MakePlanTimer({.profile = profile, .network = profile.NetworkOf(nodes)});
      for (const uint64_t bytes : {uint64_t{64} << 10, uint64_t{1} << 20, uint64_t{16} << 20}) {
        const auto seconds = [&](const std::string& algorithm, uint64_t block_bytes) {
          Spec spec;
          spec.nodes = nodes;
          spec.algorithm = algorithm;
          spec.message_bytes = bytes;
          spec.block_bytes = block_bytes;
          spec.ready = {.automatic = false, .ready = {.mode = ReadyMode::kBarrier}};
          spec.send_window = {.automatic = false, .window = {}};
          const Result<VerifiedPlan> plan = Compile(spec);
          EXPECT_TRUE(plan.ok()) << plan.status().ToString();
          const Result<double> took = timer(*plan, plan->header().payload.blocks);
          return took.ok() ? *took : std::numeric_limits<double>::infinity();
        };
        const double chosen = seconds(PrepostedAlgorithm(nodes), PrepostedBlockBytes(bytes));
        for (const char* algorithm : {"chain", "binomial_pipeline", "circulant", "two_tree"}) {
          for (uint64_t block = uint64_t{16} << 10; block <= bytes / 4; block *= 4)
            EXPECT_LE(chosen, 1.05 * seconds(algorithm, block))
                << name << ", " << nodes << " nodes, " << bytes << " bytes: " << algorithm << ", "
                << block;
        }
      }
    }
  }
}

}  // namespace
}  // namespace prepost::sim::preposted_choice_test
