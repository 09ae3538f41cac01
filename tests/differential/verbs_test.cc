// SPDX-License-Identifier: Apache-2.0
//
// Plans over queue pairs of libibverbs, driven by the CPU, a thread and an opened device per node. Needs
// a device (tests/support/verbs_device.h).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/registry.h"
#include "compiler/spec.h"
#include "tests/differential/device_play.h"
#include "tests/support/plans.h"
#include "tests/support/sample.h"
#include "tests/support/verbs_device.h"

namespace prepost::verbs_test {
namespace {

using test::Play;

class VerbsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (device_.empty()) GTEST_SKIP() << test::kNoVerbsDevice;
  }
  void PlayDriven(const VerifiedPlan& plan) {
    Play(plan, device_, std::vector(plan.header().nodes, false));
  }

  const std::string device_ = test::VerbsDeviceOfTests();
};

// Catches whatever the emulated NIC has otherwise than real queue pairs: states, numbers of packets,
// immediates, receives that are not there yet, completions' order.
TEST_F(VerbsTest, EveryScheduleWith4And8Nodes) {
  for (const uint32_t nodes : {4u, 8u}) {
    for (const std::string& algorithm : test::SchedulesToRun()) {
      for (const Ready ready :
           {Ready{.mode = ReadyMode::kBarrier}, Ready{.mode = ReadyMode::kRetry},
            Ready{.mode = ReadyMode::kWindow, .window = 1}}) {
        Spec spec;
        spec.nodes = nodes;
        spec.algorithm = algorithm;
        spec.block_bytes = 4096;
        spec.message_bytes = 5 * 4096 + 17;
        spec.ready = {.automatic = false, .ready = ready};
        SCOPED_TRACE(test::Label(spec));
        PlayDriven(test::CompileOrDie(spec));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(VerbsTest, EverySmallPlan) {
  const std::vector<Spec> specs = test::SpecsForExecutors({.nodes_max = 9, .blocks_max = 6});
  test::Sample sample(test::ScheduleLabels(specs), test::SampleDivisor(2));
  for (const Spec& spec : specs) {
    if (!sample.Takes()) continue;
    SCOPED_TRACE(test::Label(spec));
    PlayDriven(test::CompileOrDie(spec));
    if (HasFatalFailure()) return;
  }
}

// A block is several packets, and a channel has more blocks than a queue of requests is long. Catches
// queues that run over, and a completion queue that does.
TEST_F(VerbsTest, LargeBlocksAndManyBlocks) {
  PlayDriven(test::PlanWithWindowsOf1("binomial_pipeline", 4, 8, 300'000));
  Spec spec;
  spec.nodes = 3;
  spec.algorithm = "chain";
  spec.block_bytes = 16;
  spec.message_bytes = 16 * 5000;
  PlayDriven(test::CompileOrDie(spec));
}

// Catches a room of memory whose key is not that of the piece.
TEST_F(VerbsTest, EveryCollective) { test::PlayEveryCollective(device_, /*fewer=*/4); }

TEST_F(VerbsTest, RefusesWhatItCannot) {
  EXPECT_FALSE(OpenPlayerDevice(device_, {.needs_offload = true}).ok());
  for (const char* const options : {",port=9", ",gid=200", ",pkey=0x123"}) {
    const auto device = OpenPlayerDevice(device_ + options);
    ASSERT_FALSE(device.ok()) << options;
    EXPECT_EQ(device.status().code(), StatusCode::kEnvironment) << device.status().ToString();
  }
  EXPECT_FALSE(OpenPlayerDevice("verbs:none_of_this_name").ok());
}

}  // namespace
}  // namespace prepost::verbs_test
